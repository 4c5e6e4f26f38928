package store

import (
	"context"
	"testing"
	"time"

	"creel/event"
)

// Two who froze the same dead letters replay them once, also when all is done
// again before the second says yes; and one event that was clicked twice.
func TestGateO5TwoPlansAreOneReplay(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	deadLetters(sc)
	ctx := context.Background()
	ask := event.Action{Kind: event.ActionReplay, Actor: "ann", Selector: event.Selector{State: event.Dead}}
	first, err := sc.Freeze(ctx, ask)
	must(t, err)
	second, err := sc.Freeze(ctx, ask)
	must(t, err)
	want(t, "frozen", first.Len(), 2)
	list, err := sc.FrozenEvents(ctx, first, 1)
	must(t, err)
	want(t, "the first of them", list[0].Key, key("dead"))

	sc.receive("later") // what dies after it was frozen is not in it
	must(t, sc.finish(dead(sc.claim(1)[0])).Err)
	done, err := sc.ActFrozen(ctx, sc.now, ask, first)
	must(t, err)
	want(t, "replayed", done.Done, 2)
	must(t, sc.finish(dead(sc.claim(1)[0])).Err) // dead again at once
	again, err := sc.ActFrozen(ctx, sc.now, ask, second)
	must(t, err)
	want(t, "the second plan: done", again.Done, 0)
	want(t, "the second plan: refused", again.Refused, 2)
	want(t, "the event's run", sc.detail("dead").Run, 2)

	click := event.Selector{Keys: []event.Key{key("later")}, Run: 1}
	want(t, "a click", sc.replay(click).Done, 1)
	must(t, sc.finish(dead(sc.claim(1)[0])).Err)
	want(t, "its second click", sc.replay(click).Refused, 1)
}

// A plan to discard is about what was dead when it was made: what ran again
// since, and died of something else, is refused, and so is an event of which
// another delivery died meanwhile.
func TestADiscardTakesNothingThatDiedSince(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]string{"all of it": "", "to one destination": "old"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc := newScene(t)
			ctx := context.Background()
			sc.sendTo("", []string{"old", "app"}, "a", "b", "c")
			_, old := sc.ship(nil, event.ShipmentClaim{Destination: "old", Max: 3})
			for i := range old {
				sc.ship([]event.DeliveryFinish{outcome(old[i], event.DeliveryDead)})
			}
			ask := event.Action{Kind: event.ActionDiscard, Actor: "ann", Target: target, Selector: event.Selector{State: event.Dead}}
			plan, err := sc.Freeze(ctx, ask)
			must(t, err)
			want(t, "frozen", plan.Len(), 3)
			ask.Selector.DeadBy = sc.now
			sc.later(time.Minute)
			sc.replay(event.Selector{Keys: []event.Key{key("a")}}) // it dies again of its own
			w := sc.claim(1)[0]
			must(t, sc.finish(done(w)).Err)
			_, again := sc.ship(nil, event.ShipmentClaim{Destination: "old", Max: 3})
			for i := range again {
				sc.ship([]event.DeliveryFinish{outcome(again[i], event.DeliveryDead)})
			}
			_, app := sc.ship(nil, event.ShipmentClaim{Destination: "app", Max: 3})
			for i := range app {
				if app[i].Event.ID == "b" {
					sc.ship([]event.DeliveryFinish{outcome(app[i], event.DeliveryDead)})
				}
			}
			got, err := sc.ActFrozen(ctx, sc.now, ask, plan)
			must(t, err)
			wantDone := 1 // c; of b something else died
			if target != "" {
				wantDone = 2
			}
			want(t, "discarded", got.Done, wantDone)
			want(t, "refused", got.Refused, 3-wantDone)
			want(t, "a is dead still", sc.number(`SELECT count(*) FROM delivery JOIN event ON seq = delivery.event WHERE event.id = 'a' AND delivery.state = 'dead'`), 1)
			want(t, "b, to app", sc.number(`SELECT count(*) FROM delivery JOIN event ON seq = delivery.event WHERE event.id = 'b' AND destination = 'app' AND delivery.state = 'dead'`), 1)
		})
	}
}

// A selection by the beginning of an id, by a word, or by how it failed selects
// that alone: never more than was asked for.
func TestSelectionsByWordAndFailure(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	deadLetters(sc)
	sc.receive("deadline")
	must(t, sc.finish(dead(sc.claim(1)[0])).Err)
	groups, err := sc.Failures(context.Background(), sc.now, FailureFilter{Kind: event.FailedDelivery}, FailuresBySize, FailureCursor{}, 10)
	must(t, err)
	want(t, "groups of deliveries", len(groups.Failures), 1)
	for name, c := range map[string]struct {
		s    event.Selector
		want int
	}{
		"an id":                 {event.Selector{State: event.Dead, ID: "dead"}, 2},
		"the whole id":          {event.Selector{State: event.Dead, ID: "deadline"}, 1},
		"a word":                {event.Selector{State: event.Dead, Word: "hal"}, 1},
		"a word that nobody is": {event.Selector{State: event.Dead, Word: "al"}, 0},
		"a group":               {event.Selector{State: event.Dead, Failure: groups.Failures[0].ID}, 1},
		"no group":              {event.Selector{State: event.Dead, Failure: 99}, 0},
		"a body field":          {event.Selector{State: event.Dead, Index: []event.IndexMatch{{Field: "body.a", Value: "1"}}}, 0},
	} {
		f, err := sc.Freeze(context.Background(), event.Action{Kind: event.ActionReplay, Selector: c.s})
		must(t, err)
		want(t, name, f.Len(), c.want)
	}
}
