package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"

	"creel/event"
)

// reading is all that a decision needs: the writer's transaction has it, and so
// has a reader's snapshot.
type reading interface {
	query(sql string, args []any, scan func(row) error) error
}

// query is the snapshot's list under the name that a transaction has for it.
func (s snapshot) query(sql string, args []any, scan func(row) error) error {
	return s.list(sql, args, scan)
}

// Outlook is what would become of one effect.
type Outlook struct {
	// Decision is Applied, AlreadyApplied or Stale; Failed where the event would
	// be dead for it, Later where it would be tried again; Skipped where another
	// effect of the event does that.
	Decision event.Decision
	Reason   string
	From     string // the state that would be left; "" for an object that has none
	Amount   int64  // what a reversal would take back
}

// Foresight tells what would become of events, one after another: what those
// before would have stored is there for those behind. It is of one plan, and not
// safe for concurrent use.
type Foresight struct {
	reader  *Reader
	imagine imagination
}

// Foresight begins a plan.
func (r *Reader) Foresight() *Foresight {
	return &Foresight{reader: r, imagine: imagination{rows: map[string][]driver.Value{}, known: spoken{}}}
}

// Event tells what would become of the effects of an event, from reads alone and
// by the decisions that a run makes. An event that one of them would end, or put
// off, does none of the others: they are Skipped.
func (f *Foresight) Event(ctx context.Context, of event.Event, effects []event.Effect) ([]Outlook, error) {
	a := application{finish: &event.Finish{Seq: of.Seq, Key: of.Key, Effects: effects}, of: of.Key}
	for i, e := range effects {
		if text, is := writtenText(e); is {
			a.write(i, text)
		}
	}
	outlooks := make([]Outlook, len(effects))
	err := f.reader.snapshot(ctx, func(s snapshot) error {
		f.imagine.begin(s)
		return a.foreseeAll(&f.imagine, outlooks)
	})
	if err != nil {
		return nil, fmt.Errorf("foresee event %s: %w", of.Key, err)
	}
	return outlooks, nil
}

// foreseeAll goes through the rules as run does.
func (a *application) foreseeAll(m *imagination, outlooks []Outlook) error {
	before := len(m.changes)
	for i, e := range a.finish.Effects {
		rule := e.RuleName()
		if slices.ContainsFunc(a.finish.Effects[:i], func(e event.Effect) bool { return e.RuleName() == rule }) {
			continue
		}
		at, err := a.foreseeRule(m, i, outlooks)
		no := (*objection)(nil)
		if err == nil {
			continue
		}
		if !errors.As(err, &no) {
			return err
		}
		m.undo(before)
		o := &outlooks[at]
		for k := range outlooks {
			outlooks[k] = Outlook{Decision: event.Skipped, From: outlooks[k].From, Amount: outlooks[k].Amount}
		}
		o.Decision, o.Reason = event.Failed, no.Error()
		if no.waits() {
			o.Decision = event.Later
		}
		return nil
	}
	return nil
}

// foreseeRule looks at the effects of the rule whose first one is at place
// first. at is the one that an error is about.
func (a *application) foreseeRule(m *imagination, first int, outlooks []Outlook) (at int, err error) {
	effects := a.finish.Effects
	before, stale := len(m.changes), ""
	for _, states := range []bool{true, false} {
		for i := first; i < len(effects) && stale == ""; i++ {
			if _, is := effects[i].(event.SetState); is != states || effects[i].RuleName() != effects[first].RuleName() {
				continue
			}
			if err := a.foresee(m, i, &outlooks[i]); err != nil {
				return i, err
			}
			if outlooks[i].Decision == event.Stale {
				stale = outlooks[i].Reason
			}
		}
	}
	if stale == "" {
		return 0, nil
	}
	m.undo(before)
	for i := range effects {
		if effects[i].RuleName() == effects[first].RuleName() {
			outlooks[i] = Outlook{Decision: event.Stale, Reason: stale, From: outlooks[i].From}
		}
	}
	return 0, nil
}

// foresee is effect without its writes, which are imagined instead.
func (a *application) foresee(m *imagination, i int, o *Outlook) (err error) {
	var got answer
	switch e := a.finish.Effects[i].(type) {
	case event.Record:
		got, err = a.foreseeRecord(m, i, e)
	case event.Grant:
		got, err = a.foreseeGrant(m, e, o)
	case event.SetState:
		got, err = a.foreseeState(m, i, e, o)
	case event.Forward:
		got, err = a.foreseeDelivery(m, e, outgoing{key: e.Key, destination: e.Destination})
	case event.Email:
		if err = mailable(e); err == nil {
			got, err = a.foreseeDelivery(m, e, outgoing{key: e.Key, destination: event.Mail, target: e.To})
		}
	case event.Run:
		got, err = a.foreseeDelivery(m, e, outgoing{key: e.Key, destination: e.Destination})
	case event.File:
		got, err = a.foreseeDelivery(m, e, outgoing{key: e.Key, destination: e.Destination, target: e.Path})
	case event.SQL:
		got, err = a.foreseeOperation(m, i, e)
	}
	o.Decision, o.Reason = event.Applied, got.note
	if got.before {
		o.Decision = event.AlreadyApplied
	}
	if got.stale {
		o.Decision = event.Stale
	}
	return err
}

func (a *application) foreseeRecord(m *imagination, i int, e event.Record) (answer, error) {
	if err := recordable(e); err != nil {
		return answer{}, err
	}
	key, long, err := m.known.keyFor(m, recordKeys, a.finish.Seq, a.of, e.Key, e.Of)
	if err != nil {
		return answer{}, err
	}
	got, err := a.existingRecord(m, e, key, long, a.texts[i])
	if err == nil && !got.before {
		m.row(sqlExistingRecord, []any{key, e.Of}, a.row(long, a.texts[i])...)
	}
	return got, err
}

func (a *application) foreseeGrant(m *imagination, e event.Grant, o *Outlook) (answer, error) {
	key, long, err := m.known.keyFor(m, ledgerKeys, a.finish.Seq, a.of, e.Key)
	if err != nil {
		return answer{}, err
	}
	n, err := a.intended(m, e, key)
	if err != nil {
		return answer{}, err
	}
	if n.amount < 0 {
		o.Amount = -n.amount
	}
	if have, err := existingEntry(m, key); err != nil || have.id != 0 {
		return a.booked(e, key, long, &have, &n, err)
	}
	after, _, no, err := a.weigh(m, e, &n)
	if err == nil && no != nil {
		err = no
	}
	if err != nil {
		return answer{}, err
	}
	id := m.next()
	m.row(sqlExistingEntry, []any{key}, id, a.finish.Seq, long, n.holder, n.unit, n.amount, n.reverses, a.of.Source, a.of.Account, a.of.ID)
	m.row(sqlBalance, []any{n.holder, n.unit}, after, id)
	if n.reverses != 0 {
		m.row(sqlReversalOf, []any{n.reverses}, key, long, a.of.Source, a.of.Account, a.of.ID)
	}
	return answer{}, nil
}

func (a *application) foreseeState(m *imagination, i int, e event.SetState, o *Outlook) (answer, error) {
	got, c, err := a.judge(m, m.known, i, e)
	if err != nil || c == nil {
		return got, err
	}
	o.From, got.note = c.from.state, c.note
	m.row(sqlCurrentState, []any{c.object}, e.To, a.texts[i], c.keep.text, c.keep.rank, c.keep.tie, m.next(), a.finish.Seq, c.long)
	if key, is := c.key.(string); is {
		m.row(sqlExistingTransition, []any{key}, a.finish.Seq, c.longKey, c.object, e.To, a.texts[i], a.of.Source, a.of.Account, a.of.ID)
	}
	return got, nil
}

func (a *application) foreseeDelivery(m *imagination, e event.Effect, o outgoing) (answer, error) {
	key, long, err := m.known.keyFor(m, deliveryKeys, a.finish.Seq, a.of, o.key, o.destination, o.target)
	if err != nil {
		return answer{}, err
	}
	got, err := a.existing(m, e, o, key, long, "it")
	if err == nil && !got.before {
		m.row(sqlExisting, []any{key, o.destination, o.target}, a.finish.Seq, string(event.DeliveryReady), long, a.of.Source, a.of.Account, a.of.ID)
	}
	return got, err
}

// foreseeOperation does not run the statements: what they come to is seen when
// they do.
func (a *application) foreseeOperation(m *imagination, i int, e event.SQL) (answer, error) {
	key, long, err := m.known.keyFor(m, operationKeys, a.finish.Seq, a.of, e.Key)
	if err != nil {
		return answer{}, err
	}
	got, err := a.existingOperation(m, e, key, long, a.texts[i])
	if err == nil && !got.before {
		m.row(sqlExistingOperation, []any{key}, a.row(long, a.texts[i])...)
	}
	return got, err
}

// row is how a record or an operation of this event is read.
func (a *application) row(long, text string) []driver.Value {
	return []driver.Value{a.finish.Seq, long, text, a.of.Source, a.of.Account, a.of.ID}
}
