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
)

// Action is one audited act of an operator. Its row is written in the
// transaction that freezes the selection or does the act.
type Action struct {
	ID       int64
	Kind     ActionKind
	Actor    string
	Reason   string
	Selector Selector
	Target   string // a destination, for pause and resume
	At       time.Time
	Selected int       // size of the frozen selection
	Done     int       // keys acted on so far
	Refused  int       // keys that could not be acted on (another state by then)
	Finished time.Time // zero while it runs
}

// ActionItem is one key of an action.
type ActionItem struct {
	Action int64
	Event  Key
	Result string // "replayed", "discarded", or why it was refused
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
	Name        string
	State       DestinationState
	Since       time.Time
	Reason      string
	ProbeAt     time.Time     // next probe, while held or disabled
	ProbeDelay  time.Duration // doubles up to five minutes
	LastSuccess time.Time
}

// ShipmentClaim asks for deliveries of one destination that are due.
type ShipmentClaim struct {
	Destination string
	Max         int
	Probe       bool // take the oldest one, as the probe of a held destination
}

// OpenIncident is a stored incident.
type OpenIncident struct {
	ID int64
	Incident
	Count      int
	OpenedAt   time.Time
	LastAt     time.Time
	ResolvedAt time.Time // zero while it is open
}
