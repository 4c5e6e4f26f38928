package store

import (
	"context"
	"fmt"
	"time"

	"creel/event"
)

const (
	sqlDiscardEvent = `UPDATE event SET state = 'discarded', finished_at = ?, revivable = 0, incident = NULL
		WHERE seq = ? AND state = 'dead'`
	sqlDiscardDeliveries = `UPDATE delivery INDEXED BY delivery_dead SET state = 'discarded', finished_at = ?, incident = NULL
		WHERE event = ? AND state = 'dead'`
	sqlNotRevivable = `UPDATE event SET revivable = 0 WHERE seq = ?`
)

// Discard takes the selected dead events, and dead deliveries, off the list of
// dead letters for good. Their rows, bodies and attempts stay. An event that
// is done keeps its state; its dead deliveries are discarded. The audit row
// commits with the act. It returns as Replay does.
func (s *Store) Discard(ctx context.Context, now time.Time, a event.Action) (event.Action, error) {
	a.Kind = event.ActionDiscard
	return s.perform(ctx, now, a, discard)
}

func discard(t *tx, now int64, p pick) (result string, done bool, err error) {
	state, _, err := standing(t, p.seq)
	switch {
	case err != nil:
		return "", false, err
	case state == event.Pending || state == event.Claimed:
		return refusedQueued, false, nil
	case state == event.Discarded:
		return refusedGone, false, nil
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
	if events+deliveries == 0 {
		return refusedAlive, false, nil
	}
	if _, err := t.exec(sqlNotRevivable, p.seq); err != nil {
		return "", false, fmt.Errorf("discard event %d: %w", p.seq, err)
	}
	return resultDiscarded, true, nil
}
