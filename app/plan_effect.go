package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"creel/event"
	"creel/store"
)

// planEffect puts what the store foresees of one effect into words.
func planEffect(ctx context.Context, reader *store.Reader, own *ownDeliveries, effect event.Effect, o store.Outlook) (PlanEffect, error) {
	planned := PlanEffect{Effect: effect.Kind(), Rule: effect.RuleName(), Key: effect.BusinessKey()}
	verb, target := "apply", ""
	switch e := effect.(type) {
	case event.Forward:
		verb, planned.Destination = "send", e.Destination
	case event.Run:
		verb, planned.Destination = "run", e.Destination
	case event.File:
		verb, planned.Destination, target = "write", e.Destination, e.Path
		planned.What = e.Destination + " " + e.Path
	case event.Email:
		verb, planned.Destination, target = "queue", event.Mail, e.To
		planned.What = "to " + e.To
	case event.Record:
		verb, planned.What = "insert", e.Of
	case event.Grant:
		planned.What = grantWords(e, o.Amount)
	case event.SetState:
		planned.What = fmt.Sprintf("%s → %s", e.Object, e.To)
		if o.From != "" {
			planned.What = fmt.Sprintf("%s: %s → %s", e.Object, o.From, e.To)
		}
	case event.SQL:
		verb = "run"
	}
	var err error
	planned.Would, err = would(ctx, reader, own, planned, verb, target, o)
	return planned, err
}

func grantWords(e event.Grant, back int64) string {
	switch {
	case e.Reverse == "":
		return fmt.Sprintf("%d %s to %s", e.Amount, e.Unit, e.To)
	case back != 0:
		return fmt.Sprintf("back %d of %s", back, e.Reverse)
	}
	return "back of " + e.Reverse
}

// would is the decision in words. A delivery that is there has a state of its
// own, and a replay sends a dead one again.
func would(ctx context.Context, reader *store.Reader, own *ownDeliveries, planned PlanEffect, verb, target string, o store.Outlook) (string, error) {
	switch o.Decision {
	case event.Applied:
		return verb, nil
	case event.Stale:
		return "skip: stale: " + o.Reason, nil
	case event.Failed:
		return "refuse: " + o.Reason, nil
	case event.Later:
		return "wait: " + o.Reason, nil
	case event.Skipped:
		return "skip: the effects of an event apply together", nil
	}
	if planned.Destination == "" {
		return "skip: already applied", nil
	}
	delivery, found, err := reader.DeliveryTo(ctx, planned.Key, planned.Destination, target)
	if err != nil {
		return "", err
	}
	if !found { // it is of another event of the plan
		return "skip: already applied", nil
	}
	if again := own.again(&delivery); again != "" {
		return again, nil
	}
	if delivery.State == event.DeliverySent {
		return "skip: already sent", nil
	}
	return "skip: it is " + string(delivery.State), nil
}

// ownDeliveries are the deliveries of the event that is looked at: a replay
// sends them again where they are dead, or where they were sent and it is asked
// for, whether the rules still make them or not.
type ownDeliveries struct {
	action event.Action
	list   []event.Delivery
	seen   map[int64]bool // what an effect of the rules is about
}

// sendAgain begins what is said of a delivery that goes again.
const sendAgain = "send again: "

func (e *PlanEffect) again() bool { return strings.HasPrefix(e.Would, sendAgain) }

// again is why a delivery would be sent again; "" where it would not.
func (o *ownDeliveries) again(d *event.Delivery) string {
	if !slices.ContainsFunc(o.list, func(own event.Delivery) bool { return own.ID == d.ID }) {
		return "" // another event has it, and has to be replayed for it
	}
	o.seen[d.ID] = true
	only := o.action.Selector.Destination
	switch {
	case d.State == event.DeliveryDead:
		return fmt.Sprintf(sendAgain+"it died at attempt %d", d.Attempts)
	case d.State == event.DeliverySent && o.action.Resend && (only == "" || only == d.Destination):
		return sendAgain + "it was sent"
	}
	return ""
}

// others are the deliveries that would be sent again though the rules do not
// make them any more.
func (o *ownDeliveries) others() (list []PlanEffect) {
	for i := range o.list {
		d := &o.list[i]
		if o.seen[d.ID] {
			continue
		}
		if again := o.again(d); again != "" {
			list = append(list, PlanEffect{Effect: "delivery", Rule: d.Rule, Key: cmp.Or(d.LongKey, d.Key), Destination: d.Destination,
				What: strings.TrimSpace(d.Destination + " " + d.Target), Would: again})
		}
	}
	return list
}
