package store

import (
	"context"
	"fmt"
	"time"

	"creel/event"
)

const (
	resultSkipped   = "skipped"
	refusedNotStuck = "it holds up no lane"

	sqlSkipEvent = `UPDATE event SET passes = 1 WHERE seq = ?1 AND state = 'dead' AND passes = 0 AND lane <> ''
		AND (?2 = '' OR lane = ?2)`
	sqlSkipDeliveries = `UPDATE delivery INDEXED BY delivery_event SET passes = 1
		WHERE event = ?1 AND (state = 'dead' OR state = 'in_doubt') AND passes = 0 AND lane <> '' AND (?2 = '' OR lane = ?2)`
)

// SkipLane lets those pass that wait behind the selected events: behind an
// event that is dead, and behind deliveries of it that are dead or in doubt.
// What is dead stays so, and can be replayed later. Where the action's target
// names a lane, only that one moves. The audit row commits with the act. It
// returns as Replay does.
func (s *Store) SkipLane(ctx context.Context, now time.Time, a event.Action) (event.Action, error) {
	a.Kind = event.ActionLaneSkip
	return s.perform(ctx, now, a, skipIn(a.Target))
}

// skipIn lets those pass that wait in one lane, or in any where it is empty.
func skipIn(lane string) act {
	return func(t *tx, now int64, p pick) (result string, done bool, err error) {
		if _, _, err := standing(t, p.seq); err != nil {
			return "", false, err
		}
		events, err := t.exec(sqlSkipEvent, p.seq, lane)
		if err != nil {
			return "", false, fmt.Errorf("skip event %d: %w", p.seq, err)
		}
		deliveries, err := t.exec(sqlSkipDeliveries, p.seq, lane)
		if err != nil {
			return "", false, fmt.Errorf("skip deliveries of event %d: %w", p.seq, err)
		}
		if events+deliveries == 0 {
			return refusedNotStuck, false, nil
		}
		return resultSkipped, true, keepLanes(t, now, p.seq)
	}
}
