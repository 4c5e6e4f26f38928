package store

import (
	"context"
	"fmt"
	"slices"

	"creel/event"
)

const sqlByKey = `SELECT ` + eventColumns + ` FROM event WHERE event.source = ? AND event.account = ? AND event.id = ?`

// Events lists events that a selector means, newest first. State Dead means
// those that are dead or have a dead delivery. No body is read.
func (r *Reader) Events(ctx context.Context, s event.Selector, page event.Page) ([]event.Event, error) {
	before, limit := bounds(page)
	var list []event.Event
	var err error
	if len(s.Keys) > 0 {
		list, err = r.byKeys(ctx, s)
		list = slices.DeleteFunc(list, func(e event.Event) bool { return e.Seq >= before })
	} else {
		list, err = r.byState(ctx, s, before, limit)
	}
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	slices.SortFunc(list, func(a, b event.Event) int { return int(b.Seq - a.Seq) })
	return list[:min(limit, len(list))], nil
}

// byState reads one page from each way to the selected state.
func (r *Reader) byState(ctx context.Context, s event.Selector, before int64, limit int) ([]event.Event, error) {
	var list []event.Event
	where, args := conditions(s)
	for _, b := range branches(s.State) {
		query := "SELECT DISTINCT " + eventColumns + " FROM " + b.from + " WHERE " + b.where + where +
			" AND " + b.seq + " < ? ORDER BY " + b.seq + " DESC LIMIT ?"
		err := r.list(ctx, query, append(slices.Clone(args), before, limit), func(r row) error {
			list = append(list, eventOf(r))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// byKeys looks each key up; the other filters hold as well.
func (r *Reader) byKeys(ctx context.Context, s event.Selector) ([]event.Event, error) {
	var list []event.Event
	where, args := conditions(s)
	if s.State == event.Dead {
		where += ` AND (event.state = 'dead' OR EXISTS (SELECT 1 FROM delivery AS d WHERE d.event = event.seq AND d.state = 'dead'))`
	} else if s.State != "" {
		where += " AND event.state = " + literal(string(s.State))
	}
	seen := map[event.Key]bool{}
	for _, k := range s.Keys {
		if seen[k] {
			continue
		}
		seen[k] = true
		id, _ := event.Fold(k.ID)
		err := r.list(ctx, sqlByKey+where, append([]any{k.Source, k.Account, id}, args...), func(r row) error {
			list = append(list, eventOf(r))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
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
	if r.null(25) { // nothing was kept, or it is purged
		return work, nil
	}
	place.at = 0
	var err error
	work.Payload, err = place.cut(r.blob(25))
	return work, err
}
