package page

import (
	"context"
	"time"

	"creel/admin"
	"creel/event"
	"creel/source"
)

// Data is what the page shows. Lists come newest first, no longer than asked,
// and none of them reads a body or counts rows. What is not there is
// event.ErrNotFound.
type Data interface {
	// Failures lists the groups of dead letters.
	Failures(ctx context.Context, ask Ask) (Failures, error)
	// Failure is one group.
	Failure(ctx context.Context, id int64) (event.Failure, error)
	// Lone are the events of those groups that have one dead letter, by the
	// numbers of the groups.
	Lone(ctx context.Context, groups []event.Failure) (map[int64]event.Event, error)
	// Letters lists dead letters one by one.
	Letters(ctx context.Context, ask Ask) (Letters, error)

	// Events is a page of a search; what was looked at is bounded.
	Events(ctx context.Context, ask Ask) (Events, error)
	// Outgoing counts the deliveries of events by their states.
	Outgoing(ctx context.Context, events []event.Event) (map[int64]event.Outgoing, error)
	// Event is all that is known about one event.
	Event(ctx context.Context, key event.Key) (Detail, error)
	// Places are the values of an event's body by which events are found: those
	// at the places that its source lists. What is not shown is not among them.
	Places(work *event.Work) []Place
	// Kept tells whether the body of an event is kept and not empty.
	Kept(ctx context.Context, seq int64) (bool, error)
	// Body is the body of an event as its deliveries carry it, with its type.
	Body(ctx context.Context, key event.Key) (body []byte, kind string, err error)

	// Deliveries is a page of a search; what was looked at is bounded.
	Deliveries(ctx context.Context, f DeliveryFilter, page event.Page) (Deliveries, error)
	Delivery(ctx context.Context, id int64) (Attempted, error)
	// Lane is what holds up one lane; nothing where it is not parked.
	Lane(ctx context.Context, lane string) ([]event.ParkedLane, error)
	Lanes(ctx context.Context, after string, limit int) ([]event.ParkedLane, error)
	Incidents(ctx context.Context, openOnly bool, page event.Page) ([]event.OpenIncident, error)
	Conflicts(ctx context.Context, page event.Page) ([]Conflicted, error)
	// Duplicates are events that came more than once, the one that came again
	// last first, from behind one (by its key) that was listed before.
	Duplicates(ctx context.Context, after string, limit int) ([]event.Event, error)

	Records(ctx context.Context, kind, key string, page event.Page) ([]event.KeptRecord, error)
	Balances(ctx context.Context, holder string, after event.Balance, limit int) ([]event.Balance, error)
	Ledger(ctx context.Context, holder, unit string, page event.Page) ([]event.Entry, error)
	ObjectState(ctx context.Context, object string) (event.ObjectState, error)
	ObjectHistory(ctx context.Context, object string, page event.Page) ([]event.Transition, error)

	Actions(ctx context.Context, page event.Page) ([]event.Action, error)
	Action(ctx context.Context, id int64) (event.Action, error)
	ActionItems(ctx context.Context, action int64, after int) ([]event.ActionItem, error)
	Tokens(ctx context.Context) ([]event.Token, error)

	Rejects(ctx context.Context, filter admin.RejectFilter) ([]admin.Reject, error)
	Reject(ctx context.Context, id int64) (admin.RejectDetail, error)
	VerifyReject(ctx context.Context, id int64, at time.Time) (source.Diagnosis, error)

	// Signals is what was measured last, and when; it costs nothing.
	Signals() ([]event.Signal, time.Time)
	Sources(ctx context.Context) ([]Source, error)
	Destinations(ctx context.Context) ([]Destination, error)
	// Health is how destinations are doing that have a row, by their names.
	Health(ctx context.Context) (map[string]event.DestinationHealth, error)
	// Server is what the server knows about itself.
	Server(ctx context.Context) (Server, error)
	// Names are the sources and destinations of the configuration, for the
	// choices of a form.
	Names() (sources, destinations []string)
}

// Operator is what the page does. Every method writes its audit row with what
// it does.
type Operator interface {
	Act(ctx context.Context, action event.Action) (event.Action, error)
	// Plan freezes what an action selects and looks at what it would do.
	// Nothing is changed.
	Plan(ctx context.Context, action event.Action) (Plan, error)
	// FindPlan is a plan that was made a short while ago.
	FindPlan(id string) (Plan, error)
	// Carry does what a plan says, once: whoever asks again gets the same
	// action.
	Carry(ctx context.Context, id string, action event.Action) (event.Action, error)

	RetryRejects(ctx context.Context, ask admin.RetryRejects) ([]admin.RetriedReject, error)
	CreateToken(ctx context.Context, actor, name string, scope event.Scope) (secret string, token event.Token, err error)
	RevokeToken(ctx context.Context, actor string, id int64) error
}

// Ask asks for one page of a list.
type Ask struct {
	event.Selector
	Cursor string // where the page begins; "" at the newest
	Limit  int
	NoHead bool // dead letters without the beginning of their bodies, and without answers
}

// Failures is a page of groups, with the cursor of the next one.
type Failures struct {
	List []event.Failure
	Next string
}

// Letter is one dead letter: a delivery, or an event where Delivery is empty.
type Letter struct {
	Event    event.Event
	Delivery event.Delivery // ID 0: it is the event that is dead
	Head     []byte         // the first bytes of the body
	Answer   string         // to the last attempt at the delivery, as it is kept
	Lane     string         // in which it holds up Behind others
	Behind   int            // counted one further than MaxBehind
}

// MaxBehind is how many that wait behind a dead letter are counted.
const MaxBehind = 100

// Letters is a page of dead letters, with the cursor of the next one. Partial
// says that the search was stopped before the page was full, and goes on there.
type Letters struct {
	List    []Letter
	Next    string
	Partial bool
}

// Events is a page of events, as Letters is of dead letters.
type Events struct {
	List    []event.Event
	Next    int64 // 0 where nothing is left
	Partial bool
}

// Deliveries is a page of deliveries, as Letters is of dead letters.
type Deliveries struct {
	List    []event.Delivery
	Next    int64 // 0 where nothing is left
	Partial bool
}

// Conflicted is an event under whose key other bodies came.
type Conflicted struct {
	event.Event
	Conflicts int
}

// DeliveryFilter narrows a list of deliveries. Empty fields take everything.
type DeliveryFilter struct {
	Event       *event.Key
	Source      string
	Destination string
	Key         string
	State       event.DeliveryState
	Error       string
}

// Detail is all that is known about an event.
type Detail = admin.Detail

// Attempted is a delivery with its attempts.
type Attempted = admin.Attempted

// Conflict is another body that came under an event's key.
type Conflict = admin.Conflict

// Source is a source as the page shows it.
type Source struct {
	Name     string
	Provider string // "" where the owner described the sender
	Title    string
	Path     string // on the listener for senders
	Facts    []source.NamedFact
	Last     time.Time // of a receipt, by the minute
	Hour     map[string]int64
	Minutes  []int64 // receipts of the last hour, the oldest first
	Forward  []string
}

// Destination is a destination as the page shows it.
type Destination struct {
	event.DestinationHealth
	Kind       string // http, command, folder or mail
	Place      string // where it leads, without anything secret
	Hour       map[string]int64
	Minutes    []int64 // attempts of the last hour, the oldest first
	Configured bool
}

// Server is what the server knows about itself.
type Server struct {
	Version  string
	Started  time.Time
	Database string
	Bytes    int64
	WAL      int64
	Free     int64
	Checks   []admin.Check
	Events   map[event.State]int64
	Outbox   map[event.DeliveryState]int64
	Stranded []string
}

// Plan is what an action would do.
type Plan struct {
	ID      string
	Action  event.Action // kind, selector, who made it and when
	Events  int          // in the frozen selection
	Looked  int          // how many of them were looked at, one by one
	Would   []Would      // what would become of their effects
	Refused []Would      // events that would not be touched, by reason
	Items   []PlanItem   // the first ones
	Carried *event.Action
}

// Would is how often something would happen.
type Would struct {
	Tone  string // good, warn, bad or calm
	What  string
	Count int
}

// PlanItem is what would become of one event.
type PlanItem struct {
	Event event.Event
	Text  string
	Tone  string
}
