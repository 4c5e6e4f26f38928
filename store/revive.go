package store

import (
	"fmt"

	"creel/event"
)

const (
	sqlDeathOf = `SELECT state, incident FROM event WHERE seq = ?`
	sqlRequeue = `UPDATE event SET state = 'pending', run = run + 1, attempts = 0, alone = 0, revivable = 0,
		next_at = ?, finished_at = NULL, error = '', incident = NULL, failure = NULL
		WHERE seq = ? AND state IN ('dead', 'done', 'ignored')`
	sqlDeadDeliveries = `SELECT ifnull(incident, 0), count(*) FROM delivery INDEXED BY delivery_dead
		WHERE event = ? AND state = 'dead' GROUP BY 1`
	sqlReadyAgain = `UPDATE delivery INDEXED BY delivery_dead SET state = 'ready', run = run + 1, attempts = 0, tries = 0,
		next_at = ?1, queued_at = ?1, finished_at = NULL, status = 0, error = '', incident = NULL, failure = NULL
		WHERE event = ?2 AND state = 'dead'`
	sqlResend = `UPDATE delivery INDEXED BY delivery_event SET state = 'ready', run = run + 1, attempts = 0, tries = 0,
		next_at = ?1, queued_at = ?1, finished_at = NULL, status = 0, error = ''
		WHERE event = ?2 AND state = 'sent' AND (?3 = '' OR destination = ?3)`
)

// requeue starts the next run of an event and of its dead deliveries: the one
// path of a replay and of a redelivery. Deliveries that were sent are left
// alone, and nothing is deleted. The caller has seen that the event may move.
func requeue(t *tx, now, seq int64) (deliveries int64, err error) {
	if err := relieveDeath(t, now, seq); err != nil {
		return 0, err
	}
	moved, err := t.exec(sqlRequeue, now, seq)
	if err != nil {
		return 0, fmt.Errorf("requeue event: %w", err)
	}
	if moved == 0 {
		return 0, fmt.Errorf("requeue event %d: %w", seq, event.ErrClaimLost)
	}
	deliveries, err = t.exec(sqlReadyAgain, now, seq)
	if err != nil {
		return 0, fmt.Errorf("requeue deliveries: %w", err)
	}
	return deliveries, keepLanes(t, now, seq)
}

// resend starts the next run of the deliveries of an event that were sent, to
// one destination or to all.
func resend(t *tx, now, seq int64, destination string) (sent int64, err error) {
	sent, err = t.exec(sqlResend, now, seq, destination)
	if err != nil {
		return 0, fmt.Errorf("send the deliveries of event %d again: %w", seq, err)
	}
	if sent > 0 {
		_, err = keepDeliveries(t, now, seq)
	}
	return sent, err
}

// keepLanes is keepLane for an event and keepDelivery for all that it sends.
// Whoever calls it rings both bells after the commit.
func keepLanes(t *tx, now, seq int64) error {
	if _, err := keepLane(t, now, seq); err != nil {
		return err
	}
	_, err := keepDeliveries(t, now, seq)
	return err
}

// relieveDeath takes an event and its dead deliveries off their incidents.
func relieveDeath(t *tx, now, seq int64) error {
	dead := map[int64]int{}
	err := t.query(sqlDeathOf, []any{seq}, func(r row) error {
		if event.State(r.text(0)) == event.Dead {
			dead[r.int64(1)]++
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read death: %w", err)
	}
	err = t.query(sqlDeadDeliveries, []any{seq}, func(r row) error {
		dead[r.int64(0)] += r.int(1)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read dead deliveries: %w", err)
	}
	for id, n := range dead {
		if err := relieve(t, now, id, n); err != nil {
			return err
		}
	}
	return nil
}
