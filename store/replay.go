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
	resultResent    = "replayed and sent again"
	resultDiscarded = "discarded"
	refusedQueued   = "already queued"
	refusedReplayed = "already replayed"
	refusedGone     = "already discarded"
	refusedAlive    = "nothing of it is dead"
	refusedPurged   = "its body was removed after the retention"
	refusedSince    = "more of it died since it was looked at"

	refusedNothingTo = "nothing of it waits for that destination"
)

const (
	sqlStanding  = `SELECT state, run FROM event WHERE seq = ?`
	sqlWasPurged = `SELECT 1 FROM event WHERE seq = ? AND purged = 1`
)

// Replay runs the selected events again: those that are dead, done or ignored
// start their next run, their dead deliveries too. What is applied or sent is
// left alone, and nothing is deleted. An event that is queued, or that another
// replay took since it was selected, is refused: a double click, or two
// admins, is one replay. The audit row commits with the act.
//
// With Resend their deliveries that were sent go out again, under the same
// identity; those to the selector's destination alone where it names one. With a
// Rate no more events a second are released, which goes on at that pace after a
// restart.
//
// It returns when all is done; when ctx ends first, the action goes on. A key
// that no event has is event.ErrNotFound.
func (s *Store) Replay(ctx context.Context, now time.Time, a event.Action) (event.Action, error) {
	a.Kind = event.ActionReplay
	return s.perform(ctx, now, a, replaying(a))
}

// replaying is what a replay does to one event.
func replaying(a event.Action) act {
	if !a.Resend {
		return replay
	}
	return func(t *tx, now int64, p pick) (result string, done bool, err error) {
		if result, done, err = replay(t, now, p); err != nil || !done {
			return result, done, err
		}
		sent, err := resend(t, now, p.seq, a.Selector.Destination)
		if sent > 0 {
			result = resultResent
		}
		return result, true, err
	}
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
	if gone, err := wasPurged(t, p.seq); err != nil || gone {
		return refusedPurged, false, err
	}
	if _, err := requeue(t, now, p.seq); err != nil {
		return "", false, err
	}
	return resultReplayed, true, nil
}

// Refusal tells why a replay would leave an event alone though its state would
// allow one; "" where nothing stands against it.
func (r *Reader) Refusal(ctx context.Context, seq int64) (reason string, err error) {
	err = r.list(ctx, sqlWasPurged, []any{seq}, func(row) error {
		reason = refusedPurged
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("look for the body of event %d: %w", seq, err)
	}
	return reason, nil
}

// wasPurged tells whether an event has nothing left to run with.
func wasPurged(t *tx, seq int64) (gone bool, err error) {
	err = t.query(sqlWasPurged, []any{seq}, func(row) error {
		gone = true
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("look for the body of event %d: %w", seq, err)
	}
	return gone, nil
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
