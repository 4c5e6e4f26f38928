package store

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
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
	sqlUnspend = `UPDATE event SET attempts = attempts - 1 WHERE seq = ?`
	sqlKeyOf   = `SELECT source, account, id FROM event WHERE seq = ?`

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
	effects  []application // of each finish
	max      int
	token    event.Claim
	lone     int // finishes with statements of the owner's
	// hopeful is a run without a savepoint around each finish: one costs a copy
	// of every page that the finish touches, and few finishes have anything to
	// take back. Where one has, the batch is rolled back and runs again.
	hopeful bool

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
		token: s.desk.token(), effects: make([]application, len(finishes)),
		finished: make([]event.Finished, len(finishes)),
	}
	for i := range finishes {
		st.effects[i] = s.prepare(&finishes[i], st.at)
		if hasOwn(&finishes[i]) {
			st.lone++
		}
	}
	ctx = context.WithoutCancel(ctx)
	st.hopeful = !s.desk.objections.lately()
	err := s.write(ctx, work, 4*len(finishes)+max, st.run)
	if errors.Is(err, errHope) { // it was alone in its batch
		err = s.write(ctx, work, 4*len(finishes)+max, st.run)
	}
	st.hopeful = false
	if err != nil && !errors.Is(err, event.ErrUnavailable) && !errors.Is(err, event.ErrBusy) && len(finishes) > 0 {
		err = st.oneByOne(ctx)
	}
	if err == nil && st.lone > 0 {
		err = st.settleLone(ctx)
	}
	if err != nil {
		st.lose(err)
		for i := range st.finished {
			st.finished[i] = event.Finished{Err: err}
		}
		return st.finished, nil, fmt.Errorf("settle: %w", err)
	}
	st.wake()
	return st.finished, st.works, nil
}

// lose gives up the claims of a batch that may be stored all the same.
func (st *settlement) lose(err error) {
	st.store.lose(err, st.token)
	for i := range st.effects {
		st.store.lose(err, st.effects[i].token)
	}
}

// run does all of the batch in the writer's transaction.
//
// A crash before the commit leaves the claims of a dead boot and none of the
// effects: the events run again. After it, a finish that is tried again finds
// its claim gone.
func (st *settlement) run(t *tx) error {
	st.due, st.shipping = false, false
	for i := range st.finishes {
		if st.lone > 0 && hasOwn(&st.finishes[i]) {
			continue
		}
		if err := st.finishInLane(t, i); err != nil {
			return err
		}
	}
	if st.lone > 0 { // what they leave can be claimed too
		return nil
	}
	return st.claim(t)
}

// oneByOne runs the batch as one unit a finish, after a statement of one of
// them failed: it hurts itself only.
func (st *settlement) oneByOne(ctx context.Context) error {
	for i := range st.finishes {
		if st.lone > 0 && hasOwn(&st.finishes[i]) {
			continue
		}
		err := st.store.write(ctx, work, 4, func(t *tx) error { return st.finishInLane(t, i) })
		if errors.Is(err, event.ErrUnavailable) || errors.Is(err, event.ErrBusy) {
			return err
		}
		if err != nil {
			st.finished[i] = event.Finished{Err: err}
		}
	}
	if st.lone > 0 {
		return nil
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
	effects := &st.effects[i]
	undo := effects.undoes()
	if undo && !st.hopeful {
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
		return st.keep(t, undo)
	}
	verdicts, err := effects.run(t)
	if no := (*objection)(nil); err != nil && errors.As(err, &no) {
		st.store.desk.objections.met()
		if undo && st.hopeful {
			st.hopeful = false
			return errHope
		}
		out.Err = no
		verdicts, err = st.object(t, i, no, undo)
	}
	if err != nil {
		return err
	}
	if out.Err == nil {
		out.Shipments = effects.shipments
		st.shipping = st.shipping || effects.shipping
	}
	if err := saveVerdicts(t, f, verdicts, st.at); err != nil {
		return err
	}
	out.Verdicts = verdicts
	return st.keep(t, undo)
}

// errHope ends a hopeful run that has something to take back: its next one
// is careful.
var errHope = errors.New("a finish has to be taken back")

// objections remembers for a while that there was one, so that finishes which
// keep being refused do not make every batch run twice.
type objections struct{ left atomic.Int32 }

// carefulFor is how many batches are careful after an objection.
const carefulFor = 64

func (o *objections) met() { o.left.Store(carefulFor) }

func (o *objections) lately() bool {
	if o.left.Load() <= 0 {
		return false
	}
	o.left.Add(-1)
	return true
}

// object takes back what a finish did before it met an objection. Either the
// event keeps its claim, or it is dead.
func (st *settlement) object(t *tx, i int, o *objection, undo bool) ([]event.Verdict, error) {
	f := &st.finishes[i]
	if undo {
		if _, err := t.exec(sqlUndo); err != nil {
			return nil, err
		}
	}
	if o.waits() {
		return nil, nil
	}
	if undo {
		if _, err := st.move(t, f); err != nil {
			return nil, err
		}
	}
	return st.refuse(t, i, o)
}

func (st *settlement) keep(t *tx, marked bool) error {
	if !marked || st.hopeful {
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
	return eventFailed(t, st.at, seq, id, true)
}

// refuse makes the event dead because one of its effects can not be applied.
// None of its effects is stored.
func (st *settlement) refuse(t *tx, i int, o *objection) ([]event.Verdict, error) {
	f := &st.finishes[i]
	const sqlRefuse = `UPDATE event SET state = 'dead', finished_at = ?, error = ?, claim = NULL, next_at = NULL WHERE seq = ?`
	if _, err := t.exec(sqlRefuse, st.at, o.Error(), f.Seq); err != nil {
		return nil, fmt.Errorf("refuse event %d: %w", f.Seq, err)
	}
	err := st.die(t, f.Seq, &event.Incident{
		Cause: event.CauseDeadEvent, Subject: o.rule, Detail: o.detail(st.effects[i].of),
	})
	return []event.Verdict{{Seq: f.Seq, Run: f.Run, Rule: o.rule, Decision: event.Failed, Reason: o.Error(), At: st.now}}, err
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
