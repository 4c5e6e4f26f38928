package event

import "time"

// Selector names events for a list, a replay or a discard. Empty fields
// select everything; all given fields must hold.
type Selector struct {
	Keys []Key `json:"keys,omitempty"`
	// Run is the run in which the one event of Keys was seen: in another one it
	// is refused, so that what is clicked twice is done once. 0 is any.
	Run         int       `json:"run,omitempty"`
	Source      string    `json:"source,omitempty"`
	Account     string    `json:"account,omitempty"`
	Type        string    `json:"type,omitempty"` // a glob: invoice.*
	Object      string    `json:"object,omitempty"`
	State       State     `json:"state,omitempty"` // Dead selects events that are dead or have a dead delivery
	Destination string    `json:"destination,omitempty"`
	Error       string    `json:"error,omitempty"` // part of the error text
	Since       time.Time `json:"since,omitzero"`  // received at or after
	Until       time.Time `json:"until,omitzero"`  // received before
	// How long before it was asked they are, in seconds, where that was said:
	// "24h". The same words mean the same for a while.
	SinceAgo int64 `json:"since_ago,omitempty"`
	UntilAgo int64 `json:"until_ago,omitempty"`

	ID      string       `json:"id,omitempty"`      // beginning of the sender's id
	Word    string       `json:"word,omitempty"`    // id or object, or the beginning of one
	Index   []IndexMatch `json:"index,omitempty"`   // values at places that the source lists
	Failure int64        `json:"failure,omitempty"` // dead letters of one group; it implies the state
	Kind    FailureKind  `json:"kind,omitempty"`    // of dead letters: events or deliveries alone; it implies the state

	// What a plan froze: nothing that came in later, and nothing that died
	// later.
	Newest int64     `json:"newest,omitempty"` // highest sequence
	DeadBy time.Time `json:"dead_by,omitzero"`

	// All says that an action means every event. Without it an action on a
	// selector that selects everything is refused.
	All bool `json:"all,omitempty"`
}

// Everything tells whether nothing narrows the selection.
func (s Selector) Everything() bool {
	return len(s.Keys) == 0 && s.Source == "" && s.Account == "" && s.Type == "" && s.Object == "" && s.State == "" &&
		s.Destination == "" && s.Error == "" && s.Since.IsZero() && s.Until.IsZero() &&
		s.ID == "" && s.Word == "" && len(s.Index) == 0 && s.Failure == 0 && s.Kind == ""
}

// Page asks for one page of a list, newest first: up to Limit rows whose
// sequence is below Before (0 starts at the newest).
type Page struct {
	Before int64
	Limit  int
}

// ActionKind is what an operator did.
type ActionKind string

// The actions of the audit trail.
const (
	ActionReplay  ActionKind = "replay"
	ActionDiscard ActionKind = "discard"
	ActionPause   ActionKind = "pause"
	ActionResume  ActionKind = "resume"
	// ActionLaneSkip lets those behind a dead head of a lane pass; what is dead
	// stays so.
	ActionLaneSkip ActionKind = "lane skip"
	// What an operator decides about a delivery in doubt.
	ActionWasSent   ActionKind = "resolve sent"
	ActionSendAgain ActionKind = "resolve again"
	ActionGiveUp    ActionKind = "resolve dead"
	// Who may use the API.
	ActionNewToken ActionKind = "token create"
	ActionNoToken  ActionKind = "token revoke"
)

// MaxReason bounds the reason of an action, in bytes.
const MaxReason = 1000

// Action is one audited act of an operator. Its row is written in the
// transaction that freezes the selection or does the act.
type Action struct {
	ID       int64      `json:"id"`
	Kind     ActionKind `json:"action"`
	Actor    string     `json:"actor"`
	Reason   string     `json:"reason"`
	Selector Selector   `json:"selector"`
	Target   string     `json:"target,omitempty"` // a destination, or the number of a delivery
	At       time.Time  `json:"at"`
	Selected int        `json:"selected"`             // size of the frozen selection
	Done     int        `json:"done"`                 // keys acted on so far
	Refused  int        `json:"refused"`              // keys that could not be acted on (another state by then)
	Finished time.Time  `json:"finished_at,omitzero"` // zero while it runs
	// Resend is a replay that also sends again what was sent, under the same
	// identity; to the selector's destination alone where it names one.
	Resend bool `json:"resend,omitempty"`
	// Rate is how many events a second a replay releases at most; 0 is as many
	// as the store takes.
	Rate float64 `json:"rate,omitempty"`
	// Once is who asked for it, under which key of his own and with what: asked
	// for again it is the same action. The zero value is any number of times.
	Once Once `json:"-"`
}

// Once names one request for an action, by hashes.
type Once struct {
	By   [16]byte // who asked, and the key that he gave it
	What [16]byte // what was asked for
}

// ActionItem is one key of an action.
type ActionItem struct {
	Action int64  `json:"action"`
	Event  Key    `json:"event"`
	Result string `json:"result"` // "replayed", "replayed and sent again", "discarded", or why it was refused
}

// DestinationState says whether deliveries go out to a destination.
type DestinationState string

// The states of a destination. Held and Disabled ones are probed; a Paused
// one waits for its owner.
const (
	DestinationEnabled  DestinationState = "enabled"
	DestinationHeld     DestinationState = "held"
	DestinationDisabled DestinationState = "disabled"
	DestinationPaused   DestinationState = "paused"
)

// DestinationHealth is what is known about a destination; it outlives a
// restart.
type DestinationHealth struct {
	Name        string           `json:"name"`
	State       DestinationState `json:"state"`
	Since       time.Time        `json:"since"`
	Reason      string           `json:"reason"`
	ProbeAt     time.Time        `json:"probe_at,omitzero"` // next probe, while held or disabled
	ProbeDelay  time.Duration    `json:"-"`                 // doubles up to five minutes
	LastSuccess time.Time        `json:"last_success,omitzero"`
	// MeasuredFrom is when its attempts began to tell how it is doing: those
	// before belong to trouble that is over.
	MeasuredFrom time.Time `json:"-"`
	// Trouble is the cause of its open incident, "" where there is none. It is
	// read with the rest and not saved.
	Trouble Cause `json:"trouble,omitempty"`
}

// ShipmentClaim asks for deliveries of one destination that are due.
type ShipmentClaim struct {
	Destination string
	Max         int
	Probe       bool // take the oldest one, as the probe of a held destination
}
