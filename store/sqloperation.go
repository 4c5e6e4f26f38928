package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"time"

	"creel/event"
)

const (
	sqlInsertOperation = `INSERT INTO operation (event, rule, key, long_key, params, at) VALUES (?,?,?,?,?,?)
		ON CONFLICT (key) DO NOTHING`
	sqlExistingOperation = `SELECT operation.event, operation.long_key, operation.params, event.source, event.account, event.id
		FROM operation JOIN event ON event.seq = operation.event WHERE operation.key = ?`
	sqlOperationsOf = `SELECT operation.id, operation.rule, operation.key, operation.long_key, operation.params, operation.at,
		event.source, event.account, event.id FROM operation JOIN event ON event.seq = operation.event
		WHERE operation.event = ? ORDER BY operation.id LIMIT ?`
	sqlNamedOperation  = `SELECT 1 FROM operation WHERE key = ?`
	sqlSpokenOperation = `SELECT 1 FROM operation WHERE key >= ?1 AND key < ?2 UNION ALL
		SELECT 1 FROM operation WHERE key >= 'sha256:' AND key < 'sha256;' LIMIT 1`
)

// ownTimeout is how long the statements of one event may run where nobody says
// otherwise.
const ownTimeout = 2 * time.Second

// ruleVerbs begin what a statement of a rule may do.
var ruleVerbs = []string{"insert", "update", "delete", "replace", "with"}

// LimitOwn sets how long the statements of one event may run together. Intake
// waits that long at most; 0 is the default of two seconds.
func (s *Store) LimitOwn(d time.Duration) { s.desk.ownTimeout.Store(int64(d)) }

func (s *Store) ownLimit() time.Duration {
	if d := time.Duration(s.desk.ownTimeout.Load()); d > 0 {
		return d
	}
	return ownTimeout
}

// ownPart is what an application has for statements of the owner's.
type ownPart struct {
	limit time.Duration
	until time.Time // zero outside a transaction of its own, where none is run
	// over is the objection after which the transaction may be gone; refused is
	// the same one when it is to be stored.
	over, refused *objection
}

// hasOwn tells whether the finish needs a transaction of its own.
func hasOwn(f *event.Finish) bool {
	return slices.ContainsFunc(f.Effects, func(e event.Effect) bool {
		_, is := e.(event.SQL)
		return is
	})
}

// settleLone settles the finishes that have statements of the owner's, each in a
// transaction of its own, and then claims what is due. The others were stored
// before: none of them waits for the owner's statements. Once these took as long
// together as those of one event may, the rest is given back, so that a batch of
// slow ones holds up neither the events that are claimed next nor a stop.
func (st *settlement) settleLone(ctx context.Context) error {
	st.wake()
	var rest []int
	begun := time.Now()
	for i := range st.finishes {
		if !hasOwn(&st.finishes[i]) {
			continue
		}
		if time.Since(begun) > st.store.ownLimit() {
			rest = append(rest, i)
			continue
		}
		if err := st.settleAlone(ctx, i); err != nil {
			return err
		}
	}
	if len(rest) > 0 {
		if err := st.giveBack(ctx, rest); err != nil {
			return err
		}
	}
	if st.max == 0 {
		return nil
	}
	return st.store.writeAlone(ctx, st.max, st.claim)
}

// giveBack makes events pending that nobody had time for.
func (st *settlement) giveBack(ctx context.Context, rest []int) error {
	st.finishes = slices.Clone(st.finishes) // they are the caller's
	for _, i := range rest {
		f := &st.finishes[i]
		*f = event.Finish{Seq: f.Seq, Key: f.Key, Claim: f.Claim, Run: f.Run, State: event.Pending, NextAt: st.now, Release: true}
		st.effects[i] = st.store.prepare(f, st.at)
	}
	return st.store.writeAlone(ctx, 4*len(rest), func(t *tx) error {
		for _, i := range rest {
			if err := st.finishInLane(t, i); err != nil {
				return err
			}
			st.finished[i].GivenBack = st.finished[i].Err == nil
		}
		return nil
	})
}

// settleAlone settles a finish that has statements of the owner's. Where they
// are refused in a way that took the transaction with it, a second one stores
// the refusal; a crash between the two leaves the claim of a dead boot.
func (st *settlement) settleAlone(ctx context.Context, i int) error {
	a := &st.effects[i]
	a.own = ownPart{limit: st.store.ownLimit()}
	ran := false
	err := st.store.writeAlone(ctx, 4, func(t *tx) error {
		a.own.over, a.own.until = nil, time.Now().Add(a.own.limit)
		err := st.finishInLane(t, i)
		ran = err == nil
		return err
	})
	a.own.until = time.Time{}
	if err == nil || errors.Is(err, event.ErrUnavailable) {
		return err
	}
	o := a.own.over
	if o == nil && ran && isConstraint(err) { // a deferred one: COMMIT found it
		o = &objection{a.ownRule(), event.ErrRefused, saying(err)}
	}
	switch {
	case o == nil:
		st.finished[i] = event.Finished{Err: err}
		return nil
	case o.waits():
		st.finished[i] = event.Finished{Err: o}
		return nil
	}
	a.own.refused = o
	return st.store.writeAlone(ctx, 4, func(t *tx) error { return st.finishInLane(t, i) })
}

// ownRule is the first rule with statements.
func (a *application) ownRule() string {
	for _, e := range a.finish.Effects {
		if q, is := e.(event.SQL); is {
			return q.Rule
		}
	}
	return ""
}

// operation runs the statements of an effect, once for its key. The unique key
// decides; an operation that is there already has to have had the same
// parameters.
func (a *application) operation(t *tx, i int, e event.SQL) (answer, error) {
	f, params := a.finish, a.texts[i]
	key, long, err := keyFor(t, operationKeys, f.Seq, a.of, e.Key)
	if err != nil {
		return answer{}, err
	}
	inserted, err := t.exec(sqlInsertOperation, f.Seq, e.Rule, key, long, params, a.at)
	if err != nil {
		return answer{}, fmt.Errorf("insert operation: %w", err)
	}
	if inserted > 0 {
		return answer{}, a.statements(t, e)
	}
	return a.existingOperation(t, e, key, long, params)
}

// existingOperation compares the operation that has the key with the one that is
// asked for; the zero answer is that there is none.
func (a *application) existingOperation(t reading, e event.SQL, key, long, params string) (answer, error) {
	var owner earlierEffect
	stored := ""
	err := t.query(sqlExistingOperation, []any{key}, func(r row) error {
		owner = earlierEffect{seq: r.int64(0), long: r.text(1), of: keyOf(r, 3)}
		stored = r.text(2)
		return nil
	})
	if err != nil {
		return answer{}, fmt.Errorf("read existing operation: %w", err)
	}
	if owner.seq == 0 {
		return answer{}, nil
	}
	if err := owner.sameKey(e, key, long); err != nil {
		return answer{}, err
	}
	if have, want := unlike(stored, params); have != want {
		return answer{}, mismatch(e, "an operation with "+have, want)
	}
	return owner.answer(a.finish.Seq, "its statements ran"), nil
}

func operationOf(r row) event.Operation {
	o := event.Operation{ID: r.int64(0), Rule: r.text(1), Params: readFields(r.text(4)), At: timeOf(r, 5), Event: keyOf(r, 6)}
	o.Key, o.LongKey = showKey(r.text(2), r.text(3), o.Event)
	return o
}

// statements runs the statements of an effect in the transaction of its event.
func (a *application) statements(t *tx, e event.SQL) error {
	if a.own.until.IsZero() {
		return &objection{e.Rule, event.ErrNotYet, "statements run in a transaction of their own"}
	}
	args := make(bound, len(e.Params))
	for k, p := range e.Params {
		args[k] = driver.NamedValue{Name: p.Name, Ordinal: k + 1, Value: p.Value}
	}
	for n, text := range e.Statements {
		p, fault := onePart(text)
		if fault == nil {
			fault = unbound(p, e.Params)
		}
		if fault != nil {
			return denied(e, "statement %d: %s", n+1, fault.Message)
		}
		err := t.c.runOwn(p.text, args, a.own.until)
		if err == nil {
			continue
		}
		_ = t.note(err) // the transaction may be over
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			a.own.over = &objection{e.Rule, event.ErrSlow, fmt.Sprintf("those of rule %q took longer than %s", e.Rule, a.own.limit)}
		case ownFault(err):
			a.own.over = denied(e, "statement %d: %s", n+1, saying(err))
		default:
			return fmt.Errorf("run statement %d of rule %q: %w", n+1, e.Rule, err)
		}
		return a.own.over
	}
	return nil
}

// onePart takes a statement of a rule apart. Each text is one statement.
func onePart(text string) (*sqlPart, *OwnFault) {
	parts, err := splitSQL(text)
	if err != nil {
		return nil, &OwnFault{Message: err.Error(), Hint: "close it, or take it out"}
	}
	if len(parts) != 1 {
		return nil, &OwnFault{Message: fmt.Sprintf("it holds %d statements", len(parts)), Hint: `give each a text of its own: statements = ["…", "…"]`}
	}
	p := &parts[0]
	if err := checkVerb(p, ruleVerbs...); err != nil {
		return nil, &OwnFault{Message: err.Error(), Hint: "tables are made by a migration, see [sql] migrations"}
	}
	if p.unnamed != "" {
		return nil, &OwnFault{Message: fmt.Sprintf("the parameter %s has no name", p.unnamed), Hint: "write :name, and name it in params"}
	}
	return p, nil
}

// unbound is the fault of the first parameter that nobody gives a value.
func unbound(p *sqlPart, params []event.Field) *OwnFault {
	for _, name := range p.params {
		if !slices.ContainsFunc(params, func(f event.Field) bool { return f.Name == name }) {
			return &OwnFault{Message: fmt.Sprintf("the parameter :%s is not in params", name), Param: name}
		}
	}
	return nil
}
