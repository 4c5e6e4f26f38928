package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"creel/event"
)

const (
	// purgeRows bounds one transaction of a purge: intake waits for no more.
	purgeRows = 200
	// purgeBytes bounds it too: what goes is written over.
	purgeBytes = 4 << 20
	// purgeAgain is when a body that was kept for open work is looked at again.
	purgeAgain = 24 * time.Hour
	// purgeMark is the setting that says how far a purge has come.
	purgeMark = "retention: looked at up to"

	sqlPurgeable = `SELECT seq, source, state, received_at, payload, body_at, body_size, header_size, query_size FROM event
		WHERE seq > ? ORDER BY seq LIMIT ?`
	sqlKeptDue = `SELECT event.seq, event.source, event.state, event.received_at, event.payload, body_at, body_size, header_size, query_size
		FROM kept_body CROSS JOIN event ON event.seq = kept_body.event WHERE kept_body.due <= ? ORDER BY kept_body.due, kept_body.event LIMIT ?`
	sqlNextKept = `SELECT min(due) FROM kept_body`
	sqlKeepBody = `INSERT INTO kept_body (due, event, payload) VALUES (?,?,?)`
	sqlKeptOver = `DELETE FROM kept_body WHERE due <= ? AND event = ?`
	sqlKeptAt   = `UPDATE kept_body SET payload = ? WHERE event = ?`
	sqlKeptRow  = `SELECT 1 FROM kept_body WHERE payload = ? LIMIT 1`
	sqlUnsent   = `SELECT 1 FROM delivery INDEXED BY delivery_event WHERE event = ?
		AND state <> 'sent' AND state <> 'discarded' LIMIT 1`

	sqlTombstone = `UPDATE event SET payload = NULL, body_at = 0, body_size = 0, header_size = 0, query_size = 0, purged = 1 WHERE seq = ?`
	sqlMoveBody  = `UPDATE event SET payload = ?, body_at = ? WHERE seq = ?`
	sqlDropBytes = `DELETE FROM payload WHERE id = ?`
	sqlNoAnswers = `UPDATE attempt SET answer = '' WHERE answer <> '' AND delivery IN
		(SELECT id FROM delivery INDEXED BY delivery_event WHERE event = ?)`
	sqlNoMessages  = `UPDATE delivery INDEXED BY delivery_event SET message = '' WHERE event = ? AND message <> ''`
	sqlNoIndex     = `DELETE FROM event_index WHERE event = ?`
	sqlNoConflicts = `UPDATE conflict SET body = x'', header = '', query = '' WHERE event = ?`
)

// Retention is how long what an event carried is kept; 0 is for ever.
type Retention struct {
	Default time.Duration
	Sources map[string]time.Duration // those with one of their own
}

// of is when an event's body may go; false says never.
func (r Retention) of(source string, received int64) (due int64, ends bool) {
	keep, own := r.Sources[source]
	if !own {
		keep = r.Default
	}
	return received + keep.Milliseconds(), keep > 0
}

// shortest is the least time after which anything may go; 0 where nothing does.
func (r Retention) shortest() time.Duration {
	least := r.Default
	for _, keep := range r.Sources {
		if keep > 0 && (least == 0 || keep < least) {
			least = keep
		}
	}
	return least
}

// Purged tells what a purge took away, or would.
type Purged struct {
	Events int64 `json:"events"` // whose bodies, headers and answers went
	Bytes  int64 `json:"bytes"`  // of bodies, headers and queries
	Kept   int64 `json:"kept"`   // old enough, but needed: pending, dead, waiting, in doubt
}

// old is an event that a purge looks at.
type old struct {
	seq, received int64
	source        string
	state         event.State
	location
	carries bool
}

func (o *old) bytes() int64 { return o.body + o.header + o.query }

func oldOf(r row) old {
	o := old{seq: r.int64(0), source: r.text(1), state: event.State(r.text(2)), received: r.int64(3), carries: !r.null(4)}
	if o.carries {
		o.payload = r.int64(4)
	}
	o.at, o.body, o.header, o.query = r.int64(5), r.int64(6), r.int64(7), r.int64(8)
	return o
}

// Purge takes away what old events carried, a small batch at a time: body,
// headers, query, the answers of destinations, the texts of mails, the other
// bodies of conflicts, and what they were searched by. Keys, business keys,
// verdicts, attempts and the audit trail stay. An event that is not over keeps
// everything, and is looked at again a day later. more says that another call
// would find something.
//
// A crash leaves whole batches done; the next call goes on behind them.
func (s *Store) Purge(ctx context.Context, now time.Time, keep Retention) (done Purged, more bool, err error) {
	if keep.shortest() == 0 {
		return done, false, nil
	}
	if due, err := s.purgeDue(ctx, now, keep); err != nil || !due {
		return done, false, err
	}
	p := &purge{now: now.UnixMilli(), keep: keep}
	if err := s.write(ctx, work, purgeRows, p.run); err != nil {
		return done, false, fmt.Errorf("purge: %w", err)
	}
	return p.done, p.more, nil
}

// purgeDue looks whether there is anything to do, so that an idle server
// writes nothing.
func (s *Store) purgeDue(ctx context.Context, now time.Time, keep Retention) (due bool, err error) {
	mark, err := s.Reader.purgedTo(ctx)
	if err != nil {
		return false, err
	}
	err = s.list(ctx, sqlPurgeable, []any{mark, 1}, func(r row) error {
		o := oldOf(r)
		due = o.received+keep.shortest().Milliseconds() <= now.UnixMilli() || o.received > now.UnixMilli()
		return nil
	})
	if err == nil && !due {
		err = s.list(ctx, sqlNextKept, nil, func(r row) error {
			due = !r.null(0) && r.int64(0) <= now.UnixMilli()
			return nil
		})
	}
	if err != nil {
		return false, fmt.Errorf("look for old events: %w", err)
	}
	return due, nil
}

func (r *Reader) purgedTo(ctx context.Context) (int64, error) {
	text, _, err := r.Setting(ctx, purgeMark)
	if err != nil || text == "" {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// purge is one batch.
type purge struct {
	now  int64
	keep Retention

	done Purged
	more bool
}

func (p *purge) run(t *tx) (err error) {
	p.done, p.more = Purged{}, false
	// What goes is overwritten: a free page keeps its bytes, for whoever reads
	// the file or a copy of it. All else that is deleted carried nothing.
	if err := overwrite(t, true); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, overwrite(t, false)) }()
	if err := p.again(t); err != nil {
		return err
	}
	var mark int64
	err = t.query(sqlSetting, []any{purgeMark}, func(r row) (err error) {
		mark, err = strconv.ParseInt(r.text(0), 10, 64)
		return err
	})
	if err != nil {
		return fmt.Errorf("read how far the purge has come: %w", err)
	}
	batch, err := p.batch(t, mark)
	if err != nil || len(batch) == 0 {
		return err
	}
	if err := p.judge(t, batch, true); err != nil {
		return err
	}
	_, err = t.exec(sqlKeepSetting, purgeMark, strconv.FormatInt(batch[len(batch)-1].seq, 10), p.now)
	return err
}

// overwrite makes the writer's connection overwrite all that it deletes, or only
// what it writes anyway.
func overwrite(t *tx, all bool) error {
	value := "FAST"
	if all {
		value = "ON"
	}
	// SQLite does it when it prepares: a statement that is kept would do nothing.
	if err := t.c.script("PRAGMA secure_delete = " + value); err != nil {
		return fmt.Errorf("overwrite what is deleted: %w", err)
	}
	return nil
}

// batch reads the next old events. Those whose bytes lie in one row come
// together: the row goes when the last of them has been looked at.
func (p *purge) batch(t *tx, mark int64) (batch []old, err error) {
	least := p.keep.shortest().Milliseconds()
	whole, bytes := false, int64(0)
	err = t.query(sqlPurgeable, []any{mark, 8 * purgeRows}, func(r row) error {
		o := oldOf(r)
		if whole {
			return nil
		}
		// One that a wrong clock dated ahead holds nothing up that came after it.
		if o.received+least > p.now && o.received <= p.now {
			whole = true
			return nil
		}
		if full := len(batch) >= purgeRows || bytes >= purgeBytes; full && (!o.carries || o.payload != lastPayload(batch)) {
			whole, p.more = true, true
			return nil
		}
		bytes += o.bytes()
		batch = append(batch, o)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read old events: %w", err)
	}
	if !whole && len(batch) == 8*purgeRows {
		p.more = true
	}
	return batch, nil
}

func lastPayload(batch []old) int64 {
	for i := len(batch) - 1; i >= 0; i-- {
		if batch[i].carries {
			return batch[i].payload
		}
	}
	return 0
}

// again looks at bodies that were kept, one chunk.
func (p *purge) again(t *tx) error {
	var batch []old
	bytes := int64(0)
	err := t.query(sqlKeptDue, []any{p.now, purgeRows}, func(r row) error {
		o := oldOf(r)
		if p.more = bytes >= purgeBytes; p.more {
			return nil
		}
		bytes += o.bytes()
		if o.received > p.now { // dated ahead by a wrong clock, and kept for its time since it was looked at
			o.received = 0
		}
		batch = append(batch, o)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read kept bodies: %w", err)
	}
	p.more = p.more || len(batch) == purgeRows
	for _, o := range batch {
		if _, err := t.exec(sqlKeptOver, p.now, o.seq); err != nil {
			return fmt.Errorf("look again at the body of event %d: %w", o.seq, err)
		}
	}
	return p.judge(t, batch, false)
}

// judge takes the bytes of those that may go, and brings those that stay into
// rows of their own where they lay beside others.
func (p *purge) judge(t *tx, batch []old, shared bool) error {
	staying := map[int64][]old{}
	rows := map[int64]bool{}
	for _, o := range batch {
		due, err := p.dueOf(t, &o)
		if err != nil {
			return err
		}
		if o.carries {
			rows[o.payload] = true
		}
		if due == 0 {
			if err := p.forget(t, &o); err != nil {
				return err
			}
			continue
		}
		p.done.Kept++
		if _, err := t.exec(sqlKeepBody, due, o.seq, o.payload); err != nil {
			return fmt.Errorf("keep the body of event %d: %w", o.seq, err)
		}
		staying[o.payload] = append(staying[o.payload], o)
	}
	for row := range rows {
		if err := p.release(t, row, staying[row], shared); err != nil {
			return err
		}
	}
	return nil
}

// dueOf is when an event is to be looked at again, 0 where its body may go.
func (p *purge) dueOf(t reading, o *old) (int64, error) {
	due, ends := p.keep.of(o.source, min(o.received, p.now))
	switch {
	case !o.carries: // an ignored type, which was kept without
		return 0, nil
	case !ends: // a shorter time may be set for its source later
		return p.now + 30*purgeAgain.Milliseconds(), nil
	case due > p.now:
		return due, nil
	}
	open := o.state == event.Pending || o.state == event.Claimed || o.state == event.Dead
	if !open {
		err := t.query(sqlUnsent, []any{o.seq}, func(row) error {
			open = true
			return nil
		})
		if err != nil {
			return 0, fmt.Errorf("look for open deliveries of event %d: %w", o.seq, err)
		}
	}
	if open {
		return p.now + purgeAgain.Milliseconds(), nil
	}
	return 0, nil
}

func (p *purge) forget(t *tx, o *old) error {
	for _, statement := range []string{sqlNoAnswers, sqlNoMessages, sqlNoConflicts, sqlNoIndex} {
		if _, err := t.exec(statement, o.seq); err != nil {
			return fmt.Errorf("forget what event %d carried: %w", o.seq, err)
		}
	}
	if !o.carries {
		return nil
	}
	if _, err := t.exec(sqlTombstone, o.seq); err != nil {
		return fmt.Errorf("forget the body of event %d: %w", o.seq, err)
	}
	p.done.Events++
	p.done.Bytes += o.bytes()
	return nil
}

// release deletes a row of bytes that nobody names any more. A row of several
// requests, all of whose events have just been judged, goes in any case: each
// request that stays gets a row of its own first.
func (p *purge) release(t *tx, payload int64, staying []old, shared bool) error {
	if shared {
		for place, events := range byPlace(staying) {
			if err := p.move(t, place, events); err != nil {
				return err
			}
		}
	} else {
		named := false
		err := t.query(sqlKeptRow, []any{payload}, func(row) error {
			named = true
			return nil
		})
		if err != nil || named {
			return err
		}
	}
	if _, err := t.exec(sqlDropBytes, payload); err != nil {
		return fmt.Errorf("delete payload %d: %w", payload, err)
	}
	return nil
}

// byPlace groups events by the request that carried them.
func byPlace(events []old) map[location][]old {
	groups := map[location][]old{}
	for _, o := range events {
		groups[o.location] = append(groups[o.location], o)
	}
	return groups
}

func (p *purge) move(t *tx, place location, events []old) error {
	cache := payloadCache{t: t}
	kept, err := cache.load(place)
	if err != nil {
		return err
	}
	row, err := t.carryAlone(kept.Body, kept.Header, kept.Query)
	if err != nil {
		return err
	}
	for _, o := range events {
		if _, err := t.exec(sqlMoveBody, row, 0, o.seq); err != nil {
			return fmt.Errorf("move the body of event %d: %w", o.seq, err)
		}
		if _, err := t.exec(sqlKeptAt, row, o.seq); err != nil {
			return fmt.Errorf("keep the body of event %d: %w", o.seq, err)
		}
	}
	return nil
}

// Purgeable tells what a purge would do now, and does nothing. It reads in
// short pages; visit, where it is not nil, is told how far it has come.
func (r *Reader) Purgeable(ctx context.Context, now time.Time, keep Retention, visit func(looked int64)) (would Purged, err error) {
	least := keep.shortest().Milliseconds()
	if least == 0 {
		return would, nil
	}
	mark, err := r.purgedTo(ctx)
	if err != nil {
		return would, err
	}
	p := &purge{now: now.UnixMilli(), keep: keep}
	for looked := int64(0); ; {
		var page []old
		err := r.list(ctx, sqlPurgeable, []any{mark, maxPage}, func(r row) error {
			if o := oldOf(r); o.received+least <= p.now || o.received > p.now {
				page = append(page, o)
			}
			return nil
		})
		if err != nil {
			return would, fmt.Errorf("look for old events: %w", err)
		}
		if len(page) == 0 {
			return would, nil
		}
		mark = page[len(page)-1].seq
		if err := r.weighOld(ctx, p, page, &would); err != nil {
			return would, err
		}
		if looked += int64(len(page)); visit != nil {
			visit(looked)
		}
	}
}

func (r *Reader) weighOld(ctx context.Context, p *purge, page []old, would *Purged) error {
	return r.snapshot(ctx, func(s snapshot) error {
		for i := range page {
			o := &page[i]
			due, err := p.dueOf(s, o)
			switch {
			case err != nil:
				return err
			case due != 0:
				would.Kept++
			case o.carries:
				would.Events++
				would.Bytes += o.body + o.header + o.query
			}
		}
		return nil
	})
}
