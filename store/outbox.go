package store

import (
	"fmt"
	"slices"
	"time"

	"creel/event"
)

const (
	sqlInsertDelivery = `INSERT INTO delivery (event, rule, key, long_key, destination, state, attempts, tries,
		created_at, next_at, claim) VALUES (?1,?2,?3,?4,?5,?6,?7,?7,?8,?8,?9) ON CONFLICT (key, destination) DO NOTHING`
	sqlExisting = `SELECT delivery.event, delivery.state, delivery.long_key, event.source, event.account, event.id
		FROM delivery JOIN event ON event.seq = delivery.event WHERE delivery.key = ? AND delivery.destination = ?`
)

// mismatchError says that a business key names an operation other than the
// one that an event asks for. It wraps event.ErrMismatch.
type mismatchError struct {
	rule         string
	stored, want string // both values
}

func (m *mismatchError) Error() string {
	return fmt.Sprintf("%v: it names %s, this event asks for %s", event.ErrMismatch, m.stored, m.want)
}

func (m *mismatchError) Unwrap() error { return event.ErrMismatch }

// tally counts the effects of one rule: all of them, and those that were there
// before.
type tally struct {
	all, before int
	reason      string
}

// apply turns the effects of a finish into rows. It returns the verdicts as
// they are to be stored: a rule that found every one of its effects there
// already says so.
func (st *settlement) apply(t *tx, i int) ([]event.Verdict, error) {
	f := &st.finishes[i]
	var rules map[string]*tally
	if len(f.Effects) > 0 {
		rules = map[string]*tally{}
	}
	for _, e := range f.Effects {
		forward, ok := e.(event.Forward)
		if !ok {
			return nil, fmt.Errorf("event %d: no room for an effect of kind %q", f.Seq, e.Kind())
		}
		count := rules[forward.Rule]
		if count == nil {
			count = &tally{}
			rules[forward.Rule] = count
		}
		count.all++
		before, err := st.forward(t, i, forward)
		if err != nil {
			return nil, err
		}
		if before != "" {
			count.before, count.reason = count.before+1, before
		}
	}
	verdicts := slices.Clone(f.Verdicts)
	for k := range verdicts {
		v := &verdicts[k]
		c := rules[v.Rule]
		if v.Decision == event.Applied && c != nil && c.before == c.all {
			v.Decision = event.AlreadyApplied
			if v.Reason == "" {
				v.Reason = c.reason
			}
		}
	}
	return verdicts, nil
}

// forward inserts a delivery. The unique key decides; where the delivery is
// there already, it returns what is known about it.
func (st *settlement) forward(t *tx, i int, e event.Forward) (before string, err error) {
	f := &st.finishes[i]
	of, err := st.keyOf(t, f)
	if err != nil {
		return "", err
	}
	stored, storedLong, err := keyFor(t, f.Seq, of, e.Key, e.Destination)
	if err != nil {
		return "", err
	}
	state, count := string(event.DeliveryReady), 0
	var claim any
	if e.Claimed {
		state, count, claim = string(event.DeliverySending), 1, string(st.tokens[i])
	}
	id, inserted, err := t.insert(sqlInsertDelivery, f.Seq, e.Rule, stored, storedLong, e.Destination, state, count, st.at, claim)
	if err != nil {
		return "", fmt.Errorf("insert delivery: %w", err)
	}
	if inserted == 0 {
		return existing(t, f.Seq, e, stored, storedLong)
	}
	if !e.Claimed {
		st.shipping = true
		return "", nil
	}
	key, long := event.Fold(e.Key)
	shipment := event.Shipment{Claim: st.tokens[i], Delivery: event.Delivery{
		ID: id, Event: of, EventSeq: f.Seq, Rule: e.Rule, Key: key, LongKey: long, Destination: e.Destination,
		State: event.DeliverySending, Run: 1, Attempts: 1, Tries: 1, CreatedAt: time.UnixMilli(st.at).UTC(),
	}}
	st.finished[i].Shipments = append(st.finished[i].Shipments, shipment)
	return "", nil
}

// keyOf is the key of the event that a finish is about.
func (st *settlement) keyOf(t *tx, f *event.Finish) (of event.Key, err error) {
	if f.Key != (event.Key{}) {
		return f.Key, nil
	}
	err = t.query(sqlKeyOf, []any{f.Seq}, func(r row) error {
		of = keyOf(r, 0)
		return nil
	})
	if err != nil {
		return of, fmt.Errorf("read event key: %w", err)
	}
	return of, nil
}

// existing compares the delivery that has the key with the one that was asked
// for. Key and destination are equal by the constraint; what is left of a
// forward's identity is the readable key behind a hash. The rule is not
// compared: two rules may mean one operation.
func existing(t *tx, seq int64, e event.Forward, key, long string) (before string, err error) {
	var (
		owner       int64
		state, have string
		of          event.Key
	)
	err = t.query(sqlExisting, []any{key, e.Destination}, func(r row) error {
		owner, state, have, of = r.int64(0), r.text(1), r.text(2), keyOf(r, 3)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("read existing delivery: %w", err)
	}
	if have != long {
		return "", &mismatchError{rule: e.Rule, stored: described(key, have), want: described(key, long)}
	}
	if owner == seq {
		return fmt.Sprintf("the delivery to %s is %s", e.Destination, state), nil
	}
	return fmt.Sprintf("%s did this operation: its delivery to %s is %s", of, e.Destination, state), nil
}

func described(key, long string) string {
	if long == "" {
		return fmt.Sprintf("the key %q", key)
	}
	return fmt.Sprintf("the long key %q", long)
}
