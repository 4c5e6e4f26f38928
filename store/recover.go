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

	sqlCountClaims = `SELECT count(*) FROM (SELECT 1 FROM event INDEXED BY event_open
		WHERE state <> 'done' AND state = 'claimed' AND substr(claim, 1, ?) <> ? LIMIT 2)`
	// An event that died among others gets its attempt back: it is not known to
	// have harmed anybody. One that was claimed alone does not, nor the only one
	// in the dead boot's hands (?5), and is due a millisecond behind all that it
	// may have harmed.
	sqlTakeBackEvents = `UPDATE event SET state = 'pending', claim = NULL, next_at = ?1 - 1 + max(alone, ?5),
		attempts = max(attempts - 1 + max(alone, ?5), 0), alone = 1
		WHERE seq IN (SELECT seq FROM event INDEXED BY event_open
			WHERE state <> 'done' AND state = 'claimed' AND substr(claim, 1, ?2) <> ?3 LIMIT ?4) RETURNING seq`
	sqlLostDeliveries = `SELECT id, destination, run, tries, probe, next_at, CASE WHEN event IS NULL THEN incident END FROM delivery INDEXED BY delivery_open
		WHERE state <> 'sent' AND state = 'sending' AND substr(claim, 1, ?) <> ? LIMIT ?`
	// One that will be sent again gets its attempt back: that the server died is
	// not its destination's doing, and most of those that were claimed only
	// waited for a place.
	sqlTakeBackDelivery = `UPDATE delivery SET state = ?1, claim = NULL, next_at = ?2, probe = 0, error = ?3,
		attempts = attempts - iif(?1 = 'ready', 1 - probe, 0) WHERE id = ?4 AND state = 'sending'`

	sqlClampEvents = `UPDATE event SET next_at = ?1 WHERE seq IN
		(SELECT seq FROM event INDEXED BY event_due WHERE state = 'pending' AND waits = 0 AND next_at > ?1 LIMIT ?2)`
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
// outcome unknown, and is ready with nothing spent, or in doubt where review
// says so of its destination and of how many answers were lost in its run, this
// one included.
// Bulk actions go on. It is called at start, before anything is
// claimed, and may be called again.
func (s *Store) Recover(ctx context.Context, now time.Time, review func(destination string, doubts int) bool) (Recovered, error) {
	var all Recovered
	mark := s.desk.mark()
	counted, only := false, 0
	for n := recoverChunk; n == recoverChunk; all.Events += n {
		err := s.write(ctx, work, recoverChunk, func(t *tx) (err error) {
			if !counted { // before any is taken back
				if only, err = onlyClaim(t, mark); err != nil {
					return err
				}
				counted = true
			}
			n, err = moveAll(t, sqlTakeBackEvents, []any{now.UnixMilli(), len(mark), mark, recoverChunk, only}, now.UnixMilli(), keepLane)
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
	if all.Actions, err = s.ResumeActions(ctx); err != nil {
		return all, err
	}
	ring(s.desk.events)
	ring(s.desk.deliveries)
	return all, nil
}

// onlyClaim is 1 where other boots left exactly one claimed event, else 0.
func onlyClaim(t *tx, mark string) (only int, err error) {
	err = t.query(sqlCountClaims, []any{len(mark), mark}, func(r row) error {
		if r.int(0) == 1 {
			only = 1
		}
		return nil
	})
	return only, err
}

// recovery is one chunk of deliveries whose answer was lost.
type recovery struct {
	now    int64
	mark   string
	review func(string, int) bool

	lost    []lostDelivery
	doubted int
}

type lostDelivery struct {
	id          int64
	destination string
	attempt     event.Attempt
	alert       int64 // the incident that it tells of
	probe       bool
}

func (r *recovery) run(t *tx) error {
	r.lost, r.doubted = r.lost[:0], 0
	err := t.query(sqlLostDeliveries, []any{len(r.mark), r.mark, recoverChunk}, func(row row) error {
		r.lost = append(r.lost, lostDelivery{
			id: row.int64(0), destination: row.text(1), alert: row.int64(6),
			attempt: event.Attempt{
				Run: row.int(2), Number: row.int(3), Start: timeOf(row, 5), Outcome: event.Unknown, Error: lostAnswer,
			},
			probe: row.bool(4),
		})
		return nil
	})
	if err != nil {
		return err
	}
	for i := range r.lost {
		if err := r.takeBack(t, &r.lost[i]); err != nil {
			return err
		}
	}
	return nil
}

// takeBack settles one of them.
func (r *recovery) takeBack(t *tx, l *lostDelivery) error {
	lost, err := doubts(t, l.id, l.attempt.Run)
	if err != nil {
		return err
	}
	state, next := event.DeliveryReady, any(r.now)
	if r.review != nil && r.review(l.destination, lost+1) {
		state, next = event.DeliveryInDoubt, nil
		l.attempt.Spent = !l.probe
		r.doubted++
	}
	if err := insertAttempt(t, l.id, &l.attempt); err != nil {
		return err
	}
	if _, err := t.exec(sqlTakeBackDelivery, string(state), next, lostAnswer, l.id); err != nil {
		return err
	}
	if _, err := keepDelivery(t, r.now, l.id); err != nil {
		return err
	}
	return landed(t, r.now, l.id, l.alert)
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
