package api

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"creel/admin"
	"creel/admin/page"
	"creel/event"
)

// same gives an element as it is.
func same[T any](one T) T { return one }

// lines writes each element of a list.
func lines[E, L any](all []E, line func(E) L) []L {
	out := make([]L, len(all))
	for i, one := range all {
		out[i] = line(one)
	}
	return out
}

// whole is a list without pages: the configuration bounds it.
func whole[E, L any](all []E, err error, line func(E) L) (any, error) {
	return list[L]{Items: lines(all, line)}, err
}

// cut makes a page of a list of which one row more was asked for: the cursor of
// the next page is that of the last row shown.
func cut[E, L any](all []E, limit int, line func(E) L, cursor func(E) string) list[L] {
	more := len(all) > limit
	all = all[:min(len(all), limit)]
	out := list[L]{Items: lines(all, line)}
	if more {
		out.Next = cursor(all[limit-1])
	}
	return out
}

// numbered is a page of a list that goes by numbers.
func numbered[E, L any](c *call, read func(event.Page) ([]E, error), id func(E) int64, line func(E) L) (any, error) {
	at, err := c.page()
	if err != nil {
		return nil, err
	}
	limit := at.Limit
	at.Limit++ // one more tells whether there is more
	all, err := read(at)
	if err != nil && !errors.Is(err, event.ErrNotFound) {
		return nil, err
	}
	return cut(all, limit, line, func(one E) string { return strconv.FormatInt(id(one), 10) }), nil
}

// ask reads what a search is narrowed by and where it goes on.
func (c *call) ask() (page.Ask, error) {
	selector, err := c.selector()
	if err != nil {
		return page.Ask{}, err
	}
	limit, err := c.limit()
	return page.Ask{Selector: selector, Cursor: c.given("cursor"), Limit: limit, NoHead: true}, err
}

func events(c *call) (any, error) {
	ask, err := c.ask()
	if err != nil {
		return nil, err
	}
	if _, err := c.cursor(); err != nil {
		return nil, err
	}
	return c.eventsFrom(c.ctx, ask)
}

// eventsFrom is a page of a search for events.
func (c *call) eventsFrom(ctx context.Context, ask page.Ask) (list[admin.EventLine], error) {
	found, err := c.data().Events(ctx, ask)
	out := list[admin.EventLine]{Items: lines(found.List, admin.LineOf), Partial: found.Partial}
	if found.Next > 0 {
		out.Next = strconv.FormatInt(found.Next, 10)
	}
	return out, err
}

// paged tells a cursor that no list wrote from what is not there.
func paged(ask page.Ask, err error) error {
	if errors.Is(err, event.ErrNotFound) && ask.Cursor != "" {
		return errCursor(ask.Cursor)
	}
	return err
}

func deadLetters(c *call) (any, error) {
	ask, err := c.ask()
	if err != nil {
		return nil, err
	}
	if err := onlyDead(&ask.Selector); err != nil {
		return nil, err
	}
	return c.lettersFrom(c.ctx, ask)
}

// onlyDead narrows a search to dead letters.
func onlyDead(s *event.Selector) error {
	if s.State != "" && s.State != event.Dead {
		return invalid("leave the state out", "dead letters are dead, and not %s", s.State)
	}
	s.State = event.Dead
	return nil
}

// lettersFrom is a page of a search for dead letters.
func (c *call) lettersFrom(ctx context.Context, ask page.Ask) (list[letterLine], error) {
	found, err := c.data().Letters(ctx, ask)
	return list[letterLine]{Next: found.Next, Partial: found.Partial, Items: lines(found.List, func(l page.Letter) letterLine {
		line := letterLine{Event: admin.LineOf(l.Event)}
		if l.Delivery.ID != 0 {
			delivery := admin.LineOfDelivery(l.Delivery)
			line.Delivery = &delivery
		}
		return line
	})}, paged(ask, err)
}

func failures(c *call) (any, error) {
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	kind := event.FailureKind(c.given("kind"))
	if kind != "" && kind != event.FailedEvent && kind != event.FailedDelivery {
		return nil, invalid(fmt.Sprintf("%s or %s", event.FailedEvent, event.FailedDelivery), "%q is no kind of a failure", kind)
	}
	ask := page.Ask{Cursor: c.given("cursor"), Limit: limit, Selector: event.Selector{Kind: kind,
		Source: c.given("source"), Destination: c.given("destination"), Error: c.given("error")}}
	found, err := c.data().Failures(c.ctx, ask)
	return list[event.Failure]{Items: lines(found.List, same), Next: found.Next}, paged(ask, err)
}

func deliveries(c *call) (any, error) {
	f := page.DeliveryFilter{Source: c.given("source"), Destination: c.given("destination"), Key: c.given("key"),
		State: event.DeliveryState(c.given("state")), Error: c.given("error")}
	if f.State != "" && !slices.Contains(event.DeliveryStates(), f.State) {
		return nil, invalid("one of "+strings.Join(texts(event.DeliveryStates()), ", "), "%q is no state of a delivery", f.State)
	}
	if text := c.given("event"); text != "" {
		key, err := event.ParseKey(text)
		if err != nil {
			return nil, err
		}
		f.Event = &key
	}
	at, err := c.page()
	if err != nil {
		return nil, err
	}
	found, err := c.data().Deliveries(c.ctx, f, at)
	if err != nil && !errors.Is(err, event.ErrNotFound) {
		return nil, err
	}
	out := list[admin.DeliveryLine]{Items: lines(found.List, admin.LineOfDelivery), Partial: found.Partial}
	if found.Next > 0 {
		out.Next = strconv.FormatInt(found.Next, 10)
	}
	return out, nil
}

func texts[T ~string](all []T) []string { return lines(all, func(one T) string { return string(one) }) }

func duplicates(c *call) (any, error) {
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	after := c.given("cursor")
	all, err := c.data().Duplicates(c.ctx, after, limit+1)
	if err != nil {
		return nil, paged(page.Ask{Cursor: after}, err)
	}
	return cut(all, limit, admin.LineOf, func(e event.Event) string { return e.Key.String() }), nil
}

func conflicts(c *call) (any, error) {
	return numbered(c, func(p event.Page) ([]page.Conflicted, error) { return c.data().Conflicts(c.ctx, p) },
		func(e page.Conflicted) int64 { return e.Seq },
		func(e page.Conflicted) conflictLine { return conflictLine{admin.LineOf(e.Event), e.Conflicts} })
}

// lanes is by lanes, of which one may have several rows: at more than one
// destination.
func lanes(c *call) (any, error) {
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	all, err := c.data().Lanes(c.ctx, c.given("cursor"), limit)
	return list[admin.LaneLine]{Items: lines(all, admin.LineOfLane), Next: admin.LanesNext(all, limit)}, err
}

func incidents(c *call) (any, error) {
	all := c.given("all")
	if all != "" && all != "true" && all != "false" {
		return nil, invalid("all is true or false", "all %q is neither", all)
	}
	return numbered(c, func(p event.Page) ([]event.OpenIncident, error) { return c.data().Incidents(c.ctx, all != "true", p) },
		func(i event.OpenIncident) int64 { return i.ID }, same)
}

func records(c *call) (any, error) {
	return numbered(c, func(p event.Page) ([]event.KeptRecord, error) {
		return c.data().Records(c.ctx, c.given("kind"), c.given("key"), p)
	}, func(r event.KeptRecord) int64 { return r.ID }, admin.LineOfRecord)
}

func ledger(c *call) (any, error) {
	if (c.given("holder") == "") != (c.given("unit") == "") {
		return nil, invalid("give both or neither", "the ledger is of one holder and one unit")
	}
	return numbered(c, func(p event.Page) ([]event.Entry, error) {
		return c.data().Ledger(c.ctx, c.given("holder"), c.given("unit"), p)
	}, func(n event.Entry) int64 { return n.ID }, admin.LineOfEntry)
}

// balances goes by holder and unit, which the cursor has in one.
func balances(c *call) (any, error) {
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	var after event.Balance
	if text := c.given("cursor"); text != "" {
		both, err := base64.RawURLEncoding.DecodeString(text)
		holder, unit, ok := strings.Cut(string(both), "\x00")
		if err != nil || !ok {
			return nil, errCursor(text)
		}
		after = event.Balance{Holder: holder, Unit: unit}
	}
	all, err := c.data().Balances(c.ctx, c.given("holder"), after, limit+1)
	if err != nil {
		return nil, err
	}
	return cut(all, limit, admin.LineOfBalance, func(b event.Balance) string {
		return base64.RawURLEncoding.EncodeToString([]byte(b.Holder + "\x00" + b.Unit))
	}), nil
}

func history(c *call) (any, error) {
	object, err := c.needed("object")
	if err != nil {
		return nil, err
	}
	return numbered(c, func(p event.Page) ([]event.Transition, error) { return c.data().ObjectHistory(c.ctx, object, p) },
		func(n event.Transition) int64 { return n.ID }, admin.LineOfTransition)
}

func actions(c *call) (any, error) {
	return numbered(c, func(p event.Page) ([]event.Action, error) { return c.data().Actions(c.ctx, p) },
		func(a event.Action) int64 { return a.ID }, same)
}

// actionItems goes by their places in the selection.
func actionItems(c *call) (any, error) {
	id, err := c.id()
	if err != nil {
		return nil, err
	}
	at, err := c.page()
	if err != nil {
		return nil, err
	}
	if _, err := c.data().Action(c.ctx, id); err != nil {
		return nil, err
	}
	all, err := c.data().ActionItems(c.ctx, id, int(at.Before))
	if err != nil {
		return nil, err
	}
	return cut(all, at.Limit, same, func(event.ActionItem) string { return strconv.FormatInt(at.Before+int64(at.Limit), 10) }), nil
}

func rejects(c *call) (any, error) {
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	all, err := c.data().Rejects(c.ctx, admin.RejectFilter{Source: c.given("source"), Cause: c.given("cause"), Limit: limit})
	return whole(all, err, same)
}
