package store

import (
	"context"
	"fmt"
	"time"

	"creel/event"
)

const (
	sqlOldestDelivery = `SELECT min(max(created_at, queued_at)) FROM delivery INDEXED BY delivery_due
		WHERE state = 'ready' AND destination = ? AND event IS NOT NULL`
	sqlTooOld = `SELECT id FROM delivery INDEXED BY delivery_due
		WHERE state = 'ready' AND destination = ?1 AND event IS NOT NULL AND max(created_at, queued_at) <= ?2 ORDER BY next_at, id LIMIT ?3`
	sqlGiveUp = `UPDATE delivery SET state = 'dead', next_at = NULL, finished_at = ?1, error = ?2, incident = ?3
		WHERE id = ?4 AND state = 'ready'`
)

// OldestDelivery tells since when the oldest ready delivery of a destination
// waits, since its last replay where there was one. It reads them all.
func (r *Reader) OldestDelivery(ctx context.Context, destination string) (time.Time, bool, error) {
	var at time.Time
	err := r.list(ctx, sqlOldestDelivery, []any{destination}, func(r row) error {
		at = timeOf(r, 0)
		return nil
	})
	if err != nil {
		return time.Time{}, false, fmt.Errorf("look for the oldest delivery to %s: %w", destination, err)
	}
	return at, !at.IsZero(), nil
}

// GiveUp makes dead letters of the ready deliveries of a destination that have
// waited since before a time, and tells how many there were. They count on one
// incident.
//
// A crash between its transactions leaves the rest ready, for the next call.
func (s *Store) GiveUp(ctx context.Context, now time.Time, destination string, before time.Time, reason string) (int, error) {
	given := 0
	for n := actionChunk; n == actionChunk; given += n {
		err := s.write(ctx, work, 2*actionChunk, func(t *tx) (err error) {
			n, err = giveUpOn(t, now.UnixMilli(), destination, before.UnixMilli(), reason)
			return err
		})
		if err != nil {
			return given, fmt.Errorf("give up on deliveries to %s: %w", destination, err)
		}
	}
	if given > 0 {
		ring(s.desk.deliveries) // the next of a lane may be due
	}
	return given, nil
}

func giveUpOn(t *tx, now int64, destination string, before int64, reason string) (int, error) {
	var ids []int64
	err := t.query(sqlTooOld, []any{destination, before, actionChunk}, func(r row) error {
		ids = append(ids, r.int64(0))
		return nil
	})
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	incident, err := raise(t, now, event.Incident{Cause: event.CauseDeadDelivery, Subject: destination,
		Detail: fmt.Sprintf("deliveries were given up: %s; repair the cause, then: creel replay --destination %s --state dead", reason, destination)}, len(ids))
	if err != nil {
		return 0, err
	}
	for _, id := range ids {
		if _, err := t.exec(sqlGiveUp, now, reason, incident, id); err != nil {
			return 0, err
		}
		if err := deliveryFailed(t, now, id); err != nil {
			return 0, err
		}
		if _, err := keepDelivery(t, now, id); err != nil {
			return 0, err
		}
	}
	return len(ids), nil
}
