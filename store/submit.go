package store

import (
	"context"
	"fmt"

	"creel/event"
)

// submit hands a unit to the writer. It never blocks: event.ErrBusy says that
// the queue is full, event.ErrUnavailable that the store can not write now (or
// takes no more events, because the disk is nearly full). When it returns nil,
// done is called exactly once.
func (s *Store) submit(p priority, u *unit) error {
	if err := s.refusal(); err != nil {
		return err
	}
	if p == intake {
		if err := s.space.check(); err != nil {
			return err
		}
	}
	return s.queue.put(p, u)
}

// waiter is a unit whose caller waits, with its channel, used again and again.
type waiter struct {
	unit   unit
	answer chan error
}

// write submits a unit and waits for its answer. ctx bounds the waiting alone:
// when it ends first the error wraps event.ErrUnavailable and the write may
// still happen.
func (s *Store) write(ctx context.Context, p priority, rows int, run func(*tx) error) error {
	return s.answered(ctx, p, rows, false, run)
}

// writeAlone is write in a transaction that has nothing else in it.
func (s *Store) writeAlone(ctx context.Context, rows int, run func(*tx) error) error {
	return s.answered(ctx, work, rows, true, run)
}

func (s *Store) answered(ctx context.Context, p priority, rows int, lone bool, run func(*tx) error) error {
	w, _ := s.waiters.Get().(*waiter)
	if w.unit.done == nil {
		w.unit.done = func(err error) { w.answer <- err }
	}
	w.unit.run, w.unit.rows, w.unit.lone = run, rows, lone
	if err := s.submit(p, &w.unit); err != nil {
		w.unit.run = nil
		s.waiters.Put(w)
		return err
	}
	select {
	case err := <-w.answer:
		w.unit.run = nil
		s.waiters.Put(w)
		return err
	case <-ctx.Done():
		// The waiter is not used again: its answer is still to come.
		return fmt.Errorf("wait for the write: %w: %w", event.ErrUnavailable, ctx.Err())
	}
}
