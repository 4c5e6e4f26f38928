package store

import (
	"context"
	"fmt"

	"creel/event"
)

const (
	// What follows from a destination's outage counts on the outage.
	sqlEscalate = `UPDATE incident SET count = count + 1, last_at = ?, dead = dead + ?
		WHERE cause IN ('destination_down', 'destination_gone') AND subject = ? AND resolved_at IS NULL
		RETURNING id`
	sqlRaise = `INSERT INTO incident (cause, subject, detail, dead, opened_at, last_at) VALUES (?1, ?2, ?3, ?4, ?5, ?5)
		ON CONFLICT (cause, subject) WHERE resolved_at IS NULL
		DO UPDATE SET count = count + 1, last_at = excluded.last_at, dead = dead + excluded.dead
		RETURNING id`
	sqlRelieve = `UPDATE incident SET dead = max(dead - ?1, 0),
		resolved_at = CASE WHEN resolved_at IS NULL AND dead <= ?1 AND cause IN ('dead_event', 'dead_delivery')
			THEN ?2 ELSE resolved_at END
		WHERE id = ?3`
	sqlResolve = `UPDATE incident SET resolved_at = ? WHERE cause = ? AND subject = ? AND resolved_at IS NULL`

	incidentColumns = `id, cause, subject, detail, count, opened_at, last_at, resolved_at`
	sqlIncidents    = `SELECT ` + incidentColumns + ` FROM incident ORDER BY id DESC LIMIT ?`
	sqlOpen         = `SELECT ` + incidentColumns + ` FROM incident INDEXED BY incident_open WHERE resolved_at IS NULL ORDER BY id DESC LIMIT ?`
)

// raise opens an incident or counts on the open one of its cause and subject;
// dead tells how many dead letters come with it. The unique index makes it one
// however many events fail at once.
func raise(t *tx, now int64, i event.Incident, dead int) (id int64, err error) {
	take := func(r row) error {
		id = r.int64(0)
		return nil
	}
	if i.Cause == event.CauseDeadDelivery {
		if err := t.query(sqlEscalate, []any{now, dead, i.Subject}, take); err != nil {
			return 0, fmt.Errorf("escalate incident: %w", err)
		}
		if id != 0 {
			return id, nil
		}
	}
	err = t.query(sqlRaise, []any{string(i.Cause), i.Subject, i.Detail, dead, now}, take)
	if err != nil {
		return 0, fmt.Errorf("raise incident: %w", err)
	}
	return id, nil
}

// relieve takes dead letters off an incident. With the last one, an incident
// that is about dead letters is over.
func relieve(t *tx, now, id int64, dead int) error {
	if id == 0 || dead == 0 {
		return nil
	}
	if _, err := t.exec(sqlRelieve, dead, now, id); err != nil {
		return fmt.Errorf("relieve incident: %w", err)
	}
	return nil
}

// resolve ends the open incident of a cause and subject, if there is one.
func resolve(t *tx, now int64, cause event.Cause, subject string) error {
	if _, err := t.exec(sqlResolve, now, string(cause), subject); err != nil {
		return fmt.Errorf("resolve incident: %w", err)
	}
	return nil
}

// Incidents lists the newest incidents, at most 500, or the open ones alone.
func (r *Reader) Incidents(ctx context.Context, openOnly bool) ([]event.OpenIncident, error) {
	query := sqlIncidents
	if openOnly {
		query = sqlOpen
	}
	var list []event.OpenIncident
	err := r.list(ctx, query, []any{maxPage}, func(r row) error {
		list = append(list, event.OpenIncident{
			ID:         r.int64(0),
			Incident:   event.Incident{Cause: event.Cause(r.text(1)), Subject: r.text(2), Detail: r.text(3)},
			Count:      r.int(4),
			OpenedAt:   timeOf(r, 5),
			LastAt:     timeOf(r, 6),
			ResolvedAt: timeOf(r, 7),
		})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list incidents: %w", err)
	}
	return list, nil
}
