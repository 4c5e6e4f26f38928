package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"creel/event"
)

// DeadLetter is an event that is dead, or a delivery that is.
type DeadLetter struct {
	Event    event.Event
	Delivery *event.Delivery // nil where it is the event itself
	Failure  int64           // the group of those that failed alike
	At       time.Time       // when it died
}

// Error says why it is dead.
func (d *DeadLetter) Error() string {
	if d.Delivery != nil {
		return d.Delivery.Error
	}
	return d.Event.Error
}

// DeadPage is a page of dead letters.
type DeadPage struct {
	Letters []DeadLetter
	Next    string // where the next page begins; "" where nothing is left
	// Partial says that the page has fewer than asked for because a page looks
	// at no more than some twenty thousand: the search goes on at Next.
	Partial bool
}

// ErrBadCursor says that a text is not the beginning of a page.
var ErrBadCursor = errors.New("no page begins there")

const (
	sqlGroups = `SELECT id FROM failure INDEXED BY failure_dead WHERE dead > 0 AND kind = ?1
		AND (?2 = '' OR source = ?2) AND (?3 = '' OR destination = ?3) LIMIT ?4`
)

// DeadLetters lists dead events and dead deliveries together, at most limit (up
// to 500), the one that died last first. Where the selector names an event, an
// object or a value, those of the newest event come first.
func (r *Reader) DeadLetters(ctx context.Context, s event.Selector, cursor string, limit int) (DeadPage, error) {
	_, limit = bounds(event.Page{Limit: limit})
	if s.State != "" && s.State != event.Dead {
		return DeadPage{}, nil
	}
	s.State = event.Dead
	var page DeadPage
	var err error
	if len(s.Keys) > 0 || s.ID != "" || s.Word != "" || s.Object != "" || len(s.Index) > 0 {
		page, err = r.deadOfEvents(ctx, s, cursor, limit)
	} else {
		page, err = r.deadByTime(ctx, s, cursor, limit)
	}
	if err != nil {
		return DeadPage{}, fmt.Errorf("list dead letters: %w", err)
	}
	return page, nil
}

// deadOfEvents finds the events first, and lists what is dead of each.
func (r *Reader) deadOfEvents(ctx context.Context, s event.Selector, cursor string, limit int) (DeadPage, error) {
	var before int64
	if cursor != "" {
		var err error
		if before, err = strconv.ParseInt(strings.TrimPrefix(cursor, "e"), 10, 64); err != nil || cursor[0] != 'e' || before <= 0 {
			return DeadPage{}, fmt.Errorf("%q: %w", cursor, ErrBadCursor)
		}
	}
	found, err := r.EventPage(ctx, s, event.Page{Before: before, Limit: limit})
	if err != nil {
		return DeadPage{}, err
	}
	page := DeadPage{Partial: found.Partial}
	if found.Next != 0 {
		page.Next = "e" + strconv.FormatInt(found.Next, 10)
	}
	for _, e := range found.Events {
		for _, kind := range []deadKind{deadDeliveries, deadEvents} {
			d := kind.reach(s)
			if d == nil {
				continue
			}
			list, err := r.letters(ctx, kind, kind.columns()+" FROM "+kind.of()+" AND "+d.where, slices.Concat([]any{e.Seq}, d.args))
			if err != nil {
				return DeadPage{}, err
			}
			page.Letters = append(page.Letters, list...)
		}
	}
	return page, nil
}

// deadKind is one of the two tables that have dead letters.
type deadKind int

// Of two that died at one moment the delivery comes first.
const (
	deadDeliveries deadKind = iota
	deadEvents
)

func (k deadKind) table() string { return [...]string{"delivery", "event"}[k] }

func (k deadKind) id() string { return [...]string{"delivery.id", "event.seq"}[k] }

func (k deadKind) kind() event.FailureKind {
	return [...]event.FailureKind{event.FailedDelivery, event.FailedEvent}[k]
}

func (k deadKind) columns() string {
	return [...]string{
		"SELECT " + deliveryColumns + ", delivery.failure, " + eventColumns,
		"SELECT " + eventColumns + ", event.failure",
	}[k]
}

// of reads the dead letters of one event.
func (k deadKind) of() string {
	return [...]string{
		"delivery INDEXED BY delivery_dead" + ofItsEvent + " WHERE delivery.state = 'dead' AND delivery.event = ?",
		"event WHERE event.state = 'dead' AND event.seq = ?",
	}[k]
}

// all reads all dead letters in the order of their deaths, or those of a group.
func (k deadKind) all(group int64) (over, base string, args []any) {
	table := k.table()
	switch {
	case group != 0:
		return table + " INDEXED BY " + table + "_failure", table + ".failure IS NOT NULL AND " + table + ".failure = ?", []any{group}
	case k == deadEvents:
		return "event INDEXED BY event_died", "event.state = 'dead'", nil
	}
	return "delivery INDEXED BY delivery_died", "delivery.failure IS NOT NULL", nil
}

// reach is what a selector says about dead letters of a kind; nil where it
// means none.
func (k deadKind) reach(s event.Selector) *branch {
	if s.Kind != "" && s.Kind != k.kind() || k == deadEvents && s.Destination != "" {
		return nil
	}
	b := branch{where: "1", seq: "event.seq"}
	b.ofDeath(k.table(), s)
	if s.Destination != "" {
		b.and("+delivery.destination = ?", s.Destination)
	}
	b.conditions(s)
	return &b
}

// deathMark is the place of a dead letter in the order of deaths.
type deathMark struct {
	at   int64
	kind deadKind
	id   int64
}

// compare puts the latest first.
func (m deathMark) compare(o deathMark) int {
	return cmp.Or(cmp.Compare(o.at, m.at), cmp.Compare(m.kind, o.kind), cmp.Compare(o.id, m.id))
}

func (m deathMark) String() string {
	return fmt.Sprintf("%d%s%d", m.at, [...]string{"d", "e"}[m.kind], m.id)
}

func readMark(text string) (deathMark, error) {
	if text == "" {
		return deathMark{at: math.MaxInt64, id: math.MaxInt64}, nil
	}
	var m deathMark
	if i := strings.IndexAny(text, "de"); i > 0 {
		if text[i] == 'e' {
			m.kind = deadEvents
		}
		var at, id error
		m.at, at = strconv.ParseInt(text[:i], 10, 64)
		m.id, id = strconv.ParseInt(text[i+1:], 10, 64)
		if at == nil && id == nil && m.at >= 0 && m.id > 0 && m.String() == text {
			return m, nil
		}
	}
	return m, fmt.Errorf("%q: %w", text, ErrBadCursor)
}

// beyond is the least place of a kind that comes after a mark, as (finished_at,
// id) that lie below it.
func (m deathMark) beyond(k deadKind) (at, id int64) {
	switch {
	case k == m.kind:
		return m.at, m.id
	case k > m.kind:
		return m.at, math.MaxInt64
	}
	return m.at, math.MinInt64
}

func markOf(d *DeadLetter) deathMark {
	if d.Delivery != nil {
		return deathMark{d.At.UnixMilli(), deadDeliveries, d.Delivery.ID}
	}
	return deathMark{d.At.UnixMilli(), deadEvents, d.Event.Seq}
}

// deadByTime lists the dead letters of both kinds, each from the groups that can
// have what is meant.
func (r *Reader) deadByTime(ctx context.Context, s event.Selector, cursor string, limit int) (DeadPage, error) {
	from, err := readMark(cursor)
	if err != nil {
		return DeadPage{}, err
	}
	if s.Account == "" && s.Type == "" && s.Error == "" && s.Since.IsZero() && s.Until.IsZero() && s.DeadBy.IsZero() && s.Newest == 0 {
		return r.deadByGroup(ctx, s, from, limit)
	}
	return r.deadWalk(ctx, s, from, limit)
}

// deadWalk looks at the rows of dead letters, as far as one page does.
func (r *Reader) deadWalk(ctx context.Context, s event.Selector, from deathMark, limit int) (DeadPage, error) {
	var list []DeadLetter
	var floor *deathMark
	for _, kind := range []deadKind{deadDeliveries, deadEvents} {
		b := kind.reach(s)
		if b == nil {
			continue
		}
		groups, err := r.groups(ctx, kind, s)
		if err != nil {
			return DeadPage{}, err
		}
		for _, group := range groups {
			found, low, err := r.deadFrom(ctx, kind, group, b, s.Since, from, limit, max(r.search.dead/len(groups), 1))
			if err != nil {
				return DeadPage{}, err
			}
			list = append(list, found...)
			if low != nil && (floor == nil || low.compare(*floor) < 0) {
				floor = low
			}
		}
	}
	return deadPage(list, floor, limit), nil
}

// deadByGroup merges the dead letters of groups of which all are meant: it reads
// the indexes of their deaths, and the rows of one page alone.
func (r *Reader) deadByGroup(ctx context.Context, s event.Selector, from deathMark, limit int) (DeadPage, error) {
	var marks []deathMark
	for _, kind := range []deadKind{deadDeliveries, deadEvents} {
		if kind.reach(s) == nil {
			continue
		}
		groups, err := r.groups(ctx, kind, s)
		if err != nil {
			return DeadPage{}, err
		}
		for _, group := range groups {
			if group == 0 && (s.Source != "" || s.Destination != "") {
				return r.deadWalk(ctx, s, from, limit)
			}
			over, base, args := kind.all(group)
			at, id := from.beyond(kind)
			err := r.list(ctx, "SELECT "+kind.table()+".finished_at, "+kind.id()+" FROM "+over+" WHERE "+base+kind.below(),
				append(args, at, id, limit+1), func(r row) error {
					marks = append(marks, deathMark{r.int64(0), kind, r.int64(1)})
					return nil
				})
			if err != nil {
				return DeadPage{}, err
			}
		}
	}
	slices.SortFunc(marks, deathMark.compare)
	page := DeadPage{}
	for i, mark := range marks {
		if i == limit {
			page.Next = marks[i-1].String()
			break
		}
		found, err := r.letters(ctx, mark.kind, mark.kind.columns()+mark.kind.one(), []any{mark.id})
		if err != nil {
			return DeadPage{}, err
		}
		page.Letters = append(page.Letters, found...)
	}
	return page, nil
}

// below ends a query for the dead letters of a kind below a mark.
func (k deadKind) below() string {
	place := "(" + k.table() + ".finished_at, " + k.id() + ")"
	return " AND " + place + " < (?, ?) ORDER BY " + k.table() + ".finished_at DESC, " + k.id() + " DESC LIMIT ?"
}

// one reads a dead letter by its number, unless it is none any more.
func (k deadKind) one() string {
	return [...]string{
		" FROM delivery" + ofItsEvent + " WHERE delivery.state = 'dead' AND delivery.id = ?",
		" FROM event WHERE event.state = 'dead' AND event.seq = ?",
	}[k]
}

// deadPage puts a page in its order; below the floor not all was looked at.
func deadPage(list []DeadLetter, floor *deathMark, limit int) DeadPage {
	slices.SortFunc(list, func(a, b DeadLetter) int { return markOf(&a).compare(markOf(&b)) })
	if floor != nil {
		list = slices.DeleteFunc(list, func(d DeadLetter) bool { return markOf(&d).compare(*floor) > 0 })
	}
	switch {
	case len(list) > limit:
		return DeadPage{Letters: list[:limit], Next: markOf(&list[limit-1]).String()}
	case floor != nil:
		return DeadPage{Letters: list, Next: floor.String(), Partial: len(list) < limit}
	}
	return DeadPage{Letters: list}
}

// groups are the groups that a list is merged from; 0 is all dead letters.
func (r *Reader) groups(ctx context.Context, kind deadKind, s event.Selector) ([]int64, error) {
	switch {
	case s.Failure != 0:
		return []int64{s.Failure}, nil
	case s.Source == "" && s.Destination == "":
		return []int64{0}, nil
	}
	var list []int64
	err := r.list(ctx, sqlGroups, []any{string(kind.kind()), s.Source, s.Destination, r.search.groups + 1}, func(row row) error {
		list = append(list, row.int64(0))
		return nil
	})
	if len(list) > r.search.groups {
		list = []int64{0}
	}
	return list, err
}

// deadFrom reads one more than a page of a group's dead letters below a mark.
// Where it passes over rows it looks at no more than most, and says how far.
func (r *Reader) deadFrom(ctx context.Context, kind deadKind, group int64, b *branch, since time.Time, from deathMark, limit, most int) ([]DeadLetter, *deathMark, error) {
	over, base, args := kind.all(group)
	table := kind.table()
	at, id := from.beyond(kind)
	order := " ORDER BY " + table + ".finished_at DESC, " + kind.id() + " DESC LIMIT ?"
	base += " AND (" + table + ".finished_at, " + kind.id() + ") < (?, ?)"
	args = append(args, at, id)
	if !since.IsZero() { // nothing dies before it is received
		base, args = base+" AND "+table+".finished_at >= ?", append(args, since.UnixMilli())
	}
	var low *deathMark
	if b.filtered {
		err := r.list(ctx, "SELECT "+table+".finished_at, "+kind.id()+" FROM "+over+" WHERE "+base+order+" OFFSET ?",
			slices.Concat(args, []any{1, most}), func(r row) error {
				low = &deathMark{r.int64(0), kind, r.int64(1)}
				return nil
			})
		if err != nil {
			return nil, nil, err
		}
	}
	if low != nil {
		base, args = base+" AND ("+table+".finished_at, "+kind.id()+") >= (?, ?)", append(args, low.at, low.id)
	}
	if kind == deadDeliveries {
		over += ofItsEvent
	}
	list, err := r.letters(ctx, kind, kind.columns()+" FROM "+over+" WHERE "+base+" AND "+b.where+order, slices.Concat(args, b.args, []any{limit + 1}))
	if len(list) > limit {
		low = nil // the page ends before
	}
	return list, low, err
}

// letters reads rows of a kind's columns.
func (r *Reader) letters(ctx context.Context, kind deadKind, query string, args []any) (list []DeadLetter, err error) {
	err = r.list(ctx, query, args, func(r row) error {
		var d DeadLetter
		if kind == deadEvents {
			d.Event, d.Failure = eventOf(r), r.int64(22)
			d.At = d.Event.FinishedAt
		} else {
			sent := deliveryOf(r)
			d.Failure, d.Event = r.int64(16), eventOf(row{r.values[17:]})
			sent.Event = d.Event.Key
			sent.Key, sent.LongKey = showKey(sent.Key, sent.LongKey, sent.Event)
			d.Delivery, d.At = &sent, sent.FinishedAt
		}
		list = append(list, d)
		return nil
	})
	return list, err
}
