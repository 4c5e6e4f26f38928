package store

import (
	"context"
	"fmt"
	"time"

	"creel/event"
)

// A dead letter belongs to the group of those that failed alike. The column
// failure of a row names it from the transaction that makes it dead to the one
// that takes it off the dead letters; triggers on that column keep the group's
// count, so it is exact whatever moved the row.
const (
	sqlFailure = `INSERT INTO failure (fingerprint, kind, source, destination, status_class, text, first_at, last_at)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)
		ON CONFLICT (fingerprint) DO UPDATE SET last_at = max(last_at, excluded.last_at) RETURNING id`
	sqlFailureHour = `INSERT INTO failure_hour (failure, hour, n) VALUES (?, ?, 1)
		ON CONFLICT (failure, hour) DO UPDATE SET n = n + 1`
	sqlPruneFailureHours = `DELETE FROM failure_hour WHERE failure = ? AND hour < ?`

	// The groups that grew lately, and of each those that died lately.
	sqlDeadEventsSince = `SELECT count(*) FROM (SELECT 1 FROM failure INDEXED BY failure_last
		CROSS JOIN event INDEXED BY event_failure ON event.failure = failure.id AND event.finished_at >= ?3
		WHERE failure.dead > 0 AND failure.last_at >= ?3 AND failure.kind = ?1 AND failure.source = ?2 LIMIT ?4)`
	sqlDeadDeliveriesSince = `SELECT count(*) FROM (SELECT 1 FROM failure INDEXED BY failure_last
		CROSS JOIN delivery INDEXED BY delivery_failure ON delivery.failure = failure.id AND delivery.finished_at >= ?3
		WHERE failure.dead > 0 AND failure.last_at >= ?3 AND failure.kind = ?1 AND failure.destination = ?2 LIMIT ?4)`

	sqlEventFailed    = `UPDATE event SET revivable = ?, incident = ?, failure = ? WHERE seq = ?`
	sqlDeliveryFailed = `UPDATE delivery SET failure = ? WHERE id = ?`
	sqlDeathOfSource  = `SELECT source, error FROM event WHERE seq = ?`
	sqlDeathOfSent    = `SELECT event.source, delivery.destination, delivery.status, delivery.error
		FROM delivery JOIN event ON event.seq = delivery.event WHERE delivery.id = ?`
)

const (
	hourMillis = 3_600_000
	// failureHours is how many hours a group's deaths are counted for, the
	// current one included.
	failureHours = 24
)

// DeadSince is how many dead letters of a source or destination died since a
// time and are dead still, as far as most. It reads indexes alone.
func (r *Reader) DeadSince(ctx context.Context, kind event.FailureKind, subject string, since time.Time, most int) (n int, err error) {
	query := sqlDeadEventsSince
	if kind == event.FailedDelivery {
		query = sqlDeadDeliveriesSince
	}
	if err := r.row(ctx, query, []any{string(kind), subject, since.UnixMilli(), most}, &n); err != nil {
		return 0, fmt.Errorf("count what died: %w", err)
	}
	return n, nil
}

// failed finds the group of a dead letter, or makes it, and counts the death in
// its hour.
func failed(t *tx, now int64, f event.Failure) (id int64, err error) {
	print := f.Fingerprint()
	args := []any{print[:], string(f.Kind), f.Source, f.Destination, f.StatusClass, f.Text, now}
	err = t.query(sqlFailure, args, func(r row) error {
		id = r.int64(0)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("store failure: %w", err)
	}
	hour := now / hourMillis
	if _, err := t.exec(sqlFailureHour, id, hour); err != nil {
		return 0, fmt.Errorf("count failure: %w", err)
	}
	if _, err := t.exec(sqlPruneFailureHours, id, hour-failureHours+1); err != nil {
		return 0, fmt.Errorf("count failure: %w", err)
	}
	return id, nil
}

// eventFailed marks an event that has just died, with the incident that its
// death counts on (nil for none). One that a redelivery can not help, because
// it was dead as it came, is not revivable.
func eventFailed(t *tx, now, seq int64, incident any, revivable bool) error {
	var f event.Failure
	err := t.query(sqlDeathOfSource, []any{seq}, func(r row) error {
		f = event.FailureOf(event.FailedEvent, r.text(0), "", 0, r.text(1))
		return nil
	})
	if err != nil {
		return fmt.Errorf("read dead event %d: %w", seq, err)
	}
	id, err := failed(t, now, f)
	if err != nil {
		return err
	}
	if _, err := t.exec(sqlEventFailed, revivable, incident, id, seq); err != nil {
		return fmt.Errorf("mark death of event %d: %w", seq, err)
	}
	return nil
}

// deliveryFailed marks a delivery that has just died, and lets a redelivery of
// its event revive it. An alert has no event and is no dead letter.
func deliveryFailed(t *tx, now, id int64) error {
	f, found := event.Failure{}, false
	err := t.query(sqlDeathOfSent, []any{id}, func(r row) error {
		f, found = event.FailureOf(event.FailedDelivery, r.text(0), r.text(1), r.int(2), r.text(3)), true
		return nil
	})
	if err != nil {
		return fmt.Errorf("read dead delivery %d: %w", id, err)
	}
	if !found {
		return nil
	}
	group, err := failed(t, now, f)
	if err != nil {
		return err
	}
	if _, err := t.exec(sqlDeliveryFailed, group, id); err != nil {
		return fmt.Errorf("mark death of delivery %d: %w", id, err)
	}
	if _, err := t.exec(sqlMayRevive, id); err != nil {
		return fmt.Errorf("mark event of dead delivery %d: %w", id, err)
	}
	return nil
}
