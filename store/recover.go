package store

import (
	"context"
	"fmt"
	"time"

	"creel/event"
)

const (
	// recoverChunk bounds one transaction of a recovery. A crash between two
	// leaves the rest to the next start.
	recoverChunk = 500
	lostAnswer   = "the server stopped during this attempt"

	// An event that was claimed with others gets its attempt back: it is not
	// known to have harmed anybody. One that was claimed alone does not, and is
	// due a millisecond behind all that it may have harmed.
	sqlTakeBackEvents = `UPDATE event SET state = 'pending', claim = NULL, next_at = ?1 - 1 + alone,
		attempts = max(attempts - 1 + alone, 0), alone = 1
		WHERE seq IN (SELECT seq FROM event INDEXED BY event_open
			WHERE state <> 'done' AND state = 'claimed' AND substr(claim, 1, ?2) <> ?3 LIMIT ?4)`
	sqlLostDeliveries = `SELECT id, destination, run, tries, probe, next_at FROM delivery INDEXED BY delivery_open
		WHERE state <> 'sent' AND state = 'sending' AND substr(claim, 1, ?) <> ? LIMIT ?`
	sqlTakeBackDelivery = `UPDATE delivery SET state = ?, claim = NULL, next_at = ?, probe = 0, error = ?
		WHERE id = ? AND state = 'sending'`

	sqlClampEvents = `UPDATE event SET next_at = ?1 WHERE seq IN
		(SELECT seq FROM event INDEXED BY event_due WHERE state = 'pending' AND next_at > ?1 LIMIT ?2)`
	sqlClampDeliveries = `UPDATE delivery SET next_at = ?1 WHERE id IN
		(SELECT id FROM delivery INDEXED BY delivery_due
			WHERE state = 'ready' AND destination = ?2 AND next_at > ?1 LIMIT ?3)`
)

// Recovered tells what a start took back.
type Recovered struct {
	Events     int // claims of a dead boot that are pending again
	Deliveries int // sends of a dead boot that will be repeated
	InDoubt    int // sends of a dead boot that wait for a decision
	Actions    int // bulk actions that go on in the background
}

// Recover takes back what other boots left: one server has the file, so a
// claim of another boot is dead by definition. Events are pending again, each
// to be claimed alone. A delivery whose answer was lost gets its attempt with
// outcome unknown, and is ready, or in doubt where review says so of its
// destination. Bulk actions go on. It is called at start, before anything is
// claimed, and may be called again.
func (s *Store) Recover(ctx context.Context, now time.Time, review func(destination string) bool) (Recovered, error) {
	var all Recovered
	mark := s.desk.mark()
	for n := int64(recoverChunk); n == recoverChunk; all.Events += int(n) {
		err := s.write(ctx, work, recoverChunk, func(t *tx) (err error) {
			n, err = t.exec(sqlTakeBackEvents, now.UnixMilli(), len(mark), mark, recoverChunk)
			return err
		})
		if err != nil {
			return all, fmt.Errorf("take back events: %w", err)
		}
	}
	for n := recoverChunk; n == recoverChunk; {
		r := recovery{now: now.UnixMilli(), mark: mark, review: review}
		if err := s.write(ctx, work, recoverChunk, r.run); err != nil {
			return all, fmt.Errorf("take back deliveries: %w", err)
		}
		n = len(r.lost)
		all.InDoubt += r.doubted
		all.Deliveries += n - r.doubted
	}
	var err error
	if all.Actions, err = s.resumeActions(ctx); err != nil {
		return all, fmt.Errorf("resume actions: %w", err)
	}
	ring(s.desk.events)
	ring(s.desk.deliveries)
	return all, nil
}

// recovery is one chunk of deliveries whose answer was lost.
type recovery struct {
	now    int64
	mark   string
	review func(string) bool

	lost    []lostDelivery
	doubted int
}

type lostDelivery struct {
	id          int64
	destination string
	attempt     event.Attempt
}

func (r *recovery) run(t *tx) error {
	r.lost, r.doubted = r.lost[:0], 0
	err := t.query(sqlLostDeliveries, []any{len(r.mark), r.mark, recoverChunk}, func(row row) error {
		r.lost = append(r.lost, lostDelivery{
			id: row.int64(0), destination: row.text(1),
			attempt: event.Attempt{
				Run: row.int(2), Number: row.int(3), Spent: !row.bool(4), Start: timeOf(row, 5),
				Outcome: event.Unknown, Error: lostAnswer,
			},
		})
		return nil
	})
	if err != nil {
		return err
	}
	for i := range r.lost {
		l := &r.lost[i]
		if err := insertAttempt(t, l.id, &l.attempt); err != nil {
			return err
		}
		state, next := event.DeliveryReady, any(r.now)
		if r.review != nil && r.review(l.destination) {
			state, next = event.DeliveryInDoubt, nil
			r.doubted++
		}
		if _, err := t.exec(sqlTakeBackDelivery, string(state), next, lostAnswer, l.id); err != nil {
			return err
		}
	}
	return nil
}

// ClampDue brings closer what is due later than its policy can ever have
// asked for, because the clock was set back: no event beyond maxEvent from now,
// no delivery of a destination beyond its entry in maxDelivery. It is called
// at start and when the clock jumps; it returns how many rows it moved.
func (s *Store) ClampDue(ctx context.Context, now time.Time, maxEvent time.Duration, maxDelivery map[string]time.Duration) (int, error) {
	moved, err := s.clamp(ctx, sqlClampEvents, now.Add(maxEvent).UnixMilli())
	if err != nil {
		return moved, fmt.Errorf("clamp events: %w", err)
	}
	for name, longest := range maxDelivery {
		n, err := s.clamp(ctx, sqlClampDeliveries, now.Add(longest).UnixMilli(), name)
		if moved += n; err != nil {
			return moved, fmt.Errorf("clamp deliveries to %s: %w", name, err)
		}
	}
	if moved > 0 {
		ring(s.desk.events)
		ring(s.desk.deliveries)
	}
	return moved, nil
}

func (s *Store) clamp(ctx context.Context, query string, args ...any) (int, error) {
	all := 0
	for n := int64(recoverChunk); n == recoverChunk; all += int(n) {
		err := s.write(ctx, work, recoverChunk, func(t *tx) (err error) {
			n, err = t.exec(query, append(args, recoverChunk)...)
			return err
		})
		if err != nil {
			return all, err
		}
	}
	return all, nil
}
