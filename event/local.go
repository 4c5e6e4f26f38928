package event

// Field is a name and its text, as an effect wants them stored: in the order
// of the names, so that two effects that mean the same are equal.
type Field struct {
	Name  string
	Value string
}

// Record asks for one row of a kind (an order, an alert) with the fields that
// the rule chose. Its identity is the kind and the business key: the row is
// inserted once and never changed.
type Record struct {
	Key    string // business key, unfolded
	Rule   string
	Of     string // the kind of record
	Fields []Field
}

// Kind implements Effect.
func (Record) Kind() string { return "record" }

// BusinessKey implements Effect.
func (r Record) BusinessKey() string { return r.Key }

// RuleName implements Effect.
func (r Record) RuleName() string { return r.Rule }

// MaxAmount bounds an amount and a balance, in the smallest unit: far from
// where 64 bits end, so that no sum of two overflows.
const MaxAmount = 1 << 61

// Grant asks for one row in the ledger and the change of a balance that goes
// with it. Its identity is the business key; the ledger only grows.
type Grant struct {
	Key  string // business key, unfolded
	Rule string
	// To is whose balance changes. A reversal may leave it and Unit empty: they
	// are those of the operation that it reverses; where it names them they
	// must be the same.
	To   string
	Unit string
	// Amount is in the smallest unit, above 0 and at most MaxAmount. A reversal
	// may leave it 0: all that was granted; it may not be more.
	Amount int64
	// Reverse is the business key of the grant that this one takes back, in
	// whole or in part; an operation is reversed once.
	Reverse string
	// Floor is what the balance may not fall under; nil is no floor.
	Floor *int64
}

// Kind implements Effect.
func (Grant) Kind() string { return "grant" }

// BusinessKey implements Effect.
func (g Grant) BusinessKey() string { return g.Key }

// RuleName implements Effect.
func (g Grant) RuleName() string { return g.Rule }

// OnRefuse says what becomes of a compare-and-set that finds another state
// than it may leave.
type OnRefuse string

// What a refused compare-and-set may come to.
const (
	RefuseLater OnRefuse = "retry" // the event that leads there may still come; dead after the last attempt
	RefuseStale OnRefuse = "stale" // the rule does nothing
	RefuseDead  OnRefuse = "dead"  // at once
)

// SetState asks for the current state of an object. It either has a Version,
// and is applied only where that is greater than the stored one, or From, and
// is applied only where the stored state is among them, or is Fetched.
type SetState struct {
	Key    string // business key, unfolded; the identity of a compare-and-set
	Rule   string
	Object string // what the state is of, escaped as a key; unfolded
	To     string // the new state
	Fields []Field
	// Version orders the states of the object, see Rank. Of two with equal
	// versions the greater event id stays, so that the end does not depend on
	// the order of arrival.
	Version string
	// From are the states that may be left; "" stands for an object that has
	// none yet. nil is no compare-and-set.
	From     []string
	OnRefuse OnRefuse
	// Fetched says that the state was asked for at its owner while nothing else
	// of this object was under way: it is applied, unless it says itself that it
	// is older than what is stored.
	Fetched bool
	// Asked is, of a fetched state, the number of the first transition that was
	// not there yet when its owner was asked. One of the object from there on
	// may be news to the answer, which is not applied then (ErrOvertaken); 0 is
	// not known.
	Asked int64
	// Fetchable says that an equal version of another event is not decided here
	// (ErrTie): the object can be asked for.
	Fetchable bool
}

// Kind implements Effect.
func (SetState) Kind() string { return "state" }

// BusinessKey implements Effect.
func (s SetState) BusinessKey() string { return s.Key }

// RuleName implements Effect.
func (s SetState) RuleName() string { return s.Rule }

// SQL asks for statements of the owner's on tables of the owner's. They run
// once for a business key, in the transaction that completes the event.
type SQL struct {
	Key        string // business key, unfolded
	Rule       string
	Statements []string
	Params     []Field // :name in the statements
}

// Kind implements Effect.
func (SQL) Kind() string { return "sql" }

// BusinessKey implements Effect.
func (s SQL) BusinessKey() string { return s.Key }

// RuleName implements Effect.
func (s SQL) RuleName() string { return s.Rule }

// Mail is the name of the destination that mail goes to.
const Mail = "mail"

// Email asks for one mail to one recipient. Its identity is the business key
// and the recipient.
type Email struct {
	Key     string // business key, unfolded
	Rule    string
	To      string // one address
	Subject string
	Text    string
	HTML    string
	// Lane as in Forward.
	Lane     string
	LaneSkip bool
}

// MailText is what a mail says, as the message of its delivery: JSON in
// Shipment.Message. The recipient is the delivery's target.
type MailText struct {
	Subject string `json:"subject"`
	Text    string `json:"text,omitempty"`
	HTML    string `json:"html,omitempty"`
}

// Kind implements Effect.
func (Email) Kind() string { return "email" }

// BusinessKey implements Effect.
func (e Email) BusinessKey() string { return e.Key }

// RuleName implements Effect.
func (e Email) RuleName() string { return e.Rule }
