package store

import (
	"cmp"
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

const ofItsEvent = " CROSS JOIN event ON event.seq = delivery.event"

// branch is one way to reach selected events: a FROM and WHERE clause that an
// index serves in the order of seq. The dead letters have two: dead events,
// and events with a dead delivery.
type branch struct {
	from, where string
	over, base  string // the index alone, and what its rows have in common
	seq         string // the column that orders it
	args        []any  // of where
	filtered    bool   // it passes over rows that are not meant
}

// and narrows a branch.
func (b *branch) and(condition string, args ...any) {
	b.where += " AND " + condition
	b.args = append(b.args, args...)
	b.filtered = true
}

// reaching makes a branch over an index, with a join behind it where there is
// one.
func reaching(over, join, base, seq string) branch {
	return branch{from: over + join, where: base, over: over, base: base, seq: seq}
}

// loose is where a branch reads from when its row is known: by that.
func (b *branch) loose() string {
	table, _, join := strings.Cut(b.from, " CROSS JOIN ")
	if !join {
		return "event"
	}
	if table, _, _ = strings.Cut(table, " "); table == "delivery" {
		return "delivery INDEXED BY delivery_event CROSS JOIN event ON event.seq = delivery.event"
	}
	return b.from
}

// deadOnly tells whether a selector means dead letters alone.
func deadOnly(s event.Selector) bool { return s.State == event.Dead || s.Failure != 0 || s.Kind != "" }

// branches gives the ways to reach what a selector means, less its keys. Two of
// them may reach the same event.
func branches(s event.Selector) []branch {
	var list []branch
	switch {
	case deadOnly(s):
		list = deadBranches(s)
	case s.State == "":
		list = []branch{reaching("event", "", "1", "event.seq")}
	case s.State == event.Done:
		list = []branch{reaching("event", "", "event.state = 'done'", "event.seq")}
		list[0].filtered = true
	default:
		list = []branch{reaching("event INDEXED BY event_open", "", "event.state <> 'done' AND event.state = "+literal(string(s.State)), "event.seq")}
	}
	for i := range list {
		if !deadOnly(s) {
			list[i].ofDeliveries(s)
		}
		list[i].conditions(s)
	}
	return list
}

// deadBranches are the dead events, and the events of dead deliveries. What a
// selector says about the failure is said about the dead letter itself.
func deadBranches(s event.Selector) (list []branch) {
	if s.State != "" && s.State != event.Dead {
		return nil // of another state, and dead
	}
	if s.Destination == "" && s.Kind != event.FailedDelivery {
		b := reaching("event INDEXED BY event_open", "", "event.state <> 'done' AND event.state = 'dead'", "event.seq")
		b.ofDeath("event", s)
		list = append(list, b)
	}
	if s.Kind != event.FailedEvent {
		b := reaching("delivery INDEXED BY delivery_dead", ofItsEvent, "delivery.state = 'dead'", "delivery.event")
		b.ofDeath("delivery", s)
		if s.Destination != "" {
			b.and("delivery.destination = ?", s.Destination)
		}
		list = append(list, b)
	}
	return list
}

// ofDeath narrows a branch of dead letters by how and when they died.
func (b *branch) ofDeath(table string, s event.Selector) {
	if s.Failure != 0 {
		b.and("+"+table+".failure = ?", s.Failure)
	}
	if s.Error != "" {
		b.and("instr("+table+".error, ?) > 0", s.Error)
	}
	if !s.DeadBy.IsZero() {
		b.and("+"+table+".finished_at <= ?", s.DeadBy.UnixMilli())
	}
}

// openFor reaches the events with a delivery to a destination that is neither
// sent nor in flight.
func openFor(destination string) branch {
	b := reaching("delivery INDEXED BY delivery_open", ofItsEvent, "delivery.state <> 'sent'", "delivery.event")
	b.and("delivery.destination = ? AND delivery.state IN ('ready', 'waiting', 'in_doubt', 'dead')", destination)
	return b
}

// reach gives the ways to reach what an action selects.
func reach(a event.Action) []branch {
	if a.Kind != event.ActionDiscard || a.Target == "" {
		return branches(a.Selector)
	}
	if deadOnly(a.Selector) {
		s := a.Selector
		s.Destination = a.Target
		return branches(s)
	}
	b := openFor(a.Target)
	b.ofDeliveries(a.Selector)
	b.conditions(a.Selector)
	return []branch{b}
}

// ofDeliveries narrows a branch of events of any state by their deliveries.
func (b *branch) ofDeliveries(s event.Selector) {
	if s.Destination != "" {
		b.and("EXISTS (SELECT 1 FROM delivery AS d WHERE d.event = event.seq AND d.destination = ?)", s.Destination)
	}
	if s.Error != "" {
		b.and("(instr(event.error, ?) > 0 OR EXISTS (SELECT 1 FROM delivery AS d WHERE d.event = event.seq AND instr(d.error, ?) > 0))",
			s.Error, s.Error)
	}
}

// conditions narrows a branch by what a selector says about the event itself.
// A plus keeps SQLite from an index that has another order than the branch.
func (b *branch) conditions(s event.Selector) {
	if s.Source != "" {
		b.and("+event.source = ?", s.Source)
	}
	if s.Account != "" {
		b.and("+event.account = ?", s.Account)
	}
	if s.Type != "" {
		b.and("event.type GLOB ?", glob(s.Type))
	}
	if s.Object != "" {
		object, _ := event.Fold(s.Object)
		b.and("event.object = ?", object)
	}
	if s.ID != "" {
		id, _ := event.Fold(s.ID)
		b.and("+event.id >= ? AND +event.id < ?", id, behind(id))
	}
	if s.Word != "" {
		word, _ := event.Fold(s.Word)
		end := behind(word)
		b.and("(+event.id >= ? AND +event.id < ? OR event.object >= ? AND event.object < ?)", word, end, word, end)
	}
	for _, m := range s.Index {
		b.and("EXISTS (SELECT 1 FROM event_index AS x WHERE x.event = event.seq AND x.field = ? AND x.value = ?)", m.Field, m.Value)
	}
	if !s.Since.IsZero() {
		b.and("event.received_at >= ?", s.Since.UnixMilli())
	}
	if !s.Until.IsZero() {
		b.and("event.received_at < ?", s.Until.UnixMilli())
	}
	if s.Newest > 0 {
		b.and(b.seq+" <= ?", s.Newest)
	}
}

// behind is the least text behind all that begin with another.
func behind(start string) string {
	end := []byte(start)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < 0xff {
			end[i]++
			return string(end[:i+1])
		}
	}
	return "\xff\xff\xff\xff"
}

// glob takes the brackets of SQLite's GLOB away: "*" and "?" alone are ours.
func glob(pattern string) string { return strings.ReplaceAll(pattern, "[", "[[]") }

// pick is one event of a frozen selection, with the run that it was in then:
// whatever started another one since took it first.
type pick struct {
	seq int64
	run int
}

// candidate is a pick with what gives it its place.
type candidate struct {
	pick
	lane, rank string
}

// pick reads the events that an action means now, in the order of receipt but
// for those of one lane, which keep its order.
func (r *Reader) pick(ctx context.Context, a event.Action) ([]pick, error) {
	s := a.Selector
	if len(s.Keys) > 0 {
		events, err := r.byKeys(ctx, s)
		if err != nil {
			return nil, err
		}
		picks := make([]candidate, len(events))
		for i, e := range events {
			picks[i] = candidate{pick: pick{e.Seq, cmp.Or(s.Run, e.Run)}, lane: e.Lane}
			picks[i].rank, _ = event.Rank(e.Version)
		}
		return ordered(picks), nil
	}
	stretches, err := r.stretches(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("select events: %w", err)
	}
	var picks []candidate
	for _, b := range reach(a) {
		for _, stretch := range stretches {
			if picks, err = r.pickIn(ctx, b, stretch, picks); err != nil {
				return nil, fmt.Errorf("select events: %w", err)
			}
		}
	}
	return ordered(picks), nil
}

// pickIn reads what a branch reaches in a stretch of the inbox.
func (r *Reader) pickIn(ctx context.Context, b branch, in span, picks []candidate) ([]candidate, error) {
	query := "SELECT DISTINCT event.seq, event.run, event.lane, event.rank FROM " + b.from + " WHERE " + b.where +
		" AND " + b.seq + " > ? AND " + b.seq + " <= ? ORDER BY " + b.seq + " LIMIT ?"
	after := in.from - 1
	for n := pickPage; n == pickPage; {
		n = 0
		err := r.list(ctx, query, slices.Concat(b.args, []any{after, in.to, pickPage}), func(r row) error {
			n++
			after = r.int64(0)
			c := candidate{pick: pick{after, r.int(1)}}
			if c.lane = r.text(2); c.lane != "" {
				c.rank = r.text(3)
			}
			picks = append(picks, c)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return picks, nil
}

func ordered(all []candidate) []pick {
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(a.seq, b.seq) })
	all = slices.CompactFunc(all, func(a, b candidate) bool { return a.seq == b.seq })
	places := map[string][]int{}
	for i := range all {
		if lane := all[i].lane; lane != "" {
			places[lane] = append(places[lane], i)
		}
	}
	picks := make([]pick, len(all))
	for i := range all {
		picks[i] = all[i].pick
	}
	// The members of a lane share its places among them in their order.
	for _, own := range places {
		members := slices.Clone(own)
		slices.SortStableFunc(members, func(a, b int) int { return cmp.Compare(all[a].rank, all[b].rank) })
		for i, place := range own {
			picks[place] = all[members[i]].pick
		}
	}
	return picks
}

var errSelection = errors.New("the stored selection can not be read")

// freeze writes a selection as small numbers: the steps between its sequences,
// and the runs. A hundred thousand events take some 200 kB, in one
// row.
func freeze(picks []pick) []byte {
	out := make([]byte, 0, 2*len(picks)+8)
	last := int64(0)
	for _, p := range picks {
		out = binary.AppendVarint(out, p.seq-last)
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
		step, n := binary.Varint(frozen)
		if n <= 0 {
			return nil, errSelection
		}
		run, m := binary.Uvarint(frozen[n:])
		if m <= 0 {
			return nil, errSelection
		}
		last += step
		picks = append(picks, pick{last, int(run)})
		frozen = frozen[n+m:]
	}
	return picks, nil
}
