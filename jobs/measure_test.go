package jobs

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"creel/config"
	"creel/event"
)

// traffic is a destination that gets one event at a time and answers each with
// the status of its number.
type traffic struct {
	*fixture
	app    *app
	port   *outpost
	n      int
	answer atomic.Pointer[func(n int64) int64] // of each request, where it is set
	asked  atomic.Int64
}

func newTraffic(t *testing.T, cfg config.Destination) *traffic {
	t.Helper()
	f := newFixture(t)
	tr := &traffic{fixture: f, app: &app{clock: f.clock}}
	tr.port = newOutpost(t, func(w http.ResponseWriter, r *http.Request) {
		n := tr.asked.Add(1)
		if answer := tr.answer.Load(); answer != nil {
			tr.app.status.Store((*answer)(n))
		}
		tr.app.ServeHTTP(w, r)
	})
	cfg.URL = tr.port.url()
	f.use(cfg)
	return tr
}

// every sends n events, one each interval, to be answered as status says.
func (f *traffic) every(interval time.Duration, n int, status func(n int) int) {
	f.t.Helper()
	for range n {
		f.app.status.Store(int64(status(f.n)))
		f.n++
		f.add(1, "app")
		f.runUntil(f.clock.Now().Add(interval))
	}
}

func always(status int) func(int) int { return func(int) int { return status } }

// oneIn answers one of so many with a status, the others with another.
func oneIn(of, status, others int) func(int) int {
	return func(n int) int {
		if n%of == of-1 {
			return status
		}
		return others
	}
}

func (f *traffic) wantOutage(what string, cause event.Cause, open bool) event.OpenIncident {
	f.t.Helper()
	got := f.outages("app")
	if len(got) != 1 || got[0].Cause != cause || got[0].ResolvedAt.IsZero() != open {
		f.t.Fatalf("%s: incidents %+v, want one of %s, open: %t", what, got, cause, open)
	}
	return got[0]
}

func (f *traffic) wantState(what string, want event.DestinationState) event.DestinationHealth {
	f.t.Helper()
	health := f.health("app")
	if health.State != want {
		f.t.Fatalf("%s: %+v, want it %s", what, health, want)
	}
	return health
}

// TestGateD5Alert tells once of a share under 95 %, with its figures, whatever
// else follows from it, and once that it is over.
func TestGateD5Alert(t *testing.T) {
	t.Parallel()
	f := newTraffic(t, config.Destination{})
	f.every(30*time.Second, 19, oneIn(10, 400, 200))
	f.every(30*time.Second, 1, always(200))
	if got, dead := f.outages("app"), f.incidents(event.CauseDeadDelivery); len(got) != 0 || len(dead) != 1 || dead[0].Count != 1 {
		t.Errorf("19 of 20 are 95 %%, and one is dead: %+v, %+v", got, dead)
	}
	f.every(30*time.Second, 1, always(400))
	i := f.wantOutage("19 of 21", event.CauseDestinationFailing, true)
	if !strings.Contains(i.Detail, "19 of 21 attempts succeeded") || !strings.Contains(i.Detail, "HTTP 400") ||
		!strings.Contains(i.Detail, "last success: 2026-03-07T22:09:30Z") {
		t.Errorf("the incident says %q", i.Detail)
	}
	f.every(time.Minute, 120, oneIn(10, 400, 200))
	if again := f.wantOutage("two hours later", event.CauseDestinationFailing, true); again.ID != i.ID {
		t.Errorf("another incident: %+v", again)
	}
	f.wantState("nine of ten", event.DestinationEnabled)
	f.every(time.Minute, 62, always(200))
	f.wantOutage("all succeed", event.CauseDestinationFailing, false)
}

// A few successes among failures are not the end of them.
func TestGateD5NoAllClearInBetween(t *testing.T) {
	t.Parallel()
	f := newTraffic(t, config.Destination{})
	f.every(time.Second, 300, func(n int) int {
		if n%60 < 30 { // half a minute of each
			return 200
		}
		return 400
	})
	f.wantOutage("half of each minute", event.CauseDestinationFailing, true)
	f.every(time.Second, 540, always(200))
	f.wantOutage("nine good minutes", event.CauseDestinationFailing, true)
	f.every(time.Second, 120, always(200))
	f.wantOutage("eleven good minutes", event.CauseDestinationFailing, false)
	f.every(time.Second, 300, always(200))
	if got := f.outages("app"); len(got) != 1 {
		t.Errorf("what is over opens another one: %+v", got)
	}
}

// TestGateD5Disabled disables after an hour under 50 %, with reason, figures
// and last success; probes every 15 minutes spend and kill nothing, and the
// first success enables it. All of it is one incident.
func TestGateD5Disabled(t *testing.T) {
	t.Parallel()
	f := newTraffic(t, config.Destination{MaxInFlight: 8})
	f.every(time.Minute, 30, always(200))
	last := f.clock.Now().Add(-time.Minute)
	f.every(time.Minute, 58, oneIn(3, 200, 401))
	f.wantState("58 minutes under 50 %", event.DestinationEnabled)
	first := f.wantOutage("58 minutes", event.CauseDestinationFailing, true)
	f.every(time.Minute, 4, always(401))
	health := f.wantState("an hour", event.DestinationDisabled)
	if health.ProbeDelay != disabledProbe || health.ProbeAt.Sub(health.Since) != disabledProbe || health.LastSuccess.Before(last) {
		t.Errorf("%+v", health)
	}
	said := f.wantOutage("disabled", event.CauseDestinationDisabled, true)
	for _, part := range []string{"under 50 % for an hour", "attempts succeeded", "HTTP 401", "last success: 2026-03-07T23:", "creel resume app"} {
		if !strings.Contains(said.Detail, part) {
			t.Errorf("the incident says %q, without %q", said.Detail, part)
		}
	}
	if !strings.Contains(health.Reason, "of 59 attempts") || said.ID != first.ID {
		t.Errorf("reason %q, incidents %d and %d", health.Reason, first.ID, said.ID)
	}

	dead, asked := f.count(event.DeliveryDead), len(f.app.events)
	f.add(20, "app")
	f.runUntil(f.clock.Now().Add(4 * time.Hour))
	f.wantState("refused", event.DestinationDisabled)
	if n := len(f.app.events) - asked; n < 15 || n > 16 {
		t.Errorf("%d probes in four hours", n)
	}
	if f.count(event.DeliveryDead) != dead || f.count(event.DeliveryReady) < 20 {
		t.Errorf("%d died while it was disabled", f.count(event.DeliveryDead)-dead)
	}
	f.app.status.Store(0)
	f.app.mostBusy.Store(0)
	f.runUntil(f.clock.Now().Add(disabledProbe))
	f.wantState("a probe succeeded", event.DestinationEnabled)
	if most := f.app.mostBusy.Load(); most > 4 {
		t.Errorf("%d at once in the first minute", most)
	}
	if left := f.count(event.DeliveryReady); left != 0 {
		t.Errorf("%d are left", left)
	}
	f.wantOutage("back", event.CauseDestinationDisabled, false)
	f.every(time.Minute, 90, always(200))
	if got := f.outages("app"); len(got) != 1 {
		t.Errorf("incidents %+v", got)
	}
}

// TestGateD5Resume is its owner who enables it again: the hour begins anew, so
// that what is over disables it no second time.
func TestGateD5Resume(t *testing.T) {
	t.Parallel()
	f := newTraffic(t, config.Destination{})
	f.every(time.Minute, 62, oneIn(4, 200, 401))
	f.wantState("an hour", event.DestinationDisabled)
	f.app.status.Store(0)
	f.resume()
	f.wantState("resumed", event.DestinationEnabled)
	f.wantOutage("resumed", event.CauseDestinationDisabled, false)
	f.every(time.Minute, 15, always(200))
	f.every(time.Minute, 12, always(401))
	f.wantState("twelve failures later", event.DestinationEnabled)
	f.every(time.Minute, 70, always(401))
	f.wantState("another hour", event.DestinationDisabled)
	if got := f.outages("app"); len(got) != 2 {
		t.Errorf("incidents %+v", got)
	}
}

func (f *fixture) resume() {
	f.t.Helper()
	if _, err := f.store.Resume(context.Background(), f.clock.Now(), event.Action{Actor: "owner", Target: "app"}); err != nil {
		f.t.Fatal(err)
	}
	f.d.Refresh()
	f.settle()
}

// TestGateD5Restart restarts in the middle of the hour: it goes on, with the
// incident; so it does after the outage, before it is known to be over.
func TestGateD5Restart(t *testing.T) {
	t.Parallel()
	f := newTraffic(t, config.Destination{})
	f.every(time.Minute, 30, oneIn(3, 200, 401))
	f.crash()
	f.every(time.Minute, 20, oneIn(3, 200, 401))
	f.crash()
	f.wantState("fifty minutes", event.DestinationEnabled)
	f.every(time.Minute, 12, oneIn(3, 200, 401))
	health := f.wantState("an hour", event.DestinationDisabled)
	f.crash()
	f.runUntil(health.ProbeAt.Add(-time.Millisecond))
	if f.wantState("restarted", event.DestinationDisabled) != health {
		t.Errorf("%+v after the restart", f.health("app"))
	}
	f.app.status.Store(0)
	f.port.down()
	f.add(1, "app")
	f.runUntil(f.clock.Now().Add(time.Hour))
	f.crash()
	f.port.up()
	f.runUntil(f.clock.Now().Add(disabledProbe))
	f.wantOutage("back", event.CauseDestinationDisabled, false)
}

// TestGateD5AllClearAfterARestart stops between the first success and the end of
// the outage.
func TestGateD5AllClearAfterARestart(t *testing.T) {
	t.Parallel()
	f := newTraffic(t, config.Destination{MaxInFlight: 1, Rate: 0.02})
	f.port.down()
	f.add(4, "app")
	f.runUntil(f.clock.Now().Add(10 * time.Minute))
	f.wantState("nobody there", event.DestinationHeld)
	f.port.up()
	for f.health("app").State == event.DestinationHeld {
		f.runUntil(f.clock.Now().Add(10 * time.Second))
	}
	f.wantOutage("one success", event.CauseDestinationDown, true)
	f.crash()
	f.runUntil(f.clock.Now().Add(10 * time.Minute))
	f.wantOutage("all is sent", event.CauseDestinationDown, false)
}

// TestGateD5Flapping answers six of ten with 500, at random: it is held and
// released again and again. That is one incident, and after an hour it is
// disabled; before, nothing tells that all is well.
func TestGateD5Flapping(t *testing.T) {
	t.Parallel()
	f := newTraffic(t, config.Destination{MaxInFlight: 1})
	random := rand.New(rand.NewPCG(3, 4))
	bad := func(int64) int64 {
		if random.IntN(10) < 6 {
			return 500
		}
		return 200
	}
	f.answer.Store(&bad)
	for i := 0; i < 4*60 && f.health("app").State != event.DestinationDisabled; i++ {
		f.every(20*time.Second, 3, always(0))
		if got := f.outages("app"); len(got) > 1 || len(got) == 1 && !got[0].ResolvedAt.IsZero() {
			t.Fatalf("after %d minutes: %+v", i, got)
		}
	}
	f.wantState("for hours", event.DestinationDisabled)
	f.wantOutage("for hours", event.CauseDestinationDisabled, true)
}

// Too few attempts tell nothing, and those that never left or are about their
// own delivery say nothing about the destination.
func TestGateD5TooFew(t *testing.T) {
	t.Parallel()
	f := newTraffic(t, config.Destination{})
	f.every(4*time.Minute, 60, always(401))
	f.wantState("15 in an hour", event.DestinationEnabled)
	if got, dead := f.outages("app"), f.incidents(event.CauseDeadDelivery); len(got) != 0 || len(dead) != 1 || dead[0].Dead != 60 {
		t.Errorf("15 in an hour: %+v, %+v", got, dead)
	}
}

// A share that is too low is told when an attempt fails: not with the success
// that makes enough attempts to judge by, when all is well again.
func TestGateD5NotWithASuccess(t *testing.T) {
	t.Parallel()
	f := newTraffic(t, config.Destination{})
	f.every(30*time.Second, 4, always(400))
	f.every(30*time.Second, 40, always(200))
	if got := f.outages("app"); len(got) != 0 {
		t.Errorf("it succeeds, and is said to fail: %+v", got)
	}
	f.every(30*time.Second, 1, always(400))
	f.wantOutage("it fails again", event.CauseDestinationFailing, true)
}

// The signal judges by the same attempts as the incident: not by those of
// trouble that is over.
func TestDeliverySuccessIsTheIncidents(t *testing.T) {
	t.Parallel()
	f := newTraffic(t, config.Destination{})
	now := f.clock.Now()
	f.tally.Count(event.TallyFailed, "app", 30)
	s := NewSignals(SignalOptions{Tally: f.tally, Clock: f.clock.Now})
	if m := s.success("app", time.Time{}, now); !m.starts || m.Value != 0 {
		t.Errorf("30 of 30 failed: %+v", m)
	}
	if m := s.success("app", now, now.Add(time.Minute)); m.starts || !m.ends || m.Value != 100 {
		t.Errorf("they belong to trouble that is over: %+v", m)
	}
}

// An hour with a good while in it is not an hour under 50 %, though its share is:
// the hour begins anew after it.
func TestGateD5NotSustained(t *testing.T) {
	t.Parallel()
	f := newTraffic(t, config.Destination{})
	f.every(time.Minute, 20, always(401))
	f.every(time.Minute, 20, oneIn(4, 401, 200))
	f.every(time.Minute, 57, always(401))
	f.wantState("57 minutes after a good while", event.DestinationEnabled)
	f.wantOutage("57 minutes after a good while", event.CauseDestinationFailing, true)
	f.every(time.Minute, 5, always(401))
	f.wantState("an hour after it", event.DestinationDisabled)
}
