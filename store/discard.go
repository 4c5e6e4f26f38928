package store

import (
	"context"
	"fmt"
	"time"

	"creel/event"
)

const (
	sqlDiscardEvent = `UPDATE event SET state = 'discarded', finished_at = ?, revivable = 0, incident = NULL, failure = NULL
		WHERE seq = ? AND state = 'dead'`
	sqlDiscardDeliveries = `UPDATE delivery INDEXED BY delivery_dead SET state = 'discarded', finished_at = ?, incident = NULL, failure = NULL
		WHERE event = ? AND state = 'dead'`
	sqlDiedSince = `SELECT 1 FROM event WHERE seq = ?1 AND ?3 = '' AND state = 'dead' AND finished_at > ?2
		UNION ALL SELECT 1 FROM delivery INDEXED BY delivery_dead WHERE event = ?1 AND state = 'dead' AND finished_at > ?2
			AND (?3 = '' OR destination = ?3) LIMIT 1`
	sqlNotRevivable = `UPDATE event SET revivable = 0 WHERE seq = ?`

	// openTo are the deliveries to a destination that nobody has in his hands.
	openTo    = `(state = 'ready' OR state = 'waiting' OR state = 'in_doubt' OR state = 'dead')`
	sqlDeadTo = `SELECT ifnull(incident, 0), count(*) FROM delivery INDEXED BY delivery_dead
		WHERE event = ? AND destination = ? AND state = 'dead' GROUP BY 1`
	sqlDiscardTo = `UPDATE delivery INDEXED BY delivery_event SET state = 'discarded', finished_at = ?, next_at = NULL, incident = NULL, failure = NULL
		WHERE event = ? AND destination = ? AND ` + openTo
	sqlNothingDead = `UPDATE event SET revivable = 0 WHERE seq = ?1 AND state <> 'dead'
		AND NOT EXISTS (SELECT 1 FROM delivery INDEXED BY delivery_dead WHERE event = ?1 AND state = 'dead')`
)

// Discard takes the selected dead events, and dead deliveries, off the list of
// dead letters for good. Their rows, bodies and attempts stay. An event that
// is done keeps its state; its dead deliveries are discarded. The audit row
// commits with the act. It returns as Replay does.
//
// An event that ran again since it was selected, or of which more died since the
// DeadBy of the selection, is refused: nobody looked at that.
//
// Where the action's target names a destination, the deliveries of the selected
// events to it are discarded instead, those that wait or are in doubt too, and
// nothing else.
func (s *Store) Discard(ctx context.Context, now time.Time, a event.Action) (event.Action, error) {
	a.Kind = event.ActionDiscard
	return s.perform(ctx, now, a, discarding(a))
}

// discarding is what a discard does to one event.
func discarding(a event.Action) act {
	return func(t *tx, now int64, p pick) (string, bool, error) {
		state, run, err := standing(t, p.seq)
		if err != nil {
			return "", false, err
		}
		if run != p.run {
			return refusedReplayed, false, nil
		}
		if later, err := diedSince(t, p.seq, a.Selector.DeadBy, a.Target); err != nil || later {
			return refusedSince, false, err
		}
		if a.Target != "" {
			return discardTo(t, now, p.seq, a.Target)
		}
		return discard(t, now, p, state)
	}
}

// diedSince tells whether more of an event died since a time: itself, or one of
// its deliveries, of those to a destination where one is named.
func diedSince(t *tx, seq int64, since time.Time, destination string) (later bool, err error) {
	if since.IsZero() {
		return false, nil
	}
	err = t.query(sqlDiedSince, []any{seq, since.UnixMilli(), destination}, func(row) error {
		later = true
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("look for later deaths of event %d: %w", seq, err)
	}
	return later, nil
}

func discard(t *tx, now int64, p pick, state event.State) (result string, done bool, err error) {
	if state == event.Pending || state == event.Claimed {
		return refusedQueued, false, nil
	}
	if err := relieveDeath(t, now, p.seq); err != nil {
		return "", false, err
	}
	events, err := t.exec(sqlDiscardEvent, now, p.seq)
	if err != nil {
		return "", false, fmt.Errorf("discard event %d: %w", p.seq, err)
	}
	deliveries, err := t.exec(sqlDiscardDeliveries, now, p.seq)
	if err != nil {
		return "", false, fmt.Errorf("discard deliveries of event %d: %w", p.seq, err)
	}
	switch {
	case events+deliveries > 0: // a delivery may have died after its event was discarded
	case state == event.Discarded:
		return refusedGone, false, nil
	default:
		return refusedAlive, false, nil
	}
	if _, err := t.exec(sqlNotRevivable, p.seq); err != nil {
		return "", false, fmt.Errorf("discard event %d: %w", p.seq, err)
	}
	if err := keepLanes(t, now, p.seq); err != nil {
		return "", false, err
	}
	return resultDiscarded, true, nil
}

// discardTo gives up what an event has for a destination. The event stays what
// it is.
func discardTo(t *tx, now, seq int64, destination string) (result string, done bool, err error) {
	dead := map[int64]int{}
	err = t.query(sqlDeadTo, []any{seq, destination}, func(r row) error {
		dead[r.int64(0)] = r.int(1)
		return nil
	})
	if err != nil {
		return "", false, fmt.Errorf("read dead deliveries: %w", err)
	}
	for incident, n := range dead {
		if err := relieve(t, now, incident, n); err != nil {
			return "", false, err
		}
	}
	gone, err := t.exec(sqlDiscardTo, now, seq, destination)
	if err != nil {
		return "", false, fmt.Errorf("discard deliveries of event %d: %w", seq, err)
	}
	if gone == 0 {
		return refusedNothingTo, false, nil
	}
	if _, err := t.exec(sqlNothingDead, seq); err != nil {
		return "", false, fmt.Errorf("discard deliveries of event %d: %w", seq, err)
	}
	if err := allClear(t, now, destination, "its deliveries were discarded"); err != nil {
		return "", false, err
	}
	_, err = keepDeliveries(t, now, seq)
	return resultDiscarded, true, err
}
