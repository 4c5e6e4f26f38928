package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"creel/event"
)

// What is foreseen is what happens, for every kind of effect in every state of
// the tables that a random history comes to; and looking changes nothing.
func TestForesightIsTrue(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	ctx := context.Background()
	random := rand.New(rand.NewPCG(3, 14))
	pick := func(n int) string { return fmt.Sprint(random.IntN(n)) }
	floor := int64(30)
	kinds := []func() event.Effect{
		func() event.Effect { return event.Forward{Key: "k" + pick(9), Rule: "r", Destination: "app"} },
		func() event.Effect { return recordOf("k"+pick(9), "a", pick(2)) },
		func() event.Effect { return grantOf("k"+pick(9), int64(1+random.IntN(2)*30)) },
		func() event.Effect {
			e := reversalOf("b"+pick(9), "k"+pick(12), int64(random.IntN(3)))
			e.Floor = &floor
			return e
		},
		func() event.Effect { return stateOf("s"+pick(2), pick(20)) },
		func() event.Effect {
			e := stateOf("s"+pick(2), pick(20))
			e.Fetchable, e.Fetched = random.IntN(2) == 0, random.IntN(2) == 0
			return e
		},
		func() event.Effect {
			e := moveOf("m"+pick(9), "s"+pick(3), "", "s"+pick(3))
			e.OnRefuse = []event.OnRefuse{event.RefuseLater, event.RefuseStale, event.RefuseDead}[random.IntN(3)]
			return e
		},
		func() event.Effect { return mailOf("k"+pick(9), "ann@example.com") },
		func() event.Effect { return event.Run{Key: "k" + pick(9), Rule: "r", Destination: "tool"} },
		func() event.Effect { return event.File{Key: "k" + pick(9), Rule: "r", Destination: "dir", Path: "a"} },
	}
	seen := map[event.Decision]int{}
	for i := range 400 {
		e := kinds[i%len(kinds)]()
		w := sc.claimed(numbered("e", i))
		before := sc.effects()
		outlooks, err := sc.Foresight().Event(ctx, w.Event, []event.Effect{e})
		must(t, err)
		want(t, "tables", sc.effects(), before)
		got := sc.finish(done(w, e))
		decision, reason := event.Decision(""), ""
		switch {
		case errors.Is(got.Err, event.ErrNotYet) || errors.Is(got.Err, event.ErrTie):
			decision, reason = event.Later, got.Err.Error()
			must(t, sc.finish(dead(w)).Err)
		case got.Err != nil:
			decision, reason = event.Failed, got.Err.Error()
		default:
			decision, reason = got.Verdicts[0].Decision, got.Verdicts[0].Reason
		}
		seen[decision]++
		if o := outlooks[0]; o.Decision != decision || decision != event.AlreadyApplied && o.Reason != reason {
			t.Errorf("%+v: foreseen %s (%s), came to %s (%s)", e, o.Decision, o.Reason, decision, reason)
		}
	}
	for _, decision := range []event.Decision{event.Applied, event.AlreadyApplied, event.Stale, event.Failed, event.Later} {
		if seen[decision] < 10 {
			t.Errorf("%s came up %d times: the history says too little", decision, seen[decision])
		}
	}
}

// A stale state makes its whole rule do nothing, and no other.
func TestForesightOfAStaleRule(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	must(t, sc.run("new", stateOf("active", "9")).Err)
	other := recordOf("other")
	other.Rule = "other"
	w := sc.claimed("old")
	outlooks, err := sc.Foresight().Event(context.Background(), w.Event, []event.Effect{recordOf("rec"), stateOf("old", "1"), other})
	must(t, err)
	want(t, "its record", outlooks[0].Decision, event.Stale)
	want(t, "its state", outlooks[1].Decision, event.Stale)
	want(t, "another rule's", outlooks[2].Decision, event.Applied)
}
