package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"creel/event"
)

const (
	maxPage     = 500
	defaultPage = 50
	// pickPage bounds one read while a selection is frozen.
	pickPage = 20_000
)

// bounds are what a page means in SQL.
func bounds(p event.Page) (before int64, limit int) {
	before, limit = p.Before, p.Limit
	if before <= 0 {
		before = math.MaxInt64
	}
	if limit <= 0 {
		limit = defaultPage
	}
	return before, min(limit, maxPage)
}

// branch is one way to reach selected events: a FROM and WHERE clause that an
// index serves in the order of seq. The dead letters have two: dead events,
// and events with a dead delivery.
type branch struct {
	from, where string
	seq         string // the column that orders it
}

// branches gives the ways to reach what a selector's state asks for.
func branches(state event.State) []branch {
	const table = "event"
	switch state {
	case "":
		return []branch{{table, "1", "event.seq"}}
	case event.Done:
		return []branch{{table, "event.state = 'done'", "event.seq"}}
	}
	open := branch{table + " INDEXED BY event_open", "event.state <> 'done' AND event.state = " + literal(string(state)), "event.seq"}
	if state != event.Dead {
		return []branch{open}
	}
	return []branch{open, {
		"delivery INDEXED BY delivery_dead CROSS JOIN event ON event.seq = delivery.event",
		"delivery.state = 'dead' AND event.state <> 'dead'", "delivery.event",
	}}
}

// conditions are a selector's filters, less its keys and its state.
func conditions(s event.Selector) (where string, args []any) {
	var b strings.Builder
	add := func(condition string, arg any) {
		b.WriteString(" AND " + condition)
		args = append(args, arg)
	}
	if s.Source != "" {
		// The unique index would find them in the order of their ids.
		add("+event.source = ?", s.Source)
	}
	if s.Account != "" {
		add("event.account = ?", s.Account)
	}
	if s.Type != "" {
		add("event.type GLOB ?", glob(s.Type))
	}
	if s.Object != "" {
		add("event.object = ?", s.Object)
	}
	if s.Destination != "" {
		add("EXISTS (SELECT 1 FROM delivery AS d WHERE d.event = event.seq AND d.destination = ?)", s.Destination)
	}
	if s.Error != "" {
		b.WriteString(" AND (instr(event.error, ?) > 0 OR EXISTS (SELECT 1 FROM delivery AS d WHERE d.event = event.seq AND instr(d.error, ?) > 0))")
		args = append(args, s.Error, s.Error)
	}
	if !s.Since.IsZero() {
		add("event.received_at >= ?", s.Since.UnixMilli())
	}
	if !s.Until.IsZero() {
		add("event.received_at < ?", s.Until.UnixMilli())
	}
	return b.String(), args
}

// glob takes the brackets of SQLite's GLOB away: "*" and "?" alone are ours.
func glob(pattern string) string { return strings.ReplaceAll(pattern, "[", "[[]") }

// pick is one event of a frozen selection, with the run that it was in then:
// whatever started another one since took it first.
type pick struct {
	seq int64
	run int
}

// pick reads the events that a selector means now, in the order of receipt.
func (r *Reader) pick(ctx context.Context, s event.Selector) ([]pick, error) {
	if len(s.Keys) > 0 {
		events, err := r.byKeys(ctx, s)
		if err != nil {
			return nil, err
		}
		picks := make([]pick, len(events))
		for i, e := range events {
			picks[i] = pick{e.Seq, e.Run}
		}
		return ordered(picks), nil
	}
	var picks []pick
	where, args := conditions(s)
	for _, b := range branches(s.State) {
		query := "SELECT DISTINCT event.seq, event.run FROM " + b.from + " WHERE " + b.where + where +
			" AND " + b.seq + " > ? ORDER BY " + b.seq + " LIMIT ?"
		after := int64(0)
		for n := pickPage; n == pickPage; {
			n = 0
			err := r.list(ctx, query, append(slices.Clone(args), after, pickPage), func(r row) error {
				n++
				after = r.int64(0)
				picks = append(picks, pick{after, r.int(1)})
				return nil
			})
			if err != nil {
				return nil, fmt.Errorf("select events: %w", err)
			}
		}
	}
	return ordered(picks), nil
}

func ordered(picks []pick) []pick {
	slices.SortFunc(picks, func(a, b pick) int { return int(a.seq - b.seq) })
	return slices.CompactFunc(picks, func(a, b pick) bool { return a.seq == b.seq })
}

var errSelection = errors.New("the stored selection can not be read")

// freeze writes a selection as small numbers: the distances between its
// sequences, and the runs. A hundred thousand events take some 200 kB, in one
// row.
func freeze(picks []pick) []byte {
	out := make([]byte, 0, 2*len(picks)+8)
	last := int64(0)
	for _, p := range picks {
		out = binary.AppendUvarint(out, uint64(p.seq-last))
		out = binary.AppendUvarint(out, uint64(p.run))
		last = p.seq
	}
	return out
}

// thaw reads what freeze wrote.
func thaw(frozen []byte) ([]pick, error) {
	picks := make([]pick, 0, len(frozen)/2)
	last := int64(0)
	for len(frozen) > 0 {
		step, n := binary.Uvarint(frozen)
		if n <= 0 {
			return nil, errSelection
		}
		run, m := binary.Uvarint(frozen[n:])
		if m <= 0 {
			return nil, errSelection
		}
		last += int64(step)
		picks = append(picks, pick{last, int(run)})
		frozen = frozen[n+m:]
	}
	return picks, nil
}
