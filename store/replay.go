package store

import (
	"context"
	"fmt"
	"time"

	"creel/event"
)

// What an action says about an event that it did not touch.
const (
	resultReplayed  = "replayed"
	resultDiscarded = "discarded"
	refusedQueued   = "already queued"
	refusedReplayed = "already replayed"
	refusedGone     = "already discarded"
	refusedAlive    = "nothing of it is dead"
)

const sqlStanding = `SELECT state, run FROM event WHERE seq = ?`

// Replay runs the selected events again: those that are dead, done or ignored
// start their next run, their dead deliveries too. What is applied or sent is
// left alone, and nothing is deleted. An event that is queued, or that another
// replay took since it was selected, is refused: a double click, or two
// admins, is one replay. The audit row commits with the act.
//
// It returns when all is done; when ctx ends first, the action goes on. A key
// that no event has is event.ErrNotFound.
func (s *Store) Replay(ctx context.Context, now time.Time, a event.Action) (event.Action, error) {
	a.Kind = event.ActionReplay
	return s.perform(ctx, now, a, replay)
}

func replay(t *tx, now int64, p pick) (result string, done bool, err error) {
	state, run, err := standing(t, p.seq)
	switch {
	case err != nil:
		return "", false, err
	case state == event.Pending || state == event.Claimed:
		return refusedQueued, false, nil
	case state == event.Discarded:
		return refusedGone, false, nil
	case run != p.run:
		return refusedReplayed, false, nil
	}
	if _, err := requeue(t, now, p.seq); err != nil {
		return "", false, err
	}
	return resultReplayed, true, nil
}

func standing(t *tx, seq int64) (state event.State, run int, err error) {
	err = t.query(sqlStanding, []any{seq}, func(r row) error {
		state, run = event.State(r.text(0)), r.int(1)
		return nil
	})
	if err == nil && state == "" {
		err = event.ErrNotFound
	}
	if err != nil {
		return "", 0, fmt.Errorf("look at event %d: %w", seq, err)
	}
	return state, run, nil
}
