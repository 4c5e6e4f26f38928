package store

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"creel/event"
)

// A finish needs the claim, the state and the row; it is applied whole.
func TestFinishIsGuarded(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.receive("a")
	w := sc.claim(1)[0]
	stale := w
	stale.Claim = "boot1.zzz"
	got := sc.finish(done(stale, forward(w, "app")))
	if !errors.Is(got.Err, event.ErrClaimLost) {
		t.Errorf("another claim: %v, want ErrClaimLost", got.Err)
	}
	want(t, "effects of a lost claim", sc.number("SELECT count(*) FROM delivery"), 0)
	want(t, "verdicts of a lost claim", sc.number("SELECT count(*) FROM verdict"), 0)
	must(t, sc.finish(done(w, forward(w, "app"))).Err)
	later := event.Finish{Seq: w.Seq, Claim: w.Claim, Run: w.Run, State: event.Pending, Error: "late", NextAt: sc.now}
	if err := sc.finish(later).Err; !errors.Is(err, event.ErrClaimLost) {
		t.Errorf("retry after completion: %v, want ErrClaimLost", err)
	}
	d := sc.detail("a")
	want(t, "state", d.State, event.Done)
	want(t, "error", d.Error, "")
}

// The store part of A4: the commit happened and its answer was lost.
func TestGateA4FinishAgainAfterALostAnswer(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.receive("a")
	w := sc.claim(1)[0]
	f := done(w, forward(w, "app"), forward(w, "audit"))
	must(t, sc.finish(f).Err)
	if err := sc.finish(f).Err; !errors.Is(err, event.ErrClaimLost) {
		t.Errorf("the same finish again: %v, want ErrClaimLost", err)
	}
	want(t, "deliveries", sc.number("SELECT count(*) FROM delivery"), 2)
	sc.replay(event.Selector{Keys: []event.Key{w.Key}})
	again := sc.claim(1)[0]
	got := sc.finish(done(again, forward(again, "app"), forward(again, "audit")))
	must(t, got.Err)
	want(t, "verdict", got.Verdicts[0].Decision, event.AlreadyApplied)
	want(t, "deliveries", sc.number("SELECT count(*) FROM delivery"), 2)
}

// The store part of A4: a crash before the finish leaves no effect, the work
// is found again, and the old claim finishes nothing.
func TestGateA4CrashBeforeTheFinish(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.receive("a")
	lost := sc.claim(1)[0]
	sc.crash("boot2")
	got, err := sc.Recover(context.Background(), sc.now, nil)
	must(t, err)
	want(t, "taken back", got.Events, 1)
	w := sc.claim(1)[0]
	if err := sc.finish(done(lost, forward(lost, "app"))).Err; !errors.Is(err, event.ErrClaimLost) {
		t.Errorf("the dead boot's finish: %v, want ErrClaimLost", err)
	}
	want(t, "deliveries", sc.number("SELECT count(*) FROM delivery"), 0)
	must(t, sc.finish(done(w, forward(w, "app"))).Err)
	want(t, "deliveries", sc.number("SELECT count(*) FROM delivery"), 1)
}

// One transaction finishes a batch and claims the next; each finish fails
// alone, a broken statement too.
func TestSettleFinishesAndClaims(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	for i := range 6 {
		sc.receive(numbered("e", i))
	}
	first := sc.claim(3)
	lost, broken := done(first[1]), done(first[2], forward(first[2], "app"))
	lost.Claim = "boot1.zzz"
	broken.Effects = []event.Effect{event.Forward{Key: "", Rule: "r", Destination: "app"}} // the schema refuses it
	finished, second := sc.settle(10, done(first[0], forward(first[0], "app")), lost, broken)
	must(t, finished[0].Err)
	if !errors.Is(finished[1].Err, event.ErrClaimLost) {
		t.Errorf("lost: %v", finished[1].Err)
	}
	if finished[2].Err == nil || errors.Is(finished[2].Err, event.ErrUnavailable) {
		t.Errorf("broken: %v, want an error of its own", finished[2].Err)
	}
	want(t, "claimed", len(second), 3)
	want(t, "first", sc.detail("e-00000").State, event.Done)
	want(t, "broken one", sc.detail("e-00002").State, event.Claimed)
	want(t, "deliveries", sc.number("SELECT count(*) FROM delivery"), 1)
	must(t, sc.finish(dead(first[2])).Err)
}

// Born claimed deliveries are handed over with the finish.
func TestSettleHandsOverShipments(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.receive("a")
	w := sc.claim(1)[0]
	born := forward(w, "app")
	born.Claimed = true
	got := sc.finish(done(w, born, forward(w, "audit")))
	must(t, got.Err)
	want(t, "handed", len(got.Shipments), 1)
	s := got.Shipments[0]
	want(t, "event", s.Event, w.Key)
	want(t, "state", s.State, event.DeliverySending)
	want(t, "tries", s.Tries, 1)
	want(t, "claimed again", len(sc.send(10)), 0)
	errs, _ := sc.ship([]event.DeliveryFinish{outcome(s, event.DeliverySent)})
	must(t, errs[0])
	d := sc.detail("a")
	want(t, "delivered", d.Deliveries[0].State, event.DeliverySent)
	want(t, "attempts", len(d.Deliveries[0].Attempts), 1)
	want(t, "audit", d.Deliveries[1].State, event.DeliveryReady)
}

// Two events with one business key are one operation.
func TestExplicitKeyIsAppliedOnceForTwoEvents(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.receive("a")
	sc.receive("b")
	works := sc.claim(2)
	for i, w := range works {
		got := sc.finish(done(w, event.Forward{Key: "invoice/1", Rule: "r", Destination: "app"}))
		must(t, got.Err)
		decision := event.Applied
		if i == 1 {
			decision = event.AlreadyApplied
			if !strings.Contains(got.Verdicts[0].Reason, works[0].Key.String()) {
				t.Errorf("reason %q does not name the first event", got.Verdicts[0].Reason)
			}
		}
		want(t, "decision", got.Verdicts[0].Decision, decision)
	}
	want(t, "deliveries", sc.number("SELECT count(*) FROM delivery"), 1)
	want(t, "second event", sc.detail("b").State, event.Done)
}

// A new destination of a known operation is work: the rule was applied.
func TestOneNewEffectIsApplied(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	w, _ := sc.deliver("a")
	sc.replay(event.Selector{Keys: []event.Key{w.Key}})
	w = sc.claim(1)[0]
	got := sc.finish(done(w, forward(w, "app"), forward(w, "audit")))
	must(t, got.Err)
	want(t, "decision", got.Verdicts[0].Decision, event.Applied)
	want(t, "deliveries", sc.number("SELECT count(*) FROM delivery"), 2)
}

// A key that names another operation makes the event dead, with both values
// and none of its effects.
func TestMismatchIsDeadWithBothValues(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 300)
	hash := event.HashID([]byte(long))
	for _, several := range []bool{false, true} {
		sc := newScene(t)
		sc.receive("a")
		sc.receive("b")
		works := sc.claim(2)
		must(t, sc.finish(done(works[0], event.Forward{Key: hash, Rule: "r", Destination: "app"})).Err)
		effects := []event.Effect{event.Forward{Key: long, Rule: "r", Destination: "app"}}
		if several {
			effects = append([]event.Effect{event.Forward{Key: "fine", Rule: "r", Destination: "app"}}, effects...)
		}
		got := sc.finish(done(works[1], effects...))
		if !errors.Is(got.Err, event.ErrMismatch) {
			t.Fatalf("%v, want ErrMismatch", got.Err)
		}
		d := sc.detail("b")
		want(t, "state", d.State, event.Dead)
		if !strings.Contains(d.Error, hash) || !strings.Contains(d.Error, long) {
			t.Errorf("error %q does not have both values", d.Error)
		}
		want(t, "deliveries", sc.number("SELECT count(*) FROM delivery"), 1)
		want(t, "verdicts", len(d.Verdicts), 1)
		want(t, "verdict", d.Verdicts[0].Decision, event.Failed)
		if sc.open1(event.CauseDeadEvent, "r") == nil {
			t.Error("no incident")
		}
		want(t, "can be replayed", sc.replay(event.Selector{State: event.Dead}).Done, 1)
	}
}

// A dead letter's incident counts while it is open, and is over with the last
// of its dead letters.
func TestIncidentOfDeadEvents(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	for i := range 3 {
		sc.receive(numbered("e", i))
	}
	for _, w := range sc.claim(3) {
		must(t, sc.finish(dead(w)).Err)
	}
	if i := sc.open1(event.CauseDeadEvent, "r"); i == nil || i.Count != 3 {
		t.Fatalf("incident %v, want one with a count of 3", i)
	}
	sc.replay(event.Selector{Keys: []event.Key{key("e-00000"), key("e-00001")}})
	if sc.open1(event.CauseDeadEvent, "r") == nil {
		t.Error("one is still dead and the incident is over")
	}
	_, err := sc.Discard(context.Background(), sc.now, event.Action{Selector: event.Selector{State: event.Dead}})
	must(t, err)
	if i := sc.open1(event.CauseDeadEvent, "r"); i != nil {
		t.Errorf("nothing is dead and %v is open", i)
	}
	for _, w := range sc.claim(2) {
		must(t, sc.finish(dead(w)).Err)
	}
	if i := sc.open1(event.CauseDeadEvent, "r"); i == nil || i.Count != 2 {
		t.Errorf("incident %v, want a new one with a count of 2", i)
	}
}

// Released work is due at its retry time, not at the end of any lease.
func TestBugJOB04ReleasedIsDueAtItsTime(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.receive("a")
	w := sc.claim(1)[0]
	at := sc.now.Add(5 * time.Second)
	must(t, sc.finish(event.Finish{Seq: w.Seq, Claim: w.Claim, Run: 1, State: event.Pending, Error: "not ready", NextAt: at}).Err)
	next, ok, err := sc.NextEvent(context.Background())
	must(t, err)
	want(t, "something is due", ok, true)
	want(t, "due", next, at)
	want(t, "claimed early", len(sc.claim(1)), 0)
	sc.later(5 * time.Second)
	w = sc.claim(1)[0]
	want(t, "attempts", w.Attempts, 2)
	want(t, "error", w.Error, "not ready")
	must(t, sc.finish(event.Finish{Seq: w.Seq, Claim: w.Claim, Run: 1, State: event.Pending, Release: true}).Err)
	w = sc.claim(1)[0]
	want(t, "attempts after a release", w.Attempts, 2)
}

func TestFinishRefusesIllegalMoves(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.receive("a")
	w := sc.claim(1)[0]
	for _, state := range event.States() {
		if event.CanMove(event.Claimed, state) {
			continue
		}
		f := done(w)
		f.State = state
		if sc.finish(f).Err == nil {
			t.Errorf("claimed → %s was taken", state)
		}
		want(t, "state", sc.detail("a").State, event.Claimed)
	}
}
