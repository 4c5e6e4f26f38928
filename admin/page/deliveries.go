package page

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"creel/event"
)

// deliveriesView is a list of deliveries.
type deliveriesView struct {
	Filter  DeliveryFilter
	Sources []string
	Targets []string
	States  []string
	List    []event.Delivery
	Pager   pager
	Partial bool
	Health  map[string]event.DestinationHealth
	Problem string // what of the filter could not be understood
}

func deliveriesOf(q *request, f DeliveryFilter) (v deliveriesView, ok bool) {
	v = deliveriesView{Filter: f}
	v.Sources, v.Targets = q.data().Names()
	for _, state := range event.DeliveryStates() {
		v.States = append(v.States, string(state))
	}
	if f.State != "" && !slices.Contains(event.DeliveryStates(), f.State) {
		v.Problem = fmt.Sprintf("%q is no state of a delivery.", f.State)
		return v, true
	}
	before, err := q.cursor()
	if err != nil {
		q.failed(err)
		return v, false
	}
	found, err := q.data().Deliveries(q.ctx, f, event.Page{Before: before, Limit: rows})
	if err != nil {
		q.failed(err)
		return v, false
	}
	if v.Health, err = q.data().Health(q.ctx); err != nil {
		q.failed(err)
		return v, false
	}
	v.List, v.Partial, v.Pager = found.List, found.Partial, q.pagesBy(found.Next != 0, found.Next)
	return v, true
}

// listDeliveries is the outbox, newest first.
func listDeliveries(q *request) {
	v, ok := deliveriesOf(q, DeliveryFilter{Source: q.given("source"), Destination: q.given("destination"), Key: q.given("key"),
		State: event.DeliveryState(q.given("state")), Error: q.given("error")})
	if ok {
		q.render(http.StatusOK, "deliveries", layout{Title: "Deliveries", Here: "Deliveries", Live: q.given("after") == "", Content: v})
	}
}

// listDoubt is what waits for a person to say whether it arrived.
func listDoubt(q *request) {
	v, ok := deliveriesOf(q, DeliveryFilter{State: event.DeliveryInDoubt})
	if ok {
		q.render(http.StatusOK, "doubt", layout{Title: "In doubt", Here: "In doubt", Live: true, Content: v})
	}
}

// decide says whether a delivery in doubt arrived.
func decide(q *request) {
	kind := map[string]event.ActionKind{"sent": event.ActionWasSent, "again": event.ActionSendAgain, "dead": event.ActionGiveUp}[q.form("decision")]
	id := number(q.form("delivery"))
	if kind == "" || id == 0 {
		q.fail(http.StatusBadRequest, "Say of one delivery whether it arrived.")
		return
	}
	done, err := q.act(event.Action{Kind: kind, Target: strconv.FormatInt(id, 10), Reason: q.typed("reason")})
	if err != nil {
		q.failed(err)
		return
	}
	if done.Done == 0 {
		q.back("/doubt", fmt.Sprintf("Delivery %d is not in doubt any more: nothing was done.", id))
		return
	}
	q.back("/doubt", fmt.Sprintf("Delivery %d: %s. It stands as number %d in the audit trail.", id, kind, done.ID))
}
