package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"creel/event"
)

const (
	sqlSeqOf = `SELECT seq FROM event WHERE source = ? AND account = ? AND id = ?`
	// The next source and account step over the unique index, one entry a pair.
	sqlNextSource   = `SELECT source, account FROM event WHERE source > ? ORDER BY source, account LIMIT 1`
	sqlFirstAccount = `SELECT source, account FROM event WHERE source = ? ORDER BY account LIMIT 1`
	sqlNextAccount  = `SELECT source, account FROM event WHERE source = ? AND account > ? ORDER BY account LIMIT 1`
	sqlIDsFrom      = `SELECT seq FROM event WHERE source = ? AND account = ? AND id >= ? AND id < ? LIMIT ?`
)

// maxAccounts is how many accounts ids are looked for in.
const maxAccounts = 4000

// Events lists events that a selector means, newest first. State Dead means
// those that are dead or have a dead delivery. No body is read. It searches to
// the end: where few of many events are meant, EventPage answers sooner.
func (r *Reader) Events(ctx context.Context, s event.Selector, page event.Page) ([]event.Event, error) {
	before, limit := bounds(page)
	var list []event.Event
	for {
		found, err := r.EventPage(ctx, s, event.Page{Before: before, Limit: limit - len(list)})
		if err != nil {
			return nil, err
		}
		list = append(list, found.Events...)
		if before = found.Next; before == 0 || len(list) == limit {
			return list, nil
		}
	}
}

// EventPage is one page of a search.
type EventPage struct {
	Events []event.Event
	Next   int64 // where the next page begins; 0 where nothing is left
	// Partial says that the page has fewer events than asked for because a page
	// looks at no more than some twenty thousand: the search goes on at Next.
	Partial bool
}

// EventPage lists events as Events does, and stops where a search becomes
// long.
func (r *Reader) EventPage(ctx context.Context, s event.Selector, page event.Page) (EventPage, error) {
	before, limit := bounds(page)
	found, err := r.eventPage(ctx, s, before, limit)
	if err != nil {
		return EventPage{}, fmt.Errorf("list events: %w", err)
	}
	return found, nil
}

func (r *Reader) eventPage(ctx context.Context, s event.Selector, before int64, limit int) (EventPage, error) {
	if len(s.Keys) > 0 {
		list, err := r.byKeys(ctx, s)
		list = slices.DeleteFunc(list, func(e event.Event) bool { return e.Seq >= before })
		return pageOf(list, limit, 0), err
	}
	w := walk{s: s, branches: branches(s), sifter: sifterOf(s), before: before, limit: limit}
	if start := cmp.Or(s.ID, s.Word); start != "" {
		seqs, all, err := r.idsFrom(ctx, s, start)
		if err != nil {
			return EventPage{}, err
		}
		if all && s.ID != "" {
			list, err := r.among(ctx, w.branches, seqs, before)
			return pageOf(list, limit, 0), err
		}
		if all {
			return r.word(ctx, w, seqs)
		}
	}
	list, rest, err := r.walk(ctx, w)
	return pageOf(list, limit, rest), err
}

// word finds the events with an id and those with an object that begin with a
// word: the ones by the unique key, the others by a walk.
func (r *Reader) word(ctx context.Context, w walk, ids []int64) (EventPage, error) {
	named, err := r.among(ctx, w.branches, ids, w.before)
	if err != nil {
		return EventPage{}, err
	}
	if word, is := startWord(w.s.Word); is {
		w.sifter.words = append(w.sifter.words, []uint64{word})
	}
	list, rest, err := r.walk(ctx, w)
	if err != nil {
		return EventPage{}, err
	}
	page := pageOf(list, w.limit, rest)
	// What is below it comes with the next page.
	named = slices.DeleteFunc(named, func(e event.Event) bool { return e.Seq < page.Next })
	return pageOf(append(page.Events, named...), w.limit, rest), nil
}

// pageOf puts a page in its order. rest is the sequence below which nothing was
// looked at, 0 where all was.
func pageOf(list []event.Event, limit int, rest int64) EventPage {
	slices.SortFunc(list, func(a, b event.Event) int { return cmp.Compare(b.Seq, a.Seq) })
	list = slices.CompactFunc(list, func(a, b event.Event) bool { return a.Seq == b.Seq })
	if len(list) >= limit {
		list = list[:limit]
		return EventPage{Events: list, Next: list[limit-1].Seq}
	}
	return EventPage{Events: list, Next: rest, Partial: rest > 0}
}

// walk is a search through the inbox, newest first.
type walk struct {
	s        event.Selector
	branches []branch
	sifter   sifter
	before   int64
	limit    int
}

// walk reads a page from each way to what is meant.
func (r *Reader) walk(ctx context.Context, w walk) (list []event.Event, rest int64, err error) {
	for _, b := range w.branches {
		found, left, err := r.walkBranch(ctx, w, b)
		if err != nil {
			return nil, 0, err
		}
		list, rest = append(list, found...), max(rest, left)
	}
	// Of one way more may have been looked at than of the other.
	return slices.DeleteFunc(list, func(e event.Event) bool { return e.Seq < rest }), rest, nil
}

func (r *Reader) walkBranch(ctx context.Context, w walk, b branch) (list []event.Event, rest int64, err error) {
	in := []span{{1, w.before - 1}}
	zones := r.zonesFor(w.s)
	if w.sifter.helps() {
		if in, rest, err = r.spans(ctx, w.sifter, w.before, zones); err != nil {
			return nil, 0, err
		}
		in = joined(in)
	} else if b.filtered {
		if rest, err = r.floor(ctx, b, w.before, int64(zones)*zoneSize); err != nil {
			return nil, 0, err
		}
		in[0].from = max(rest, 1)
	}
	query := "SELECT DISTINCT " + eventColumns + " FROM " + b.from + " WHERE " + b.where + " AND " + b.seq + " >= ? AND " +
		b.seq + " <= ? ORDER BY " + b.seq + " DESC LIMIT ?"
	for _, one := range in {
		err := r.list(ctx, query, slices.Concat(b.args, []any{one.from, one.to, w.limit - len(list)}), func(r row) error {
			list = append(list, eventOf(r))
			return nil
		})
		if err != nil {
			return nil, 0, err
		}
		if len(list) == w.limit {
			return list, 0, nil
		}
	}
	return list, rest, nil
}

// zonesFor is how many zones one page walks through. To look at the deliveries
// of each event costs several times as much as to look at the event.
func (r *Reader) zonesFor(s event.Selector) int {
	if !deadOnly(s) && (s.Error != "" || s.Destination != "") {
		return max(r.search.zones/5, 1)
	}
	return r.search.zones
}

// floor is how far down a page looks on a branch that passes over rows, of
// which it takes no more than most; 0 is to the end.
func (r *Reader) floor(ctx context.Context, b branch, before, most int64) (int64, error) {
	if b.from == "event" {
		var newest int64
		if err := r.row(ctx, sqlNewest, nil, &newest); err != nil {
			return 0, err
		}
		return max(min(before, newest+1)-most, 0), nil
	}
	var floor int64
	_, err := none(r.row(ctx, "SELECT "+b.seq+" FROM "+b.over+" WHERE "+b.base+" AND "+b.seq+" < ? ORDER BY "+b.seq+" DESC LIMIT 1 OFFSET ?",
		[]any{before, most}, &floor))
	return floor, err
}

// byKeys looks each key up; the other filters hold as well.
func (r *Reader) byKeys(ctx context.Context, s event.Selector) ([]event.Event, error) {
	var seqs []int64
	for _, k := range s.Keys {
		id, _ := event.Fold(k.ID)
		err := r.list(ctx, sqlSeqOf, []any{k.Source, k.Account, id}, func(r row) error {
			seqs = append(seqs, r.int64(0))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return r.among(ctx, branches(s), seqs, noBefore)
}

// Find reads one event without what it carried; event.ErrNotFound.
func (r *Reader) Find(ctx context.Context, key event.Key) (event.Event, error) {
	list, err := r.byKeys(ctx, event.Selector{Keys: []event.Key{key}})
	if err == nil && len(list) == 0 {
		err = event.ErrNotFound
	}
	if err != nil {
		return event.Event{}, fmt.Errorf("find event %s: %w", key, err)
	}
	return list[0], nil
}

// One event is read with its own bytes, not with all of its parcel.
const sqlWork = `SELECT ` + workColumns + `,
	substr(payload.data, event.body_at + 1, event.body_size + event.header_size + event.query_size)
	FROM event LEFT JOIN payload ON payload.id = event.payload WHERE event.seq = ?`

// Work reads an event with what it carried, as a rule sees it;
// event.ErrNotFound.
func (r *Reader) Work(ctx context.Context, seq int64) (event.Work, error) {
	var work event.Work
	found := false
	err := r.list(ctx, sqlWork, []any{seq}, func(r row) (err error) {
		found = true
		work, err = carriedWork(r)
		return err
	})
	if err == nil && !found {
		err = event.ErrNotFound
	}
	if err != nil {
		return event.Work{}, fmt.Errorf("read event %d: %w", seq, err)
	}
	return work, nil
}

// carriedWork reads a row of sqlWork.
func carriedWork(r row) (event.Work, error) {
	work, place := workOf(r)
	if r.null(29) { // nothing was kept, or it is purged
		return work, nil
	}
	place.at = 0
	var err error
	work.Payload, err = place.cut(r.blob(29))
	return work, err
}

// among reads those of some events that branches mean.
func (r *Reader) among(ctx context.Context, branches []branch, seqs []int64, before int64) ([]event.Event, error) {
	var list []event.Event
	seen := map[int64]bool{}
	for _, b := range branches {
		query := "SELECT " + eventColumns + " FROM " + b.loose() + " WHERE " + b.where + " AND " + b.seq + " = ? LIMIT 1"
		for _, seq := range seqs {
			if seq >= before || seen[seq] {
				continue
			}
			err := r.list(ctx, query, slices.Concat(b.args, []any{seq}), func(r row) error {
				list, seen[seq] = append(list, eventOf(r)), true
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// idsFrom finds the events whose id begins with a text, and tells whether those
// are all.
func (r *Reader) idsFrom(ctx context.Context, s event.Selector, start string) (seqs []int64, all bool, err error) {
	id, _ := event.Fold(start)
	end := behind(id)
	inbox := accountAt{source: s.Source}
	for range maxAccounts {
		if inbox, err = r.nextAccount(ctx, inbox, s.Source != ""); err != nil {
			return nil, false, err
		}
		if !inbox.found {
			return seqs, true, nil
		}
		err = r.list(ctx, sqlIDsFrom, []any{inbox.source, inbox.account, id, end, r.search.named + 1 - len(seqs)}, func(r row) error {
			seqs = append(seqs, r.int64(0))
			return nil
		})
		if err != nil || len(seqs) > r.search.named {
			return nil, false, err
		}
	}
	return nil, false, nil
}

// WithID finds up to most events whose id is exactly that, by the unique key,
// and tells whether every account was looked at.
func (r *Reader) WithID(ctx context.Context, id string, most int) (keys []event.Key, all bool, err error) {
	stored, _ := event.Fold(id)
	var inbox accountAt
	for range maxAccounts {
		if inbox, err = r.nextAccount(ctx, inbox, false); err != nil {
			return nil, false, fmt.Errorf("find the events with an id: %w", err)
		}
		if !inbox.found {
			return keys, true, nil
		}
		err = r.list(ctx, sqlSeqOf, []any{inbox.source, inbox.account, stored}, func(row) error {
			keys = append(keys, event.Key{Source: inbox.source, Account: inbox.account, ID: id})
			return nil
		})
		if err != nil {
			return nil, false, fmt.Errorf("find the events with an id: %w", err)
		}
		if len(keys) == most {
			return keys, false, nil
		}
	}
	return keys, false, nil
}

// accountAt is a source and account that has events.
type accountAt struct {
	source, account string
	found           bool
}

// nextAccount steps to the next source and account, of one source alone where
// that is asked for.
func (r *Reader) nextAccount(ctx context.Context, h accountAt, one bool) (next accountAt, err error) {
	take := func(r row) error {
		next = accountAt{r.text(0), r.text(1), true}
		return nil
	}
	switch {
	case !h.found && one:
		err = r.list(ctx, sqlFirstAccount, []any{h.source}, take)
	case !h.found:
		err = r.list(ctx, sqlNextSource, []any{""}, take)
	default:
		err = r.list(ctx, sqlNextAccount, []any{h.source, h.account}, take)
		if err == nil && !next.found && !one {
			err = r.list(ctx, sqlNextSource, []any{h.source}, take)
		}
	}
	return next, err
}
