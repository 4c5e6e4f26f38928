package event

import "time"

// Selector names events for a list, a replay or a discard. Empty fields
// select everything; all given fields must hold.
type Selector struct {
	Keys        []Key     `json:"keys,omitempty"`
	Source      string    `json:"source,omitempty"`
	Account     string    `json:"account,omitempty"`
	Type        string    `json:"type,omitempty"` // a glob: invoice.*
	Object      string    `json:"object,omitempty"`
	State       State     `json:"state,omitempty"` // Dead selects events that are dead or have a dead delivery
	Destination string    `json:"destination,omitempty"`
	Error       string    `json:"error,omitempty"` // part of the error text
	Since       time.Time `json:"since,omitzero"`  // received at or after
	Until       time.Time `json:"until,omitzero"`  // received before
	// All says that an action means every event. Without it an action on a
	// selector that selects everything is refused.
	All bool `json:"all,omitempty"`
}

// Everything tells whether nothing narrows the selection.
func (s Selector) Everything() bool {
	return len(s.Keys) == 0 && s.Source == "" && s.Account == "" && s.Type == "" && s.Object == "" && s.State == "" &&
		s.Destination == "" && s.Error == "" && s.Since.IsZero() && s.Until.IsZero()
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
	// What an operator decides about a delivery in doubt.
	ActionWasSent   ActionKind = "resolve sent"
	ActionSendAgain ActionKind = "resolve again"
	ActionGiveUp    ActionKind = "resolve dead"
)

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
}

// ActionItem is one key of an action.
type ActionItem struct {
	Action int64  `json:"action"`
	Event  Key    `json:"event"`
	Result string `json:"result"` // "replayed", "discarded", or why it was refused
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
}

// ShipmentClaim asks for deliveries of one destination that are due.
type ShipmentClaim struct {
	Destination string
	Max         int
	Probe       bool // take the oldest one, as the probe of a held destination
}

// OpenIncident is a stored incident.
type OpenIncident struct {
	ID int64 `json:"id"`
	Incident
	Count      int       `json:"count"`
	OpenedAt   time.Time `json:"opened_at"`
	LastAt     time.Time `json:"last_at"`
	ResolvedAt time.Time `json:"resolved_at,omitzero"` // zero while it is open
}
