package store

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"creel/event"
)

// The store part of R2: one row, four duplicates, one run.
func TestGateR2OneRowForFiveCopiesAtOnce(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	var fresh atomic.Int32
	each(5, func(int) {
		got, err := sc.Accept(context.Background(), sc.receipt("x", item("a", "x")))
		if err != nil {
			t.Error(err)
			return
		}
		if got.Items[0].Result == event.New {
			fresh.Add(1)
		}
	})
	want(t, "new", fresh.Load(), 1)
	d := sc.detail("a")
	want(t, "duplicates", d.Duplicates, 4)
	want(t, "last duplicate", d.DuplicateAt, start)
	want(t, "claimed", len(sc.claim(10)), 1)
	want(t, "events", sc.number("SELECT count(*) FROM event"), 1)
}

// 10,000 ids × 5 concurrent copies; a tenth of that in a short run.
func TestGateR2ManyIdsFiveCopiesEach(t *testing.T) {
	t.Parallel()
	ids := 10_000
	if testing.Short() {
		ids = 1_000
	}
	sc := newScene(t)
	each(5, func(int) {
		each(32, func(lane int) {
			for i := lane; i < ids; i += 32 {
				id := numbered("evt", i)
				if _, err := sc.Accept(context.Background(), sc.receipt(id, item(id, id))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	})
	want(t, "events", sc.number("SELECT count(*) FROM event"), ids)
	want(t, "bytes kept", sc.number("SELECT sum(length(data)) FROM payload"), ids*(len("evt-00000")+len("Content-Type: application/json")))
	want(t, "duplicates", sc.number("SELECT sum(duplicates) FROM event"), 4*ids)
	want(t, "events with another number of duplicates", sc.number("SELECT count(*) FROM event WHERE duplicates <> 4"), 0)
}

// 50 parallel copies, ten rounds.
func TestBugDUP01CheckThenInsert(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	m := &memory{places: 1000}
	sc.SetHandoff(m)
	for round := range 10 {
		id := numbered("round", round)
		each(50, func(int) {
			if _, err := sc.Accept(context.Background(), sc.receipt(id, item(id, id))); err != nil {
				t.Error(err)
			}
		})
		want(t, id+" duplicates", sc.detail(id).Duplicates, 49)
	}
	sc.claim(1)
	want(t, "handed over", len(m.works), 10)
}

// The same delivery after a restart and after 30 days is a duplicate.
func TestBugDUP04RedeliveryAfterRestartAndAMonth(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	redeliver := func() event.AcceptedItem {
		r := sc.receipt("body", item("guid", "body"))
		r.BodyWindow = 35 * 24 * time.Hour
		return sc.accept(r)[0]
	}
	want(t, "first", redeliver().Result, event.New)
	sc.crash("boot2")
	want(t, "after the restart", redeliver().Result, event.Duplicate)
	sc.later(30 * 24 * time.Hour)
	want(t, "after a month", redeliver().Result, event.Duplicate)
	sc.later(10 * 24 * time.Hour)
	want(t, "after the window", redeliver().Result, event.Duplicate)
	want(t, "events", sc.number("SELECT count(*) FROM event"), 1)
	want(t, "duplicates", sc.detail("guid").Duplicates, 3)
}

// The first body stands, the others are kept beside it, one incident.
func TestGateR6SameIdOtherBody(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	first := `{"id":"x-same","amount":10}`
	want(t, "first", sc.accept(sc.receipt(first, item("x-same", first)))[0].Result, event.New)
	for i := range 5 {
		body := fmt.Sprintf(`{"id":"x-same","amount":%d}`, 99+i)
		got := sc.accept(sc.receipt(body, item("x-same", body)))[0]
		want(t, "result", got.Result, event.Conflict)
		want(t, "conflicts", got.Conflicts, i+1)
		again := sc.accept(sc.receipt(first, item("x-same", first)))[0]
		want(t, "the first body again", again.Result, event.Duplicate)
		want(t, "its conflicts", again.Conflicts, i+1)
	}
	d := sc.detail("x-same")
	want(t, "body", string(d.Body), first)
	want(t, "kept", len(d.Conflicts), 3)
	want(t, "counted", d.OtherBodies, 5)
	want(t, "conflicting body", string(d.Conflicts[0].Body), `{"id":"x-same","amount":99}`)
	want(t, "conflicting headers", d.Conflicts[0].Header, d.Header)
	want(t, "duplicates", d.Duplicates, 5)
	want(t, "events", sc.number("SELECT count(*) FROM event"), 1)
	want(t, "claimed once", len(sc.claim(10)), 1)
	if i := sc.open1(event.CauseConflict, "gen"); i == nil || i.Count != 5 {
		t.Errorf("incident %v, want one with a count of 5", i)
	}
}

// A conflicting body that its sender repeats is one conflict.
func TestBugDUP06RepeatedConflictIsKeptOnce(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.accept(sc.receipt("one", item("a", "one")))
	for range 6 {
		got := sc.accept(sc.receipt("two", item("a", "two")))[0]
		want(t, "result", got.Result, event.Conflict)
		want(t, "conflicts", got.Conflicts, 1)
	}
	d := sc.detail("a")
	want(t, "kept", len(d.Conflicts), 1)
	want(t, "seen", d.Conflicts[0].Seen, 6)
	if i := sc.open1(event.CauseConflict, "gen"); i == nil || i.Count != 1 {
		t.Errorf("incident %v, want one with a count of 1: the same body again is no news", i)
	}
	want(t, "body", string(d.Body), "one")
}

func TestBugDUP08SameIdInTwoAccountsAndSources(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	keys := []event.Key{
		{Source: "a", Account: "A", ID: "evt_1"}, {Source: "a", Account: "B", ID: "evt_1"},
		{Source: "b", Account: "A", ID: "evt_1"}, {Source: "b", Account: "B", ID: "evt_1"},
		{Source: "b", Account: "B", ID: "EVT_1"},
	}
	for _, k := range keys {
		it := item("", "x")
		it.Key = k
		want(t, k.String(), sc.accept(sc.receipt("x", it))[0].Result, event.New)
	}
	sc.settle(0)
	for _, w := range sc.claim(10) {
		must(t, sc.finish(dead(w)).Err)
	}
	a := sc.replay(event.Selector{Keys: keys[1:2]})
	want(t, "replayed", a.Done, 1)
	works := sc.claim(10)
	if len(works) != 1 || works[0].Key != keys[1] {
		t.Errorf("replay of %s runs %v", keys[1], works)
	}
}

// The key outlives the body, and the window of the body's key does not slide.
func TestBugDUP10DuplicateMemory(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	window := 35 * 24 * time.Hour
	r := sc.receipt("body", item("a", "body"))
	r.BodyWindow = window
	sc.accept(r)
	for range 2 {
		sc.later(30 * time.Hour)
		want(t, "same id", sc.accept(sc.receipt("body", item("a", "body")))[0].Result, event.Duplicate)
	}
	must(t, sc.write(context.Background(), work, 1, func(t *tx) error {
		_, err := t.exec("DELETE FROM payload")
		return err
	}))
	want(t, "after the purge", sc.accept(sc.receipt("body", item("a", "body")))[0].Result, event.Duplicate)

	sc.now = start.Add(window - time.Hour)
	fresh := sc.receipt("body", item("fresh", "body"))
	fresh.BodyWindow = window
	want(t, "fresh id within the window", sc.accept(fresh)[0].Result, event.Duplicate)
	sc.later(2 * time.Hour)
	fresh = sc.receipt("body", item("fresh", "body"))
	fresh.BodyWindow = window
	want(t, "fresh id after it", sc.accept(fresh)[0].Result, event.New)
}

// A captured body under a fresh id is a duplicate of what it came with first.
func TestGateR9SameBodyFreshId(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	github := func(id, body string) event.AcceptedItem {
		r := sc.receipt(body, item(id, body))
		r.BodyWindow = 35 * 24 * time.Hour
		return sc.accept(r)[0]
	}
	first := github("d-1", "push")
	want(t, "first", first.Result, event.New)
	again := github("d-2", "push")
	want(t, "fresh id", again.Result, event.Duplicate)
	want(t, "it names the first", again.Key, key("d-1"))
	want(t, "sequence", again.Seq, first.Seq)
	want(t, "duplicates", again.Duplicates, 1)
	want(t, "another body under the known id", github("d-1", "pull").Result, event.Conflict)
	want(t, "that body under a fresh id", github("d-3", "pull").Key, key("d-1"))
	want(t, "events", sc.number("SELECT count(*) FROM event"), 1)

	off := sc.receipt("push", item("d-4", "push"))
	want(t, "with the window off", sc.accept(off)[0].Result, event.New)
	other := sc.receipt("push", item("d-5", "push"))
	other.Source, other.Items[0].Key.Source, other.BodyWindow = "gen2", "gen2", time.Hour
	want(t, "on another source", sc.accept(other)[0].Result, event.New)
}

// The events of a captured request with several are counted one by one.
func TestGateR9SameBodyWithSeveralEvents(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	request := func(id string) []event.AcceptedItem {
		items := []event.Item{item(id+"/0", "a"), item(id+"/1", "b")}
		items[0].Part, items[1].Part = "body.0", "body.1"
		r := sc.receipt("[a,b]", items...)
		r.BodyWindow = time.Hour
		return sc.accept(r)
	}
	request("one")
	got := request("two")
	want(t, "first", got[0].Key, key("one/0"))
	want(t, "second", got[1].Key, key("one/1"))
	want(t, "duplicates", sc.detail("one/1").Duplicates, 1)
}

// A redelivery of a dead event runs it again, once for each death.
func TestRedeliveryRevivesOnce(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	body := `{"id":"a"}`
	again := func() event.AcceptedItem { return sc.accept(sc.receipt(body, item("a", body)))[0] }
	sc.receive("a")
	for death := range 2 {
		w := sc.claim(1)
		want(t, "run", w[0].Run, death+1)
		want(t, "attempts", w[0].Attempts, 1)
		must(t, sc.finish(dead(w[0])).Err)
		if i := sc.open1(event.CauseDeadEvent, "r"); i == nil {
			t.Error("no incident")
		}
		want(t, "first redelivery revives", again().Revived, true)
		want(t, "second revives", again().Revived, false)
		if i := sc.open1(event.CauseDeadEvent, "r"); i != nil {
			t.Error("nothing is dead and the incident is open")
		}
	}
	w := sc.claim(1)
	must(t, sc.finish(done(w[0])).Err)
	want(t, "redelivery of a done event", again().Revived, false)
	want(t, "claimed", len(sc.claim(1)), 0)
}

// A redelivery also revives a dead delivery of an event that is done.
func TestRedeliveryRevivesDeadDeliveries(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	w, d := sc.deliver("a")
	s := sc.send(1)
	sc.ship([]event.DeliveryFinish{outcome(s[0], event.DeliveryDead)})
	body := `{"id":"a"}`
	want(t, "revives", sc.accept(sc.receipt(body, item("a", body)))[0].Revived, true)
	runs := sc.claim(1)
	want(t, "run of the event", runs[0].Run, w.Run+1)
	finished := sc.finish(done(runs[0], forward(runs[0], "app")))
	want(t, "verdict", finished.Verdicts[0].Decision, event.AlreadyApplied)
	s = sc.send(1)
	want(t, "the same delivery", s[0].ID, d.ID)
	want(t, "run", s[0].Run, 2)
	want(t, "attempts", s[0].Attempts, 1)
	want(t, "again", sc.accept(sc.receipt(body, item("a", body)))[0].Revived, false)
}
