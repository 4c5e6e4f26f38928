package app

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"creel/config"
	"creel/event"
)

const (
	// mostSubject and mostDetail bound what an alert says, in bytes: a chat cuts
	// longer ones, at a place of its own.
	mostSubject = 120
	mostDetail  = 1000
)

// alerts knows who is told of incidents under one configuration, and writes what
// they are told: what happened and what to do, no body and no secret.
type alerts struct {
	to   []event.Telling // destination, target and wait of each
	page string          // where the page is; "" where it is not known
}

func newAlerts(cfg *config.Config) *alerts {
	a := &alerts{page: strings.TrimSuffix(cfg.Admin.PublicURL, "/")}
	for _, to := range cfg.Alerts.To {
		one := event.Telling{Destination: event.Mail, Target: to, Wait: time.Duration(cfg.Alerts.Wait)}
		if name := config.AlertDestination(to); name != "" {
			one.Destination, one.Target = name, ""
		}
		a.to = append(a.to, one)
	}
	return a
}

// tell is the event.Teller. A destination is not told that it is down.
func (a *alerts) tell(i event.OpenIncident, m event.Moment) []event.Telling {
	var out []event.Telling
	message := ""
	for _, one := range a.to {
		if i.Subject == one.Destination && ofDestination(i.Cause) {
			continue
		}
		if message == "" {
			message = a.write(&i, m).Message()
		}
		one.Message = message
		out = append(out, one)
	}
	return out
}

func ofDestination(c event.Cause) bool {
	return c.Family() == event.FamilyDestination || c == event.CauseDeadDelivery || c == event.SignalOldest.Cause()
}

func (a *alerts) write(i *event.OpenIncident, m event.Moment) event.Alert {
	out := event.Alert{Cause: string(i.Cause), SubjectOf: i.Subject, State: "open", Action: "trigger", Incident: strconv.FormatInt(i.ID, 10),
		Count: strconv.Itoa(i.Count), Since: i.OpenedAt.UTC().Format(time.RFC3339)}
	if a.page != "" {
		out.URL = a.page + "/alerts/" + out.Incident
	}
	title := titleOf(i)
	counts := []string{"Count: " + out.Count}
	if slices.Contains(event.Signals(), event.SignalName(i.Cause)) {
		counts = nil // it lasts, and how much there is stands in its detail
	}
	lines := []string{cut(i.Detail, mostDetail), "", "Since: " + out.Since}
	if m == event.MomentResolved {
		out.State, out.Action = "resolved", "resolve"
		title = "over: " + shortTitle(i)
		lines = append(lines, "Until: "+i.ResolvedAt.UTC().Format(time.RFC3339))
		lines = append(lines, counts...)
		if i.Dead > 0 {
			lines = append(lines, fmt.Sprintf("Left:  %d dead letters. creel replay --state dead --dry-run", i.Dead))
		}
	} else {
		lines = append(append(lines, counts...), "Seen to it: creel ack "+out.Incident)
	}
	if out.URL != "" {
		lines = append(lines, "Page:  "+out.URL)
	}
	out.Subject = "[creel] " + cut(title, mostSubject)
	out.Text = title + ".\n\n" + strings.Join(lines, "\n") + "\n"
	return out
}

// teller is a carrier whose templates may ask for what an alert has not.
type teller interface {
	CanTell(s event.Shipment, now time.Time) error
}

// deaf reports recipients to which no alert can be sent, by an alert that has
// nothing but what every one has.
func (s *Snapshot) deaf() config.Problems {
	var problems config.Problems
	now := time.Unix(0, 0)
	message := newAlerts(s.Config).write(&event.OpenIncident{ID: 1, OpenedAt: now, Count: 1,
		Incident: event.Incident{Cause: event.CauseDeadEvent, Subject: "source", Detail: "why"}}, event.MomentOpened).Message()
	for i, to := range s.Config.Alerts.To {
		name := config.AlertDestination(to)
		for _, route := range s.Routes {
			carrier, tells := route.Carrier.(teller)
			if route.Name != name || !tells {
				continue
			}
			sample := event.Shipment{Delivery: event.Delivery{Alert: 1, Key: "=incident/1/opened", Destination: name, Run: 1, Tries: 1},
				Type: "incident.opened", Message: message}
			if err := carrier.CanTell(sample, now); err != nil {
				problems = append(problems, config.Problem{Path: config.Item("alerts.to", i),
					Message: fmt.Sprintf("no alert can be sent to %q: %v", name, err),
					Hint:    "its templates may name {alert.subject}, {alert.text} and the others; {alert.url?} may be empty"})
			}
		}
	}
	return problems
}

// titleOf is what an incident is, in a line.
func titleOf(i *event.OpenIncident) string {
	title := shortTitle(i)
	switch i.Cause {
	case event.CauseDestinationDown, event.CauseDestinationDisabled:
		if !i.IsBack() {
			return title + ": " + waits(i.Waiting)
		}
		return i.Subject + " was down and answers again"
	case event.CauseDestinationGone:
		return title + ": " + waits(i.Waiting)
	case event.CauseDeadEvent, event.CauseDeadDelivery, event.CauseConflict, event.CauseUnreadable:
		if i.Count > 1 {
			title += fmt.Sprintf(", %d times", i.Count)
		}
	}
	return title
}

func waits(n int) string {
	switch {
	case n == 1:
		return "1 delivery waits"
	case n >= event.MaxWaiting:
		return fmt.Sprintf("%d deliveries wait, or more", n)
	}
	return fmt.Sprintf("%d deliveries wait", n)
}

func shortTitle(i *event.OpenIncident) string {
	about := i.Subject
	if about == "" {
		about = "this server"
	}
	switch i.Cause {
	case event.CauseDeadEvent:
		return "an event of " + about + " has failed for good"
	case event.CauseDeadDelivery:
		return "a delivery to " + about + " has failed for good"
	case event.CauseConflict:
		return "an event of " + about + " came again with another body"
	case event.CauseUnreadable:
		return "an event of " + about + " can not be read"
	case event.CauseLaneParked:
		return "a lane of " + about + " is parked"
	case event.CauseNotCompared:
		return about + " can not be compared with its sender's list"
	case event.CauseDestinationFailing:
		return about + " fails too often"
	case event.CauseDestinationDown:
		return about + " is down"
	case event.CauseDestinationDisabled:
		return about + " is disabled"
	case event.CauseDestinationGone:
		return about + " wants no more deliveries"
	}
	switch event.SignalName(i.Cause) {
	case event.SignalOldest:
		return "work for " + about + " is past due"
	case event.SignalDead:
		return "many dead letters of " + about
	case event.SignalDuplicates:
		return "many duplicates from " + about
	case event.SignalSilence:
		return about + " is silent"
	case event.SignalGap:
		return "events of " + about + " are missing"
	case event.SignalRejects:
		return "many requests to " + about + " without a valid signature"
	case event.SignalFailures:
		return "many events of " + about + " have to be tried again"
	case event.SignalGuesses:
		return "somebody guesses the password or a token of the page"
	case event.SignalDisk:
		return "the disk of the database is nearly full"
	case event.SignalWAL:
		return "the WAL of the database is large"
	case event.SignalStore:
		return "the database could not be written"
	}
	return string(i.Cause) + " of " + about
}

// cut bounds a text and makes it one line.
func cut(text string, most int) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029 }), " ")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " …"
}

// Unheard warns where nobody would be told of trouble, or only by what may be
// in trouble itself.
func Unheard(cfg *config.Config) config.Problems {
	warn := func(path, message, hint string) config.Problems {
		return config.Problems{{Path: path, Message: message, Hint: hint, Warning: true}}
	}
	if len(cfg.Alerts.To) == 0 {
		hint := `write to = ["owner@example.com"] in [alerts]`
		if cfg.SMTP.Host == "" {
			hint = `write to = ["destination:NAME"] in [alerts], or a mail address where there is [smtp]`
		}
		return warn("alerts.to", "is empty: nobody is told when something is wrong", hint)
	}
	for _, to := range cfg.Alerts.To {
		if name := config.AlertDestination(to); name == "" || !cfg.DeliversTo(name) {
			return nil
		}
	}
	return warn("alerts.to", "names only destinations that events go to: nobody is told when they are down",
		"add a mail address, or a destination for alerts alone")
}
