package event

import (
	"fmt"
	"strings"
	"time"
)

// Incident names trouble that has one alert: the cause and what it is about.
// While it is open, other trouble of its family with the same subject only
// counts on it, or escalates it.
type Incident struct {
	Cause   Cause  `json:"cause"`
	Subject string `json:"subject"` // a source, destination or rule name
	Detail  string `json:"detail"`  // for the operator: what happened and what to do next
	// DownFrom is when a destination that is down began to fail, and DownUntil
	// when one that was down answered again.
	DownFrom  time.Time `json:"-"`
	DownUntil time.Time `json:"-"`
}

// Cause is the kind of an incident.
type Cause string

// The causes of incidents.
const (
	CauseDeadEvent  Cause = "dead_event"
	CauseConflict   Cause = "conflict"
	CauseUnreadable Cause = "unreadable"
	CauseLaneParked Cause = "lane_parked"
	// CauseNotCompared is a source whose sender's list can not be read: what is
	// missing would not be noticed.
	CauseNotCompared Cause = "not_compared"

	// CauseDeadDelivery is trouble of its own, which outlasts an outage; while
	// one goes on, dead letters count on it.
	CauseDeadDelivery Cause = "dead_delivery"

	// What can follow from one outage of a destination, from bad to worse.
	CauseDestinationFailing  Cause = "destination_failing"  // too many of its attempts fail
	CauseDestinationDown     Cause = "destination_down"     // it is held
	CauseDestinationDisabled Cause = "destination_disabled" // it has been failing for an hour
	CauseDestinationGone     Cause = "destination_gone"     // it said itself that it wants no more
)

// FamilyDestination is the family of all causes that can follow from one outage
// of a destination.
const FamilyDestination = "destination"

// Family is what causes have in common that can follow from one another: there
// is one open incident for a family and subject. Most causes are a family of
// their own.
func (c Cause) Family() string {
	if c.Level() > 0 {
		return FamilyDestination
	}
	return string(c)
}

// Level tells the worse of two causes of a family: the higher one stands on the
// incident.
func (c Cause) Level() int {
	switch c {
	case CauseDestinationFailing:
		return 1
	case CauseDestinationDown:
		return 2
	case CauseDestinationDisabled:
		return 3
	case CauseDestinationGone:
		return 4
	}
	return 0
}

// OpenIncident is a stored incident.
type OpenIncident struct {
	ID int64 `json:"id"`
	Incident
	Count      int       `json:"count"`
	OpenedAt   time.Time `json:"opened_at"`
	LastAt     time.Time `json:"last_at"`
	ResolvedAt time.Time `json:"resolved_at,omitzero"` // zero while it is open
	// Dead is how many dead letters that count on it are still dead.
	Dead int `json:"dead"`
	// AlertedAt is when its alert was written, zero where there is nobody to
	// tell; NotifiedAt when the first recipient had it.
	AlertedAt      time.Time `json:"alerted_at,omitzero"`
	NotifiedAt     time.Time `json:"notified_at,omitzero"`
	AcknowledgedAt time.Time `json:"acknowledged_at,omitzero"`
	AcknowledgedBy string    `json:"acknowledged_by,omitempty"`
	// Death is why the latest dead letter that counts on it died.
	Death string `json:"-"`
	// A destination is down since DownSince, zero while it answers; before that
	// it was down Downs times, for Down in all.
	DownSince time.Time     `json:"-"`
	Down      time.Duration `json:"-"`
	Downs     int           `json:"-"`
	// Waiting is how many deliveries wait for its destination, as far as
	// MaxWaiting. Only who tells of it knows it.
	Waiting int `json:"-"`
}

// IsBack tells whether a destination that was down answers again: it is waited
// for whether that lasts.
func (i *OpenIncident) IsBack() bool { return i.Downs > 0 && i.DownSince.IsZero() && !i.Over() }

// Over tells whether the incident has ended.
func (i *OpenIncident) Over() bool { return !i.ResolvedAt.IsZero() }

// Story is the detail of an incident as it stands: what was said when it began
// or turned, with how often and how long it was down, and what is dead of it.
func (i *OpenIncident) Story() string {
	switch i.Cause.Family() {
	case FamilyDestination:
		return i.Detail + i.outages() + i.Lost()
	case string(CauseDeadDelivery), string(CauseDeadEvent):
		return i.deadLetters()
	}
	return i.Detail
}

// outages tells how long a destination was down.
func (i *OpenIncident) outages() string {
	down := i.Down.Round(time.Second)
	switch {
	case i.Downs == 0:
		return ""
	case !i.DownSince.IsZero():
		return fmt.Sprintf("; within this incident it was down before, for %s", down)
	case i.Downs == 1:
		return fmt.Sprintf("; it was down for %s", down)
	}
	return fmt.Sprintf("; it was down %d times, for %s in all", i.Downs, down)
}

// Lost tells what is dead of an outage that goes on; "" where nothing is.
func (i *OpenIncident) Lost() string {
	if i.Dead == 0 || i.Over() {
		return ""
	}
	return fmt.Sprintf("; %s: creel replay --destination %s --state dead --dry-run", i.Deaths(), i.Subject)
}

// Deaths tells what died in an outage.
func (i *OpenIncident) Deaths() string {
	return fmt.Sprintf("%s died, the latest: %s", count(i.Dead, "delivery", "deliveries"), why(i.Death))
}

// deadLetters tells of an incident that is about nothing else. The first death
// alone says which command repairs it; of several one command repairs all.
func (i *OpenIncident) deadLetters() string {
	if i.Count <= 1 && !i.Over() {
		return i.Detail
	}
	one, many, flag := "event", "events", "--source"
	if i.Cause == CauseDeadDelivery {
		one, many, flag = "delivery", "deliveries", "--destination"
	}
	switch {
	case i.Over() && i.Dead == 0:
		return fmt.Sprintf("%s died, and none is dead any more; the latest: %s", count(i.Count, one, many), why(i.Death))
	case i.Over():
		return fmt.Sprintf("%s died, and %d are left; the latest: %s", count(i.Count, one, many), i.Dead, why(i.Death))
	}
	return fmt.Sprintf("%s died, and %d are dead; the latest: %s; repair the cause, then: creel replay %s %s --state dead --dry-run",
		count(i.Count, one, many), i.Dead, why(i.Death), flag, i.Subject)
}

// why is a death without what to do about it, which is another thing for many.
func why(death string) string {
	cause, _, _ := strings.Cut(death, "; repair the cause, then: ")
	return cause
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
