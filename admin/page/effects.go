package page

import (
	"errors"
	"net/http"
	"net/url"

	"creel/event"
)

// balancesView is what holders have.
type balancesView struct {
	Holder string
	List   []event.Balance
	Next   string
	First  string
}

func listBalances(q *request) {
	v := balancesView{Holder: q.given("holder")}
	after := event.Balance{Holder: q.given("after"), Unit: q.given("unit")}
	list, err := q.data().Balances(q.ctx, v.Holder, after, rows+1)
	if err != nil {
		q.failed(err)
		return
	}
	var more bool
	if v.List, more = cut(list); more {
		last := v.List[len(v.List)-1]
		v.Next = q.page.prefix + "/balances?" + url.Values{"holder": {v.Holder}, "after": {last.Holder}, "unit": {last.Unit}}.Encode()
	}
	if after.Holder != "" {
		v.First = q.page.prefix + "/balances?" + url.Values{"holder": {v.Holder}}.Encode()
	}
	q.render(http.StatusOK, "balances", layout{Title: "Balances", Here: "Balances", Content: v})
}

// objectView is what an object is, and how it came to that.
type objectView struct {
	Object  string
	Known   bool
	State   event.ObjectState
	History []event.Transition
	Events  []event.Event // of any source, of that object
	Out     map[int64]event.Outgoing
	Source  string
	Pager   pager
}

func showObject(q *request) {
	v := objectView{Object: q.given("object"), Source: q.given("source")}
	if v.Object == "" {
		q.render(http.StatusOK, "object", layout{Title: "Objects", Here: "Objects", Content: v})
		return
	}
	var err error
	v.State, err = q.data().ObjectState(q.ctx, v.Object)
	v.Known = err == nil
	if err != nil && !errors.Is(err, event.ErrNotFound) {
		q.failed(err)
		return
	}
	before, err := q.cursor()
	if err != nil {
		q.failed(err)
		return
	}
	history, err := q.data().ObjectHistory(q.ctx, v.Object, event.Page{Before: before, Limit: rows + 1})
	if err != nil && !errors.Is(err, event.ErrNotFound) {
		q.failed(err)
		return
	}
	var more bool
	v.History, more = cut(history)
	v.Pager = q.pagesBy(false, 0)
	if more {
		v.Pager = q.pagesBy(true, v.History[len(v.History)-1].ID)
	}
	same, err := q.data().Events(q.ctx, Ask{Selector: event.Selector{Source: v.Source, Object: v.Object}, Limit: rows})
	if err != nil {
		q.failed(err)
		return
	}
	v.Events = same.List
	var ok bool
	if v.Out, ok = q.outgoing(v.Events); !ok {
		return
	}
	q.render(http.StatusOK, "object", layout{Title: v.Object, Here: "Objects", Content: v})
}
