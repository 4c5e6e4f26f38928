package app

import (
	"cmp"
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
	Effect      string `json:"effect"` // the kind
	Rule        string `json:"rule"`
	Key         string `json:"key"`
	Destination string `json:"destination,omitempty"`
	What        string `json:"what,omitempty"` // of a local effect: which record, how much to whom, from which state to which
	Would       string `json:"would"`          // "send", "apply", …; "skip", "refuse" or "wait" with the reason behind it
}

// Refused tells whether a replay would leave the event as it is.
func (i PlanItem) Refused() bool { return i.Outcome == "refuse" }

// String is the item on one line.
func (i PlanItem) String() string {
	var parts []string
	if i.Error != "" {
		parts = append(parts, i.Outcome+": "+i.Error)
	} else if len(i.Effects) == 0 {
		parts = append(parts, i.Outcome+": no effect")
	}
	for _, effect := range i.Effects {
		if i.Error == "" || effect.again() { // what died of it goes again, whatever its rules come to
			parts = append(parts, fmt.Sprintf("%s %s: %s", effect.Effect, cmp.Or(effect.What, effect.Destination, effect.Rule), effect.Would))
		}
	}
	return strings.Join(parts, "; ")
}

// wouldFetch is what is said of an event whose rules have to ask outside.
const wouldFetch = "it would fetch the current object, and what it applies depends on that"

// planRows is how many events a plan reads at once.
const planRows = 500

// Plan tells, event by event in the order of the replay, what that would do. It
// only reads: rules are pure, so running them changes nothing.
func Plan(ctx context.Context, reader *store.Reader, rules *handlers.Rules, a event.Action, visit func(PlanItem) error) (int, error) {
	frozen, err := reader.Freeze(ctx, a)
	if err != nil {
		return 0, err
	}
	p := newPlanner(reader, rules, a)
	count := 0
	err = reader.WalkFrozen(ctx, frozen, planRows, func(e event.Event) error {
		item, err := p.event(ctx, e)
		if err != nil {
			return err
		}
		count++
		return visit(item)
	})
	return count, err
}

// planner looks at the events of one plan, in the order in which they would be
// taken: what one of them would do is there for the next.
type planner struct {
	reader *store.Reader
	rules  *handlers.Rules
	action event.Action
	future *store.Foresight
}

func newPlanner(reader *store.Reader, rules *handlers.Rules, a event.Action) *planner {
	return &planner{reader: reader, rules: rules, action: a, future: reader.Foresight()}
}

func (p *planner) event(ctx context.Context, e event.Event) (PlanItem, error) {
	item := PlanItem{Event: e, Outcome: "replay", Effects: []PlanEffect{}}
	if !event.CanMove(e.State, event.Pending) || e.State == event.Claimed {
		item.Outcome, item.Error = "refuse", "it is "+string(e.State)
		return item, nil
	}
	reason, err := p.reader.Refusal(ctx, e.Seq)
	if err != nil {
		return item, err
	}
	if reason != "" {
		item.Outcome, item.Error = "refuse", reason
		return item, nil
	}
	work, err := p.reader.Work(ctx, e.Seq)
	if err != nil {
		return item, err
	}
	work.Run, work.Attempts = work.Run+1, 1 // as the handlers will see it
	decision := p.rules.Decide(ctx, work)
	switch decision.State {
	case event.Dead:
		item.Error = "it would be dead again: " + decision.Error
	case event.Pending:
		item.Error = "it would fail for now: " + decision.Error
		if len(decision.Fetch) > 0 { // a plan asks nobody
			item.Error = wouldFetch
		}
	case event.Ignored:
		item.Error = "it would be ignored: " + decision.Error
	}
	return item, p.effects(ctx, &item, decision.Effects)
}

// effects looks at each effect of an event, and at its deliveries.
func (p *planner) effects(ctx context.Context, item *PlanItem, effects []event.Effect) error {
	outlooks, err := p.future.Event(ctx, item.Event, effects)
	if err != nil {
		return err
	}
	deliveries, err := p.reader.Outbox(ctx, item.Event.Seq)
	if err != nil {
		return err
	}
	own := ownDeliveries{action: p.action, list: deliveries, seen: map[int64]bool{}}
	for i, effect := range effects {
		planned, err := planEffect(ctx, p.reader, &own, effect, outlooks[i])
		if err != nil {
			return err
		}
		item.Effects = append(item.Effects, planned)
		switch outlooks[i].Decision {
		case event.Failed:
			item.Error = "it would be dead: " + outlooks[i].Reason
		case event.Later:
			item.Error = "it would be tried again: " + outlooks[i].Reason
			if strings.HasPrefix(outlooks[i].Reason, event.ErrTie.Error()) {
				item.Error = wouldFetch
			}
		}
	}
	item.Effects = append(item.Effects, own.others()...)
	return nil
}
