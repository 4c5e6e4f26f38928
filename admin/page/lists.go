package page

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"creel/admin"
	"creel/event"
)

// listed is a list with its pager and whatever it was narrowed by.
type listed[T any] struct {
	List  []T
	Pager pager
	Given map[string]string
	Out   map[int64]event.Outgoing
}

// showList reads a page of a list that goes by numbers and shows it.
func showList[T any](q *request, template string, l layout, read func(event.Page) ([]T, error), id func(T) int64, given ...string) {
	v := listed[T]{Given: map[string]string{}}
	for _, name := range given {
		v.Given[name] = q.given(name)
	}
	before, err := q.cursor()
	if err != nil {
		q.failed(err)
		return
	}
	list, err := read(event.Page{Before: before, Limit: rows + 1})
	if err != nil && !errors.Is(err, event.ErrNotFound) {
		q.failed(err)
		return
	}
	var more bool
	v.List, more = cut(list)
	v.Pager = q.pagesBy(false, 0)
	if more {
		v.Pager = q.pagesBy(true, id(v.List[len(v.List)-1]))
	}
	var events []event.Event
	for i := range v.List {
		if one, is := any(v.List[i]).(Conflicted); is {
			events = append(events, one.Event)
		}
	}
	var ok bool
	if v.Out, ok = q.outgoing(events); !ok {
		return
	}
	l.Content = v
	q.render(http.StatusOK, template, l)
}

func listConflicts(q *request) {
	showList(q, "conflicts", layout{Title: "Conflicts", Here: "Conflicts"}, func(p event.Page) ([]Conflicted, error) {
		return q.data().Conflicts(q.ctx, p)
	}, func(e Conflicted) int64 { return e.Seq })
}

func listDuplicates(q *request) {
	list, err := q.data().Duplicates(q.ctx, q.given("after"), rows+1)
	if err != nil {
		q.failed(err)
		return
	}
	v := listed[event.Event]{Pager: q.pages("after", "")}
	var more bool
	if v.List, more = cut(list); more {
		v.Pager = q.pages("after", v.List[len(v.List)-1].Key.String())
	}
	var ok bool
	if v.Out, ok = q.outgoing(v.List); !ok {
		return
	}
	q.render(http.StatusOK, "duplicates", layout{Title: "Duplicates", Here: "Duplicates", Content: v})
}

func listRecords(q *request) {
	showList(q, "records", layout{Title: "Records", Here: "Records"}, func(p event.Page) ([]event.KeptRecord, error) {
		return q.data().Records(q.ctx, q.given("kind"), q.given("key"), p)
	}, func(r event.KeptRecord) int64 { return r.ID }, "kind", "key")
}

func showLedger(q *request) {
	showList(q, "ledger", layout{Title: "Ledger", Here: "Balances"}, func(p event.Page) ([]event.Entry, error) {
		return q.data().Ledger(q.ctx, q.given("holder"), q.given("unit"), p)
	}, func(e event.Entry) int64 { return e.ID }, "holder", "unit")
}

func listActions(q *request) {
	showList(q, "audit", layout{Title: "Audit", Here: "Audit", Live: q.given("after") == ""}, func(p event.Page) ([]event.Action, error) {
		return q.data().Actions(q.ctx, p)
	}, func(a event.Action) int64 { return a.ID })
}

func listAlerts(q *request) {
	all := q.given("all") != ""
	showList(q, "alerts", layout{Title: "Alerts", Here: "Alerts", Live: true}, func(p event.Page) ([]event.OpenIncident, error) {
		return q.data().Incidents(q.ctx, !all, p)
	}, func(i event.OpenIncident) int64 { return i.ID }, "all")
}

// showAlert is where the link of an alert leads.
func showAlert(q *request) {
	id := number(q.params.ByName("id"))
	for _, openOnly := range []bool{true, false} {
		list, err := q.data().Incidents(q.ctx, openOnly, event.Page{Before: id + 1, Limit: 500})
		if err != nil {
			q.failed(err)
			return
		}
		if i := slices.IndexFunc(list, func(i event.OpenIncident) bool { return i.ID == id }); i >= 0 {
			q.render(http.StatusOK, "alert", layout{Title: fmt.Sprintf("Alert %d", id), Here: "Alerts", Live: true, Content: &list[i]})
			return
		}
	}
	q.failed(event.ErrNotFound)
}

// acknowledge says that somebody sees to an incident.
func acknowledge(q *request) {
	target := q.form("incident")
	if target != event.AllIncidents && number(target) == 0 {
		q.fail(http.StatusBadRequest, "The form names no incident.")
		return
	}
	done, err := q.act(event.Action{Kind: event.ActionAck, Target: target, Reason: q.typed("reason")})
	if err != nil {
		q.failed(err)
		return
	}
	q.back("/alerts", fmt.Sprintf("Acknowledged: no alert of it goes out any more. It stands as number %d in the audit trail.", done.ID))
}

// actionView is one action with the keys that it touched.
type actionView struct {
	Action event.Action
	Which  string // the selection
	Items  []event.ActionItem
	Pager  pager
	Left   int
}

func showAction(q *request) {
	id := number(q.params.ByName("id"))
	action, err := q.data().Action(q.ctx, id)
	if err != nil {
		q.failed(err)
		return
	}
	after, err := q.cursor()
	if err != nil {
		q.failed(err)
		return
	}
	items, err := q.data().ActionItems(q.ctx, id, int(after))
	if err != nil {
		q.failed(err)
		return
	}
	v := actionView{Action: action, Which: admin.Selection(action.Selector), Items: items, Left: action.Selected - action.Done - action.Refused, Pager: q.pages("after", "")}
	if len(items) > rows {
		v.Items = items[:rows]
		v.Pager = q.pagesBy(true, after+rows)
	}
	q.render(http.StatusOK, "action", layout{Title: fmt.Sprintf("Action %d", id), Here: "Audit", Live: v.Left > 0, Content: v})
}

// lanesView is the lanes whose head waits for a person.
type lanesView struct {
	Lane  string // the one that is shown; "" where all are
	List  []event.ParkedLane
	Pager pager
}

func listLanes(q *request) {
	v := lanesView{Lane: q.r.URL.Query().Get("lane"), Pager: q.pages("after", "")} // blanks belong to a name
	var list []event.ParkedLane
	var err error
	if v.Lane != "" {
		list, err = q.data().Lane(q.ctx, v.Lane)
	} else {
		list, err = q.data().Lanes(q.ctx, q.given("after"), rows)
	}
	if err != nil {
		q.failed(err)
		return
	}
	if v.List = list; v.Lane != "" {
		q.render(http.StatusOK, "lanes", layout{Title: "Parked lane", Here: "Parked lanes", Live: true, Content: v})
		return
	}
	if next := admin.LanesNext(list, rows); next != "" {
		v.Pager = q.pages("after", next)
	}
	q.render(http.StatusOK, "lanes", layout{Title: "Parked lanes", Here: "Parked lanes", Live: true, Content: v})
}

// skipLane lets those behind a dead head pass.
func skipLane(q *request) {
	key, err := event.ParseKey(q.form("key"))
	if err != nil {
		q.fail(http.StatusBadRequest, "The form names no event.")
		return
	}
	lane, err := url.PathUnescape(q.form("lane")) // a form would turn the line breaks of a name
	if err != nil {
		q.fail(http.StatusBadRequest, "The form names no lane.")
		return
	}
	done, err := q.act(event.Action{Kind: event.ActionLaneSkip, Target: lane, Reason: q.typed("reason"),
		Selector: event.Selector{Keys: []event.Key{key}}})
	if err != nil {
		q.failed(err)
		return
	}
	q.back("/lanes", fmt.Sprintf("Skipped: those behind %s go on, and it stays dead. It stands as number %d in the audit trail.", key, done.ID))
}

func listTokens(q *request) {
	list, err := q.data().Tokens(q.ctx)
	if err != nil {
		q.failed(err)
		return
	}
	q.render(http.StatusOK, "tokens", layout{Title: "API tokens", Here: "API tokens", Content: tokensView{List: list}})
}

// tokensView is the tokens, and the text of a new one.
type tokensView struct {
	List   []event.Token
	Secret string // shown once
	Made   event.Token
}

// createToken shows the text of a new token in the answer itself: it is nowhere
// else.
func createToken(q *request) {
	secret, made, err := q.operator().CreateToken(q.ctx, "page:"+q.session.name, q.typed("name"), event.Scope(q.form("scope")))
	if err != nil {
		q.failed(err)
		return
	}
	list, err := q.data().Tokens(q.ctx)
	if err != nil {
		q.failed(err)
		return
	}
	q.render(http.StatusOK, "tokens", layout{Title: "API tokens", Here: "API tokens", Content: tokensView{list, secret, made}})
}

func revokeToken(q *request) {
	id := number(q.form("id"))
	if err := q.operator().RevokeToken(q.ctx, "page:"+q.session.name, id); err != nil {
		q.failed(err)
		return
	}
	q.back("/tokens", fmt.Sprintf("Token %d is revoked.", id))
}

// rejectsView is the drawer of rejected requests.
type rejectsView struct {
	List    []admin.Reject
	Sources []string
	Source  string
}

func listRejects(q *request) {
	v := rejectsView{Source: q.given("source")}
	v.Sources, _ = q.data().Names()
	var err error
	if v.List, err = q.data().Rejects(q.ctx, admin.RejectFilter{Source: v.Source, Limit: 200}); err != nil {
		q.failed(err)
		return
	}
	q.render(http.StatusOK, "rejects", layout{Title: "Rejected requests", Here: "Rejected requests", Live: true, Content: v})
}
