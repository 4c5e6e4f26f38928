package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"creel/event"
)

// forecaster draws events whose effects meet: in their keys, which may be of
// another event, before it came or after, in objects and in balances.
type forecaster struct {
	*rand.Rand
	n int
}

func (r *forecaster) key(id string) string {
	switch r.IntN(8) {
	case 0, 1:
		return "gen//" + id + "/r"
	case 2, 3:
		return fmt.Sprintf("gen//f%d/r", max(0, r.n+r.IntN(9)-4))
	case 4:
		return strings.Repeat("long", 80) + fmt.Sprint(r.IntN(3))
	}
	return "k" + fmt.Sprint(r.IntN(9))
}

func (r *forecaster) effect(id string) event.Effect {
	rule := "r" + fmt.Sprint(r.IntN(2))
	floor := int64(r.IntN(60) - 20)
	object := "order/" + fmt.Sprint(r.IntN(3))
	k := r.key(id)
	switch r.IntN(9) {
	case 0:
		return event.Record{Key: k, Rule: rule, Of: "kind" + fmt.Sprint(r.IntN(2)), Fields: []event.Field{{Name: "a", Value: fmt.Sprint(r.IntN(8) / 7)}}}
	case 1:
		return event.Grant{Key: k, Rule: rule, To: "acct", Unit: "c", Amount: 20 + int64(r.IntN(8)/7)}
	case 2:
		return event.Grant{Key: k, Rule: rule, Reverse: r.key(id), Amount: int64(r.IntN(2) * 15), Floor: &floor}
	case 3:
		return event.SetState{Key: k, Rule: rule, Object: object, To: "s" + fmt.Sprint(r.IntN(3)), Version: fmt.Sprint(r.n/8 + r.IntN(4))}
	case 4:
		return event.SetState{Key: k, Rule: rule, Object: object, To: "s" + fmt.Sprint(r.IntN(3)), From: []string{"", "s0", "s1"}[:1+r.IntN(3)],
			OnRefuse: []event.OnRefuse{event.RefuseLater, event.RefuseStale, event.RefuseStale, event.RefuseDead}[r.IntN(4)]}
	case 5:
		return event.Email{Key: k, Rule: rule, To: "ann@example.com", Subject: "s", Text: "t"}
	case 6:
		return event.Run{Key: k, Rule: rule, Destination: "tool"}
	case 7:
		return event.File{Key: k, Rule: rule, Destination: "dir", Path: "p" + fmt.Sprint(r.IntN(2))}
	}
	return event.Forward{Key: k, Rule: rule, Destination: "app"}
}

// newRows counts what effects have stored.
func (sc *scene) newRows() string {
	sc.t.Helper()
	return fmt.Sprintf("%d records, %d entries, %d transitions, %d deliveries", sc.number(`SELECT count(*) FROM record`),
		sc.number(`SELECT count(*) FROM ledger`), sc.number(`SELECT count(*) FROM transition`), sc.number(`SELECT count(*) FROM delivery`))
}

// What is foreseen of several events together is what becomes of them one after
// another: their end, the verdict of each rule, and how many rows of each kind.
func TestForesightOfEventsThatBuildOnEachOther(t *testing.T) {
	t.Parallel()
	oneAtATime(t)
	sc := newScene(t)
	r := &forecaster{Rand: rand.New(rand.NewPCG(27, 18))}
	seen := map[event.Decision]int{}
	for range 250 {
		type planned struct {
			work     event.Work
			effects  []event.Effect
			outlooks []Outlook
		}
		var events []planned
		before, future := sc.effects(), sc.Foresight()
		for range 1 + r.IntN(5) {
			id := fmt.Sprintf("f%d", r.n)
			p := planned{work: sc.claimed(id)}
			for range 1 + r.IntN(4) {
				p.effects = append(p.effects, r.effect(id))
			}
			r.n++
			events = append(events, p)
		}
		for i := range events {
			outlooks, err := future.Event(context.Background(), events[i].work.Event, events[i].effects)
			must(t, err)
			events[i].outlooks = outlooks
		}
		want(t, "tables", sc.effects(), before)
		for _, p := range events {
			rows := foreseenRows(sc, p.effects, p.outlooks)
			got := sc.finish(done(p.work, p.effects...))
			end, reason := ending(got)
			for _, o := range p.outlooks {
				seen[o.Decision]++
			}
			foreseen, why := foreseenEnd(p.outlooks)
			if end != foreseen || reason != why {
				t.Fatalf("%s %+v\nforeseen %s (%s)\ncame to  %s (%s)", p.work.Key, p.effects, foreseen, why, end, reason)
			}
			if end == event.Later {
				must(t, sc.finish(dead(p.work)).Err)
			}
			for _, v := range got.Verdicts {
				if d := foreseenVerdict(v.Rule, p.effects, p.outlooks); end == event.Applied && v.Decision != d {
					t.Fatalf("%s %+v\nof rule %s foreseen %s, came to %s", p.work.Key, p.effects, v.Rule, d, v.Decision)
				}
			}
			if now := sc.newRows(); now != rows {
				t.Fatalf("%s %+v\nforeseen %s\ncame to  %s", p.work.Key, p.effects, rows, now)
			}
		}
	}
	for _, decision := range []event.Decision{event.Applied, event.AlreadyApplied, event.Stale, event.Failed, event.Later, event.Skipped} {
		if seen[decision] < 50 {
			t.Errorf("%s came up %d times: the history says too little", decision, seen[decision])
		}
	}
}

// What one event would store is in the way of the next, each thing by its own
// look-up.
func TestForesightKeepsWhatIsOnceOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		effects []event.Effect // each of an event of its own
		want    []event.Decision
	}{
		"record":    {[]event.Effect{recordOf("k"), recordOf("k"), recordOf("k", "a", "1")}, []event.Decision{event.Applied, event.AlreadyApplied, event.Failed}},
		"grant":     {[]event.Effect{grantOf("k", 1), grantOf("k", 1), grantOf("k", 2)}, []event.Decision{event.Applied, event.AlreadyApplied, event.Failed}},
		"reversal":  {[]event.Effect{grantOf("k", 1), reversalOf("a", "k", 0), reversalOf("a", "k", 0), reversalOf("b", "k", 0)}, []event.Decision{event.Applied, event.Applied, event.AlreadyApplied, event.Failed}},
		"state":     {[]event.Effect{stateOf("new", "2"), stateOf("old", "1"), stateOf("newer", "3")}, []event.Decision{event.Applied, event.Stale, event.Applied}},
		"step":      {[]event.Effect{moveOf("k", "new", ""), moveOf("k", "new", ""), moveOf("l", "paid", "new"), moveOf("l", "void", "")}, []event.Decision{event.Applied, event.AlreadyApplied, event.Applied, event.Failed}},
		"too early": {[]event.Effect{moveOf("k", "paid", "new"), moveOf("l", "new", "")}, []event.Decision{event.Later, event.Applied}},
		"mail":      {[]event.Effect{mailOf("k", "a@example.com"), mailOf("k", "a@example.com"), mailOf("k", strings.Repeat("a", 300))}, []event.Decision{event.Applied, event.AlreadyApplied, event.Failed}},
		"statements": {[]event.Effect{sqlOf("k", field("a", "1"), "DELETE FROM app_a"), sqlOf("k", field("a", "1"), "DELETE FROM app_a"), sqlOf("k", field("a", "2"), "DELETE FROM app_a")},
			[]event.Decision{event.Applied, event.AlreadyApplied, event.Failed}},
		"kind": {[]event.Effect{event.Record{Key: "k", Rule: "r", Of: strings.Repeat("a", 300)}}, []event.Decision{event.Failed}},
	} {
		sc := newScene(t)
		future := sc.Foresight()
		for i, e := range c.effects {
			w := sc.claimed(numbered("e", i))
			outlooks, err := future.Event(context.Background(), w.Event, []event.Effect{e})
			must(t, err)
			want(t, fmt.Sprint(name, " ", i, ": ", outlooks[0].Reason), outlooks[0].Decision, c.want[i])
		}
	}
}

// ending is what became of an event: Applied stands for its effects as a whole.
func ending(got event.Finished) (event.Decision, string) {
	switch {
	case got.Err == nil:
		return event.Applied, ""
	case errors.Is(got.Err, event.ErrNotYet), errors.Is(got.Err, event.ErrTie):
		return event.Later, got.Err.Error()
	}
	return event.Failed, got.Err.Error()
}

func foreseenEnd(outlooks []Outlook) (event.Decision, string) {
	for _, o := range outlooks {
		if o.Decision == event.Failed || o.Decision == event.Later {
			return o.Decision, o.Reason
		}
	}
	return event.Applied, ""
}

func foreseenVerdict(rule string, effects []event.Effect, outlooks []Outlook) event.Decision {
	decision := event.Decision("")
	for i, e := range effects {
		switch o := outlooks[i].Decision; {
		case e.RuleName() != rule:
		case o == event.Stale:
			return o
		case o == event.Applied:
			decision = o
		default:
			decision = cmp.Or(decision, o)
		}
	}
	return decision
}

func foreseenRows(sc *scene, effects []event.Effect, outlooks []Outlook) string {
	var records, entries, transitions, deliveries int
	for i, e := range effects {
		n := 0
		if outlooks[i].Decision == event.Applied {
			n = 1
		}
		switch e.(type) {
		case event.Record:
			records += n
		case event.Grant:
			entries += n
		case event.SetState:
			transitions += n
		default:
			deliveries += n
		}
	}
	return fmt.Sprintf("%d records, %d entries, %d transitions, %d deliveries", records+int(sc.number(`SELECT count(*) FROM record`)),
		entries+int(sc.number(`SELECT count(*) FROM ledger`)), transitions+int(sc.number(`SELECT count(*) FROM transition`)),
		deliveries+int(sc.number(`SELECT count(*) FROM delivery`)))
}

// A rule of which one state is stale does nothing: its other state is as it was
// for whoever comes next.
func TestForesightTakesBackWhatAStaleRuleBegan(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	other := func(version string) event.SetState {
		e := stateOf("other", version)
		e.Object = "order/2"
		return e
	}
	must(t, sc.run("first", stateOf("new", "9")).Err)
	future := sc.Foresight()
	for i, effects := range [][]event.Effect{{other("5"), stateOf("old", "1")}, {other("4")}} {
		outlooks, err := future.Event(context.Background(), sc.claimed(numbered("e", i)).Event, effects)
		must(t, err)
		want(t, fmt.Sprint(i), outlooks[0].Decision, []event.Decision{event.Stale, event.Applied}[i])
	}
}
