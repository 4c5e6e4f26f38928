package store

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"creel/event"
)

const (
	sqlUntold = `SELECT id FROM incident INDEXED BY incident_open
		WHERE resolved_at IS NULL AND alerted_at IS NULL AND acknowledged_at IS NULL ORDER BY id LIMIT ?`
	// Trouble that happens, rather than lasts, is over when it happens no more.
	sqlQuiet = `UPDATE incident SET resolved_at = ?1 WHERE resolved_at IS NULL AND last_at <= ?2
		AND (cause = 'conflict' OR cause = 'unreadable') RETURNING id`
	sqlAnyQuiet = `SELECT count(*) FROM incident INDEXED BY incident_open WHERE resolved_at IS NULL AND last_at <= ?1
		AND (cause = 'conflict' OR cause = 'unreadable')`
	sqlSay = `UPDATE incident SET detail = ?1, last_at = ?2 WHERE family = ?3 AND subject = ?4 AND resolved_at IS NULL`
	sqlEnd = `UPDATE incident SET resolved_at = ?1, last_at = ?1 WHERE family = ?2 AND subject = ?3 AND resolved_at IS NULL
		RETURNING id`

	sqlSeen = `SELECT id, cause FROM incident INDEXED BY incident_open WHERE resolved_at IS NULL AND acknowledged_at IS NULL
		AND (?1 = 0 OR id = ?1) ORDER BY id`
	sqlAcknowledge = `UPDATE incident SET acknowledged_at = ?1, acknowledged_by = ?2 WHERE id = ?3`
	sqlEndOne      = `UPDATE incident SET resolved_at = ?1 WHERE id = ?2 RETURNING id`
	sqlForgetDead  = `UPDATE delivery SET state = 'discarded', finished_at = ?1, error = ?2 WHERE key = ?3 AND state = 'dead'`
	seenTo         = "the incident was acknowledged"
)

// RaiseIncident opens an incident, or counts on the open one of its family and
// subject.
func (s *Store) RaiseIncident(ctx context.Context, now time.Time, i event.Incident) error {
	err := s.write(ctx, work, 3, func(t *tx) error {
		_, err := raise(t, now.UnixMilli(), i, 0)
		return err
	})
	if err != nil {
		return fmt.Errorf("open incident: %w", err)
	}
	return nil
}

// SayIncident renews what the open incident of a cause and subject says.
func (s *Store) SayIncident(ctx context.Context, now time.Time, i event.Incident) error {
	err := s.write(ctx, work, 1, func(t *tx) error {
		_, err := t.exec(sqlSay, i.Detail, now.UnixMilli(), i.Cause.Family(), i.Subject)
		return err
	})
	if err != nil {
		return fmt.Errorf("renew incident: %w", err)
	}
	return nil
}

// EndIncident ends the open incident of a cause and subject, where there is one.
func (s *Store) EndIncident(ctx context.Context, now time.Time, cause event.Cause, subject string) error {
	err := s.write(ctx, work, 3, func(t *tx) error {
		return endWith(t, now.UnixMilli(), sqlEnd, now.UnixMilli(), cause.Family(), subject)
	})
	if err != nil {
		return fmt.Errorf("end incident: %w", err)
	}
	return nil
}

// KeepIncidents ends incidents that are over because nothing has come to them
// for a day, and tells of those that nobody was told of: they were opened while
// there was nobody to tell. Where there is nothing to do, it only reads.
func (s *Store) KeepIncidents(ctx context.Context, now time.Time) error {
	at, quiet := now.UnixMilli(), now.Add(-anotherDay).UnixMilli()
	var ended int
	if err := s.row(ctx, sqlAnyQuiet, []any{quiet}, &ended); err != nil {
		return fmt.Errorf("keep incidents: %w", err)
	}
	var untold []int64
	if s.desk.teller.Load() != nil {
		err := s.list(ctx, sqlUntold, []any{maxPage}, func(r row) error {
			untold = append(untold, r.int64(0))
			return nil
		})
		if err != nil {
			return fmt.Errorf("keep incidents: %w", err)
		}
	}
	if ended == 0 && !s.hears(untold) {
		return nil
	}
	err := s.write(ctx, work, ended+len(untold), func(t *tx) error {
		if err := endWith(t, at, sqlQuiet, at, quiet); err != nil {
			return err
		}
		for _, id := range untold {
			if err := tell(t, at, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("keep incidents: %w", err)
	}
	return nil
}

// hears tells whether somebody would be told of one of these incidents.
func (s *Store) hears(incidents []int64) bool {
	tell := s.desk.teller.Load()
	return tell != nil && len(incidents) > 0
}

// Acknowledge notes that an operator sees to an incident, or to all that are
// open: no alert of it goes out any more, but that it is over is told to those
// who knew. What only happened, and does not last, is over with it. The action's
// target is the incident's number or event.AllIncidents; its audit row commits
// with the act. An incident that is over, or acknowledged, counts as refused.
func (s *Store) Acknowledge(ctx context.Context, now time.Time, a event.Action) (event.Action, error) {
	a.Kind = event.ActionAck
	only := int64(0)
	if a.Target != event.AllIncidents {
		id, err := strconv.ParseInt(a.Target, 10, 64)
		if err != nil || id <= 0 {
			return event.Action{}, fmt.Errorf("%s: %q is not the number of an incident: %w", a.Kind, a.Target, event.ErrNotFound)
		}
		only = id
	}
	at := now.UnixMilli()
	var done event.Action
	err := s.write(ctx, work, 8, func(t *tx) (err error) {
		var again bool
		if done, again, err = asked(t, &a); err != nil || again {
			return err
		}
		done = a
		done.At, done.Finished = now, now
		if done.Done, err = acknowledge(t, at, only, a.Actor); err != nil {
			return err
		}
		done.Selected, done.Refused = done.Done, 0
		if only != 0 && done.Done == 0 {
			done.Selected, done.Refused = 1, 1
		}
		done.ID, err = insertAction(t, &done, nil)
		return err
	})
	if err != nil {
		return event.Action{}, fmt.Errorf("%s %s: %w", a.Kind, a.Target, err)
	}
	return done, nil
}

func acknowledge(t *tx, now, only int64, actor string) (n int, err error) {
	type seen struct {
		id    int64
		cause event.Cause
	}
	var list []seen
	err = t.query(sqlSeen, []any{only}, func(r row) error {
		list = append(list, seen{r.int64(0), event.Cause(r.text(1))})
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("look for incidents: %w", err)
	}
	for _, i := range list {
		if _, err := t.exec(sqlAcknowledge, now, actor, i.id); err != nil {
			return 0, fmt.Errorf("acknowledge incident %d: %w", i.id, err)
		}
		for _, m := range []event.Moment{event.MomentOpened, event.MomentEscalated} {
			for _, query := range []string{sqlWithdrawUnsent, sqlForgetDead} {
				if _, err := t.exec(query, now, seenTo, alertKey(i.id, m)); err != nil {
					return 0, fmt.Errorf("withdraw alerts of incident %d: %w", i.id, err)
				}
			}
		}
		if i.cause == event.CauseConflict || i.cause == event.CauseUnreadable {
			if err := endWith(t, now, sqlEndOne, now, i.id); err != nil {
				return 0, err
			}
		}
	}
	return len(list), nil
}
