package event

import "time"

// Effect is an intent that a rule returned: stateless, applied by the store
// in the transaction that completes the event.
type Effect interface {
	// Kind is the word for it in configuration, verdicts and the page.
	Kind() string
	// BusinessKey is the operation that the effect is a part of.
	BusinessKey() string
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
}

// Kind implements Effect.
func (Forward) Kind() string { return "forward" }

// BusinessKey implements Effect.
func (f Forward) BusinessKey() string { return f.Key }

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
	// Err is ErrClaimLost, or ErrMismatch with both values, or a store error.
	Err error
	// Shipments are the new deliveries of effects that asked to be born
	// claimed: they are the dispatcher's now. Payload, Type and ReceivedAt are
	// left to whoever holds the work.
	Shipments []Shipment
	// Verdicts as they were stored: Applied may have become AlreadyApplied.
	Verdicts []Verdict
}

// Delivery is a stored effect on its way to a destination.
type Delivery struct {
	ID          int64
	Event       Key
	EventSeq    int64
	Rule        string
	Key         string // business key as stored
	LongKey     string // readable form where Key is a hash
	Destination string
	State       DeliveryState
	Run         int
	Attempts    int // attempts of this run that count against the retry policy
	Tries       int // all attempts of this run, probes of a held destination included
	Status      int // last HTTP status, 0 where there was none
	Error       string
	CreatedAt   time.Time
	NextAt      time.Time
	FinishedAt  time.Time
}

// Shipment is a delivery that was claimed, with what has to be sent.
type Shipment struct {
	Delivery
	Claim Claim
	// Probe marks the one attempt that asks whether a held destination is
	// back; it spends none of the delivery's attempts unless it settles it.
	Probe      bool
	Type       string
	Payload    Payload
	ReceivedAt time.Time
}

// Attempt is one try at a delivery, append-only.
type Attempt struct {
	Delivery int64
	Run      int
	Number   int  // 1, 2, … within the run
	Spent    bool // counts against the retry policy
	Start    time.Time
	Duration time.Duration
	Status   int // HTTP status, 0 where there was none
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
}

// Incident names trouble that has one alert: the cause and what it is about.
// While it is open, the same cause and subject only count on it.
type Incident struct {
	Cause   Cause  `json:"cause"`
	Subject string `json:"subject"` // a source, destination or rule name
	Detail  string `json:"detail"`  // for the operator: what happened and what to do next
}

// Cause is the kind of an incident.
type Cause string

// The causes of incidents.
const (
	CauseDeadEvent       Cause = "dead_event"
	CauseDeadDelivery    Cause = "dead_delivery"
	CauseConflict        Cause = "conflict"
	CauseUnreadable      Cause = "unreadable"
	CauseDestinationDown Cause = "destination_down"
	CauseDestinationGone Cause = "destination_gone"
)
