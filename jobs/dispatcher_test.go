package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"creel/config"
	"creel/deliver"
	"creel/event"
	"creel/internal/testkit"
	"creel/store"
)

// faultyOutbox is the real store behind faults: each write may fail before it
// is done or, its answer lost, after.
type faultyOutbox struct {
	*store.Store
	mu     sync.Mutex
	writes int
	before func(n int) error
	after  func(n int) error
}

func (o *faultyOutbox) Ship(ctx context.Context, now time.Time, finishes []event.DeliveryFinish, claims []event.ShipmentClaim) ([]error, []event.Shipment, error) {
	o.mu.Lock()
	o.writes++
	n := o.writes
	o.mu.Unlock()
	if o.before != nil {
		if err := o.before(n); err != nil {
			return nil, nil, err
		}
	}
	errs, shipments, err := o.Store.Ship(ctx, now, finishes, claims)
	if o.after != nil && err == nil && len(claims) == 0 {
		if err := o.after(n); err != nil {
			return nil, nil, err
		}
	}
	return errs, shipments, err
}

func (o *faultyOutbox) SaveDestination(ctx context.Context, now time.Time, d event.DestinationHealth, open, over *event.Incident) error {
	o.mu.Lock()
	o.writes++
	n := o.writes
	o.mu.Unlock()
	if o.before != nil {
		if err := o.before(n); err != nil {
			return err
		}
	}
	return o.Store.SaveDestination(ctx, now, d, open, over)
}

func (f *fixture) faulty(before, after func(int) error) *faultyOutbox {
	o := &faultyOutbox{Store: f.store, before: before, after: after}
	f.wrap = func(*store.Store) Outbox { return o }
	return o
}

// TestStoreFails lets the n-th write fail for n = 1, 2, … until none does.
// Nothing is lost, nothing is sent twice.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	for n, failed := 1, true; failed; n++ {
		app := testkit.NewDestination(t)
		f := newFixture(t)
		failed = false
		fail := func(i int) error {
			if i == n {
				failed = true
				return fmt.Errorf("write %d: %w", n, event.ErrUnavailable)
			}
			return nil
		}
		f.faulty(fail, nil)
		f.use(config.Destination{URL: app.URL, MaxInFlight: 1})
		f.add(5, "app")
		for range 200 {
			_, err := f.d.Step(context.Background(), f.clock.Now())
			if err != nil && !errors.Is(err, event.ErrUnavailable) {
				t.Fatal(err)
			}
			testkit.Poll(t, 10*time.Second, "the attempts", func() bool { return f.flying() == 0 })
			if f.count(event.DeliverySent) == 5 {
				break
			}
		}
		if sent := f.count(event.DeliverySent); sent != 5 || app.Count() != 5 {
			t.Errorf("write %d failed: %d sent, %d requests", n, sent, app.Count())
		}
		if n > 100 {
			t.Fatal("every write fails")
		}
	}
}

// TestStoreAnswerLost finishes again what was finished already: the claim is
// gone, and nothing is sent twice.
func TestStoreAnswerLost(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	f := newFixture(t)
	lost := 0
	f.faulty(nil, func(int) error {
		if lost++; lost == 1 {
			return event.ErrUnavailable
		}
		return nil
	})
	f.use(config.Destination{URL: app.URL})
	f.add(5, "app")
	for range 20 {
		_, _ = f.d.Step(context.Background(), f.clock.Now())
		testkit.Poll(t, 10*time.Second, "the attempts", func() bool { return f.flying() == 0 })
	}
	if f.count(event.DeliverySent) != 5 || app.Count() != 5 || lost == 0 {
		t.Errorf("%d sent, %d requests, %d answers lost", f.count(event.DeliverySent), app.Count(), lost)
	}
	if !strings.Contains(f.logs.String(), "somebody else settled this delivery") {
		t.Error("nothing says that the claim was gone")
	}
}

// TestIdleWritesNothing steps a dispatcher that has nothing to do, and one
// whose destination is paused.
func TestIdleWritesNothing(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	f := newFixture(t)
	o := f.faulty(nil, nil)
	f.use(config.Destination{URL: app.URL})
	f.add(3, "app")
	f.settle()
	idle := func(what string) {
		before := o.writes
		for range 50 {
			f.d.lookAgain()
			f.clock.Advance(time.Minute)
			if next := f.settle(); !next.IsZero() {
				t.Fatalf("%s: it wants to be called at %s", what, next)
			}
		}
		if o.writes != before {
			t.Errorf("%s: %d writes", what, o.writes-before)
		}
	}
	idle("nothing waits")
	if _, err := f.store.Pause(context.Background(), f.clock.Now(), event.Action{Actor: "owner", Target: "app"}); err != nil {
		t.Fatal(err)
	}
	f.d.Refresh()
	f.add(3, "app")
	idle("paused")
}

// TestBugJOB05 has an attempt that panics: it ends in the dead letters, the
// healthy ones beside it arrive.
func TestBugJOB05(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	f := newFixture(t)
	f.use(config.Destination{URL: app.URL})
	f.routes[0].Carrier = poison{f.routes[0].Carrier, "s//evt_000002"}
	f.dispatcher()
	f.add(4, "app")
	f.settle()
	if f.delivery(2).State != event.DeliveryDead || f.count(event.DeliverySent) != 3 {
		t.Errorf("%+v, %d sent", f.delivery(2), f.count(event.DeliverySent))
	}
}

// poison panics on one event.
type poison struct {
	Carrier
	event string
}

func (p poison) Attempt(ctx context.Context, s event.Shipment, now time.Time) deliver.Result {
	if s.Event.String() == p.event {
		panic("poison")
	}
	return p.Carrier.Attempt(ctx, s, now)
}

// TestHandoff takes deliveries that were born claimed, within the places and
// what may be claimed ahead of them; a destination whose doubts are reviewed
// has nothing ahead.
func TestHandoff(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	app := testkit.NewDestination(t)
	app.Script(testkit.Answer{Wait: hold})
	f := newFixture(t)
	f.use(config.Destination{URL: app.URL, MaxInFlight: 2, OnDoubt: "review"})
	if f.d.Reserve("app") {
		t.Error("a place before the destinations were read")
	}
	f.settle()
	if f.d.Reserve("nobody") {
		t.Error("a place at a destination that is not there")
	}
	if !f.d.Reserve("app") || !f.d.Reserve("app") || f.d.Reserve("app") {
		t.Fatal("there are two places")
	}
	f.d.Unreserve("app")
	if !f.d.Reserve("app") {
		t.Fatal("a place that was given back is gone")
	}
	shipments := f.born(2)
	f.d.Hand(shipments)
	app.Wait(t, 2, 10*time.Second)
	f.add(1, "app")
	if f.d.Reserve("app") {
		t.Error("a third place")
	}
	close(hold)
	f.settle()
	if sent := f.count(event.DeliverySent); sent != 3 || app.MostBusy() > 2 {
		t.Errorf("%d sent, %d at once", sent, app.MostBusy())
	}
	if !f.d.Reserve("app") {
		t.Error("no place when all is done")
	}
}

// TestHandoffAhead keeps what was born beyond the places in memory and sends
// it when a place is free, never more at once than the places.
func TestHandoffAhead(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	f := newFixture(t)
	f.use(config.Destination{URL: app.URL, MaxInFlight: 2})
	f.settle()
	reserved := 0
	for f.d.Reserve("app") {
		reserved++
	}
	if reserved != 2+mostAhead {
		t.Fatalf("%d were reserved, want %d", reserved, 2+mostAhead)
	}
	f.d.Hand(f.born(reserved))
	app.Wait(t, reserved, 20*time.Second)
	f.settle()
	if sent := f.count(event.DeliverySent); sent != reserved || app.MostBusy() > 2 {
		t.Errorf("%d sent, %d at once", sent, app.MostBusy())
	}
}

// TestOnlyWhatCameBackByItselfIsTreatedGently: a destination that answers a
// probe may still be weak; one that its owner resumed is not.
func TestOnlyWhatCameBackByItselfIsTreatedGently(t *testing.T) {
	t.Parallel()
	now := startTime()
	h := health{}
	h.State, h.Since = event.DestinationHeld, now.Add(-time.Hour)
	if h.alive(now) == nil {
		t.Fatal("a held destination that answers is not released")
	}
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{0, 4}, {gentle - time.Second, 4}, {gentle, 8}} {
		if got := h.limit(8, now.Add(c.after)); got != c.want {
			t.Errorf("%s after it came back its limit is %d, want %d", c.after, got, c.want)
		}
	}
	h.adopt(event.DestinationHealth{State: event.DestinationEnabled, Since: now}, nil)
	if got := h.limit(8, now); got != 8 {
		t.Errorf("a resumed destination has %d places, want 8", got)
	}
}

// TestHandoffWaitsItsTurn refuses places while others are due.
func TestHandoffWaitsItsTurn(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	f := newFixture(t)
	f.use(config.Destination{URL: app.URL})
	f.settle()
	f.add(1, "app")
	f.d.lookAgain()
	if f.d.Reserve("app") {
		t.Error("a place before one that may be due")
	}
	if err := f.d.read(context.Background()); err != nil {
		t.Fatal(err)
	}
	if f.d.Reserve("app") {
		t.Error("a place before one that is due")
	}
}

// TestHandoffToHeld gives back, unspent, what was born for a destination that
// was held meanwhile.
func TestHandoffToHeld(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	f := newFixture(t)
	f.use(config.Destination{URL: app.URL})
	f.settle()
	if !f.d.Reserve("app") {
		t.Fatal("no place")
	}
	born := f.born(1)
	if _, err := f.store.Pause(context.Background(), f.clock.Now(), event.Action{Actor: "owner", Target: "app"}); err != nil {
		t.Fatal(err)
	}
	f.d.Refresh()
	f.settle()
	f.d.Hand(born)
	f.settle()
	if d := f.delivery(born[0].ID); d.State != event.DeliveryReady || d.Attempts != 0 || d.Tries != 0 || app.Count() != 0 {
		t.Errorf("%+v, %d requests", d, app.Count())
	}
}

// born stores n events whose deliveries are born claimed.
func (f *fixture) born(n int) []event.Shipment {
	f.t.Helper()
	ctx, now := context.Background(), f.clock.Now()
	f.events++
	receipt := &event.Receipt{Source: "s", Origin: event.FromWebhook, At: now, Body: []byte(`{}`)}
	for i := range n {
		receipt.Items = append(receipt.Items, event.Item{Key: event.Key{Source: "s", ID: fmt.Sprintf("born_%d_%d", f.events, i)},
			Type: "t", State: event.Pending})
	}
	if _, err := f.store.Accept(ctx, receipt); err != nil {
		f.t.Fatal(err)
	}
	_, works, err := f.store.Settle(ctx, now, nil, n)
	if err != nil || len(works) != n {
		f.t.Fatalf("%d claimed: %v", len(works), err)
	}
	var finishes []event.Finish
	for _, work := range works {
		finishes = append(finishes, event.Finish{Seq: work.Seq, Claim: work.Claim, Run: work.Run, State: event.Done,
			Effects: []event.Effect{event.Forward{Key: work.Key.String() + "/r", Rule: "r", Destination: "app", Claimed: true}}})
	}
	finished, _, err := f.store.Settle(ctx, now, finishes, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	var out []event.Shipment
	for i := range finished {
		for _, s := range finished[i].Shipments {
			s.Payload, s.Type = works[i].Payload, works[i].Type
			out = append(out, s)
		}
	}
	if len(out) != n {
		f.t.Fatalf("%d of %d born claimed", len(out), n)
	}
	return out
}

// TestConfigure adds, changes and removes destinations under way.
func TestConfigure(t *testing.T) {
	t.Parallel()
	one, two := testkit.NewDestination(t), testkit.NewDestination(t)
	f := newFixture(t)
	f.use(config.Destination{URL: one.URL})
	f.add(3, "app", "later")
	f.settle()
	if one.Count() != 3 || f.count(event.DeliveryReady) != 3 {
		t.Fatalf("%d requests, %d ready", one.Count(), f.count(event.DeliveryReady))
	}
	if err := f.d.Configure([]Route{routeOf(t, "later", config.Destination{URL: two.URL, MaxInFlight: 1}, f.clock.Now)}); err != nil {
		t.Fatal(err)
	}
	f.add(2, "app", "later")
	f.settle()
	if one.Count() != 3 || two.Count() != 5 || f.count(event.DeliveryReady) != 2 {
		t.Errorf("%d and %d requests, %d ready", one.Count(), two.Count(), f.count(event.DeliveryReady))
	}
	if err := f.d.Configure([]Route{{Name: "x"}}); err == nil {
		t.Error("a route without a carrier")
	}
}

// TestNoErrorLinePerAttempt logs at error level only the end of a delivery.
func TestNoErrorLinePerAttempt(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	app.Script(testkit.Answer{Status: 500})
	f := newFixture(t)
	f.use(config.Destination{URL: app.URL})
	f.add(1, "app")
	f.runUntil(startTime().Add(3 * time.Hour))
	lines := strings.Split(strings.TrimSpace(f.logs.String()), "\n")
	errorLines, retries := 0, 0
	for _, line := range lines {
		if strings.Contains(line, `"level":"error"`) {
			errorLines++
		}
		if strings.Contains(line, "delivery will be tried again") {
			retries++
		}
		if strings.Contains(line, "delivery") && !strings.Contains(line, `"event":"s//evt_000001"`) {
			t.Errorf("a line without its event: %s", line)
		}
	}
	if errorLines != 1 || retries != 5 {
		t.Errorf("%d error lines, %d retries: %s", errorLines, retries, f.logs.String())
	}
}

func TestNewDispatcherNeeds(t *testing.T) {
	t.Parallel()
	if _, err := NewDispatcher(DispatcherOptions{}); !errors.Is(err, errNoOutbox) {
		t.Errorf("%v", err)
	}
}
