package store

import (
	"errors"

	"creel/event"
)

const (
	sqlMarkInline = `SAVEPOINT inline`
	sqlUndoInline = `ROLLBACK TO inline`
	sqlKeepInline = `RELEASE inline`
)

// inlineOf is the finish of an item, once its row exists. The claim never
// leaves the transaction.
func (a *acceptance) inlineOf(item *event.Item, seq int64) event.Finish {
	f := *item.Inline
	f.Seq, f.Key, f.Claim, f.Run = seq, item.Key, a.claim, 1
	verdicts := make([]event.Verdict, len(f.Verdicts))
	for i, v := range f.Verdicts {
		v.Seq, v.Run = seq, 1
		verdicts[i] = v
	}
	f.Verdicts = verdicts
	return f
}

// inline completes an event that this unit has just inserted as claimed. What
// its rules decided is stored with it, or it stays pending for the worker,
// which tries the same on its schedule and says what is wrong: a rule that
// fails costs no sender his acknowledgement.
func (a *acceptance) inline(t *tx, item *event.Item, seq int64) error {
	if _, err := t.exec(sqlMarkInline); err != nil {
		return err
	}
	st := &settlement{
		store: a.store, now: a.receipt.At, at: a.at, finishes: []event.Finish{a.inlineOf(item, seq)},
		effects: make([]application, 1), finished: make([]event.Finished, 1),
	}
	st.effects[0] = a.store.prepare(&st.finishes[0], a.at)
	err := st.finishInLane(t, 0)
	if err == nil {
		err = st.finished[0].Err
	}
	if err != nil {
		if t.err != nil { // the transaction is over, or the store is in trouble
			return err
		}
		if _, err := t.exec(sqlUndoInline); err != nil {
			return err
		}
		st.finishes[0] = giveBack(&st.finishes[0])
		st.effects[0] = a.store.prepare(&st.finishes[0], a.at)
		if err := st.finishInLane(t, 0); err != nil {
			return err
		}
		if err := st.finished[0].Err; err != nil {
			return errors.Join(errInline, err)
		}
	}
	a.waiting, a.shipping = a.waiting || st.due, a.shipping || st.shipping
	_, err = t.exec(sqlKeepInline)
	return err
}

// errInline would be a fault of this program: the row and its claim are of
// the same transaction.
var errInline = errors.New("an event could not be left to the worker")

// giveBack leaves an event to the worker with its attempt unspent.
func giveBack(f *event.Finish) event.Finish {
	return event.Finish{Seq: f.Seq, Key: f.Key, Claim: f.Claim, Run: f.Run, State: event.Pending, Release: true}
}
