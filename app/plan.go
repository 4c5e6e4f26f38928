package app

import (
	"context"
	"fmt"
	"strings"

	"creel/event"
	"creel/handlers"
	"creel/store"
)

// PlanItem is what a replay would do with one event.
type PlanItem struct {
	Event   event.Event
	Outcome string // "replay", or "refuse" with the reason in Error
	Effects []PlanEffect
	Error   string
}

// PlanEffect is what a replay would do with one effect of an event.
type PlanEffect struct {
	Effect      string `json:"effect"` // forward
	Rule        string `json:"rule"`
	Key         string `json:"key"`
	Destination string `json:"destination,omitempty"`
	Would       string `json:"would"` // "send", or "skip" with the reason behind it
}

// String is the item on one line.
func (i PlanItem) String() string {
	if i.Error != "" {
		return i.Outcome + ": " + i.Error
	}
	if len(i.Effects) == 0 {
		return i.Outcome + ": no effect"
	}
	parts := make([]string, len(i.Effects))
	for n, effect := range i.Effects {
		parts[n] = fmt.Sprintf("%s %s: %s", effect.Effect, effect.Destination, effect.Would)
	}
	return strings.Join(parts, "; ")
}

// planRows is how many events a plan reads at once.
const planRows = 500

// Plan tells, event by event, what a replay of the selection would do. It
// only reads: rules are pure, so running them changes nothing.
func Plan(ctx context.Context, reader *store.Reader, rules *handlers.Rules, selector event.Selector, visit func(PlanItem) error) (int, error) {
	count := 0
	page := event.Page{Limit: planRows}
	for {
		events, err := reader.Events(ctx, selector, page)
		if err != nil {
			return count, err
		}
		for _, e := range events {
			item, err := planEvent(ctx, reader, rules, e)
			if err != nil {
				return count, err
			}
			if err := visit(item); err != nil {
				return count, err
			}
			count++
		}
		if len(events) < page.Limit {
			return count, nil
		}
		page.Before = events[len(events)-1].Seq
	}
}

func planEvent(ctx context.Context, reader *store.Reader, rules *handlers.Rules, e event.Event) (PlanItem, error) {
	item := PlanItem{Event: e, Outcome: "replay", Effects: []PlanEffect{}}
	if !event.CanMove(e.State, event.Pending) || e.State == event.Claimed {
		item.Outcome, item.Error = "refuse", "it is "+string(e.State)
		return item, nil
	}
	work, err := reader.Work(ctx, e.Seq)
	if err != nil {
		return item, err
	}
	decision := rules.Decide(ctx, work)
	switch decision.State {
	case event.Dead:
		item.Error = "it would be dead again: " + decision.Error
	case event.Pending:
		item.Error = "it would fail for now: " + decision.Error
	case event.Ignored:
		item.Error = "it would be ignored: " + decision.Error
	}
	for _, effect := range decision.Effects {
		planned, err := planEffect(ctx, reader, effect)
		if err != nil {
			return item, err
		}
		item.Effects = append(item.Effects, planned)
	}
	return item, nil
}

func planEffect(ctx context.Context, reader *store.Reader, effect event.Effect) (PlanEffect, error) {
	planned := PlanEffect{Effect: effect.Kind(), Key: effect.BusinessKey(), Would: "send"}
	forward, ok := effect.(event.Forward)
	if !ok {
		return planned, nil
	}
	planned.Rule, planned.Destination = forward.Rule, forward.Destination
	key, _ := event.Fold(forward.Key)
	delivery, found, err := reader.DeliveryOf(ctx, key, forward.Destination)
	if err != nil || !found {
		return planned, err
	}
	switch delivery.State {
	case event.DeliveryDead:
		planned.Would = fmt.Sprintf("send again: it died at attempt %d", delivery.Attempts)
	case event.DeliverySent:
		planned.Would = "skip: already sent"
	default:
		planned.Would = "skip: it is " + string(delivery.State)
	}
	return planned, nil
}
