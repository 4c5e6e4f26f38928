package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"creel/event"
)

// inLane is an item of a lane.
func inLane(id, lane, version string) event.Item {
	it := item(id, `{"id":"`+id+`"}`)
	it.Lane, it.Object, it.Version = lane, lane, version
	return it
}

// line receives events of one lane, each with a request of its own.
func (sc *scene) line(lane string, ids ...string) {
	sc.t.Helper()
	for _, id := range ids {
		sc.accept(sc.receipt(`{"id":"`+id+`"}`, inLane(id, lane, "")))
	}
}

// taken are the ids of claimed events, in their order.
func taken(works []event.Work) string {
	var ids []string
	for _, w := range works {
		ids = append(ids, w.Key.ID)
	}
	return strings.Join(ids, " ")
}

// work finishes what is claimed and what it leads to: one transaction ends one
// event and claims what that held up. It returns the ids in their order.
func (sc *scene) work(works []event.Work) (applied string) {
	sc.t.Helper()
	for len(works) > 0 {
		applied += taken(works)
		var ends []event.Finish
		for _, w := range works {
			ends = append(ends, done(w))
		}
		_, works = sc.settle(10, ends...)
		sc.checkLanes()
	}
	return applied
}

// again is a failure that is tried again after a while.
func again(w event.Work, at time.Time) event.Finish {
	return event.Finish{Seq: w.Seq, Claim: w.Claim, Run: w.Run, State: event.Pending, Error: "not now", NextAt: at}
}

func (sc *scene) actLane(kind event.ActionKind, ids ...string) event.Action {
	sc.t.Helper()
	a := event.Action{Kind: kind, Actor: "ann", Reason: "why"}
	for _, id := range ids {
		a.Selector.Keys = append(a.Selector.Keys, key(id))
	}
	act := sc.Replay
	switch kind {
	case event.ActionDiscard:
		act = sc.Discard
	case event.ActionLaneSkip:
		act = sc.SkipLane
	}
	done, err := act(context.Background(), sc.now, a)
	must(sc.t, err)
	return done
}

// The store part of A5 and ORD-03: A fails twice, B and C wait, D does not.
func TestGateA5ARetryIsNotOvertaken(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.line("x", "A", "B", "C")
	sc.line("y", "D")
	applied := ""
	for try := range 3 {
		works := sc.claim(10)
		sc.checkLanes()
		if try == 0 {
			want(t, "claimed at once", taken(works), "A D")
			must(t, sc.finish(done(works[1])).Err)
		} else {
			want(t, "claimed again", taken(works), "A")
		}
		if try < 2 {
			sc.later(time.Second)
			must(t, sc.finish(again(works[0], sc.now.Add(5*time.Second))).Err)
			sc.checkLanes()
			want(t, "claimed while A waits", taken(sc.claim(10)), "")
			next, ok, err := sc.NextEvent(context.Background())
			must(t, err)
			want(t, "something is due", ok, true)
			want(t, "when", next, sc.now.Add(5*time.Second))
			sc.later(5 * time.Second)
			continue
		}
		applied = sc.work(works)
	}
	want(t, "order", applied, "ABC")
	want(t, "open", sc.number("SELECT count(*) FROM event WHERE state <> 'done'"), 0)
}

// The store part of A5: a dead one parks its lane, visibly, until somebody
// decides.
func TestGateA5ADeadHeadParksItsLaneAlone(t *testing.T) {
	t.Parallel()
	ends := map[string]struct {
		kind   event.ActionKind
		result string
		next   string // who goes then
	}{
		"skipped":   {event.ActionLaneSkip, "skipped", "B"},
		"replayed":  {event.ActionReplay, "replayed", "A"},
		"discarded": {event.ActionDiscard, "discarded", "B"},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc := newScene(t)
			sc.line("x", "A")
			must(t, sc.finish(dead(sc.claim(1)[0])).Err)
			if sc.open1(event.CauseLaneParked, "gen") != nil {
				t.Error("an incident though nobody waits")
			}
			sc.line("x", "B", "C")
			sc.line("y", "D")
			sc.checkLanes()
			works := sc.claim(10)
			want(t, "claimed beside the parked lane", taken(works), "D")
			must(t, sc.finish(done(works[0])).Err)
			i := sc.open1(event.CauseLaneParked, "gen")
			if i == nil || i.Count != 1 || !strings.Contains(i.Detail, "creel lane skip gen//A") {
				t.Fatalf("incident %+v, want one that says what to do", i)
			}
			lanes, err := sc.Lanes(context.Background(), "", 10)
			must(t, err)
			if len(lanes) != 1 {
				t.Fatalf("lanes %+v, want one", lanes)
			}
			want(t, "lane", lanes[0].Lane, "x")
			want(t, "head", lanes[0].Event, key("A"))
			want(t, "waiting", lanes[0].Waiting, 2)
			want(t, "since", lanes[0].Since, sc.now)
			want(t, "error", lanes[0].Error, "no such customer")
			action := sc.actLane(end.kind, "A")
			want(t, "done", action.Done, 1)
			sc.checkLanes()
			if sc.open1(event.CauseLaneParked, "gen") != nil {
				t.Error("the incident is open and the lane moves")
			}
			items, err := sc.ActionItems(context.Background(), action.ID, 0)
			must(t, err)
			want(t, "audited", items[0].Result, end.result)
			works = sc.claim(10)
			want(t, "next", taken(works), end.next)
			lanes, err = sc.Lanes(context.Background(), "", 10)
			must(t, err)
			want(t, "parked lanes", len(lanes), 0)
			applied := sc.work(works)
			want(t, "applied", applied, "ABC"[strings.Index("ABC", end.next):])
			want(t, "still open", sc.number("SELECT count(*) FROM event WHERE state IN ('pending', 'claimed')"), 0)
			want(t, "a second skip", sc.actLane(event.ActionLaneSkip, "A").Refused, 1)
		})
	}
}

// on_dead = "skip" lets them pass by itself; a replay of the dead one goes
// before what still waits.
func TestBugORD03ASkippedDeadOneDoesNotPark(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	for _, id := range []string{"A", "B", "C"} {
		it := inLane(id, "x", "")
		it.LaneSkip = true
		sc.accept(sc.receipt(id, it))
	}
	_, works := sc.settle(10, dead(sc.claim(1)[0]))
	sc.checkLanes()
	want(t, "next", taken(works), "B")
	if sc.open1(event.CauseLaneParked, "gen") != nil {
		t.Error("an incident though nobody is held up")
	}
	sc.actLane(event.ActionReplay, "A")
	sc.checkLanes()
	_, works = sc.settle(10, done(works[0]))
	want(t, "the replayed one first", taken(works), "A")
	_, works = sc.settle(10, done(works[0]))
	want(t, "last", taken(works), "C")
}

// Where versions are known they are the order: an older one goes before a newer
// one that nobody has in his hands.
func TestBugORD03AnOlderVersionGoesFirst(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	for _, version := range []string{"10", "9", "30", "20"} {
		sc.accept(sc.receipt(version, inLane("v"+version, "x", version)))
		sc.checkLanes()
	}
	works := sc.claim(10)
	want(t, "first", taken(works), "v9")
	sc.accept(sc.receipt("1", inLane("v1", "x", "1")))
	sc.checkLanes()
	want(t, "beside a claimed one", taken(sc.claim(10)), "")
	want(t, "order", sc.work(works), "v9v1v10v20v30")
	// One request with all of them: nobody is born claimed before its elders.
	m := &memory{places: 10}
	sc.SetHandoff(m)
	sc.accept(sc.receipt("all", inLane("w3", "x", "3"), inLane("w1", "x", "1"), inLane("w2", "x", "2"), item("free", "f")))
	sc.settle(0) // behind the hand-over
	sc.checkLanes()
	want(t, "handed over", taken(m.works), "free")
	want(t, "places", m.free(), 9)
	want(t, "due", taken(sc.claim(10)), "w1")
}

// An event is born claimed only where its lane is free.
func TestOnlyTheHeadIsBornClaimed(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	m := &memory{places: 10}
	sc.SetHandoff(m)
	sc.line("x", "A", "B")
	sc.line("y", "C")
	sc.settle(0) // behind the hand-over
	sc.checkLanes()
	want(t, "handed over", taken(m.works), "A C")
	want(t, "places", m.free(), 8)
	want(t, "lane of the work", m.works[0].Lane, "x")
	want(t, "due", taken(sc.claim(10)), "")
	_, works := sc.settle(10, done(m.works[0]))
	want(t, "next", taken(works), "B")
	want(t, "attempts", works[0].Attempts, 1)
}

// A crash with a claimed head: the next boot takes it back, and an older one
// that came meanwhile goes before it.
func TestGateA5CrashWithAClaimedHead(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.accept(sc.receipt("5", inLane("v5", "x", "5"), inLane("v6", "x", "6")))
	want(t, "claimed", taken(sc.claim(10)), "v5")
	sc.accept(sc.receipt("4", inLane("v4", "x", "4")))
	sc.crash("boot2")
	_, err := sc.Recover(context.Background(), sc.now, nil)
	must(t, err)
	sc.checkLanes()
	want(t, "order", sc.work(sc.claim(10)), "v4v5v6")
}

// A bulk replay keeps the order of versions, whatever the order of receipt and
// wherever a chunk ends.
func TestABulkReplayKeepsTheOrderOfItsLanes(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	const n = 2*actionChunk + 10
	var items []event.Item
	for i := range n {
		it := inLane(numbered("e", n-i), fmt.Sprint("lane", i%3), fmt.Sprint(n-i))
		it.LaneSkip = true
		items = append(items, it)
	}
	sc.accept(sc.receipt("all", items...))
	for works := sc.claim(256); len(works) > 0; works = sc.claim(256) {
		for _, w := range works {
			must(t, sc.finish(dead(w)).Err)
		}
	}
	picks, err := sc.pick(context.Background(), event.Action{Selector: event.Selector{State: event.Dead}})
	must(t, err)
	kept, err := thaw(freeze(picks))
	must(t, err)
	if !slices.Equal(kept, picks) {
		t.Error("the frozen selection is another one")
	}
	want(t, "replayed", sc.replay(event.Selector{State: event.Dead}).Done, n)
	sc.checkLanes()
	last := map[string]string{}
	for i, p := range picks {
		var lane, rank string
		must(t, sc.row(context.Background(), "SELECT lane, rank FROM event WHERE seq = ?", []any{p.seq}, &lane, &rank))
		if rank <= last[lane] {
			t.Fatalf("pick %d of %s goes back from %s to %s", i, lane, last[lane], rank)
		}
		last[lane] = rank
	}
}

// A clock that was set back does not keep what waited from its turn.
func TestWhoWaitedIsDueInHisTurn(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.later(24 * time.Hour)
	sc.line("x", "A", "B")
	w := sc.claim(1)[0]
	sc.now = start
	_, works := sc.settle(10, done(w))
	want(t, "next", taken(works), "B")
}

// The sender's redelivery of a dead event revives it in its lane.
func TestARedeliveryRevivesInItsLane(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.line("x", "A", "B")
	must(t, sc.finish(dead(sc.claim(1)[0])).Err)
	sc.line("x", "A")
	sc.checkLanes()
	if sc.open1(event.CauseLaneParked, "gen") != nil {
		t.Error("the incident is open and the lane moves")
	}
	want(t, "next", taken(sc.claim(10)), "A")
}

// A claim that nobody has is taken back in its lane: an older version that came
// meanwhile goes first.
func TestALostClaimIsTakenBackInItsLane(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.accept(sc.receipt("2", inLane("v2", "x", "2")))
	works := sc.claim(1)
	sc.accept(sc.receipt("1", inLane("v1", "x", "1")))
	sc.lose(event.ErrUnavailable, works[0].Claim)
	sc.regain()
	sc.checkLanes()
	want(t, "order", sc.work(sc.claim(10)), "v1v2")
}
