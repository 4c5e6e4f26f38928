package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"creel/admin/page"
	"creel/event"
	"creel/store"
)

const (
	// planLife is how long a plan is kept.
	planLife = 30 * time.Minute
	// maxPlans bounds how many are kept; the oldest goes first.
	maxPlans = 100
	// planLooks is how many events of a plan are looked at one by one.
	planLooks = 1000
	// planTime bounds how long that may take.
	planTime = 2 * time.Second
	// planShown is how many of them the page lists.
	planShown = 50
)

// plans are the plans that were made a short while ago, each with what it has
// frozen.
type plans struct {
	clock func() time.Time
	mu    sync.Mutex
	all   []*keptPlan // oldest first
}

type keptPlan struct {
	plan   page.Plan
	frozen store.Frozen
	once   sync.Mutex // held while it is carried out
}

func newPlans(clock func() time.Time) *plans { return &plans{clock: clock} }

func (p *plans) keep(one *keptPlan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	limit := p.clock().Add(-planLife)
	p.all = slices.DeleteFunc(p.all, func(k *keptPlan) bool { return k.plan.Action.At.Before(limit) })
	if len(p.all) >= maxPlans {
		p.all = slices.Delete(p.all, 0, 1)
	}
	p.all = append(p.all, one)
}

func (p *plans) find(id string) (*keptPlan, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	limit := p.clock().Add(-planLife)
	for _, k := range p.all {
		if k.plan.ID == id && !k.plan.Action.At.Before(limit) {
			return k, nil
		}
	}
	return nil, event.ErrNotFound
}

// Plan implements page.Operator.
func (o pageOperator) Plan(ctx context.Context, action event.Action) (page.Plan, error) {
	if action.Selector.Everything() && !action.Selector.All {
		return page.Plan{}, refusal{fmt.Errorf("%s of every event has to be asked for as such", action.Kind)}
	}
	if err := sound(action); err != nil {
		return page.Plan{}, err
	}
	action.At = o.app.opt.Clock() // before it is looked: what dies meanwhile is not in it
	frozen, err := o.app.store.Freeze(ctx, action)
	if err != nil {
		return page.Plan{}, err
	}
	action.Selected = frozen.Len()
	kept := &keptPlan{frozen: frozen, plan: page.Plan{ID: strings.ToLower(rand.Text()), Action: action, Events: frozen.Len()}}
	if err := o.look(ctx, kept); err != nil {
		return page.Plan{}, err
	}
	o.plans.keep(kept)
	return kept.plan, nil
}

// look finds out what would become of the first events of a plan. It only
// reads: rules are pure.
func (o pageOperator) look(ctx context.Context, kept *keptPlan) error {
	events, err := o.app.store.FrozenEvents(ctx, kept.frozen, planLooks)
	if err != nil {
		return err
	}
	planner := newPlanner(o.app.store.Reader, o.app.snapshot.Load().Rules, kept.plan.Action)
	began := time.Now() // how long it takes is no matter of the server's clock
	sums := &planSums{}
	for _, e := range events {
		item := page.PlanItem{Event: e}
		if kept.plan.Action.Kind == event.ActionDiscard {
			item.Text, item.Tone = sums.discard(e, kept.plan.Action.Target)
		} else {
			planned, err := planner.event(ctx, e)
			if err != nil {
				return err
			}
			item.Text, item.Tone = sums.replay(planned)
		}
		if len(kept.plan.Items) < planShown {
			kept.plan.Items = append(kept.plan.Items, item)
		}
		if kept.plan.Looked++; time.Since(began) > planTime {
			break
		}
	}
	kept.plan.Would, kept.plan.Refused = sums.would.sorted(), sums.refused.sorted()
	return nil
}

// FindPlan implements page.Operator.
func (o pageOperator) FindPlan(id string) (page.Plan, error) {
	kept, err := o.plans.find(id)
	if err != nil {
		return page.Plan{}, err
	}
	kept.once.Lock()
	defer kept.once.Unlock()
	return kept.plan, nil
}

// Carry implements page.Operator. Whoever comes second waits for the first and
// gets the same action.
func (o pageOperator) Carry(ctx context.Context, id string, action event.Action) (event.Action, error) {
	kept, err := o.plans.find(id)
	if err != nil {
		return event.Action{}, err
	}
	kept.once.Lock()
	defer kept.once.Unlock()
	if kept.plan.Carried != nil {
		return *kept.plan.Carried, nil
	}
	action.Kind, action.Selector, action.Target = kept.plan.Action.Kind, kept.plan.Action.Selector, kept.plan.Action.Target
	action.Selector.DeadBy = kept.plan.Action.At
	done, err := o.app.actFrozen(ctx, action, kept.frozen)
	if done.ID > 0 {
		kept.plan.Carried = &done
	}
	return done, err
}

func (a *App) actFrozen(ctx context.Context, action event.Action, frozen store.Frozen) (event.Action, error) {
	if err := sound(action); err != nil {
		return action, err
	}
	action.At = a.opt.Clock()
	done, err := a.store.ActFrozen(ctx, action.At, action, frozen)
	a.acted(action, done, err)
	return done, err
}

// planSums counts what a plan would come to.
type planSums struct{ would, refused tallies }

// tallies count words, each with its tone.
type tallies struct{ list []page.Would }

func (t *tallies) add(tone, what string) {
	for i := range t.list {
		if t.list[i].What == what {
			t.list[i].Count++
			return
		}
	}
	if len(t.list) < maxReasons {
		t.list = append(t.list, page.Would{Tone: tone, What: what, Count: 1})
		return
	}
	t.list[len(t.list)-1].Count++
	t.list[len(t.list)-1].What = otherReasons
}

// How many different things a plan counts; what comes after them is one.
const (
	maxReasons   = 30
	otherReasons = "for other reasons"
)

func (t *tallies) sorted() []page.Would {
	slices.SortStableFunc(t.list, func(a, b page.Would) int { return cmp.Compare(b.Count, a.Count) })
	return t.list
}

// replay counts what a replay would do with an event and says it in words.
func (s *planSums) replay(item PlanItem) (text, tone string) {
	if item.Refused() {
		s.refused.add("warn", item.Error)
		return "refused: " + item.Error, "warn"
	}
	if item.Error != "" {
		s.would.add("bad", "events "+deathWords(item.Error))
		for _, effect := range item.Effects {
			if effect.again() {
				s.would.add(effectWords(effect))
			}
		}
		return strings.TrimPrefix(item.String(), item.Outcome+": "), "bad"
	}
	if len(item.Effects) == 0 {
		s.would.add("calm", "events without an effect")
	}
	tone = "calm"
	for _, effect := range item.Effects {
		one, what := effectWords(effect)
		s.would.add(one, what)
		if one == "good" {
			tone = "good"
		}
	}
	return item.String(), tone
}

// deathWords is a reason without what is this event's own.
func deathWords(reason string) string {
	head, _, _ := strings.Cut(reason, ":")
	head = strings.TrimPrefix(head, "it ")
	return "that " + head + ": " + event.FailureText(strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(reason, "it "), head+":")))
}

// effectWords is an effect as it is counted: what would be done, of which kind,
// to whom.
func effectWords(e PlanEffect) (tone, what string) {
	verb, reason, _ := strings.Cut(e.Would, ":")
	to := ""
	if e.Destination != "" {
		to = " to " + e.Destination
	}
	switch verb {
	case "skip":
		return "calm", fmt.Sprintf("%s%s skipped: %s", e.Effect, to, event.FailureText(reason))
	case "refuse":
		return "bad", fmt.Sprintf("%s%s refused: %s", e.Effect, to, event.FailureText(reason))
	case "wait":
		return "warn", fmt.Sprintf("%s%s that would wait: %s", e.Effect, to, event.FailureText(reason))
	}
	return "good", fmt.Sprintf("%s%s: %s", e.Effect, to, verb)
}

// discard counts what a discard would do with an event.
func (s *planSums) discard(e event.Event, target string) (text, tone string) {
	if target != "" {
		s.would.add("bad", "events whose deliveries to "+target+" are given up")
		return "its delivery to " + target + " is given up", "bad"
	}
	switch e.State {
	case event.Pending, event.Claimed:
		s.refused.add("warn", "it runs again already")
		return "refused: it runs again already", "warn"
	case event.Discarded:
		s.refused.add("warn", "it is discarded already")
		return "refused: it is discarded already", "warn"
	case event.Dead:
		s.would.add("bad", "events: taken off the dead letters, with their dead deliveries")
		return "taken off the dead letters", "bad"
	}
	s.would.add("bad", "events whose dead deliveries are taken off the dead letters")
	return "its dead deliveries are taken off the dead letters", "bad"
}
