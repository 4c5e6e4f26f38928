package admin

import "creel/event"

// EffectLine is what an event did in the database. Which fields it has depends
// on its kind.
type EffectLine struct {
	Effect  string            `json:"effect"` // record, grant, state or sql
	Rule    string            `json:"rule"`
	Key     string            `json:"key,omitempty"`
	Kind    string            `json:"kind,omitempty"`
	Holder  string            `json:"to,omitempty"`
	Unit    string            `json:"unit,omitempty"`
	Amount  int64             `json:"amount,omitempty"`
	Balance *int64            `json:"balance,omitempty"` // after it
	Object  string            `json:"object,omitempty"`
	From    string            `json:"from,omitempty"`
	State   string            `json:"state,omitempty"`
	Version string            `json:"version,omitempty"`
	Fields  map[string]string `json:"fields,omitempty"`
	At      string            `json:"at"`
}

func effectsOf(d *Detail) []EffectLine {
	lines := []EffectLine{}
	for _, k := range d.Records {
		lines = append(lines, EffectLine{Effect: event.Record{}.Kind(), Rule: k.Rule, Key: Readable(k.Key, k.LongKey), Kind: k.Kind,
			Fields: fieldsOf(k.Fields), At: Stamp(k.At)})
	}
	for _, n := range d.Entries {
		lines = append(lines, EffectLine{Effect: event.Grant{}.Kind(), Rule: n.Rule, Key: Readable(n.Key, n.LongKey), Holder: n.Holder,
			Unit: n.Unit, Amount: n.Amount, Balance: &n.Balance, At: Stamp(n.At)})
	}
	for _, n := range d.Transitions {
		lines = append(lines, EffectLine{Effect: event.SetState{}.Kind(), Rule: n.Rule, Key: Readable(n.Key, n.LongKey), Object: n.Object,
			From: n.From, State: n.State, Version: n.Version, Fields: fieldsOf(n.Fields), At: Stamp(n.At)})
	}
	for _, o := range d.Operations {
		lines = append(lines, EffectLine{Effect: event.SQL{}.Kind(), Rule: o.Rule, Key: Readable(o.Key, o.LongKey),
			Fields: fieldsOf(o.Params), At: Stamp(o.At)})
	}
	return lines
}

func fieldsOf(fields []event.Field) map[string]string {
	named := make(map[string]string, len(fields))
	for _, f := range fields {
		named[f.Name] = f.Value
	}
	return named
}

// RecordLine is a row of a kind that a rule inserted once.
type RecordLine struct {
	ID     int64             `json:"id"`
	Event  event.Key         `json:"event"` // that brought it
	Rule   string            `json:"rule"`
	Kind   string            `json:"kind"`
	Key    string            `json:"key"` // the business key
	Fields map[string]string `json:"fields"`
	At     string            `json:"at"`
}

// LineOfRecord is a record as it is printed.
func LineOfRecord(k event.KeptRecord) RecordLine {
	return RecordLine{ID: k.ID, Event: k.Event, Rule: k.Rule, Kind: k.Kind, Key: Readable(k.Key, k.LongKey),
		Fields: fieldsOf(k.Fields), At: Stamp(k.At)}
}

// BalanceLine is what a holder has of a unit.
type BalanceLine struct {
	Holder string `json:"holder"`
	Unit   string `json:"unit"`
	Amount int64  `json:"amount"`
	At     string `json:"at"` // of its last change
}

// LineOfBalance is a balance as it is printed.
func LineOfBalance(b event.Balance) BalanceLine {
	return BalanceLine{b.Holder, b.Unit, b.Amount, Stamp(b.At)}
}

// EntryLine is a row of the ledger.
type EntryLine struct {
	ID       int64     `json:"id"`
	Event    event.Key `json:"event"`
	Rule     string    `json:"rule"`
	Key      string    `json:"key"`
	Holder   string    `json:"holder"`
	Unit     string    `json:"unit"`
	Amount   int64     `json:"amount"`             // below 0 for a reversal
	Balance  int64     `json:"balance"`            // after it
	Reverses int64     `json:"reverses,omitempty"` // the entry that it takes back
	At       string    `json:"at"`
}

// LineOfEntry is a row of the ledger as it is printed.
func LineOfEntry(n event.Entry) EntryLine {
	return EntryLine{ID: n.ID, Event: n.Event, Rule: n.Rule, Key: Readable(n.Key, n.LongKey), Holder: n.Holder, Unit: n.Unit,
		Amount: n.Amount, Balance: n.Balance, Reverses: n.Reverses, At: Stamp(n.At)}
}

// StateLine is the current state of an object.
type StateLine struct {
	Object  string            `json:"object"`
	State   string            `json:"state"`
	Version string            `json:"version,omitempty"` // the highest that came
	Fields  map[string]string `json:"fields"`
	Event   event.Key         `json:"event"` // that brought the state
	At      string            `json:"at"`
}

// LineOfState is the state of an object as it is printed.
func LineOfState(s event.ObjectState) StateLine {
	return StateLine{Object: Readable(s.Object, s.LongObject), State: s.State, Version: s.Version, Fields: fieldsOf(s.Fields),
		Event: s.Event, At: Stamp(s.At)}
}

// TransitionLine is how an object came to a state.
type TransitionLine struct {
	ID      int64             `json:"id"`
	Object  string            `json:"object"`
	Event   event.Key         `json:"event"`
	Rule    string            `json:"rule"`
	Key     string            `json:"key,omitempty"`  // of a change from an expected state
	From    string            `json:"from,omitempty"` // of an object that had one
	State   string            `json:"state"`
	Version string            `json:"version,omitempty"`
	Fields  map[string]string `json:"fields"`
	At      string            `json:"at"`
}

// LineOfTransition is a change of an object as it is printed.
func LineOfTransition(n event.Transition) TransitionLine {
	return TransitionLine{ID: n.ID, Object: n.Object, Event: n.Event, Rule: n.Rule, Key: Readable(n.Key, n.LongKey), From: n.From,
		State: n.State, Version: n.Version, Fields: fieldsOf(n.Fields), At: Stamp(n.At)}
}
