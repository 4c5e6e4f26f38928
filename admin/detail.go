package admin

import (
	"encoding/base64"
	"time"
	"unicode/utf8"

	"creel/event"
)

// Detail is all that is known about an event.
type Detail struct {
	event.Work
	Body        []byte // as its deliveries carry it: its own part of the request
	Verdicts    []event.Verdict
	Deliveries  []Attempted
	Records     []event.KeptRecord
	Entries     []event.Entry
	Transitions []event.Transition
	Operations  []event.Operation
	Conflicts   []Conflict
	OtherBodies int
	Actions     []event.Action
}

// Attempted is a delivery with its attempts.
type Attempted struct {
	event.Delivery
	Attempts []event.Attempt
}

// Conflict is another body that came under an event's key.
type Conflict struct {
	event.Payload
	Seen           int
	FirstAt, Until time.Time
}

// DetailLine is one event whole.
type DetailLine struct {
	EventLine
	Header     string          `json:"header"`      // "Name: value" lines
	Body       string          `json:"body"`        // of the request; text where the bytes are UTF-8
	BodyBase64 string          `json:"body_base64"` // the bytes, whatever they are
	Part       string          `json:"part,omitempty"`
	Verdicts   []VerdictLine   `json:"verdicts"`
	Deliveries []AttemptedLine `json:"deliveries"`
	Effects    []EffectLine    `json:"effects"` // in the database: records, ledger entries, states
	Conflicts  int             `json:"conflicts"`
	Others     []OtherLine     `json:"other_bodies"` // the first few of those
	Actions    []event.Action  `json:"actions"`
}

// OtherLine is another body that came under the event's key.
type OtherLine struct {
	Seen       int    `json:"seen"` // how often
	FirstAt    string `json:"first_at"`
	LastAt     string `json:"last_at"`
	Header     string `json:"header"`
	Body       string `json:"body"` // text where the bytes are UTF-8
	BodyBase64 string `json:"body_base64"`
	Part       string `json:"part,omitempty"`
}

// VerdictLine is what one run decided, for one rule.
type VerdictLine struct {
	Run      int            `json:"run"`
	Rule     string         `json:"rule"`
	Decision event.Decision `json:"decision"`
	Reason   string         `json:"reason"`
	At       string         `json:"at"`
}

// LineOfDetail is an event whole as it is printed.
func LineOfDetail(d *Detail) DetailLine {
	body := d.Payload.Body
	line := DetailLine{EventLine: LineOf(d.Event), Header: d.Header, Part: d.Part,
		BodyBase64: base64.StdEncoding.EncodeToString(body), Conflicts: d.OtherBodies, Actions: d.Actions,
		Verdicts: []VerdictLine{}, Deliveries: []AttemptedLine{}, Effects: effectsOf(d)}
	line.Others = []OtherLine{}
	for _, c := range d.Conflicts {
		other := OtherLine{Seen: c.Seen, FirstAt: Stamp(c.FirstAt), LastAt: Stamp(c.Until), Header: c.Header,
			BodyBase64: base64.StdEncoding.EncodeToString(c.Payload.Body), Part: c.Part}
		if utf8.Valid(c.Payload.Body) {
			other.Body = string(c.Payload.Body)
		}
		line.Others = append(line.Others, other)
	}
	if line.Actions == nil {
		line.Actions = []event.Action{}
	}
	if utf8.Valid(body) {
		line.Body = string(body)
	}
	for _, v := range d.Verdicts {
		line.Verdicts = append(line.Verdicts, VerdictLine{v.Run, v.Rule, v.Decision, v.Reason, Stamp(v.At)})
	}
	for _, delivery := range d.Deliveries {
		line.Deliveries = append(line.Deliveries, LineOfAttempted(delivery))
	}
	return line
}
