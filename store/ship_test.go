package store

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"creel/event"
)

func TestShipSendsWhatTheEventCarried(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	w, d := sc.deliver("a")
	s := sc.send(10)
	want(t, "claimed", len(s), 1)
	want(t, "delivery", s[0].ID, d.ID)
	want(t, "body", string(s[0].Payload.Body), string(w.Body))
	want(t, "header", s[0].Payload.Header, w.Header)
	want(t, "type", s[0].Type, w.Type)
	want(t, "event", s[0].Event, w.Key)
	want(t, "received", s[0].ReceivedAt, start)
	want(t, "attempts", s[0].Attempts, 1)
	want(t, "claimed twice", len(sc.send(10)), 0)
}

// One transaction stores an attempt and claims the next; a retry waits for its
// time; a lost claim stores nothing.
func TestShipFinishesAndClaims(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.deliver("a")
	sc.deliver("b")
	first := sc.send(1)[0]
	again := outcome(first, event.DeliveryReady)
	again.NextAt = sc.now.Add(5 * time.Second)
	errs, next := sc.ship([]event.DeliveryFinish{again}, event.ShipmentClaim{Destination: "app", Max: 10})
	must(t, errs[0])
	want(t, "next", next[0].Event.ID, "b")
	errs, _ = sc.ship([]event.DeliveryFinish{outcome(first, event.DeliverySent), outcome(next[0], event.DeliverySent)})
	if !errors.Is(errs[0], event.ErrClaimLost) {
		t.Errorf("old claim: %v, want ErrClaimLost", errs[0])
	}
	must(t, errs[1])
	at, ok, err := sc.NextDelivery(context.Background(), "app")
	must(t, err)
	want(t, "one is left", ok, true)
	want(t, "due", at, again.NextAt)
	sc.later(5 * time.Second)
	second := sc.send(10)[0]
	want(t, "attempts", second.Attempts, 2)
	want(t, "tries", second.Tries, 2)
	errs, _ = sc.ship([]event.DeliveryFinish{outcome(second, event.DeliverySent)})
	must(t, errs[0])
	errs, _ = sc.ship([]event.DeliveryFinish{outcome(second, event.DeliveryReady)})
	if !errors.Is(errs[0], event.ErrClaimLost) {
		t.Errorf("retry after completion: %v, want ErrClaimLost", errs[0])
	}
	attempts, err := sc.Attempts(context.Background(), second.ID)
	must(t, err)
	want(t, "attempt rows", len(attempts), 2)
	want(t, "first outcome", attempts[0].Outcome, event.Transient)
	want(t, "second number", attempts[1].Number, 2)
}

// Attempts that spend nothing, probes and releases leave the count alone.
func TestShipCountsWhatIsSpent(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.deliver("a")
	step := func(claim event.ShipmentClaim, change func(*event.DeliveryFinish)) event.Shipment {
		t.Helper()
		_, s := sc.ship(nil, claim)
		if len(s) != 1 {
			t.Fatalf("claimed %d", len(s))
		}
		f := outcome(s[0], event.DeliveryReady)
		change(&f)
		errs, _ := sc.ship([]event.DeliveryFinish{f})
		must(t, errs[0])
		return s[0]
	}
	counts := func(s event.Shipment, attempts, tries int) {
		t.Helper()
		want(t, "attempts", s.Attempts, attempts)
		want(t, "tries", s.Tries, tries)
	}
	normal := event.ShipmentClaim{Destination: "app", Max: 1}
	probe := event.ShipmentClaim{Destination: "app", Max: 1, Probe: true}
	counts(step(normal, func(f *event.DeliveryFinish) { f.Release = true }), 1, 1)
	counts(step(normal, func(f *event.DeliveryFinish) {}), 1, 1)
	counts(step(normal, func(f *event.DeliveryFinish) { f.Attempt.Spent = false }), 2, 2)
	must(t, sc.SaveDestination(context.Background(), sc.now, event.DestinationHealth{Name: "app", State: event.DestinationHeld}, nil, nil))
	s := step(probe, func(f *event.DeliveryFinish) { f.Attempt.Spent = false })
	counts(s, 1, 3)
	want(t, "probe", s.Probe, true)
	counts(step(probe, func(f *event.DeliveryFinish) { f.Release = true }), 1, 4)
	counts(step(probe, func(f *event.DeliveryFinish) {}), 1, 4)
	must(t, sc.SaveDestination(context.Background(), sc.now, event.DestinationHealth{Name: "app", State: event.DestinationEnabled}, nil, nil))
	counts(step(normal, func(f *event.DeliveryFinish) { f.State, f.Attempt.Outcome = event.DeliverySent, event.OK }), 3, 5)
}

// Probes take turns among the oldest sixteen, whose places in the order stay.
func TestProbesTakeTurns(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	const all, turn = 20, 16
	var order [all]int64
	for i := range order {
		_, d := sc.deliver(fmt.Sprintf("e%02d", i))
		order[i] = d.ID
		sc.later(time.Second)
	}
	sc.waits(time.Hour) // the oldest, for its next attempt
	sc.hold()
	for round := range 3 {
		for i := range turn {
			want(t, fmt.Sprintf("probe %d of round %d", i, round), sc.probe(), order[i+1])
		}
	}
}

// One that is not due yet is no probe while another is due, however often that
// was tried.
func TestProbesAreDueFirst(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	_, later := sc.deliver("later")
	sc.waits(time.Hour)
	sc.hold()
	_, due := sc.deliver("due")
	for range 3 {
		want(t, "probe", sc.probe(), due.ID)
	}
	sc.later(time.Hour)
	want(t, "probe in an hour", sc.probe(), later.ID)
}

// waits sends the oldest delivery, in vain, and has it wait.
func (sc *scene) waits(d time.Duration) {
	sc.t.Helper()
	f := outcome(sc.send(1)[0], event.DeliveryReady)
	f.NextAt = sc.now.Add(d)
	sc.ship([]event.DeliveryFinish{f})
}

func (sc *scene) hold() {
	sc.t.Helper()
	must(sc.t, sc.SaveDestination(context.Background(), sc.now, event.DestinationHealth{Name: "app", State: event.DestinationHeld}, nil, nil))
}

// probe sends one in vain and says which.
func (sc *scene) probe() int64 {
	sc.t.Helper()
	_, got := sc.ship(nil, event.ShipmentClaim{Destination: "app", Max: 1, Probe: true})
	if len(got) != 1 {
		sc.t.Fatalf("claimed %d", len(got))
	}
	f := outcome(got[0], event.DeliveryReady)
	f.Attempt.Spent, f.NextAt = false, got[0].CreatedAt
	sc.ship([]event.DeliveryFinish{f})
	return got[0].ID
}

// Only an enabled destination is claimed for; a held one is probed, due or
// not; a paused one is left alone.
func TestClaimsGoPerEnabledDestination(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	ctx := context.Background()
	sc.deliver("a")
	s := sc.send(1)[0]
	later := outcome(s, event.DeliveryReady)
	later.NextAt = sc.now.Add(time.Hour)
	sc.ship([]event.DeliveryFinish{later})
	claim := func(probe bool) int {
		_, got := sc.ship(nil, event.ShipmentClaim{Destination: "app", Max: 5, Probe: probe})
		for _, g := range got {
			sc.ship([]event.DeliveryFinish{{ID: g.ID, Claim: g.Claim, Release: true, NextAt: later.NextAt}})
		}
		return len(got)
	}
	want(t, "not due", claim(false), 0)
	sc.later(2 * time.Hour)
	want(t, "due", claim(false), 1)
	sc.later(-2 * time.Hour)
	down := &event.Incident{Cause: event.CauseDestinationDown, Subject: "app", Detail: "no answer"}
	for _, state := range []event.DestinationState{event.DestinationHeld, event.DestinationDisabled} {
		must(t, sc.SaveDestination(ctx, sc.now, event.DestinationHealth{Name: "app", State: state}, down, nil))
		want(t, string(state)+": probed", claim(true), 1)
		sc.later(2 * time.Hour)
		want(t, string(state)+": claimed", claim(false), 0)
		sc.later(-2 * time.Hour)
	}
	if i := sc.open1(event.CauseDestinationDown, "app"); i == nil || i.Count != 1 {
		t.Errorf("incident %v, want one, for one outage", i)
	}
	_, err := sc.Pause(ctx, sc.now, event.Action{Actor: "ann", Target: "app", Reason: "upgrade"})
	must(t, err)
	want(t, "paused: probed", claim(true), 0)
	err = sc.SaveDestination(ctx, sc.now, event.DestinationHealth{Name: "app", State: event.DestinationEnabled}, nil, down)
	if !errors.Is(err, event.ErrClaimLost) {
		t.Errorf("health over a pause: %v, want ErrClaimLost", err)
	}
	if sc.open1(event.CauseDestinationDown, "app") == nil {
		t.Error("a refused save resolved the incident")
	}
	a, err := sc.Resume(ctx, sc.now, event.Action{Actor: "ann", Target: "app"})
	must(t, err)
	want(t, "resumed", a.Done, 1)
	if sc.open1(event.CauseDestinationDown, "app") != nil {
		t.Error("the incident is open after the resume")
	}
	sc.later(2 * time.Hour)
	want(t, "resumed: claimed", claim(false), 1)
	a, err = sc.Resume(ctx, sc.now, event.Action{Actor: "ann", Target: "app"})
	must(t, err)
	want(t, "resumed again: refused", a.Refused, 1)
	actions, err := sc.Actions(ctx, event.Page{})
	must(t, err)
	want(t, "audited", len(actions), 3)
	want(t, "newest", actions[0].Kind, event.ActionResume)
	want(t, "oldest", actions[2].Reason, "upgrade")
}

// Dead deliveries of a destination that is down count on its outage.
func TestDeadDeliveriesEscalateTheOutage(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	ctx := context.Background()
	for _, id := range []string{"a", "b", "c"} {
		sc.deliver(id)
	}
	s := sc.send(3)
	sc.ship([]event.DeliveryFinish{outcome(s[0], event.DeliveryDead)})
	if sc.open1(event.CauseDeadDelivery, "app") == nil {
		t.Error("no incident of a dead delivery")
	}
	sc.replay(event.Selector{State: event.Dead})
	if sc.open1(event.CauseDeadDelivery, "app") != nil {
		t.Error("nothing is dead and the incident is open")
	}
	down := &event.Incident{Cause: event.CauseDestinationDown, Subject: "app"}
	must(t, sc.SaveDestination(ctx, sc.now, event.DestinationHealth{Name: "app", State: event.DestinationHeld}, down, nil))
	sc.ship([]event.DeliveryFinish{outcome(s[1], event.DeliveryDead), outcome(s[2], event.DeliveryDead)})
	if sc.open1(event.CauseDeadDelivery, "app") != nil {
		t.Error("a second incident for one outage")
	}
	if i := sc.open1(event.CauseDestinationDown, "app"); i == nil || i.Dead != 2 {
		t.Errorf("outage %v, want 2 dead", i)
	}
}

// A crash in flight repeats the send under its identity, or asks for a
// decision, as the destination says; the attempt that was lost is listed.
func TestRecoverDeliveriesInFlight(t *testing.T) {
	t.Parallel()
	for _, review := range []bool{false, true} {
		sc := newScene(t)
		sc.deliver("a")
		lost := sc.send(1)[0]
		sc.later(time.Minute)
		sc.crash("boot2")
		got, err := sc.Recover(context.Background(), sc.now, func(d string, _ int) bool {
			want(t, "asked about", d, "app")
			return review
		})
		must(t, err)
		d := sc.detail("a").Deliveries[0]
		want(t, "attempts listed", len(d.Attempts), 1)
		want(t, "outcome", d.Attempts[0].Outcome, event.Unknown)
		want(t, "start", d.Attempts[0].Start, start)
		want(t, "spent", d.Attempts[0].Spent, review)
		errs, _ := sc.ship([]event.DeliveryFinish{outcome(lost, event.DeliverySent)})
		if !errors.Is(errs[0], event.ErrClaimLost) {
			t.Errorf("the dead boot's finish: %v, want ErrClaimLost", errs[0])
		}
		if review {
			want(t, "in doubt", got.InDoubt, 1)
			want(t, "state", d.State, event.DeliveryInDoubt)
			want(t, "claimed", len(sc.send(1)), 0)
			continue
		}
		want(t, "repeated", got.Deliveries, 1)
		s := sc.send(1)
		want(t, "claimed", len(s), 1)
		want(t, "the same delivery", s[0].ID, lost.ID)
		want(t, "attempts", s[0].Attempts, 1)
		want(t, "tries", s[0].Tries, 2)
		errs, _ = sc.ship([]event.DeliveryFinish{outcome(s[0], event.DeliverySent)})
		must(t, errs[0])
	}
}

// The lost attempt of a probe spends nothing.
func TestRecoverAProbeInFlight(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.deliver("a")
	must(t, sc.SaveDestination(context.Background(), sc.now, event.DestinationHealth{Name: "app", State: event.DestinationHeld}, nil, nil))
	sc.ship(nil, event.ShipmentClaim{Destination: "app", Max: 1, Probe: true})
	sc.crash("boot2")
	_, err := sc.Recover(context.Background(), sc.now, nil)
	must(t, err)
	d := sc.detail("a").Deliveries[0]
	want(t, "spent", d.Attempts[0].Spent, false)
	want(t, "attempts", d.Delivery.Attempts, 0)
	want(t, "tries", d.Tries, 1)
}

// A broken finish hurts itself only.
func TestShipOneBrokenFinish(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.deliver("a")
	sc.deliver("b")
	s := sc.send(2)
	broken := outcome(s[0], event.DeliverySent)
	broken.Attempt.Outcome = "fine" // the schema refuses it
	sc.deliver("c")
	errs, next := sc.ship([]event.DeliveryFinish{broken, outcome(s[1], event.DeliverySent)}, event.ShipmentClaim{Destination: "app", Max: 1})
	if errs[0] == nil {
		t.Error("a broken attempt was stored")
	}
	must(t, errs[1])
	want(t, "claimed", next[0].Event.ID, "c")
	want(t, "state of the broken one", sc.detail("a").Deliveries[0].State, event.DeliverySending)
}
