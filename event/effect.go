package event

import "time"

// Effect is an intent that a rule returned: stateless, applied by the store
// in the transaction that completes the event.
type Effect interface {
	// Kind is the word for it in configuration, verdicts and the page.
	Kind() string
	// BusinessKey is the operation that the effect is a part of.
	BusinessKey() string
	// RuleName is the rule that asks for it: its effects apply together or not
	// at all.
	RuleName() string
}

// Forward asks for one delivery of the event to one HTTP destination. Its
// identity is the business key and the destination.
type Forward struct {
	Key         string // business key, unfolded
	Rule        string
	Destination string
	// Claimed asks for a delivery that is born in the hands of the dispatcher,
	// which has reserved a place for it.
	Claimed bool
	// Lane is the order that the delivery keeps at its destination, "" for
	// none. LaneSkip lets those behind a dead one pass.
	Lane     string
	LaneSkip bool
}

// Kind implements Effect.
func (Forward) Kind() string { return "forward" }

// BusinessKey implements Effect.
func (f Forward) BusinessKey() string { return f.Key }

// RuleName implements Effect.
func (f Forward) RuleName() string { return f.Rule }

// Finish is what a worker says about an event that it had claimed. It is
// applied whole or, where the claim was lost, not at all.
type Finish struct {
	Seq int64
	// Key is the event's, where whoever finishes it knows it: a look-up less.
	Key      Key
	Claim    Claim
	Run      int
	State    State // Done, Ignored, Dead, or Pending to try again at NextAt
	Error    string
	NextAt   time.Time
	Verdicts []Verdict
	Effects  []Effect
	// Release gives the claim back unused: the attempt is not counted. State
	// is Pending (the server is stopping), or Dead (nothing was tried, because
	// every attempt before it ended with the process).
	Release  bool
	Incident *Incident
}

// Finished tells what became of a Finish.
type Finished struct {
	// Err is ErrClaimLost; or ErrMismatch or ErrRefused with both values, and
	// the event is dead by that; or ErrNotYet or ErrTie, and nothing was done:
	// the claim still holds; or a store error.
	Err error
	// Shipments are the new deliveries of effects that asked to be born
	// claimed: they are the dispatcher's now. What the event itself says is left
	// to whoever holds the work: see Shipment.Of.
	Shipments []Shipment
	// Verdicts as they were stored: Applied may have become AlreadyApplied.
	Verdicts []Verdict
	// GivenBack says that there was no time left for the statements of the
	// owner's: the event is pending and due, with its attempt unspent.
	GivenBack bool
}

// Delivery is a stored effect on its way to a destination.
type Delivery struct {
	ID          int64
	Event       Key
	EventSeq    int64 // 0 of an alert
	Alert       int64 // the incident that it tells of; 0 of a delivery of an event
	Rule        string
	Key         string // business key as stored
	LongKey     string // readable form where Key is a hash
	Destination string
	Target      string // who or what at the destination: the recipient of a mail, the path of a file; "" for HTTP
	State       DeliveryState
	Run         int
	Attempts    int // attempts of this run that count against the retry policy
	Tries       int // all attempts of this run, probes of a held destination included
	Status      int // of the last attempt, see Attempt
	Error       string
	CreatedAt   time.Time
	NextAt      time.Time
	FinishedAt  time.Time
}

// Outgoing is how many deliveries of an event are in which state.
type Outgoing map[DeliveryState]int

// Shipment is a delivery that was claimed, with what has to be sent.
type Shipment struct {
	Delivery
	Claim Claim
	// Probe marks the one attempt that asks whether a held destination is
	// back; it spends none of the delivery's attempts unless it settles it.
	Probe      bool
	Message    string // what was rendered when the event was applied, as JSON: see MailText, Run and File; an Alert for HTTP, "" for an event
	Doubts     int    // attempts of this run whose answer was lost, counted where there is a Message
	Type       string
	Object     string
	Version    string
	LongID     string // see Event
	Payload    Payload
	ReceivedAt time.Time
}

// Of fills in what a shipment carries of its event.
func (s *Shipment) Of(work *Work) {
	s.Type, s.Object, s.Version, s.LongID = work.Type, work.Object, work.Version, work.Event.LongID
	s.Payload, s.ReceivedAt = work.Payload, work.ReceivedAt
}

// Attempt is one try at a delivery, append-only.
type Attempt struct {
	Delivery int64
	Run      int
	Number   int  // 1, 2, … within the run
	Spent    bool // counts against the retry policy
	Start    time.Time
	Duration time.Duration
	Status   int // HTTP status, code of a mail server or exit code of a command; 0 where there was none
	Outcome  Outcome
	Error    string
	Answer   string // first 1 KiB of the answer, printable
}

// DeliveryFinish is what the dispatcher says about a shipment.
type DeliveryFinish struct {
	ID      int64
	Claim   Claim
	State   DeliveryState // Sent, Ready (again at NextAt), Dead or InDoubt
	NextAt  time.Time
	Attempt Attempt
	// Release gives the claim back unused, with no attempt row.
	Release  bool
	Incident *Incident
	Alert    int64 // of the shipment's delivery
}
