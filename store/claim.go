package store

import (
	"fmt"

	"creel/event"
)

const (
	// maxClaim is how many events one claim takes: by 256 they cost a
	// seventieth of what they cost one by one, and more brings nothing.
	maxClaim = 256
	// claimBytes bounds the bodies that one claim brings into memory.
	claimBytes = 16 << 20

	sqlDueEvents = `SELECT alone, payload, body_at, body_size FROM event INDEXED BY event_due
		WHERE state = 'pending' AND waits = 0 AND next_at <= ? ORDER BY next_at, seq LIMIT ?`
	sqlClaimEvents = `UPDATE event SET state = 'claimed', claim = ?, attempts = attempts + 1, next_at = NULL, alone = ?
		WHERE seq IN (SELECT seq FROM event INDEXED BY event_due
			WHERE state = 'pending' AND waits = 0 AND next_at <= ? ORDER BY next_at, seq LIMIT ?)
		RETURNING ` + workColumns
)

// claimEvents takes up to max due events, oldest due first, and counts their
// attempts. An event that a dead boot had claimed is taken alone.
//
// A crash after the commit leaves claims of a dead boot, which Recover takes
// back.
func claimEvents(t *tx, now int64, max int, token event.Claim) ([]event.Work, error) {
	n, alone, err := choose(t, now, min(max, maxClaim))
	if err != nil || n == 0 {
		return nil, err
	}
	works := make([]event.Work, 0, n)
	places := make([]location, 0, n)
	err = t.query(sqlClaimEvents, []any{string(token), alone, now, n}, func(r row) error {
		work, place := workOf(r)
		work.Alone = alone
		works, places = append(works, work), append(places, place)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("claim events: %w", err)
	}
	shared := payloadCache{t: t}
	for i := range works {
		if works[i].Payload, err = shared.load(places[i]); err != nil {
			return nil, err
		}
	}
	return works, nil
}

// choose tells how many of the due events the claim takes, in their order, and
// whether the one it takes has to be alone: a dead boot had it in its hands. A
// crash then spends its attempt, and nobody else's.
func choose(t *tx, now int64, max int) (n int, alone bool, err error) {
	var bytes int64
	var last [2]int64
	full := false
	err = t.query(sqlDueEvents, []any{now, max}, func(r row) error {
		if full {
			return nil
		}
		if r.bool(0) {
			full = true
			if n == 0 {
				n, alone = 1, true
			}
			return nil
		}
		// Neighbours that came in one request share its body.
		if place := [2]int64{r.int64(1), r.int64(2)}; place != last {
			bytes += r.int64(3)
			last = place
		}
		if n > 0 && bytes > claimBytes {
			full = true
			return nil
		}
		n++
		return nil
	})
	if err != nil {
		return 0, false, fmt.Errorf("look for due events: %w", err)
	}
	return n, alone, nil
}
