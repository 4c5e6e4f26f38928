package admin

import (
	"time"

	"creel/event"
)

// What follows is what --json of the command line prints, one on a line, and
// what the API answers. Fields are only ever added.

// EventLine is an event.
type EventLine struct {
	Key        event.Key    `json:"key"`
	Source     string       `json:"source"`
	Account    string       `json:"account"`
	ID         string       `json:"id"` // the sender's own
	Type       string       `json:"type"`
	Object     string       `json:"object"` // what it is about
	Version    string       `json:"version,omitempty"`
	Lane       string       `json:"lane,omitempty"`
	Waits      bool         `json:"waits,omitempty"` // for another one of its lane
	State      event.State  `json:"state"`
	Run        int          `json:"run"`      // 1 at first; a replay starts the next
	Attempts   int          `json:"attempts"` // of this run
	Duplicates int          `json:"duplicates"`
	Origin     event.Origin `json:"origin"` // how it came in
	ReceivedAt string       `json:"received_at"`
	NextAt     string       `json:"next_attempt_at,omitempty"`
	FinishedAt string       `json:"finished_at,omitempty"`
	Error      string       `json:"error"` // why it is dead, ignored or waiting
}

// LineOf is an event as it is printed.
func LineOf(e event.Event) EventLine {
	id := e.Key.ID
	if e.LongID != "" {
		id = e.LongID
	}
	return EventLine{Key: e.Key, Source: e.Key.Source, Account: e.Key.Account, ID: id, Type: e.Type,
		Object: e.Object, Version: e.Version, Lane: e.Lane, Waits: e.Waits, State: e.State, Run: e.Run, Attempts: e.Attempts,
		Duplicates: e.Duplicates, Origin: e.Origin, ReceivedAt: Stamp(e.ReceivedAt), NextAt: Stamp(e.NextAt),
		FinishedAt: Stamp(e.FinishedAt), Error: e.Error}
}

// DeliveryLine is a delivery.
type DeliveryLine struct {
	ID          int64               `json:"id"`
	Event       string              `json:"event"`              // its key; "" of an alert
	Incident    int64               `json:"incident,omitempty"` // that an alert tells of
	Rule        string              `json:"rule"`
	Destination string              `json:"destination"`
	Target      string              `json:"target,omitempty"` // the recipient of a mail, the path of a file
	Key         string              `json:"key"`              // the business key
	WebhookID   string              `json:"webhook_id"`       // the same on every attempt and replay
	State       event.DeliveryState `json:"state"`
	Run         int                 `json:"run"`
	Attempts    int                 `json:"attempts"` // of this run that count against the retry policy
	Status      int                 `json:"status"`   // of the last attempt; 0 where there was no answer
	Error       string              `json:"error"`
	CreatedAt   string              `json:"created_at"`
	NextAt      string              `json:"next_attempt_at,omitempty"`
	FinishedAt  string              `json:"finished_at,omitempty"`
}

// LineOfDelivery is a delivery as it is printed.
func LineOfDelivery(d event.Delivery) DeliveryLine {
	of := ""
	if d.Alert == 0 {
		of = d.Event.String()
	}
	return DeliveryLine{ID: d.ID, Event: of, Incident: d.Alert, Rule: d.Rule, Destination: d.Destination, Target: d.Target,
		Key: Readable(d.Key, d.LongKey), WebhookID: event.WebhookID(d.Key, d.Destination),
		State: d.State, Run: d.Run, Attempts: d.Attempts, Status: d.Status, Error: d.Error,
		CreatedAt: Stamp(d.CreatedAt), NextAt: Stamp(d.NextAt), FinishedAt: Stamp(d.FinishedAt)}
}

// AttemptLine is one try at a delivery.
type AttemptLine struct {
	Run        int           `json:"run"`
	Number     int           `json:"number"` // 1, 2, … within the run
	Spent      bool          `json:"spent"`  // it counts against the retry policy
	Start      string        `json:"start"`
	DurationMS int64         `json:"duration_ms"`
	Status     int           `json:"status"`
	Outcome    event.Outcome `json:"outcome"`
	Error      string        `json:"error"`
	Answer     string        `json:"answer"` // the first 1 KiB of it
}

// AttemptedLine is a delivery with its attempts.
type AttemptedLine struct {
	DeliveryLine
	Tries []AttemptLine `json:"tries"`
}

// LineOfAttempted is a delivery with its attempts as it is printed.
func LineOfAttempted(d Attempted) AttemptedLine {
	line := AttemptedLine{DeliveryLine: LineOfDelivery(d.Delivery), Tries: []AttemptLine{}}
	for _, a := range d.Attempts {
		line.Tries = append(line.Tries, AttemptLine{a.Run, a.Number, a.Spent, Stamp(a.Start),
			a.Duration.Milliseconds(), a.Status, a.Outcome, a.Error, a.Answer})
	}
	return line
}

// LaneLine is a parked lane.
type LaneLine struct {
	event.ParkedLane
	Since string `json:"since"`
}

// LineOfLane is a parked lane as it is printed.
func LineOfLane(l event.ParkedLane) LaneLine { return LaneLine{l, Stamp(l.Since)} }

// Readable is the text of a key that may be stored as a hash.
func Readable(key, long string) string {
	if long != "" {
		return long
	}
	return key
}

// Stamp writes a time as RFC 3339 in UTC, or nothing.
func Stamp(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}
