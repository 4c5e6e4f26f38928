package jobs

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"creel/config"
	"creel/event"
	"creel/internal/testkit"
)

// TestBugJOB06 restarts between every attempt of a failing delivery: six
// attempts on their schedule, no more.
func TestBugJOB06(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	app.Script(testkit.Answer{Status: 500})
	f := newFixture(t)
	f.use(config.Destination{URL: app.URL})
	f.add(1, "app")
	for range 20 {
		next := f.settle()
		f.crash()
		if next.IsZero() {
			next = f.clock.Now().Add(time.Hour)
		}
		f.clock.Set(next)
	}
	if got, want := f.offsets(1), schedules()[PolicyDefault]; !slices.Equal(got, want) {
		t.Errorf("attempts at %v, want %v", got, want)
	}
	if d := f.delivery(1); d.State != event.DeliveryDead || d.Attempts != 6 || app.Count() != 6 {
		t.Errorf("%d requests, %+v", app.Count(), d)
	}
	if got := f.incidents(event.CauseDeadDelivery); len(got) != 1 || got[0].Count != 1 {
		t.Errorf("incidents %+v", got)
	}
}

// TestGateD6 stops dead between the send and its mark. The next boot sends
// once more under the same identity, or, with review, not at all.
func TestGateD6(t *testing.T) {
	t.Parallel()
	for doubt, want := range map[string]struct {
		state    event.DeliveryState
		requests int
	}{
		"retry":  {event.DeliverySent, 2},
		"review": {event.DeliveryInDoubt, 1},
	} {
		app := testkit.NewDestination(t)
		f := newFixture(t)
		f.use(config.Destination{URL: app.URL, OnDoubt: doubt})
		f.add(1, "app")
		if _, err := f.d.Step(context.Background(), f.clock.Now()); err != nil {
			t.Fatal(err)
		}
		app.Wait(t, 1, 10*time.Second)
		testkit.Poll(t, 10*time.Second, "the attempt's end", f.unwritten)
		f.crash()
		f.runUntil(startTime().Add(time.Hour))
		got := app.Requests()
		if d := f.delivery(1); d.State != want.state || len(got) != want.requests {
			t.Errorf("%s: %d requests, %+v", doubt, len(got), d)
		}
		for _, request := range got {
			if request.ID() != got[0].ID() {
				t.Errorf("%s: sent as %s and %s", doubt, got[0].ID(), request.ID())
			}
		}
		attempts := f.attempts(1)
		if len(attempts) != want.requests || attempts[0].Outcome != event.Unknown {
			t.Errorf("%s: attempts %+v", doubt, attempts)
		}
	}
}

// TestGateD6Ahead stops dead while deliveries are claimed and not yet sent.
// With review none of them can be mistaken for one that was sent.
func TestGateD6Ahead(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	app := testkit.NewDestination(t)
	app.Script(testkit.Answer{Wait: hold})
	f := newFixture(t)
	f.use(config.Destination{URL: app.URL, OnDoubt: "review", MaxInFlight: 2})
	f.add(50, "app")
	if _, err := f.d.Step(context.Background(), f.clock.Now()); err != nil {
		t.Fatal(err)
	}
	app.Wait(t, 2, 10*time.Second)
	old := f.d
	f.crash()
	if doubt := f.count(event.DeliveryInDoubt); doubt != 2 {
		t.Errorf("%d in doubt, 2 were in flight", doubt)
	}
	close(hold)
	f.runUntil(startTime().Add(time.Minute))
	testkit.Poll(t, 10*time.Second, "the old boot's attempts", func() bool {
		old.mu.Lock()
		defer old.mu.Unlock()
		return old.flying == 0
	})
	if sent := f.count(event.DeliverySent); sent != 48 || app.Count() != 50 {
		t.Errorf("%d sent, %d requests", sent, app.Count())
	}
}

// TestGateD3Replay verifies our signature with the official library on
// attempt 6 and on a replay of the next day: one webhook-id on all.
func TestGateD3Replay(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	app.Answer(func(r testkit.Received) testkit.Answer {
		return testkit.Answer{Status: map[bool]int{true: 500, false: 200}[r.Number <= 6]}
	})
	f := newFixture(t)
	f.use(config.Destination{URL: app.URL})
	f.add(1, "app")
	f.runUntil(startTime().Add(24 * time.Hour))
	if d := f.delivery(1); d.State != event.DeliveryDead {
		t.Fatalf("%+v", d)
	}
	action := event.Action{Actor: "owner", Reason: "repaired", Selector: event.Selector{State: event.Dead}}
	if _, err := f.store.Replay(context.Background(), f.clock.Now(), action); err != nil {
		t.Fatal(err)
	}
	testkit.Poll(t, 20*time.Second, "the replay", func() bool {
		f.settle()
		return f.delivery(1).State == event.DeliverySent
	})
	official, err := standardwebhooks.NewWebhook(testSecret)
	if err != nil {
		t.Fatal(err)
	}
	requests := app.Requests()
	stamps := map[string]bool{}
	for _, request := range requests {
		if err := official.VerifyIgnoringTimestamp(request.Body, request.Header); err != nil {
			t.Errorf("attempt %d: %v", request.Number, err)
		}
		if request.ID() != requests[0].ID() || string(request.Body) != `{"ok":true}` {
			t.Errorf("attempt %d: %s %q", request.Number, request.ID(), request.Body)
		}
		stamps[request.Header.Get("webhook-timestamp")] = true
	}
	if len(requests) != 7 || len(stamps) != 7 {
		t.Errorf("%d requests with %d timestamps", len(requests), len(stamps))
	}
	if d := f.delivery(1); d.Run != 2 || d.Attempts != 1 || requests[6].Header.Get("Creel-Attempt") != "1" {
		t.Errorf("%+v", d)
	}
	if n := len(f.attempts(1)); n != 7 {
		t.Errorf("%d attempt rows", n)
	}
}

// stopFixture has n deliveries, two of them in flight at a destination that
// answers when hold is closed.
func stopFixture(t *testing.T, n int, cfg config.Destination) (f *fixture, app *testkit.Destination, hold chan struct{}, stop func()) {
	t.Helper()
	hold = make(chan struct{})
	app = testkit.NewDestination(t)
	app.Script(testkit.Answer{Wait: hold})
	f = newFixture(t)
	cfg.URL, cfg.MaxInFlight = app.URL, 2
	f.grace = 200 * time.Millisecond
	f.use(cfg)
	f.add(n, "app")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); f.d.Run(ctx) }()
	app.Wait(t, 2, 10*time.Second)
	return f, app, hold, func() {
		t.Helper()
		cancel()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Fatal("the stop does not end")
		}
	}
}

// TestStopWaits finishes what ends within the grace and gives the rest back
// with nothing spent.
func TestStopWaits(t *testing.T) {
	t.Parallel()
	f, app, hold, stop := stopFixture(t, 40, config.Destination{})
	f.d.mu.Lock()
	f.d.opt.Grace = 20 * time.Second
	f.d.stopping = true // so that no third one starts when the two end
	f.d.mu.Unlock()
	close(hold)
	stop()
	if f.count(event.DeliverySent) != 2 || f.count(event.DeliveryReady) != 38 || app.Count() != 2 {
		t.Errorf("%d sent, %d ready, %d requests", f.count(event.DeliverySent), f.count(event.DeliveryReady), app.Count())
	}
	for id := int64(1); id <= 40; id++ {
		if d := f.delivery(id); d.State == event.DeliveryReady && (d.Attempts != 0 || d.Tries != 0) {
			t.Errorf("a delivery that was not sent spent %+v", d)
		}
	}
	if f.d.Reserve("app") {
		t.Error("a place after the stop")
	}
}

// TestStopInterrupts ends what is in flight after the grace: it was written,
// so it follows on_doubt.
func TestStopInterrupts(t *testing.T) {
	t.Parallel()
	for doubt, want := range map[string]event.DeliveryState{"retry": event.DeliveryReady, "review": event.DeliveryInDoubt} {
		f, _, _, stop := stopFixture(t, 40, config.Destination{OnDoubt: doubt, Timeout: config.Duration(time.Minute)})
		stop()
		for id := int64(1); id <= 2; id++ {
			d := f.delivery(id)
			attempts := f.attempts(id)
			if d.State != want || d.Attempts != 1 || len(attempts) != 1 || attempts[0].Outcome != event.Unknown ||
				!strings.Contains(attempts[0].Error, "stop of the server") {
				t.Errorf("%s: %+v %+v", doubt, d, attempts)
			}
		}
		for id := int64(3); id <= 40; id++ {
			if d := f.delivery(id); d.State != event.DeliveryReady || d.Attempts != 0 || d.Tries != 0 {
				t.Errorf("%s: %+v", doubt, d)
			}
		}
		if health := f.health("app"); health.State != event.DestinationEnabled {
			t.Errorf("%s: the stop counts as an outage: %+v", doubt, health)
		}
	}
}

// TestBugJOB04 has deliveries that were given back due at once, not at the end
// of any lease, and failed ones at their retry time.
func TestBugJOB04(t *testing.T) {
	t.Parallel()
	f, app, hold, stop := stopFixture(t, 5, config.Destination{})
	stop()
	close(hold)
	app.Script(testkit.Answer{})
	f.crash()
	f.settle()
	if sent := f.count(event.DeliverySent); sent != 3 {
		t.Errorf("%d of 3 sent at once after the restart", sent)
	}
	f.runUntil(startTime().Add(5*time.Second - time.Millisecond))
	if sent := f.count(event.DeliverySent); sent != 3 {
		t.Errorf("%d sent before their slot", sent-3)
	}
	f.runUntil(startTime().Add(5*time.Second + time.Second/2))
	if sent := f.count(event.DeliverySent); sent != 5 {
		t.Errorf("%d of 5 sent at their slot", sent)
	}
}

// TestBugJOB08 has a target down for a minute with 1000 events: nothing comes
// before its slot, and no more than the limit come at once.
func TestBugJOB08(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.jitter = 0.5
	site := &app{clock: f.clock}
	port := newOutpost(t, func(w http.ResponseWriter, r *http.Request) { site.ServeHTTP(w, r) })
	site.status.Store(503)
	f.use(config.Destination{URL: port.url(), MaxInFlight: 8})
	f.add(1000, "app")
	f.runUntil(startTime().Add(time.Minute))
	early := len(site.events)
	site.status.Store(0)
	f.runUntil(startTime().Add(10 * time.Minute))
	if sent := f.count(event.DeliverySent); sent != 1000 {
		t.Errorf("%d of 1000 sent", sent)
	}
	if early > 8+holdFailures+5 {
		t.Errorf("%d requests into the outage", early)
	}
	if most := site.mostBusy.Load(); most > 8 {
		t.Errorf("%d requests at once", most)
	}
	for id := int64(1); id <= 20; id++ {
		attempts := f.attempts(id)
		for i := 1; i < len(attempts); i++ {
			if attempts[i].Spent && attempts[i-1].Spent && attempts[i].Start.Sub(attempts[i-1].Start) < 5*time.Second {
				t.Errorf("delivery %d: attempts at %s and %s", id, attempts[i-1].Start, attempts[i].Start)
			}
		}
	}
}

// TestGateD6KillsSpendNothing kills one boot after the other while deliveries
// are on their way or claimed ahead of it. None of that is the destination's
// doing: each has all of its attempts left.
func TestGateD6KillsSpendNothing(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	app := testkit.NewDestination(t)
	app.Script(testkit.Answer{Wait: hold})
	f := newFixture(t)
	f.use(config.Destination{URL: app.URL, MaxInFlight: 1})
	const deliveries = 5
	f.add(deliveries, "app")
	attempts := BuiltInPolicies()[PolicyDefault].Attempts
	var old []*Dispatcher
	for boot := range attempts + 1 {
		f.d.lookAgain()
		if _, err := f.d.Step(context.Background(), f.clock.Now()); err != nil {
			t.Fatal(err)
		}
		app.Wait(t, boot+1, 10*time.Second)
		old = append(old, f.d)
		f.crash()
	}
	app.Script(testkit.Answer{Status: 500})
	close(hold)
	for _, d := range old {
		testkit.Poll(t, 10*time.Second, "the old boot's attempts", func() bool {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.flying == 0
		})
	}
	f.settle()
	if dead := f.count(event.DeliveryDead); dead != 0 {
		t.Errorf("%d are dead after one answer", dead)
	}
	spent := 0
	for _, attempt := range f.attempts(1) {
		if attempt.Spent {
			spent++
		}
	}
	if d := f.delivery(1); spent != 1 || d.Attempts != 1 || d.Tries != attempts+2 {
		t.Errorf("%d attempts are spent: %+v", spent, d)
	}
}
