package store

import (
	"context"
	"fmt"
	"time"

	"creel/event"
)

const (
	sqlDestinations = `SELECT name, state, since, reason, probe_at, probe_delay, last_success, measured_from,
		(SELECT cause FROM incident WHERE family = 'destination' AND subject = name AND resolved_at IS NULL)
		FROM destination ORDER BY name`
	// What an operator paused, only an operator resumes.
	sqlSaveDestination = `INSERT INTO destination (name, state, since, reason, probe_at, probe_delay, last_success, measured_from)
		VALUES (?,?,?,?,?,?,?,?)
		ON CONFLICT (name) DO UPDATE SET state = excluded.state, since = excluded.since, reason = excluded.reason,
			probe_at = excluded.probe_at, probe_delay = excluded.probe_delay,
			last_success = coalesce(excluded.last_success, last_success), measured_from = excluded.measured_from
		WHERE state <> 'paused' OR excluded.state = 'paused'`
	sqlPause = `INSERT INTO destination (name, state, since, reason, probe_delay) VALUES (?,'paused',?,?,0)
		ON CONFLICT (name) DO UPDATE SET state = 'paused', since = excluded.since, reason = excluded.reason,
			probe_at = NULL, probe_delay = 0
		WHERE state <> 'paused'`
	sqlResume = `UPDATE destination SET state = 'enabled', since = ?2, reason = '', probe_at = NULL, probe_delay = 0,
			measured_from = ?2
		WHERE name = ?1 AND state <> 'enabled'`
)

// Destinations lists what is known about destinations. One that is not listed
// is enabled.
func (r *Reader) Destinations(ctx context.Context) ([]event.DestinationHealth, error) {
	var list []event.DestinationHealth
	err := r.list(ctx, sqlDestinations, nil, func(r row) error {
		list = append(list, event.DestinationHealth{
			Name: r.text(0), State: event.DestinationState(r.text(1)), Since: timeOf(r, 2), Reason: r.text(3),
			ProbeAt: timeOf(r, 4), ProbeDelay: time.Duration(r.int64(5)) * time.Millisecond, LastSuccess: timeOf(r, 6),
			MeasuredFrom: timeOf(r, 7), Trouble: event.Cause(r.text(8)),
		})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list destinations: %w", err)
	}
	return list, nil
}

// SaveDestination stores a destination's health with what its trouble is now,
// and ends the outage where it is over, in one transaction. One that an operator
// paused meanwhile stays so: event.ErrClaimLost, and no incident is touched.
func (s *Store) SaveDestination(ctx context.Context, now time.Time, d event.DestinationHealth, trouble, over *event.Incident) error {
	at := now.UnixMilli()
	since := d.Since.UnixMilli()
	if d.Since.IsZero() {
		since = at
	}
	kept := false
	err := s.write(ctx, work, 3, func(t *tx) error {
		saved, err := t.exec(sqlSaveDestination, d.Name, string(d.State), since, d.Reason,
			ms(d.ProbeAt), d.ProbeDelay.Milliseconds(), ms(d.LastSuccess), ms(d.MeasuredFrom))
		if err != nil {
			return err
		}
		if kept = saved == 0; kept {
			return nil
		}
		if over != nil {
			if err := allClear(t, at, over.Subject, over.Detail); err != nil {
				return err
			}
		}
		if trouble != nil {
			return turn(t, at, *trouble)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("save destination %s: %w", d.Name, err)
	}
	if kept {
		return fmt.Errorf("destination %s is paused by its owner: %w", d.Name, event.ErrClaimLost)
	}
	ring(s.desk.deliveries)
	return nil
}

// Pause stops deliveries to the action's target until it is resumed, and
// writes the audit row, in one transaction.
func (s *Store) Pause(ctx context.Context, now time.Time, a event.Action) (event.Action, error) {
	a.Kind = event.ActionPause
	return s.switchDestination(ctx, now, a, func(t *tx, at int64) (int64, error) {
		return t.exec(sqlPause, a.Target, at, a.Reason)
	})
}

// Resume lets deliveries to the action's target go on, whatever stopped them,
// ends the incident of its outage, and writes the audit row, in one
// transaction.
func (s *Store) Resume(ctx context.Context, now time.Time, a event.Action) (event.Action, error) {
	a.Kind = event.ActionResume
	return s.switchDestination(ctx, now, a, func(t *tx, at int64) (int64, error) {
		changed, err := t.exec(sqlResume, a.Target, at)
		if err != nil || changed == 0 {
			return changed, err
		}
		return changed, allClear(t, at, a.Target, "the destination was resumed by "+a.Actor)
	})
}

// switchDestination writes the action and the state together. An action that
// changes nothing is an audited act too; it counts as refused.
func (s *Store) switchDestination(ctx context.Context, now time.Time, a event.Action, change func(*tx, int64) (int64, error)) (event.Action, error) {
	at := now.UnixMilli()
	var done event.Action
	err := s.write(ctx, work, 3, func(t *tx) (err error) {
		var again bool
		if done, again, err = asked(t, &a); err != nil || again {
			return err
		}
		done = a
		done.At, done.Finished, done.Selected = now, now, 1
		changed, err := change(t, at)
		if err != nil {
			return err
		}
		done.Done, done.Refused = 1, 0
		if changed == 0 {
			done.Done, done.Refused = 0, 1
		}
		done.ID, err = insertAction(t, &done, nil)
		return err
	})
	if err != nil {
		return event.Action{}, fmt.Errorf("%s %s: %w", a.Kind, a.Target, err)
	}
	ring(s.desk.deliveries)
	return done, nil
}
