package store

import (
	"context"
	"math"
	"slices"
	"strings"

	"creel/event"
)

// span is a stretch of the inbox that a search has to walk through: the events
// from one sequence to another, both included.
type span struct{ from, to int64 }

// searchBounds are where one page of a search ends, though it is not full.
type searchBounds struct {
	zones      int // walked through: twenty thousand events take some tens of milliseconds
	dead       int // dead letters looked at, each with its row and its event
	deliveries int // looked at, each with its event
	groups     int // merged into one list; of more, a walk through all dead letters finds enough
	named      int // events with ids of one beginning that are put in order; of more, a walk finds enough
}

func usualSearch() searchBounds {
	return searchBounds{zones: 20, dead: 3000, deliveries: 5000, groups: 100, named: 2000}
}

const (
	// stretchZones bounds one read of a search that goes on to its end.
	stretchZones = 256

	sqlNewest = `SELECT ifnull(max(seq), 0) FROM event`
)

// sifter rules zones out for a selector.
type sifter struct {
	where string // on table zone; "" where nothing of it helps
	args  []any
	words [][]uint64 // a zone needs one word of each
}

// sifter tells what a selector says about zones.
func sifterOf(s event.Selector) sifter {
	var f sifter
	var b strings.Builder
	add := func(condition string, arg any) {
		b.WriteString(" AND " + condition)
		f.args = append(f.args, arg)
	}
	if s.Source != "" {
		add("zone.source = ?", s.Source)
	}
	if s.Type != "" {
		add("(zone.type = '"+manyTypes+"' OR zone.type GLOB ?)", glob(s.Type))
	}
	if !s.Since.IsZero() {
		add("zone.last_at >= ?", s.Since.UnixMilli())
	}
	if !s.Until.IsZero() {
		add("zone.first_at < ?", s.Until.UnixMilli())
	}
	f.where = b.String()
	if s.Object != "" {
		object, _ := event.Fold(s.Object)
		f.words = append(f.words, []uint64{wordOf("o", object)})
	}
	for _, m := range s.Index {
		f.words = append(f.words, []uint64{valueWord(m.Field, m.Value)})
	}
	return f
}

// helps tells whether zones can be ruled out at all.
func (f *sifter) helps() bool { return f.where != "" || len(f.words) > 0 }

func (f *sifter) query() (string, []any) {
	bits := "NULL"
	if len(f.words) > 0 {
		bits = "bits"
	}
	query := "SELECT zone, " + bits + " FROM zone_words WHERE zone < ?"
	args := f.args
	if f.where != "" {
		query += " AND EXISTS (SELECT 1 FROM zone WHERE zone.zone = zone_words.zone" + f.where + ")"
	}
	return query + " ORDER BY zone DESC", args
}

func (f *sifter) takes(bits []byte) bool {
	for _, any := range f.words {
		has := false
		for _, word := range any {
			has = has || mayHave(bits, word)
		}
		if !has {
			return false
		}
	}
	return true
}

// errEnough ends a read that has what it wanted.
type errEnough struct{}

func (errEnough) Error() string { return "enough" }

// spans finds up to most stretches below a sequence, newest first, that may
// hold what the selector means, and the sequence below which nothing was looked
// at; 0 where nothing is left.
func (r *Reader) spans(ctx context.Context, f sifter, before int64, most int) (list []span, rest int64, err error) {
	var newest, filed int64
	if err := r.row(ctx, sqlNewest, nil, &newest); err != nil {
		return nil, 0, err
	}
	before = min(before, newest+1)
	if before <= 1 {
		return nil, 0, nil
	}
	if err := r.row(ctx, sqlFiled, nil, &filed); err != nil {
		return nil, 0, err
	}
	top := zoneOf(before-1) + 1 // zones below it are asked for
	for zone := top - 1; zone >= filed; zone-- {
		if len(list) == most {
			return list, (zone+1)*zoneSize + 1, nil
		}
		list = addSpan(list, zone, before)
	}
	top = min(top, filed)
	query, args := f.query()
	err = r.list(ctx, query, append([]any{top}, args...), func(row row) error {
		if !f.takes(row.blob(1)) {
			return nil
		}
		if len(list) == most {
			rest = (row.int64(0)+1)*zoneSize + 1
			return errEnough{}
		}
		list = addSpan(list, row.int64(0), before)
		return nil
	})
	if err == (errEnough{}) {
		err = nil
	}
	return list, rest, err
}

// stretches are all that a selector may mean, oldest first, each short enough
// for one read.
func (r *Reader) stretches(ctx context.Context, s event.Selector) ([]span, error) {
	f := sifterOf(s)
	var list []span
	if f.helps() {
		all, _, err := r.spans(ctx, f, noBefore, math.MaxInt)
		if err != nil {
			return nil, err
		}
		list = joined(all)
	} else {
		var newest int64
		if err := r.row(ctx, sqlNewest, nil, &newest); err != nil {
			return nil, err
		}
		list = []span{{1, newest}}
	}
	var short []span
	for _, one := range slices.Backward(list) {
		for from := one.from; from <= one.to; from += stretchZones * zoneSize {
			short = append(short, span{from, min(from+stretchZones*zoneSize-1, one.to)})
		}
	}
	return short, nil
}

func addSpan(list []span, zone, before int64) []span {
	return append(list, span{zone*zoneSize + 1, min((zone+1)*zoneSize, before-1)})
}

// joined makes one stretch of those that touch.
func joined(list []span) []span {
	var out []span
	for _, s := range list {
		if n := len(out); n > 0 && out[n-1].from == s.to+1 {
			out[n-1].from = s.from
		} else {
			out = append(out, s)
		}
	}
	return out
}
