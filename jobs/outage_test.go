package jobs

import (
	"context"
	"flag"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"creel/config"
	"creel/event"
	"creel/internal/testkit"
)

// app is a destination that notes in which order it was asked, and how many
// asked at once.
type app struct {
	mu       sync.Mutex
	events   []string
	at       []time.Time
	busy     atomic.Int64
	mostBusy atomic.Int64
	clock    *testkit.Clock
	status   atomic.Int64
}

func (a *app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	busy := a.busy.Add(1)
	defer a.busy.Add(-1)
	a.mu.Lock()
	a.events = append(a.events, r.Header.Get("Creel-Event"))
	a.at = append(a.at, a.clock.Now())
	a.mostBusy.Store(max(a.mostBusy.Load(), busy))
	a.mu.Unlock()
	if status := int(a.status.Load()); status != 0 {
		w.WriteHeader(status)
	}
}

// outage is a destination that is down for eight hours with n events waiting,
// in lanes where there are any.
func outage(t *testing.T, n, lanes int, cfg config.Destination) (*fixture, *app) {
	t.Helper()
	f := newFixture(t)
	f.lanes, f.slow = lanes, lanes > 0
	site := &app{clock: f.clock}
	port := newOutpost(t, site.ServeHTTP)
	port.down()
	cfg.URL = port.url()
	f.use(cfg)
	f.add(n, "app")
	up := startTime().Add(8 * time.Hour)
	f.runUntil(up.Add(-time.Millisecond))
	checkHeld(t, f, n)
	port.up()
	return f, site
}

func checkHeld(t *testing.T, f *fixture, n int) {
	t.Helper()
	health := f.health("app")
	if health.State != event.DestinationDisabled || health.ProbeDelay != disabledProbe || !strings.Contains(health.Reason, "refused") {
		t.Fatalf("after eight hours: %+v", health)
	}
	if ready, behind := f.count(event.DeliveryReady), f.count(event.DeliveryWaiting); ready+behind != n || f.lanes > 0 && ready > f.lanes {
		t.Errorf("%d of %d deliveries wait, %d of them behind others", ready+behind, n, behind)
	}
	most := 0
	for id := int64(1); id <= int64(min(n, 200)); id++ {
		most = max(most, f.delivery(id).Attempts)
	}
	if most > holdSilent {
		t.Errorf("a delivery spent %d attempts on an outage", most)
	}
	if got := f.outages("app"); len(got) != 1 || !got[0].ResolvedAt.IsZero() || got[0].Count != 1 || got[0].Cause != event.CauseDestinationDisabled {
		t.Errorf("incidents %+v", got)
	}
}

func checkReturned(t *testing.T, f *fixture, site *app, n int) {
	t.Helper()
	if sent := f.count(event.DeliverySent); sent != n || len(site.events) != n {
		t.Errorf("%d of %d deliveries sent, %d requests", sent, n, len(site.events))
	}
	if got := f.outages("app"); len(got) != 1 || got[0].ResolvedAt.IsZero() {
		t.Errorf("incidents %+v", got)
	}
	health := f.health("app")
	if health.State != event.DestinationEnabled || health.LastSuccess.IsZero() {
		t.Errorf("%+v", health)
	}
	back, up := health.Since, startTime().Add(8*time.Hour)
	if wait := back.Sub(up); wait > disabledProbe {
		t.Errorf("found again %s after it came back", wait)
	}
}

// TestGateD4 has a destination down for eight hours with 3, 20 and 3,000
// events: held, nothing spent or lost, one incident and one all-clear, and on
// its return the queue drains in order within half of the in-flight limit.
func TestGateD4(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 20, 3_000} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			f, site := outage(t, n, 0, config.Destination{MaxInFlight: 8, ConnectTimeout: config.Duration(time.Second)})
			f.runUntil(startTime().Add(8*time.Hour + 20*time.Minute))
			checkReturned(t, f, site, n)
			if most := site.mostBusy.Load(); most > 4 {
				t.Errorf("%d requests at once in the first minute, half of the limit is 4", most)
			}
			// Eight were in flight and two took the places of the first failures
			// before the third began the hold; three fly beside each.
			checkProbe(t, site.events, 8+2)
			checkOrder(t, site.events[1:], 8+2+3)
		})
	}
}

var backlog = flag.Int("backlog", 20_000, "how many deliveries TestGateD4Everything has waiting")

// TestGateD4Everything is the same with a rate and lanes, each of which drains
// in its order, one at a time; in the long form (-backlog=100000) with 100,000.
func TestGateD4Everything(t *testing.T) {
	t.Parallel()
	n, lanes, rate := *backlog, *backlog/100, *backlog/50
	if testing.Short() {
		n, lanes, rate = 3_000, 30, 200 // under the race detector
	}
	f, site := outage(t, n, lanes, config.Destination{MaxInFlight: 64, Rate: config.Rate(rate), ConnectTimeout: config.Duration(time.Second)})
	f.runUntil(startTime().Add(8*time.Hour + 20*time.Minute))
	checkReturned(t, f, site, n)
	checkLanes(t, f, site)
	checkRate(t, site, rate)
	if most := site.mostBusy.Load(); most > 32 {
		t.Errorf("%d requests at once in the first minute, half of the limit is 32", most)
	}
}

// checkLanes demands that the events of each lane came in their order.
func checkLanes(t *testing.T, f *fixture, site *app) {
	t.Helper()
	last := map[string]string{}
	for _, key := range site.events {
		lane := f.laneOf(strings.TrimPrefix(key, "s//"))
		if key <= last[lane] {
			t.Fatalf("%s came after %s of its lane", key, last[lane])
		}
		last[lane] = key
	}
	if len(last) != f.lanes {
		t.Errorf("%d of %d lanes", len(last), f.lanes)
	}
}

// checkRate demands that no second had more than a rate allows, with what may
// start at once, and that the drain took no longer than it has to.
func checkRate(t *testing.T, site *app, rate int) {
	t.Helper()
	burst := max(1, int(float64(rate)*burstTime.Seconds()))
	perSecond := map[int64]int{}
	for _, at := range site.at {
		perSecond[at.Unix()]++
	}
	for second, n := range perSecond {
		if n > rate+burst {
			t.Errorf("%d requests in second %d at a rate of %d/s", n, second, rate)
		}
	}
	want := time.Duration(len(site.at)/rate) * time.Second
	if took := site.at[len(site.at)-1].Sub(site.at[0]); took < want-time.Second || took > want+want/5+2*time.Second {
		t.Errorf("%d deliveries at %d/s took %s", len(site.at), rate, took)
	}
}

// TestGateD4Rate drains at the destination's rate.
func TestGateD4Rate(t *testing.T) {
	t.Parallel()
	f, site := outage(t, 300, 0, config.Destination{MaxInFlight: 8, Rate: 20})
	f.runUntil(startTime().Add(8*time.Hour + 20*time.Minute))
	checkReturned(t, f, site, 300)
	checkRate(t, site, 20)
}

// TestGateD4Restart is an app that is away for two minutes: what waits costs
// no more than the probe interval, and no attempts.
func TestGateD4Restart(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	site := &app{clock: f.clock}
	port := newOutpost(t, site.ServeHTTP)
	f.use(config.Destination{URL: port.url()})
	f.add(10, "app")
	f.settle()
	port.down()
	f.add(50, "app")
	f.runUntil(startTime().Add(2 * time.Minute))
	port.up()
	f.runUntil(startTime().Add(10 * time.Minute))
	if sent := f.count(event.DeliverySent); sent != 60 {
		t.Errorf("%d of 60 sent", sent)
	}
	// Probes come after 5, 10, 20, 40 and 80 s: at 155 s at the latest.
	if last := site.at[len(site.at)-1].Sub(startTime()); last > 156*time.Second {
		t.Errorf("the last one arrived after %s", last)
	}
}

// TestHeldOutlivesRestart goes on with the same probes after a restart, with
// the one incident.
func TestHeldOutlivesRestart(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	site := &app{clock: f.clock}
	port := newOutpost(t, site.ServeHTTP)
	port.down()
	f.use(config.Destination{URL: port.url()})
	f.add(5, "app")
	f.runUntil(startTime().Add(20 * time.Second))
	before := f.health("app")
	f.crash()
	f.settle()
	if after := f.health("app"); after != before || after.State != event.DestinationHeld {
		t.Errorf("held as %+v, after the restart %+v", before, after)
	}
	spent := f.delivery(5).Attempts
	f.runUntil(before.ProbeAt.Add(-time.Millisecond))
	if len(site.events) != 0 || f.delivery(5).Attempts != spent {
		t.Errorf("something went out before the probe")
	}
	port.up()
	f.runUntil(before.ProbeAt.Add(time.Minute))
	if sent := f.count(event.DeliverySent); sent != 5 {
		t.Errorf("%d of 5 sent", sent)
	}
	if got := f.incidents(event.CauseDestinationDown); len(got) != 1 || got[0].ResolvedAt.IsZero() {
		t.Errorf("incidents %+v", got)
	}
}

// TestProbesSpendNothing counts the probes of an outage as tries and not as
// attempts, at 5 s and then doubling to 5 min.
func TestProbesSpendNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	port := newOutpost(t, func(http.ResponseWriter, *http.Request) {})
	port.down()
	f.use(config.Destination{URL: port.url(), MaxInFlight: 1})
	f.add(4, "app")
	f.runUntil(startTime().Add(time.Hour))
	var probes []time.Duration
	for id := int64(1); id <= 4; id++ {
		for _, attempt := range f.attempts(id) {
			if !attempt.Spent {
				probes = append(probes, attempt.Start.Sub(startTime()))
			}
		}
	}
	slices.Sort(probes)
	var want []time.Duration
	delay := firstProbe
	for at := delay; at <= time.Hour; at += delay {
		want = append(want, at)
		delay = min(2*delay, longestProbe)
	}
	if !slices.Equal(probes, want) {
		t.Errorf("probes at %v, want %v", probes, want)
	}
	for id := int64(1); id <= 4; id++ {
		if d := f.delivery(id); d.Attempts > 1 || d.State != event.DeliveryReady {
			t.Errorf("%+v", d)
		}
	}
}

// TestHoldByFailures holds after five transient answers in a row over three
// events, and disables after an hour of them; one event, or two, that fail alone spend their attempts and die.
func TestHoldByFailures(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]event.DestinationState{
		1: event.DestinationEnabled, 2: event.DestinationEnabled, 3: event.DestinationDisabled, 10: event.DestinationDisabled,
	} {
		f := newFixture(t)
		site := &app{clock: f.clock}
		site.status.Store(503)
		port := newOutpost(t, site.ServeHTTP)
		f.use(config.Destination{URL: port.url(), MaxInFlight: 1})
		f.add(n, "app")
		f.runUntil(startTime().Add(3 * time.Hour))
		if got := f.health("app").State; got != want {
			t.Errorf("%d events: %s, want %s", n, got, want)
		}
		if dead := f.count(event.DeliveryDead); (dead == n) != (want == event.DestinationEnabled) || dead != 0 && dead != n {
			t.Errorf("%d events: %d dead", n, dead)
		}
		if got := f.incidents(event.CauseDestinationDown); len(got) != 0 && want == event.DestinationEnabled {
			t.Errorf("%d events: %+v", n, got)
		}
	}
}

// TestPermanentAnswerProvesLife does not hold for 400s, and releases by one.
func TestPermanentAnswerProvesLife(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	site := &app{clock: f.clock}
	port := newOutpost(t, site.ServeHTTP)
	f.use(config.Destination{URL: port.url(), MaxInFlight: 1})
	site.status.Store(400)
	f.add(10, "app")
	f.settle()
	if health := f.health("app"); health.State != event.DestinationEnabled || f.count(event.DeliveryDead) != 10 {
		t.Errorf("%+v, %d dead", health, f.count(event.DeliveryDead))
	}
	port.down()
	f.add(4, "app")
	f.settle()
	if f.health("app").State != event.DestinationHeld {
		t.Fatal("not held")
	}
	port.up()
	f.runUntil(startTime().Add(time.Minute))
	if health := f.health("app"); health.State != event.DestinationEnabled || f.count(event.DeliveryDead) != 14 {
		t.Errorf("%+v, %d dead", health, f.count(event.DeliveryDead))
	}
	if got := f.outages("app"); len(got) != 1 || !got[0].ResolvedAt.Equal(startTime().Add(firstProbe)) ||
		!strings.Contains(got[0].Detail, "answers again") || !strings.Contains(got[0].Detail, "refuses what it gets: HTTP 400") {
		t.Errorf("incidents %+v", got)
	}
}

// TestProbeWaitsAsAsked does not probe before Retry-After.
func TestProbeWaitsAsAsked(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	site := &app{clock: f.clock}
	port := newOutpost(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "600")
		site.ServeHTTP(w, r)
	})
	site.status.Store(429)
	f.use(config.Destination{URL: port.url(), MaxInFlight: 1})
	f.add(6, "app")
	f.settle()
	held, asked := f.health("app"), len(site.at)
	if held.State != event.DestinationHeld || held.ProbeAt.Sub(startTime()) != 10*time.Minute {
		t.Fatalf("%+v", held)
	}
	f.runUntil(startTime().Add(10*time.Minute - time.Millisecond))
	if len(site.at) != asked {
		t.Errorf("asked again after %s", site.at[len(site.at)-1].Sub(startTime()))
	}
}

// TestLastAttemptLostToAnOutage is a delivery whose last attempt is the one
// that begins the hold: the outage must not dead-letter it.
func TestLastAttemptLostToAnOutage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	site := &app{clock: f.clock}
	port := newOutpost(t, site.ServeHTTP)
	site.status.Store(500)
	f.use(config.Destination{URL: port.url()})
	f.add(1, "app")
	f.runUntil(startTime().Add(200 * time.Second)) // four attempts
	port.down()
	f.runUntil(startTime().Add(3500 * time.Second)) // the fifth finds nobody
	f.add(1, "app")
	f.runUntil(startTime().Add(4351 * time.Second)) // and so does the sixth, by then held
	if d := f.delivery(1); d.State != event.DeliveryReady {
		t.Fatalf("%+v", d)
	}
	site.status.Store(0)
	port.up()
	f.runUntil(startTime().Add(3 * time.Hour))
	if sent := f.count(event.DeliverySent); sent != 2 {
		t.Errorf("%d of 2 sent", sent)
	}
}

// TestGone disables on 410: this delivery is dead, the others wait unspent,
// there is one incident, nothing is asked again until the owner resumes.
func TestGone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	site := &app{clock: f.clock}
	port := newOutpost(t, site.ServeHTTP)
	site.status.Store(410)
	f.use(config.Destination{URL: port.url(), MaxInFlight: 1})
	f.add(20, "app")
	f.runUntil(startTime().Add(24 * time.Hour))
	if health := f.health("app"); health.State != event.DestinationDisabled || !health.ProbeAt.IsZero() {
		t.Errorf("%+v", health)
	}
	if f.count(event.DeliveryDead) != 1 || f.count(event.DeliveryReady) != 19 || len(site.events) != 1 {
		t.Errorf("%d dead, %d ready, %d requests", f.count(event.DeliveryDead), f.count(event.DeliveryReady), len(site.events))
	}
	if got := f.delivery(20); got.Attempts != 0 || got.Tries != 0 {
		t.Errorf("a delivery that waits spent %+v", got)
	}
	if gone, dead := f.incidents(event.CauseDestinationGone), f.incidents(event.CauseDeadDelivery); len(gone) != 1 || len(dead) != 0 ||
		!strings.Contains(gone[0].Detail, "no success is known") {
		t.Errorf("incidents %+v, %+v", gone, dead)
	}
	site.status.Store(0)
	if _, err := f.store.Resume(context.Background(), f.clock.Now(), event.Action{Actor: "owner", Target: "app"}); err != nil {
		t.Fatal(err)
	}
	f.d.Refresh()
	f.settle()
	if sent := f.count(event.DeliverySent); sent != 19 {
		t.Errorf("%d of 19 sent", sent)
	}
}

// TestPause lets nothing out until resume, whatever the dispatcher thinks of
// the destination meanwhile.
func TestPause(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	site := &app{clock: f.clock}
	port := newOutpost(t, site.ServeHTTP)
	f.use(config.Destination{URL: port.url()})
	pause := event.Action{Actor: "owner", Reason: "migration", Target: "app"}
	if _, err := f.store.Pause(context.Background(), f.clock.Now(), pause); err != nil {
		t.Fatal(err)
	}
	f.d.Refresh()
	f.settle()
	f.add(3, "app")
	if f.d.Reserve("app") {
		t.Error("a place at a paused destination")
	}
	f.runUntil(startTime().Add(24 * time.Hour))
	f.crash()
	f.runUntil(startTime().Add(48 * time.Hour))
	if len(site.events) != 0 || f.count(event.DeliveryReady) != 3 || f.delivery(1).Tries != 0 {
		t.Errorf("%d requests while paused", len(site.events))
	}
	if _, err := f.store.Resume(context.Background(), f.clock.Now(), pause); err != nil {
		t.Fatal(err)
	}
	f.d.Refresh()
	f.settle()
	if sent := f.count(event.DeliverySent); sent != 3 {
		t.Errorf("%d of 3 sent after resume", sent)
	}
}

// TestPauseBeatsHold pauses between the failures and the saving of the hold.
func TestPauseBeatsHold(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	port := newOutpost(t, func(http.ResponseWriter, *http.Request) {})
	port.down()
	f.use(config.Destination{URL: port.url()})
	f.add(4, "app")
	if _, err := f.d.Step(context.Background(), f.clock.Now()); err != nil {
		t.Fatal(err)
	}
	testkit.Poll(t, 10*time.Second, "the hold", f.unsaved)
	if _, err := f.store.Pause(context.Background(), f.clock.Now(), event.Action{Actor: "owner", Target: "app"}); err != nil {
		t.Fatal(err)
	}
	f.runUntil(startTime().Add(time.Hour))
	if health := f.health("app"); health.State != event.DestinationPaused {
		t.Errorf("%+v", health)
	}
	if f.d.Reserve("app") {
		t.Error("a place at a paused destination")
	}
}

func (f *fixture) unsaved() bool {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return len(f.d.saves) > 0
}
