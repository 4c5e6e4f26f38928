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

	// A due event and its weight. length() of a BLOB reads no more of it than
	// the head of its row.
	sqlDueEvents = `SELECT event.alone, payload.id, ifnull(length(payload.body), 0)
		FROM event INDEXED BY event_due LEFT JOIN payload
			ON payload.id = CASE event.payload WHEN 0 THEN event.seq ELSE event.payload END
		WHERE event.state = 'pending' AND event.next_at <= ?
		ORDER BY event.next_at, event.seq LIMIT ?`
	sqlOtherClaim  = `SELECT 1 FROM event INDEXED BY event_open WHERE state <> 'done' AND state = 'claimed' LIMIT 1`
	sqlClaimEvents = `UPDATE event SET state = 'claimed', claim = ?, attempts = attempts + 1, next_at = NULL, alone = ?
		WHERE seq IN (SELECT seq FROM event INDEXED BY event_due
			WHERE state = 'pending' AND next_at <= ? ORDER BY next_at, seq LIMIT ?)
		RETURNING ` + workColumns
	sqlPayload = `SELECT body, header, query FROM payload WHERE id = ?`
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
	payloads := make([]int64, 0, n)
	err = t.query(sqlClaimEvents, []any{string(token), alone, now, n}, func(r row) error {
		work, payload := workOf(r)
		works, payloads = append(works, work), append(payloads, payload)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("claim events: %w", err)
	}
	shared := payloadCache{t: t}
	for i := range works {
		if err := shared.load(payloads[i], &works[i].Payload); err != nil {
			return nil, err
		}
	}
	return works, nil
}

// choose tells how many of the due events the claim takes, in their order, and
// whether the one it takes is to be marked as claimed alone: because it has to
// be, or because nothing else is in anybody's hands. A crash then spends its
// attempt, and nobody else's.
func choose(t *tx, now int64, max int) (n int, alone bool, err error) {
	var bytes int64
	var last int64
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
		if payload := r.int64(1); payload != last {
			bytes += r.int64(2)
			last = payload
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
	if n != 1 || alone {
		return n, alone, nil
	}
	alone = true
	err = t.query(sqlOtherClaim, nil, func(row) error {
		alone = false
		return nil
	})
	if err != nil {
		return 0, false, fmt.Errorf("look for other claims: %w", err)
	}
	return n, alone, nil
}

// payloadCache reads payloads inside the writer, each once: the events of one
// request share the bytes in memory too.
type payloadCache struct {
	t    *tx
	last int64
	have event.Payload
}

// load fills in body, header and query; id 0 is no payload.
func (c *payloadCache) load(id int64, p *event.Payload) error {
	if id == 0 {
		return nil
	}
	if id != c.last {
		c.have = event.Payload{}
		err := c.t.query(sqlPayload, []any{id}, func(r row) error {
			c.have = event.Payload{Body: r.blob(0), Header: r.text(1), Query: r.text(2)}
			return nil
		})
		if err != nil {
			return fmt.Errorf("read payload: %w", err)
		}
		c.last = id
	}
	p.Body, p.Header, p.Query = c.have.Body, c.have.Header, c.have.Query
	return nil
}
