package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"creel/event"
)

const (
	sqlReleaseEvent = `UPDATE event SET state = 'pending', claim = NULL, next_at = ?, attempts = attempts - 1
		WHERE seq = ? AND state = 'claimed' AND claim = ?`
	sqlEventLater = `UPDATE event SET state = 'pending', claim = NULL, next_at = ?, error = ?, alone = 0
		WHERE seq = ? AND state = 'claimed' AND claim = ?`
	sqlEventOver = `UPDATE event SET state = ?, claim = NULL, finished_at = ?, error = ?, alone = 0
		WHERE seq = ? AND state = 'claimed' AND claim = ?`
	sqlUnspend   = `UPDATE event SET attempts = attempts - 1 WHERE seq = ?`
	sqlEventDied = `UPDATE event SET revivable = 1, incident = ? WHERE seq = ?`
	sqlKeyOf     = `SELECT source, account, id FROM event WHERE seq = ?`

	// A run that is tried again says more than its last try did.
	sqlVerdict = `INSERT INTO verdict (event, run, rule, decision, reason, at) VALUES (?,?,?,?,?,?)
		ON CONFLICT (event, run, rule) DO UPDATE
		SET decision = excluded.decision, reason = excluded.reason, at = excluded.at`

	sqlMark = `SAVEPOINT finish`
	sqlUndo = `ROLLBACK TO finish`
	sqlKeep = `RELEASE finish`
)

// settlement is one batch of finishes with the claim of the next.
type settlement struct {
	store    *Store
	now      time.Time
	at       int64
	finishes []event.Finish
	tokens   []event.Claim // for deliveries that are born claimed
	max      int
	token    event.Claim

	// What the last run came to; a rerun writes it anew.
	finished []event.Finished
	works    []event.Work
	due      bool // events that wait no longer
	shipping bool // deliveries that wait for a claim
}

// Settle finishes what a worker did and claims up to max of what is due next,
// in one transaction: one sync for both. Each finish is whole (its effects,
// its verdicts and the event's state commit together, or none does) and fails
// alone: a claim that was lost is event.ErrClaimLost in its Finished and none
// of its effects exist.
//
// An error is trouble of the store and says that nothing is known to be
// stored. ctx is not waited on: the answer of the writer is, which is bounded,
// so that no claim is ever left behind.
func (s *Store) Settle(ctx context.Context, now time.Time, finishes []event.Finish, max int) ([]event.Finished, []event.Work, error) {
	st := &settlement{
		store: s, now: now, at: now.UnixMilli(), finishes: finishes, max: max,
		token: s.desk.token(), tokens: make([]event.Claim, len(finishes)),
		finished: make([]event.Finished, len(finishes)),
	}
	for i := range finishes {
		for _, e := range finishes[i].Effects {
			if f, ok := e.(event.Forward); ok && f.Claimed && st.tokens[i] == "" {
				st.tokens[i] = s.desk.token()
			}
		}
	}
	ctx = context.WithoutCancel(ctx)
	err := s.write(ctx, work, 4*len(finishes)+max, st.run)
	if err != nil && !errors.Is(err, event.ErrUnavailable) && !errors.Is(err, event.ErrBusy) && len(finishes) > 0 {
		err = st.oneByOne(ctx)
	}
	if err != nil {
		s.lose(err, append(st.tokens, st.token)...)
		for i := range st.finished {
			st.finished[i] = event.Finished{Err: err}
		}
		return st.finished, nil, fmt.Errorf("settle: %w", err)
	}
	st.wake()
	return st.finished, st.works, nil
}

// run does all of the batch in the writer's transaction.
//
// A crash before the commit leaves the claims of a dead boot and none of the
// effects: the events run again. After it, a finish that is tried again finds
// its claim gone.
func (st *settlement) run(t *tx) error {
	st.due, st.shipping = false, false
	for i := range st.finishes {
		if err := st.finish(t, i); err != nil {
			return err
		}
	}
	return st.claim(t)
}

// oneByOne runs the batch as one unit a finish, after a statement of one of
// them failed: it hurts itself only.
func (st *settlement) oneByOne(ctx context.Context) error {
	for i := range st.finishes {
		err := st.store.write(ctx, work, 4, func(t *tx) error { return st.finish(t, i) })
		if errors.Is(err, event.ErrUnavailable) || errors.Is(err, event.ErrBusy) {
			return err
		}
		if err != nil {
			st.finished[i] = event.Finished{Err: err}
		}
	}
	return st.store.write(ctx, work, st.max, st.claim)
}

func (st *settlement) claim(t *tx) (err error) {
	st.works = nil
	if st.max > 0 {
		st.works, err = claimEvents(t, st.at, st.max, st.token)
	}
	return err
}

// finish applies one finish. What the claim or a business key refuses is the
// finish's own answer, not an error of the transaction.
func (st *settlement) finish(t *tx, i int) error {
	f := &st.finishes[i]
	st.finished[i] = event.Finished{}
	out := &st.finished[i]
	if err := checkFinish(f); err != nil {
		out.Err = err
		return nil
	}
	// With more than one effect a mismatch has something to undo.
	several := len(f.Effects) > 1
	if several {
		if _, err := t.exec(sqlMark); err != nil {
			return err
		}
	}
	held, err := st.move(t, f)
	if err != nil {
		return err
	}
	if !held {
		out.Err = fmt.Errorf("event %d: %w", f.Seq, event.ErrClaimLost)
		return keep(t, several)
	}
	verdicts, err := st.apply(t, i)
	if mismatch := (*mismatchError)(nil); errors.As(err, &mismatch) {
		if several {
			if _, err := t.exec(sqlUndo); err != nil {
				return err
			}
			if _, err := st.move(t, f); err != nil {
				return err
			}
		}
		verdicts, err = st.refuse(t, f, mismatch)
		*out = event.Finished{Err: mismatch}
	}
	if err != nil {
		return err
	}
	if err := saveVerdicts(t, f, verdicts, st.at); err != nil {
		return err
	}
	out.Verdicts = verdicts
	return keep(t, several)
}

func keep(t *tx, several bool) error {
	if !several {
		return nil
	}
	_, err := t.exec(sqlKeep)
	return err
}

// checkFinish refuses what no table of moves allows.
func checkFinish(f *event.Finish) error {
	if f.Release && f.State != event.Pending && f.State != event.Dead && f.State != "" {
		return fmt.Errorf("event %d: a claim that is given back leaves it pending or dead, not %s", f.Seq, f.State)
	}
	if f.State != "" && !event.CanMove(event.Claimed, f.State) {
		return fmt.Errorf("event %d: it can not move from %s to %q", f.Seq, event.Claimed, f.State)
	}
	return nil
}

// move brings the event into the state that the finish asks for, if the claim
// is still the current one.
func (st *settlement) move(t *tx, f *event.Finish) (held bool, err error) {
	next := f.NextAt.UnixMilli()
	if f.NextAt.IsZero() {
		next = st.at
	}
	var moved int64
	switch {
	case f.Release && f.State != event.Dead:
		moved, err = t.exec(sqlReleaseEvent, next, f.Seq, string(f.Claim))
	case f.State == event.Pending:
		moved, err = t.exec(sqlEventLater, next, f.Error, f.Seq, string(f.Claim))
	default:
		moved, err = t.exec(sqlEventOver, string(f.State), st.at, f.Error, f.Seq, string(f.Claim))
	}
	if err != nil {
		return false, fmt.Errorf("finish event %d: %w", f.Seq, err)
	}
	if moved == 0 {
		return false, nil
	}
	if f.Release && f.State == event.Dead {
		if _, err := t.exec(sqlUnspend, f.Seq); err != nil {
			return false, fmt.Errorf("give back the attempt of event %d: %w", f.Seq, err)
		}
	} else if f.Release || f.State == event.Pending {
		st.due = st.due || next <= st.at
	}
	if f.State == event.Dead {
		return true, st.die(t, f.Seq, f.Incident)
	}
	if f.Incident != nil {
		_, err = raise(t, st.at, *f.Incident, 0)
	}
	return true, err
}

// die marks a death, with the incident that it counts on.
func (st *settlement) die(t *tx, seq int64, i *event.Incident) error {
	var id any
	if i != nil {
		raised, err := raise(t, st.at, *i, 1)
		if err != nil {
			return err
		}
		id = raised
	}
	if _, err := t.exec(sqlEventDied, id, seq); err != nil {
		return fmt.Errorf("mark death of event %d: %w", seq, err)
	}
	return nil
}

// refuse makes the event dead because a business key of its effects names
// another operation. None of its effects is stored.
func (st *settlement) refuse(t *tx, f *event.Finish, m *mismatchError) ([]event.Verdict, error) {
	const sqlRefuse = `UPDATE event SET state = 'dead', finished_at = ?, error = ?, claim = NULL, next_at = NULL WHERE seq = ?`
	if _, err := t.exec(sqlRefuse, st.at, m.Error(), f.Seq); err != nil {
		return nil, fmt.Errorf("refuse event %d: %w", f.Seq, err)
	}
	err := st.die(t, f.Seq, &event.Incident{
		Cause:   event.CauseDeadEvent,
		Subject: m.rule,
		Detail:  m.Error() + ". Give the rule a key that names one operation, then replay the event.",
	})
	return []event.Verdict{{Seq: f.Seq, Run: f.Run, Rule: m.rule, Decision: event.Failed, Reason: m.Error(), At: st.now}}, err
}

func saveVerdicts(t *tx, f *event.Finish, verdicts []event.Verdict, now int64) error {
	for i := range verdicts {
		v := &verdicts[i]
		at := now
		if !v.At.IsZero() {
			at = v.At.UnixMilli()
		}
		if _, err := t.exec(sqlVerdict, f.Seq, f.Run, v.Rule, string(v.Decision), v.Reason, at); err != nil {
			return fmt.Errorf("store verdict: %w", err)
		}
	}
	return nil
}

// wake rings for what the commit left due.
func (st *settlement) wake() {
	if st.due {
		ring(st.store.desk.events)
	}
	if st.shipping {
		ring(st.store.desk.deliveries)
	}
}
