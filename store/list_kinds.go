package store

import (
	"context"
	"fmt"
	"io"
	"time"

	"creel/event"
)

const (
	// The unique key of conflict has them in the order of their events.
	sqlConflicted = `SELECT ` + eventColumns + `, event.conflicts FROM event WHERE event.seq IN
		(SELECT DISTINCT event FROM conflict WHERE event < ? ORDER BY event DESC LIMIT ?) ORDER BY event.seq DESC`
	sqlDuplicated = `SELECT ` + eventColumns + ` FROM event INDEXED BY event_duplicate
		WHERE event.duplicate_at IS NOT NULL AND (event.duplicate_at, event.seq) < (?, ?)
		ORDER BY event.duplicate_at DESC, event.seq DESC LIMIT ?`
	sqlActionByID = `SELECT ` + actionColumns + ` FROM action WHERE id = ?`

	sqlPlaceOf  = `SELECT ` + locationColumns + ` FROM event WHERE seq = ?`
	sqlPieceOf  = `SELECT substr(data, ?2 + 1, ?3) FROM payload WHERE id = ?1`
	bodyPiece   = 4 << 20
	defaultHead = 64 << 10
)

// Conflicted is an event under whose key other bodies came.
type Conflicted struct {
	event.Event
	Conflicts int // how many
}

// Conflicts lists the events under whose key other bodies came, newest first.
// Page.Before is a sequence.
func (r *Reader) Conflicts(ctx context.Context, page event.Page) ([]Conflicted, error) {
	before, limit := bounds(page)
	var list []Conflicted
	err := r.list(ctx, sqlConflicted, []any{before, limit}, func(r row) error {
		list = append(list, Conflicted{eventOf(r), r.int(22)})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list conflicts: %w", err)
	}
	return list, nil
}

// Duplicates lists the events that came more than once, the one that came again
// last first, from behind an event that was listed before (the zero Event
// starts at the newest).
func (r *Reader) Duplicates(ctx context.Context, after event.Event, limit int) ([]event.Event, error) {
	at, limit := bounds(event.Page{Limit: limit})
	if after.Seq != 0 {
		at = after.DuplicateAt.UnixMilli()
	}
	var list []event.Event
	err := r.list(ctx, sqlDuplicated, []any{at, after.Seq, limit}, func(r row) error {
		list = append(list, eventOf(r))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list duplicates: %w", err)
	}
	return list, nil
}

// Action reads one action of the audit trail; event.ErrNotFound.
func (r *Reader) Action(ctx context.Context, id int64) (event.Action, error) {
	var a event.Action
	err := r.list(ctx, sqlActionByID, []any{id}, func(r row) error {
		a = actionOf(r)
		return nil
	})
	if err == nil && a.ID == 0 {
		err = event.ErrNotFound
	}
	if err != nil {
		return event.Action{}, fmt.Errorf("read action %d: %w", id, err)
	}
	return a, nil
}

// Head is the beginning of what an event carried.
type Head struct {
	event.Payload       // Body is no more than what was asked for
	Size          int64 // of the whole body, in bytes
	Kept          bool  // false where nothing was kept, or it is purged
}

// Head reads up to most bytes of an event's body (64 KiB where most is 0), with
// all of its header lines and its query; event.ErrNotFound.
func (r *Reader) Head(ctx context.Context, seq int64, most int) (Head, error) {
	if most <= 0 {
		most = defaultHead
	}
	var h Head
	err := r.snapshot(ctx, func(s snapshot) error {
		l, err := s.place(seq)
		if err != nil || l.payload == 0 {
			h = Head{Payload: event.Payload{Part: l.part}}
			return err
		}
		h = Head{Size: l.body, Kept: true, Payload: event.Payload{Part: l.part}}
		if h.Body, err = s.piece(l, l.at, min(l.body, int64(most))); err != nil {
			return err
		}
		rest, err := s.piece(l, l.at+l.body, l.header+l.query)
		if err == nil {
			h.Header, h.Query = string(rest[:l.header]), string(rest[l.header:])
		}
		return err
	})
	if err != nil {
		return Head{}, fmt.Errorf("read the head of event %d: %w", seq, err)
	}
	return h, nil
}

// WriteBody writes an event's body as it came, a few megabytes at a time, and
// tells how many bytes that were; event.ErrNotFound, also where nothing is
// kept. A body that is purged meanwhile is cut off with an error.
func (r *Reader) WriteBody(ctx context.Context, seq int64, w io.Writer) (int64, error) {
	var written int64
	for {
		var part []byte
		over := false
		err := r.snapshot(ctx, func(s snapshot) error {
			l, err := s.place(seq)
			if err == nil && l.payload == 0 {
				err = event.ErrNotFound
			}
			if err == nil {
				part, err = s.piece(l, l.at+written, min(l.body-written, bodyPiece))
				over = written+int64(len(part)) >= l.body
			}
			return err
		})
		if err == nil {
			var n int
			n, err = w.Write(part)
			written += int64(n)
		}
		if err != nil {
			return written, fmt.Errorf("read the body of event %d: %w", seq, err)
		}
		if over {
			return written, nil
		}
	}
}

func (s snapshot) place(seq int64) (l location, err error) {
	err = event.ErrNotFound
	failed := s.list(sqlPlaceOf, []any{seq}, func(r row) error {
		l, err = locationOf(r, 0), nil
		return nil
	})
	if failed != nil {
		err = failed
	}
	return l, err
}

// piece reads some bytes of a payload.
func (s snapshot) piece(l location, at, size int64) (data []byte, err error) {
	if size == 0 {
		return nil, nil
	}
	err = s.list(sqlPieceOf, []any{l.payload, at, size}, func(r row) error {
		data = r.blob(0)
		return nil
	})
	if err == nil && int64(len(data)) != size {
		err = fmt.Errorf("payload %d: %w", l.payload, errCut)
	}
	return data, err
}

// LastOf is when the newest event of a source was received; false where it has
// none.
func (r *Reader) LastOf(ctx context.Context, source string) (time.Time, bool, error) {
	found, err := r.Events(ctx, event.Selector{Source: source}, event.Page{Limit: 1})
	if err != nil || len(found) == 0 {
		return time.Time{}, false, err
	}
	return found[0].ReceivedAt, true, nil
}
