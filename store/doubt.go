package store

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"creel/event"
)

const (
	sqlWasSent = `UPDATE delivery SET state = 'sent', finished_at = ?1, error = '' WHERE id = ?2 AND state = 'in_doubt'`
	sqlAgain   = `UPDATE delivery SET state = 'ready', run = run + 1, attempts = 0, tries = 0, next_at = ?1, queued_at = ?1,
		status = 0, error = '' WHERE id = ?2 AND state = 'in_doubt'`
	sqlGivenUp = `UPDATE delivery SET state = 'dead', finished_at = ?1 WHERE id = ?2 AND state = 'in_doubt'
		RETURNING destination, CASE WHEN event IS NULL THEN incident END`
)

// Decide settles a delivery in doubt as an operator says: it was sent, it is
// to be sent again under the same identity, or it is given up. The action's
// target is the delivery's id. The audit row commits with the decision; a
// delivery that is not in doubt (any more) counts as refused.
func (s *Store) Decide(ctx context.Context, now time.Time, a event.Action) (event.Action, error) {
	id, err := strconv.ParseInt(a.Target, 10, 64)
	if err != nil {
		return event.Action{}, fmt.Errorf("%s: %q is not the number of a delivery: %w", a.Kind, a.Target, event.ErrNotFound)
	}
	return s.switchDestination(ctx, now, a, func(t *tx, at int64) (int64, error) {
		changed, err := decide(t, at, id, a)
		if err != nil || changed == 0 {
			return changed, err
		}
		_, err = keepDelivery(t, at, id)
		return changed, err
	})
}

func decide(t *tx, at, id int64, a event.Action) (changed int64, err error) {
	switch a.Kind {
	case event.ActionWasSent:
		return t.exec(sqlWasSent, at, id)
	case event.ActionSendAgain:
		return t.exec(sqlAgain, at, id)
	}
	return giveUp(t, at, id, a.Reason)
}

// giveUp makes a delivery in doubt a dead letter.
func giveUp(t *tx, at, id int64, reason string) (changed int64, err error) {
	destination, alert := "", int64(0)
	err = t.query(sqlGivenUp, []any{at, id}, func(r row) error {
		destination, alert, changed = r.text(0), r.int64(1), 1
		return nil
	})
	if err != nil || changed == 0 {
		return 0, err
	}
	if alert != 0 {
		return changed, landed(t, at, id, alert) // nobody is told that he was not told
	}
	incident, err := raise(t, at, event.Incident{Cause: event.CauseDeadDelivery, Subject: destination,
		Detail: fmt.Sprintf("delivery %d to %s was in doubt and was given up: %s", id, destination, reason)}, 1)
	if err != nil {
		return 0, err
	}
	if _, err := t.exec(sqlDeliveryDied, incident, id); err != nil {
		return 0, fmt.Errorf("mark death of delivery %d: %w", id, err)
	}
	return changed, deliveryFailed(t, at, id)
}
