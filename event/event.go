package event

import "time"

// Event is one thing that a sender told us, as the inbox keeps it. Times are
// UTC with millisecond resolution.
type Event struct {
	Seq         int64 // order of receipt; also the row id
	Key         Key
	LongID      string // the readable id, where Key.ID is a hash because it was too long
	Type        string
	Object      string // what the event is about; "" where the source names none
	Version     string // what orders the events of one object; "" where there is none
	Tenant      string // the owner's own name for Key.Account, where a map is configured
	State       State
	Error       string // why it is dead, ignored or waiting
	Run         int    // 1 at first; a replay starts the next
	Attempts    int    // claims of this run
	Duplicates  int
	Origin      Origin
	Lane        string // the order that it keeps; "" for none
	LaneSkip    bool   // a dead one lets those behind it pass
	Waits       bool   // it is pending and not the head of its lane
	Passes      bool   // it is dead and those behind it in its lane may pass
	ReceivedAt  time.Time
	DuplicateAt time.Time // the last duplicate; zero where there was none
	NextAt      time.Time // when it is due, while it is pending
	FinishedAt  time.Time
}

// Origin says how an event came in.
type Origin string

// The ways into the inbox.
const (
	FromWebhook   Origin = "webhook"
	FromImport    Origin = "import"
	FromReconcile Origin = "reconcile"
)

// Payload is the request that carried an event, byte for byte.
type Payload struct {
	Body []byte
	// Header has one "Name: value" line per header line, as they came, less
	// those that are never kept (see receiver).
	Header string
	// Query is the raw query of the request, without the question mark.
	Query string
	// Part is the path of the event inside the request, in the path language:
	// "" for the whole body, "form.payload", "body.0".
	Part string
}

// Claim is the proof that a piece of work is ours: the boot of the server and
// a counter. A finish without the current claim is refused.
type Claim string

// Work is an event that was claimed: all that a rule may look at.
type Work struct {
	Event
	Payload
	Claim Claim
	// Alone says that a server died with this event in its hands: nothing else
	// that could end the process may run beside it, so that the next death
	// tells which event it was.
	Alone bool
}

// Receipt is one verified request on its way into the inbox. Everything in it
// was computed before it reaches the writer.
type Receipt struct {
	Source string
	Origin Origin
	At     time.Time
	Body   []byte
	Header string
	Query  string
	// BodyKey is the SHA-256 of the body where the sender's id is not covered
	// by the signature: the same body under another id within BodyWindow is a
	// duplicate. BodyWindow 0 switches it off.
	BodyKey    [32]byte
	BodyWindow time.Duration
	Items      []Item
	// Alike settles whether an event that its owner brought and one under the
	// same key that its sender brought say the same: lists write other blanks
	// than webhooks do. Without it the contents decide.
	Alike Likeness
}

// Likeness compares what two requests say of an event.
type Likeness interface {
	Alike(a, b Payload) bool
}

// Item is one event of a receipt.
type Item struct {
	Key     Key
	LongID  string
	Type    string
	Object  string
	Version string
	Part    string
	// Lane is the order that the event has to keep: of those in one lane the
	// one with the lowest version, then the oldest, goes first. "" is none.
	// LaneSkip lets those behind a dead one pass.
	Lane     string
	LaneSkip bool
	// Inline completes the event in the transaction that stores it: what its
	// rules decided, but for Seq and Claim, which the store fills in. Where it
	// can not be applied the event is stored pending.
	Inline *Finish
	// State is Pending, or already an end: Ignored (with Error the reason) or
	// Dead (authentic, but not to be processed as it is).
	State State
	Error string
	// Content identifies what the event says, without the parts that its
	// sender changes from one delivery to the next: the same key with another
	// Content is a conflict.
	Content [16]byte
	// Index are the values at places that the source lists in its index, by
	// which the event is found.
	Index []IndexValue
	// DropBody keeps the row without its body (a type that the configuration
	// ignores).
	DropBody bool
}

// Accepted tells what became of each item of a receipt, in its order.
type Accepted struct {
	Items []AcceptedItem
}

// AcceptedItem is what became of one item.
type AcceptedItem struct {
	Key        Key // the key of the stored event (of the first one, for a duplicate body)
	Seq        int64
	Result     Result
	Duplicates int  // how many duplicates the stored event has now
	Conflicts  int  // how many other bodies it has now
	Revived    bool // a dead event that this redelivery made pending again
}

// Result is what the unique constraint said about an item.
type Result string

// The results of accepting an item.
const (
	New       Result = "new"
	Duplicate Result = "duplicate"
	Conflict  Result = "conflict"
)

// Verdict is what one run decided about an event, for one rule.
type Verdict struct {
	Seq      int64
	Run      int
	Rule     string // "" where no rule came to speak
	Decision Decision
	Reason   string
	At       time.Time
}
