package event

import "time"

// KeptRecord is a record as it is stored.
type KeptRecord struct {
	ID      int64
	Event   Key // that brought it
	Rule    string
	Kind    string
	Key     string // business key as stored
	LongKey string // readable form where Key is a hash
	Fields  []Field
	At      time.Time
}

// Operation is what statements of the owner's did once.
type Operation struct {
	ID      int64
	Event   Key
	Rule    string
	Key     string
	LongKey string
	Params  []Field
	At      time.Time
}

// Entry is a row of the ledger.
type Entry struct {
	ID       int64
	Event    Key
	Rule     string
	Key      string
	LongKey  string
	Holder   string
	Unit     string
	Amount   int64 // below 0 for a reversal
	Balance  int64 // after it
	Reverses int64 // the entry that it takes back; 0 for a grant
	At       time.Time
}

// Balance is what a holder has of a unit: the sum of its entries.
type Balance struct {
	Holder string
	Unit   string
	Amount int64
	At     time.Time // of its last change
}

// ObjectState is the current state of an object.
type ObjectState struct {
	Object     string // as stored
	LongObject string // readable form where Object is a hash
	State      string
	Fields     []Field
	Version    string // the highest that came; "" where none did
	Event      Key    // that brought the state
	At         time.Time
}

// Transition is how an object came to a state.
type Transition struct {
	ID      int64
	Object  string
	Event   Key
	Rule    string
	Key     string // business key of a compare-and-set; "" for a version
	LongKey string
	From    string // "" for an object that had no state
	State   string
	Version string // that the event brought
	Fields  []Field
	At      time.Time
}
