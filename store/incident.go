package store

import (
	"context"
	"fmt"
	"time"

	"creel/event"
)

const (
	// The worse cause stands on the incident, with what was said about it.
	sqlRaise = `INSERT INTO incident (family, cause, level, subject, detail, dead, opened_at, last_at, count, death)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, max(?6, 1), ?8)
		ON CONFLICT (family, subject) WHERE resolved_at IS NULL
		DO UPDATE SET count = count + excluded.count, last_at = excluded.last_at, dead = dead + excluded.dead, death = excluded.death,
			cause = CASE WHEN excluded.level > level THEN excluded.cause ELSE cause END,
			detail = CASE WHEN excluded.level > level THEN excluded.detail ELSE detail END,
			level = max(level, excluded.level)
		RETURNING ` + incidentStance
	// incidentStance is what decides whether somebody has to be told.
	incidentStance = `id, count, alerted_at IS NULL OR level > told_level`
	// Dead letters that nobody sees to do not hide the next ones: the next after
	// a day begins an incident of its own.
	sqlSupersede = `UPDATE incident SET resolved_at = last_at WHERE family = ?1 AND subject = ?2 AND resolved_at IS NULL
		AND level <= ?3 AND last_at < ?4`

	// What the trouble of a destination is now, worse or better than it was, and
	// since when it is down or back.
	sqlTurn = `INSERT INTO incident (family, cause, level, subject, detail, opened_at, last_at, down_since)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7)
		ON CONFLICT (family, subject) WHERE resolved_at IS NULL
		DO UPDATE SET last_at = excluded.last_at, cause = excluded.cause, detail = excluded.detail, level = excluded.level,
			downs = downs + (?8 IS NOT NULL AND down_since IS NOT NULL),
			down_ms = down_ms + ifnull(max(?8 - down_since, 0), 0),
			back_at = CASE WHEN ?7 IS NOT NULL THEN NULL ELSE ifnull(?8, back_at) END,
			down_since = CASE WHEN ?8 IS NOT NULL THEN NULL ELSE ifnull(down_since, ?7) END
		RETURNING ` + incidentStance
	// While an outage goes on, deliveries that die count on it: they may follow
	// from it. Where dead letters have an incident already they join that one.
	sqlDieInOutage = `UPDATE incident SET dead = dead + ?1, death = ?2, last_at = ?3
		WHERE family = 'destination' AND subject = ?4 AND resolved_at IS NULL
		AND NOT EXISTS (SELECT 1 FROM incident INDEXED BY incident_open
			WHERE family = 'dead_delivery' AND subject = ?4 AND resolved_at IS NULL)
		RETURNING id`
	// The dead letters of an outage that is over are relieved of its heir.
	sqlRelieve = `UPDATE incident SET dead = max(dead - ?1, 0),
		resolved_at = CASE WHEN resolved_at IS NULL AND dead <= ?1 AND cause IN ('dead_event', 'dead_delivery')
			THEN ?2 ELSE resolved_at END
		WHERE id = ifnull((SELECT heir.id FROM incident outage JOIN incident heir ON heir.id = outage.heir
			WHERE outage.id = ?3 AND heir.dead > 0), ?3)
		RETURNING id, resolved_at IS NOT NULL`
	// An outage was over when its destination answered, however long it took to
	// be sure of that.
	sqlAllClear = `UPDATE incident SET resolved_at = CASE WHEN down_since IS NULL AND level > ?4 THEN max(ifnull(back_at, ?1), opened_at) ELSE ?1 END,
			last_at = ?1, detail = detail || '; over: ' || ?2,
			downs = downs + (down_since IS NOT NULL), down_ms = down_ms + ifnull(max(?1 - down_since, 0), 0), down_since = NULL
		WHERE family = 'destination' AND subject = ?3 AND resolved_at IS NULL
		RETURNING id, dead`
	// Dead letters alone are no outage, and are not over with it.
	sqlInherit = `INSERT INTO incident (family, cause, level, subject, detail, dead, count, death, opened_at, last_at)
		SELECT 'dead_delivery', 'dead_delivery', 0, subject, death, dead, dead, death, ?1, ?1 FROM incident WHERE id = ?2
		ON CONFLICT (family, subject) WHERE resolved_at IS NULL
		DO UPDATE SET dead = dead + excluded.dead, count = count + excluded.count, death = excluded.death, last_at = excluded.last_at
		RETURNING id`
	sqlBequeath = `UPDATE incident SET heir = ?1, dead = 0, detail = detail || '; ' || ?2 WHERE id = ?3`
	// incidentColumns are read by incidentOf, in this order.
	incidentColumns = `id, cause, subject, detail, count, opened_at, last_at, resolved_at,
		dead, alerted_at, notified_at, acknowledged_at, acknowledged_by, death, down_since, down_ms, downs`
	incidentCells = 17
	sqlIncidents  = `SELECT ` + incidentColumns + ` FROM incident WHERE id < ? ORDER BY id DESC LIMIT ?`
	sqlOpen       = `SELECT ` + incidentColumns + ` FROM incident INDEXED BY incident_open WHERE resolved_at IS NULL AND id < ? ORDER BY id DESC LIMIT ?`
)

// anotherDay is how long trouble has to be quiet to be over, or to be another
// one when it comes again.
const anotherDay = 24 * time.Hour

// raise opens an incident or counts on the open one of its family and subject;
// dead tells how many dead letters come with it. The unique index makes it one
// however many events fail at once.
func raise(t *tx, now int64, i event.Incident, dead int) (id int64, err error) {
	if i.Cause == event.CauseDeadEvent || i.Cause == event.CauseDeadDelivery {
		args := []any{i.Cause.Family(), i.Subject, event.CauseDeadDelivery.Level(), now - anotherDay.Milliseconds()}
		if _, err := t.exec(sqlSupersede, args...); err != nil {
			return 0, fmt.Errorf("supersede incident: %w", err)
		}
	}
	if i.Cause == event.CauseDeadDelivery {
		if id, err := dieInOutage(t, now, i, dead); err != nil || id != 0 {
			return id, err
		}
	}
	args := []any{i.Cause.Family(), string(i.Cause), i.Cause.Level(), i.Subject, i.Detail, dead, now, i.Detail}
	return begin(t, now, i, dead, sqlRaise, args)
}

// dieInOutage counts dead letters on the outage that goes on, if one does.
func dieInOutage(t *tx, now int64, i event.Incident, dead int) (id int64, err error) {
	err = t.query(sqlDieInOutage, []any{dead, i.Detail, now, i.Subject}, func(r row) error {
		id = r.int64(0)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("raise incident: %w", err)
	}
	return id, nil
}

// begin puts trouble on an incident and tells of it, where that is to be told.
func begin(t *tx, now int64, i event.Incident, dead int, query string, args []any) (id int64, err error) {
	count, untold := 0, false
	err = t.query(query, args, func(r row) error {
		id, count, untold = r.int64(0), r.int(1), r.bool(2)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("raise incident: %w", err)
	}
	if count == max(dead, 1) && untold {
		if id, err = returned(t, now, id, i, dead); err != nil {
			return 0, err
		}
	}
	if untold {
		err = tell(t, now, id)
	}
	return id, err
}

// turn says what the trouble of a destination is now, on its open incident or
// on a new one.
func turn(t *tx, now int64, i event.Incident) error {
	args := []any{i.Cause.Family(), string(i.Cause), i.Cause.Level(), i.Subject, i.Detail, now, ms(i.DownFrom), ms(i.DownUntil)}
	_, err := begin(t, now, i, 0, sqlTurn, args)
	return err
}

// relieve takes dead letters off an incident. With the last one, an incident
// that is about dead letters is over.
func relieve(t *tx, now, id int64, dead int) error {
	if id == 0 || dead == 0 {
		return nil
	}
	ended := false
	err := t.query(sqlRelieve, []any{dead, now, id}, func(r row) error {
		id, ended = r.int64(0), r.bool(1)
		return nil
	})
	if err != nil {
		return fmt.Errorf("relieve incident: %w", err)
	}
	if ended {
		return over(t, now, id)
	}
	return nil
}

// allClear ends the outage of a destination, if there is one.
func allClear(t *tx, now int64, destination, detail string) error {
	ended, dead := int64(0), 0
	args := []any{now, detail, destination, event.CauseDestinationFailing.Level()}
	err := t.query(sqlAllClear, args, func(r row) error {
		ended, dead = r.int64(0), r.int(1)
		return nil
	})
	if err != nil {
		return fmt.Errorf("end outage: %w", err)
	}
	if ended == 0 {
		return nil
	}
	if dead > 0 {
		if err := bequeath(t, now, ended); err != nil {
			return err
		}
	}
	return over(t, now, ended)
}

// bequeath makes the dead letters of an outage that is over trouble of their
// own, which is told and ends with the last of them.
func bequeath(t *tx, now, outage int64) error {
	s, err := standingIncident(t, outage)
	if err != nil {
		return err
	}
	heir := int64(0)
	err = t.query(sqlInherit, []any{now, outage}, func(r row) error {
		heir = r.int64(0)
		return nil
	})
	if err == nil {
		_, err = t.exec(sqlBequeath, heir, fmt.Sprintf("%s: see incident %d", s.Deaths(), heir), outage)
	}
	if err != nil {
		return fmt.Errorf("hand over the dead letters of incident %d: %w", outage, err)
	}
	return tell(t, now, heir)
}

// endWith runs an UPDATE that returns the incident that it ended, if any, and
// tells that it is over.
func endWith(t *tx, now int64, query string, args ...any) error {
	var ended []int64
	err := t.query(query, args, func(r row) error {
		ended = append(ended, r.int64(0))
		return nil
	})
	if err != nil {
		return fmt.Errorf("resolve incident: %w", err)
	}
	for _, id := range ended {
		if err := over(t, now, id); err != nil {
			return err
		}
	}
	return nil
}

func incidentOf(r row) event.OpenIncident {
	i := event.OpenIncident{
		ID:         r.int64(0),
		Incident:   event.Incident{Cause: event.Cause(r.text(1)), Subject: r.text(2), Detail: r.text(3)},
		Count:      r.int(4),
		OpenedAt:   timeOf(r, 5),
		LastAt:     timeOf(r, 6),
		ResolvedAt: timeOf(r, 7),
		Dead:       r.int(8),
		AlertedAt:  timeOf(r, 9), NotifiedAt: timeOf(r, 10),
		AcknowledgedAt: timeOf(r, 11), AcknowledgedBy: r.text(12),
		Death: r.text(13), DownSince: timeOf(r, 14), Down: time.Duration(r.int64(15)) * time.Millisecond, Downs: r.int(16),
	}
	i.Detail = i.Story()
	return i
}

// Incidents lists the newest incidents, at most 500, or the open ones alone.
func (r *Reader) Incidents(ctx context.Context, openOnly bool) ([]event.OpenIncident, error) {
	return r.IncidentPage(ctx, openOnly, event.Page{Limit: maxPage})
}

// IncidentPage lists a page of the incidents, newest first. Page.Before is an
// incident's number.
func (r *Reader) IncidentPage(ctx context.Context, openOnly bool, page event.Page) ([]event.OpenIncident, error) {
	query := sqlIncidents
	if openOnly {
		query = sqlOpen
	}
	before, limit := bounds(page)
	var list []event.OpenIncident
	err := r.list(ctx, query, []any{before, limit}, func(r row) error {
		list = append(list, incidentOf(r))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list incidents: %w", err)
	}
	return list, nil
}
