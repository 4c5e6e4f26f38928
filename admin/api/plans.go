package api

import (
	"context"
	"errors"
	"net/http"

	"creel/event"
)

// askPlan asks what a replay or a discard would do.
type askPlan struct {
	Action event.ActionKind `json:"action"` // replay or discard
	selection
	Resend bool    `json:"resend,omitempty"` // what was sent is sent again too, under the same identity
	Rate   float64 `json:"rate,omitempty"`   // events a second at most
}

var errNoPlan = problem{http.StatusNotFound, "there is no such plan", "plans are kept for half an hour, and end with the server: make another one; GET " + Prefix + "/actions says whether it was carried out"}

func makePlan(c *call) (any, error) {
	var ask askPlan
	if err := c.read(&ask); err != nil {
		return nil, err
	}
	if ask.Action != event.ActionReplay && ask.Action != event.ActionDiscard {
		return nil, invalid(`"action" is replay or discard`, "a plan of %q can not be made", ask.Action)
	}
	selector, err := ask.selector(c.now)
	if err != nil {
		return nil, err
	}
	target := ""
	if ask.Action == event.ActionDiscard && selector.Failure != 0 {
		group, err := c.data().Failure(c.ctx, selector.Failure)
		if err != nil {
			return nil, err
		}
		target = group.Destination // what is dead of these events elsewhere stays so
	}
	plan, err := c.api.opt.Operator.Plan(c.ctx, c.signed(event.Action{Kind: ask.Action, Selector: selector,
		Target: target, Resend: ask.Resend, Rate: ask.Rate}))
	if err != nil {
		return nil, err
	}
	return lineOfPlan(plan), nil
}

func carryPlan(c *call) (any, error) {
	var ask askReason
	if err := c.read(&ask); err != nil {
		return nil, err
	}
	if ask.Reason == "" {
		return nil, invalid(`{"reason": "the app is repaired"}`, "say why: the reason stands in the audit trail")
	}
	id := c.params.ByName("id")
	plan, err := c.api.opt.Operator.FindPlan(id)
	if err != nil {
		return nil, errNoPlan
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), patience)
	defer cancel()
	done, err := c.api.opt.Operator.Carry(ctx, id, c.signed(event.Action{Reason: ask.Reason,
		Resend: plan.Action.Resend, Rate: plan.Action.Rate}))
	if errors.Is(err, event.ErrNotFound) { // it ended meanwhile
		return nil, errNoPlan
	}
	return goesOn(done, err)
}
