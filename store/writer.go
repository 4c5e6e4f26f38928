package store

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

const (
	// batchRows bounds one transaction, for intake and for work each. Under
	// 256 throughput falls; what waits at once is bounded by the queue anyway.
	batchRows = 1024
	// workBudget is how long the work of one batch may run: a sender that
	// comes meanwhile waits for no more than this and one sync.
	workBudget = 10 * time.Millisecond
	// loneFailures is how many units in a row may fail alone with trouble of
	// the store before the rest of their batch is refused untried.
	loneFailures = 3
)

// The statements of the writer itself.
const (
	sqlBegin     = "BEGIN IMMEDIATE"
	sqlCommit    = "COMMIT"
	sqlRollback  = "ROLLBACK"
	sqlSavepoint = "SAVEPOINT unit"
	sqlUndoUnit  = "ROLLBACK TO unit"
	sqlKeepUnit  = "RELEASE unit"
)

// errPanicked wraps what a unit's function panicked with.
var errPanicked = errors.New("panic while writing")

// writer owns the write connection. All of it belongs to its goroutine.
type writer struct {
	store   *Store
	conn    *connection
	batch   []*unit
	results []error
	// retry is the pause before the next try of a failed store. It starts over
	// when a batch was stored, not with the try itself: a store that takes a
	// page and no row must not flap.
	retry time.Duration

	pace       float64 // units in a batch, a moving average
	walPages   int     // in the WAL when it was last checkpointed
	truncation truncation
}

// loop takes what waits, until the queue is closed and empty. It sleeps
// without a timer, unless a failed store or an overgrown WAL asks to be looked
// at again.
func (w *writer) loop() {
	defer close(w.store.stopped)
	var again <-chan time.Time
	for {
		closed := w.drain()
		if closed {
			w.shut()
			return
		}
		if wait, ok := w.attention(); ok {
			again = time.After(wait)
		} else {
			again = nil
		}
		select {
		case <-w.store.queue.wake:
		case <-again:
			w.attend()
		}
	}
}

// drain commits batches until nothing waits.
func (w *writer) drain() (closed bool) {
	for {
		batch, intakes, lone, closed := w.store.queue.take(w.batch[:0], batchRows)
		w.batch = batch
		if len(batch) == 0 && lone == nil {
			return closed
		}
		if len(batch) > 0 {
			w.commit(intakes)
			w.pace += (float64(len(w.batch)) - w.pace) / 8
			clear(w.batch)
			w.keepWAL()
		}
		if lone != nil { // one at a time: intake waits for no more than one
			w.batch = append(w.batch[:0], lone)
			w.commit(0)
			clear(w.batch)
			w.keepWAL()
		}
	}
}

// commit stores the batch and answers each of its units. The units from
// intakes on are work, which may be put back.
//
// A crash before COMMIT has returned leaves nothing or, when the last frame
// reached the disk, all of the batch, with nobody answered: senders come
// again and are duplicates, claims belong to a dead boot and are taken back.
func (w *writer) commit(intakes int) {
	w.results = append(w.results[:0], make([]error, len(w.batch))...)
	start := time.Now()
	if trouble := w.store.refusal(); trouble != nil {
		w.failAll(0, trouble)
	} else if gone := w.seePlace(); gone != nil {
		w.failAll(0, gone)
	} else {
		w.together(intakes)
	}
	w.store.counts.commitTime.Observe(time.Since(start))
	w.store.counts.batches.Add(1)
	w.store.counts.units.Add(uint64(len(w.batch)))
	for i, u := range w.batch {
		u.done(w.results[i])
	}
}

// together runs the whole batch in one transaction, without savepoints: they
// cost more than the rare rerun. When a unit fails, all of it is rolled back
// and run again with a savepoint around each unit.
func (w *writer) together(intakes int) {
	if !w.begin() {
		return
	}
	start := time.Now()
	for i, u := range w.batch {
		if i > intakes && time.Since(start) > workBudget {
			w.store.queue.putBack(w.batch[i:])
			w.batch, w.results = w.batch[:i], w.results[:i]
			break
		}
		failure := w.run(u)
		if failure == nil {
			continue
		}
		w.rollback()
		if len(w.batch) == 1 {
			w.results[0] = answerOf(failure)
			w.store.note(failure)
			return
		}
		w.store.counts.reruns.Add(1)
		w.oneSavepointEach()
		return
	}
	w.end()
}

// oneSavepointEach runs the batch with a savepoint around each unit, so that a
// failing one is undone alone. If one takes the whole transaction with it, the
// others run in transactions of their own.
func (w *writer) oneSavepointEach() {
	if !w.begin() {
		return
	}
	for i, u := range w.batch {
		if err := w.plain(sqlSavepoint); err != nil {
			w.rollback()
			w.alone(err)
			return
		}
		before := w.conn.parcels.mark()
		failure := w.run(u)
		if failure != nil {
			w.results[i] = answerOf(failure)
			w.conn.parcels.back(before)
			if err := w.plain(sqlUndoUnit); err != nil {
				w.rollback()
				w.alone(failure)
				return
			}
		}
		if err := w.plain(sqlKeepUnit); err != nil {
			w.rollback()
			w.alone(err)
			return
		}
	}
	w.end()
}

// alone runs each unit that has not failed yet in a transaction of its own.
func (w *writer) alone(cause error) {
	failures := 0
	for i, u := range w.batch {
		if w.results[i] != nil {
			continue
		}
		if failures >= loneFailures {
			w.failAll(i, cause)
			return
		}
		if cause = w.transact(u.run); cause != nil {
			w.results[i] = answerOf(cause)
		}
		if damageOf(cause) > unitOnly {
			failures++
		} else {
			failures = 0
		}
	}
}

// transact runs one function in a transaction of its own.
func (w *writer) transact(run func(*tx) error) error {
	if err := w.plain(sqlBegin); err != nil {
		w.store.note(err)
		return err
	}
	w.conn.parcels.reset()
	if failure := w.run(&unit{run: run}); failure != nil {
		w.rollback()
		w.store.note(failure)
		return failure
	}
	if err := w.pack(); err != nil {
		w.rollback()
		w.store.note(err)
		return err
	}
	if err := w.plain(sqlCommit); err != nil {
		w.rollback()
		if isConstraint(err) {
			return err
		}
		w.store.fail(err, max(storeWide, damageOf(err)))
		return unavailable("commit", err)
	}
	if err := w.seePlace(); err != nil {
		return err
	}
	w.store.recovered()
	return nil
}

// begin opens the transaction, or fails the batch. When an outside writer has
// the lock, all that waits behind the batch is failed with it: it has waited
// as long as a sender may.
func (w *writer) begin() bool {
	err := w.plain(sqlBegin)
	if err == nil {
		w.conn.parcels.reset()
		return true
	}
	w.store.note(err)
	w.failAll(0, err)
	return false
}

// end commits. When that fails, or went into a file that has lost its place,
// nobody knows what the next start finds: every unit that did not fail by itself
// gets ErrUnavailable.
func (w *writer) end() {
	if err := w.pack(); err != nil { // nothing was written, some unit carries too much
		w.rollback()
		w.alone(err)
		return
	}
	err := w.plain(sqlCommit)
	switch {
	case err == nil:
		if gone := w.seePlace(); gone != nil {
			w.failAll(0, gone)
			return
		}
		w.retry = 0
		w.store.recovered()
		if w.store.desk.alerted.Swap(false) {
			ring(w.store.desk.deliveries)
		}
	case isConstraint(err): // a deferred one: nothing was written, some unit is to blame
		w.rollback()
		if len(w.batch) == 1 {
			w.results[0] = err
			return
		}
		w.alone(err)
	default:
		w.rollback()
		w.store.fail(err, max(storeWide, damageOf(err)))
		w.failAll(0, unavailable("commit", err))
	}
}

// pack writes what the requests of the transaction carried.
func (w *writer) pack() error { return w.conn.parcels.write(&tx{c: w.conn}) }

// failAll fails the units from first on that have not failed by themselves.
func (w *writer) failAll(first int, err error) {
	err = unavailable("write", err)
	for i := first; i < len(w.results); i++ {
		if w.results[i] == nil {
			w.results[i] = err
		}
	}
}

// run runs a unit's function. A panic is the unit's failure, with its stack.
func (w *writer) run(u *unit) (failure error) {
	t := tx{c: w.conn, desk: &w.store.desk}
	defer func() {
		if r := recover(); r != nil {
			failure = fmt.Errorf("%w: %v\n%s", errPanicked, r, debug.Stack())
		}
	}()
	if err := u.run(&t); err != nil {
		return err
	}
	return t.err // the function went on after it
}

// rollback ends the transaction if one is open. Where even that fails the
// connection can not be used any more, which the next BEGIN finds out.
func (w *writer) rollback() {
	if err := w.plain(sqlRollback); err != nil && w.conn.inTransaction() {
		w.store.fail(err, max(storeWide, damageOf(err)))
	}
}

func (w *writer) plain(sql string) error {
	_, err := w.conn.exec(sql, nil)
	return err
}
