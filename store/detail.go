package store

import (
	"context"
	"fmt"
	"time"

	"creel/event"
)

// EventDetail is everything that is known about one event.
type EventDetail struct {
	event.Work
	Verdicts   []event.Verdict // of all runs, oldest first
	Deliveries []DeliveryDetail
	// What it did in this file.
	Records     []event.KeptRecord
	Entries     []event.Entry
	Transitions []event.Transition
	Operations  []event.Operation
	Conflicts   []Conflict
	Actions     []event.Action // newest first
	// OtherBodies is how many other bodies came, the kept ones included.
	OtherBodies int
}

// DeliveryDetail is a delivery with its attempts.
type DeliveryDetail struct {
	event.Delivery
	Attempts []event.Attempt
}

// Conflict is another body that came under the key of an event.
type Conflict struct {
	event.Payload
	Content        [16]byte
	Seen           int // how often it came
	FirstAt, Until time.Time
}

const (
	sqlVerdicts = `SELECT event, run, rule, decision, reason, at FROM verdict WHERE event = ? ORDER BY run, at, rule`
	sqlOutbox   = deliveryWithKey + `INDEXED BY delivery_event JOIN event ON event.seq = delivery.event
		WHERE delivery.event = ? ORDER BY delivery.id LIMIT ?`
	sqlConflicts      = `SELECT part, body, header, query, content, seen, at, last_at FROM conflict WHERE event = ? ORDER BY n`
	sqlConflictNumber = `SELECT conflicts FROM event WHERE seq = ?`
)

// Event reads all that is known about one event, on one state of the
// database; event.ErrNotFound.
func (r *Reader) Event(ctx context.Context, key event.Key) (EventDetail, error) {
	found, err := r.Find(ctx, key)
	if err != nil {
		return EventDetail{}, err
	}
	var d EventDetail
	err = r.snapshot(ctx, func(s snapshot) error {
		return d.read(s, found.Seq)
	})
	if err != nil {
		return EventDetail{}, fmt.Errorf("read event %s: %w", key, err)
	}
	return d, nil
}

func (d *EventDetail) read(s snapshot, seq int64) error {
	err := s.list(sqlWork, []any{seq}, func(r row) (err error) {
		d.Work, err = carriedWork(r)
		return err
	})
	if err != nil {
		return err
	}
	err = s.list(sqlVerdicts, []any{seq}, func(r row) error {
		d.Verdicts = append(d.Verdicts, event.Verdict{
			Seq: r.int64(0), Run: r.int(1), Rule: r.text(2), Decision: event.Decision(r.text(3)), Reason: r.text(4), At: timeOf(r, 5),
		})
		return nil
	})
	if err != nil {
		return err
	}
	if err := d.readOutbox(s, seq); err != nil {
		return err
	}
	if err := d.readEffects(s, seq); err != nil {
		return err
	}
	if err := d.readConflicts(s, seq); err != nil {
		return err
	}
	return s.list(sqlActionsOf, []any{seq, maxPage}, func(r row) error {
		d.Actions = append(d.Actions, actionOf(r))
		return nil
	})
}

// Outbox reads the deliveries of an event, oldest first, at most 500.
func (r *Reader) Outbox(ctx context.Context, seq int64) (list []event.Delivery, err error) {
	err = r.list(ctx, sqlOutbox, []any{seq, maxPage}, func(r row) error {
		list = append(list, keyedDelivery(r))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the deliveries of event %d: %w", seq, err)
	}
	return list, nil
}

func (d *EventDetail) readOutbox(s snapshot, seq int64) error {
	err := s.list(sqlOutbox, []any{seq, maxPage}, func(r row) error {
		d.Deliveries = append(d.Deliveries, DeliveryDetail{Delivery: keyedDelivery(r)})
		return nil
	})
	if err != nil {
		return err
	}
	for i := range d.Deliveries {
		out := &d.Deliveries[i]
		err := s.list(sqlAttempts, []any{out.ID, maxPage}, func(r row) error {
			out.Attempts = append(out.Attempts, attemptOf(r))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *EventDetail) readConflicts(s snapshot, seq int64) error {
	err := s.list(sqlConflicts, []any{seq}, func(r row) error {
		c := Conflict{
			Payload: event.Payload{Part: r.text(0), Body: r.blob(1), Header: r.text(2), Query: r.text(3)},
			Seen:    r.int(5), FirstAt: timeOf(r, 6), Until: timeOf(r, 7),
		}
		copy(c.Content[:], r.blob(4))
		d.Conflicts = append(d.Conflicts, c)
		return nil
	})
	if err != nil {
		return err
	}
	return s.row(sqlConflictNumber, []any{seq}, &d.OtherBodies)
}

func attemptOf(r row) event.Attempt {
	return event.Attempt{
		Delivery: r.int64(0), Run: r.int(1), Number: r.int(2), Spent: r.bool(3), Start: timeOf(r, 4),
		Duration: time.Duration(r.int64(5)) * time.Millisecond, Status: r.int(6), Outcome: event.Outcome(r.text(7)),
		Error: r.text(8), Answer: r.text(9),
	}
}
