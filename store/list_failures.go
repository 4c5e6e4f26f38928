package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"creel/event"
)

const (
	failureColumns = `id, kind, source, destination, status_class, text, first_at, last_at, dead`
	sqlFailureByID = `SELECT ` + failureColumns + ` FROM failure WHERE id = ?`
	sqlHoursOf     = `SELECT hour, n FROM failure_hour WHERE failure = ? AND hour > ? AND hour <= ? ORDER BY hour`
	sqlDeadCounts  = `SELECT kind, source, destination, sum(dead), max(last_at) FROM failure INDEXED BY failure_dead
		WHERE dead > 0 GROUP BY 1, 2, 3`
)

// FailureOrder is how groups of dead letters are listed.
type FailureOrder string

// The orders of groups: most dead letters first, or the one that failed last.
const (
	FailuresBySize FailureOrder = "dead"
	FailuresByLast FailureOrder = "last"
)

// FailureFilter narrows a list of groups. Empty fields take everything.
type FailureFilter struct {
	Kind                event.FailureKind
	Source, Destination string
	Text                string // part of the text of the group, or of an error
}

// FailureCursor is where a page of groups begins: behind a group as it stood
// then. The zero value begins at the first.
type FailureCursor struct {
	Rank int64 `json:"rank"` // its dead letters or its last time, by the order
	ID   int64 `json:"id"`
}

// FailurePage is a page of groups that have dead letters.
type FailurePage struct {
	Failures []event.Failure
	Next     FailureCursor // of the next page; the zero value where there is none
}

// Failures lists up to limit groups that have dead letters, at most 500, with
// how often each failed in the 24 hours up to now.
func (r *Reader) Failures(ctx context.Context, now time.Time, f FailureFilter, order FailureOrder, from FailureCursor, limit int) (FailurePage, error) {
	_, limit = bounds(event.Page{Limit: limit})
	query, args := failureQuery(f, order, from)
	var page FailurePage
	err := r.snapshot(ctx, func(s snapshot) error {
		page = FailurePage{}
		err := s.list(query, append(args, limit+1), func(r row) error {
			page.Failures = append(page.Failures, failureOf(r))
			return nil
		})
		if err != nil {
			return err
		}
		if len(page.Failures) > limit {
			page.Failures = page.Failures[:limit]
			page.Next = cursorOf(page.Failures[limit-1], order)
		}
		for i := range page.Failures {
			if err := s.hours(now, &page.Failures[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return FailurePage{}, fmt.Errorf("list failures: %w", err)
	}
	return page, nil
}

func cursorOf(f event.Failure, order FailureOrder) FailureCursor {
	if order == FailuresByLast {
		return FailureCursor{f.LastAt.UnixMilli(), f.ID}
	}
	return FailureCursor{int64(f.Dead), f.ID}
}

func failureQuery(f FailureFilter, order FailureOrder, from FailureCursor) (query string, args []any) {
	rank, index := "dead", "failure_dead"
	if order == FailuresByLast {
		rank, index = "last_at", "failure_last"
	}
	var b strings.Builder
	b.WriteString("SELECT " + failureColumns + " FROM failure INDEXED BY " + index + " WHERE dead > 0")
	add := func(condition string, values ...any) {
		b.WriteString(" AND " + condition)
		args = append(args, values...)
	}
	if from != (FailureCursor{}) {
		add("("+rank+", id) < (?, ?)", from.Rank, from.ID)
	}
	if f.Kind != "" {
		add("kind = ?", string(f.Kind))
	}
	if f.Source != "" {
		add("source = ?", f.Source)
	}
	if f.Destination != "" {
		add("destination = ?", f.Destination)
	}
	if f.Text != "" {
		add("(instr(text, ?) > 0 OR instr(text, ?) > 0)", f.Text, event.FailureText(f.Text))
	}
	b.WriteString(" ORDER BY " + rank + " DESC, id DESC LIMIT ?")
	return b.String(), args
}

// Failure reads one group, whether it has dead letters or not;
// event.ErrNotFound.
func (r *Reader) Failure(ctx context.Context, now time.Time, id int64) (event.Failure, error) {
	var f event.Failure
	err := r.snapshot(ctx, func(s snapshot) error {
		found := false
		err := s.list(sqlFailureByID, []any{id}, func(r row) error {
			f, found = failureOf(r), true
			return nil
		})
		if err == nil && !found {
			err = event.ErrNotFound
		}
		if err != nil {
			return err
		}
		return s.hours(now, &f)
	})
	if err != nil {
		return event.Failure{}, fmt.Errorf("read failure %d: %w", id, err)
	}
	return f, nil
}

func failureOf(r row) event.Failure {
	return event.Failure{
		ID: r.int64(0), Kind: event.FailureKind(r.text(1)), Source: r.text(2), Destination: r.text(3), StatusClass: r.int(4),
		Text: r.text(5), FirstAt: timeOf(r, 6), LastAt: timeOf(r, 7), Dead: r.int(8),
	}
}

// hours reads how often a group failed in each of the hours up to now, those
// without a failure too.
func (s snapshot) hours(now time.Time, f *event.Failure) error {
	last := now.UnixMilli() / hourMillis
	f.Hours = make([]event.HourCount, failureHours)
	for i := range f.Hours {
		f.Hours[i].Hour = time.UnixMilli((last - failureHours + 1 + int64(i)) * hourMillis).UTC()
	}
	return s.list(sqlHoursOf, []any{f.ID, last - failureHours, last}, func(r row) error {
		f.Hours[r.int64(0)-last+failureHours-1].N = r.int(1)
		return nil
	})
}

// DeadCount is how many dead letters there are of one kind.
type DeadCount struct {
	Kind                event.FailureKind
	Source, Destination string
	Dead                int64
	LastAt              time.Time
}

// DeadCounts counts the dead letters by kind, source and destination, from the
// counts of their groups.
func (r *Reader) DeadCounts(ctx context.Context) ([]DeadCount, error) {
	var list []DeadCount
	err := r.list(ctx, sqlDeadCounts, nil, func(r row) error {
		list = append(list, DeadCount{event.FailureKind(r.text(0)), r.text(1), r.text(2), r.int64(3), timeOf(r, 4)})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count dead letters: %w", err)
	}
	return list, nil
}
