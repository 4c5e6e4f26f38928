package store

import (
	"context"
	"fmt"
	"math"
	"time"
)

const (
	// seenMark is the setting whose time is how late it was when something was
	// last written: what was due then was due, whatever the clock says since. Its
	// value is the newest event of the time before the clock was set back last.
	seenMark = "clock"

	sqlNoteSeen = `INSERT INTO setting (name, value, at) VALUES ('` + seenMark + `', '', ?)
		ON CONFLICT (name) DO UPDATE SET at = excluded.at WHERE at < excluded.at`
	sqlSetSeen = `UPDATE setting SET at = ?, value = (SELECT ifnull(max(seq), 0) FROM event) WHERE name = '` + seenMark + `'`
	// The newest event may have come within the last minute, before a crash.
	sqlLastSeen = `SELECT max(at, ifnull((SELECT received_at FROM event WHERE seq = (SELECT max(seq) FROM event) AND seq > CAST(setting.value AS INTEGER)), 0))
		FROM setting WHERE name = '` + seenMark + `'`

	// What comes behind a time, a chunk of it: up to where, and moved by ?1, but
	// not before now (?2), so that what waits keeps its order.
	sqlEventsAhead = `SELECT next_at FROM event INDEXED BY event_due WHERE state = 'pending' AND waits = 0 AND next_at > ?
		ORDER BY next_at LIMIT 1 OFFSET ?`
	sqlPullEvents = `UPDATE event SET next_at = max(next_at - ?1, ?2) WHERE seq IN (SELECT seq FROM event INDEXED BY event_due
		WHERE state = 'pending' AND waits = 0 AND next_at > ?3 AND next_at <= ?4)`
	sqlDeliveriesAhead = `SELECT next_at FROM delivery INDEXED BY delivery_due WHERE state = 'ready' AND next_at > ? AND destination = ?3
		ORDER BY next_at LIMIT 1 OFFSET ?2`
	sqlPullDeliveries = `UPDATE delivery SET next_at = max(next_at - ?1, ?2) WHERE id IN (SELECT id FROM delivery INDEXED BY delivery_due
		WHERE state = 'ready' AND next_at > ?3 AND next_at <= ?4 AND destination = ?5)`
	sqlKeptAhead = `SELECT due FROM kept_body WHERE due > ? ORDER BY due LIMIT 1 OFFSET ?`
	sqlPullKept  = `UPDATE kept_body SET due = max(due - ?1, ?2) WHERE due > ?3 AND due <= ?4`

	sqlPullDestinations = `UPDATE destination SET since = since - ?1, probe_at = probe_at - ?1, measured_from = measured_from - ?1,
		last_success = min(last_success, ?2)`
)

// Seen is how late it was, by the clock, when something was last written: to a
// minute or so. It is zero where nothing was.
func (r *Reader) Seen(ctx context.Context) (at time.Time, err error) {
	err = r.list(ctx, sqlLastSeen, nil, func(r row) error {
		at = timeOf(r, 0)
		return nil
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("read what the clock showed last: %w", err)
	}
	return at, nil
}

// NoteSeen remembers how late it is.
func (s *Store) NoteSeen(ctx context.Context, now time.Time) error {
	err := s.write(ctx, work, 1, func(t *tx) error { return noteSeen(t, now) })
	if err != nil {
		return fmt.Errorf("note what the clock shows: %w", err)
	}
	return nil
}

func noteSeen(t *tx, now time.Time) error {
	_, err := t.exec(sqlNoteSeen, now.UnixMilli())
	return err
}

// SetBack follows a clock that was set back by a time and shows now: whatever is
// due later than now is due that much sooner, but not before now, and what is
// known about destinations began that much earlier. So work that was due is due,
// and a retry waits as long as it had to. It returns how many rows it moved.
//
// A crash between its transactions leaves the rest to the next start, which
// sees the same step of the clock: a retry that was moved already may come
// before its time then, and nothing after it.
func (s *Store) SetBack(ctx context.Context, now time.Time, by time.Duration) (moved int, err error) {
	names, err := s.WaitingDestinations(ctx)
	if err != nil {
		return 0, err
	}
	pulls := []pull{{what: "events", upTo: sqlEventsAhead, move: sqlPullEvents}, {what: "kept bodies", upTo: sqlKeptAhead, move: sqlPullKept}}
	for _, name := range names {
		pulls = append(pulls, pull{what: "deliveries to " + name, upTo: sqlDeliveriesAhead, move: sqlPullDeliveries, of: []any{name}})
	}
	for _, p := range pulls {
		n, err := s.pull(ctx, p, now.UnixMilli(), by.Milliseconds())
		if moved += n; err != nil {
			return moved, fmt.Errorf("follow the clock with %s: %w", p.what, err)
		}
	}
	err = s.write(ctx, work, 8, func(t *tx) error {
		if _, err := t.exec(sqlPullDestinations, by.Milliseconds(), now.UnixMilli()); err != nil {
			return err
		}
		if err := noteSeen(t, now); err != nil {
			return err
		}
		_, err := t.exec(sqlSetSeen, now.UnixMilli())
		return err
	})
	if err != nil {
		return moved, fmt.Errorf("follow the clock with destinations: %w", err)
	}
	ring(s.desk.events)
	ring(s.desk.deliveries)
	return moved, nil
}

// pull is a kind of row that has a due time.
type pull struct {
	what       string
	upTo, move string
	of         []any // which of them
}

// pull moves the rows of a kind, the earliest first: none is met twice.
func (s *Store) pull(ctx context.Context, p pull, now, by int64) (moved int, err error) {
	for from := now; from < math.MaxInt64; {
		var upTo, n int64
		err := s.write(ctx, work, recoverChunk, func(t *tx) error {
			upTo = math.MaxInt64
			err := t.query(p.upTo, append([]any{from, recoverChunk - 1}, p.of...), func(r row) error {
				upTo = r.int64(0)
				return nil
			})
			if err != nil {
				return err
			}
			n, err = t.exec(p.move, append([]any{by, now, from, upTo}, p.of...)...)
			return err
		})
		if err != nil {
			return moved, err
		}
		from, moved = upTo, moved+int(n)
	}
	return moved, nil
}
