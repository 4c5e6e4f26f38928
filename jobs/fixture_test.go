package jobs

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"creel/config"
	"creel/deliver"
	"creel/event"
	"creel/internal/testkit"
	"creel/store"
)

const testSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// start is when every fake clock begins.
func startTime() time.Time { return time.Date(2026, 3, 7, 22, 0, 0, 0, time.UTC) }

// fixture is a dispatcher on a real store with a fake clock.
type fixture struct {
	t      testing.TB
	clock  *testkit.Clock
	path   string
	boots  int
	routes []Route
	jitter float64
	grace  time.Duration
	wrap   func(*store.Store) Outbox // nil is the store itself
	store  *store.Store
	tally  *Tally
	d      *Dispatcher
	logs   *testkit.Log
	events int
	lanes  int // how many lanes the deliveries of events keep; 0 is none
	watch  *Watch
	slow   bool // the store is slower than the destination: it has all that flies in one step
}

func newFixture(t testing.TB, routes ...Route) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: testkit.NewClock(startTime()), path: filepath.Join(t.TempDir(), "creel.db"),
		routes: routes, grace: 5 * time.Second, logs: &testkit.Log{}}
	f.open()
	t.Cleanup(func() { _ = f.store.Close() })
	return f
}

// open starts a boot: the store, its recovery, a new dispatcher.
func (f *fixture) open() {
	f.t.Helper()
	f.boots++
	var err error
	f.store, err = store.Open(context.Background(), store.Options{Path: f.path, Log: zerolog.Nop(),
		Boot: fmt.Sprintf("boot%d", f.boots), Clock: f.clock.Now})
	if err != nil {
		f.t.Fatal(err)
	}
	review := func(name string, lost int) bool {
		for _, route := range f.routes {
			if route.Name == name {
				return route.InDoubt(lost)
			}
		}
		return false
	}
	if _, err := f.store.Recover(context.Background(), f.clock.Now(), review); err != nil {
		f.t.Fatal(err)
	}
	f.tally = NewTally(TallyOptions{Store: f.store, Clock: f.clock.Now, Log: zerolog.New(f.logs)})
	f.configureTally()
	if err := f.tally.Restore(context.Background()); err != nil {
		f.t.Fatal(err)
	}
	f.dispatcher()
}

func (f *fixture) configureTally() {
	names := []string{"app"}
	for _, route := range f.routes {
		names = append(names, route.Name)
	}
	f.tally.Configure([]string{"s"}, names)
}

func (f *fixture) dispatcher() {
	f.t.Helper()
	f.configureTally()
	var outbox Outbox = f.store
	if f.wrap != nil {
		outbox = f.wrap(f.store)
	}
	var err error
	f.d, err = NewDispatcher(DispatcherOptions{Outbox: outbox, Routes: f.routes, Clock: f.clock.Now,
		Jitter: func() float64 { return f.jitter }, Log: zerolog.New(f.logs), Grace: f.grace,
		Tally: f.tally, Watch: f.watch})
	if err != nil {
		f.t.Fatal(err)
	}
}

// crash ends a boot without its dispatcher writing anything more.
func (f *fixture) crash() {
	f.t.Helper()
	if err := f.store.Close(); err != nil {
		f.t.Fatal(err)
	}
	f.open()
}

// add stores n new events, each with a delivery to every destination.
func (f *fixture) add(n int, destinations ...string) {
	f.t.Helper()
	for n > 0 {
		chunk := min(n, 500)
		f.addChunk(chunk, destinations)
		n -= chunk
	}
}

func (f *fixture) addChunk(n int, destinations []string) {
	f.t.Helper()
	ctx, now := context.Background(), f.clock.Now()
	receipt := &event.Receipt{Source: "s", Origin: event.FromWebhook, At: now, Body: []byte(`{"ok":true}`),
		Header: "Content-Type: application/json\n"}
	for range n {
		f.events++
		receipt.Items = append(receipt.Items, event.Item{Key: event.Key{Source: "s", ID: fmt.Sprintf("evt_%06d", f.events)},
			Type: "t", State: event.Pending, Content: [16]byte{byte(f.events)}})
	}
	if _, err := f.store.Accept(ctx, receipt); err != nil {
		f.t.Fatal(err)
	}
	for {
		_, works, err := f.store.Settle(ctx, now, nil, 256)
		if err != nil {
			f.t.Fatal(err)
		}
		if len(works) == 0 {
			return
		}
		finishes := make([]event.Finish, len(works))
		for i, work := range works {
			finishes[i] = event.Finish{Seq: work.Seq, Claim: work.Claim, Run: work.Run, State: event.Done}
			for _, name := range destinations {
				finishes[i].Effects = append(finishes[i].Effects, event.Forward{Key: work.Key.String() + "/r", Rule: "r",
					Destination: name, Lane: f.laneOf(work.Key.ID)})
			}
		}
		if _, _, err := f.store.Settle(ctx, now, finishes, 0); err != nil {
			f.t.Fatal(err)
		}
	}
}

// laneOf is the lane of an event by its number; "" where there are none.
func (f *fixture) laneOf(id string) string {
	if f.lanes == 0 {
		return ""
	}
	number, err := strconv.Atoi(strings.TrimPrefix(id, "evt_"))
	if err != nil {
		f.t.Fatal(err)
	}
	return "lane" + strconv.Itoa(number%f.lanes)
}

// settle steps until nothing flies and nothing is due, and returns when the
// dispatcher wants to be called again.
func (f *fixture) settle() time.Time {
	f.t.Helper()
	for {
		next, err := f.d.Step(context.Background(), f.clock.Now())
		if err != nil {
			f.t.Fatal(err)
		}
		if f.flying() > 0 {
			for waits := true; waits; waits = f.slow && f.flying() > 0 {
				select {
				case <-f.d.wake:
				case <-time.After(20 * time.Second):
					f.t.Fatal("an attempt does not end")
				}
			}
			continue
		}
		if !f.unwritten() && (next.IsZero() || next.After(f.clock.Now())) {
			return f.counted(next)
		}
	}
}

// counted lets the tally store what is due, and returns the earlier of next and
// its own time.
func (f *fixture) counted(next time.Time) time.Time {
	f.t.Helper()
	flush, err := f.tally.Step(context.Background(), f.clock.Now())
	if err != nil {
		f.t.Fatal(err)
	}
	if next.IsZero() || !flush.IsZero() && flush.Before(next) {
		return flush
	}
	return next
}

func (f *fixture) flying() int {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return f.d.flying
}

func (f *fixture) unwritten() bool {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return len(f.d.ended) > 0 || len(f.d.saves) > 0
}

// runUntil lets the fake time pass from one due moment to the next.
func (f *fixture) runUntil(end time.Time) {
	f.t.Helper()
	for {
		next := f.settle()
		if next.IsZero() || next.After(end) {
			f.clock.Set(end)
			f.settle()
			return
		}
		f.clock.Set(next)
	}
}

// delivery is the n-th delivery (1, 2, …) that was stored.
func (f *fixture) delivery(id int64) event.Delivery {
	f.t.Helper()
	list, err := f.store.Deliveries(context.Background(), store.DeliveryFilter{}, event.Page{Before: id + 1, Limit: 1})
	if err != nil || len(list) != 1 || list[0].ID != id {
		f.t.Fatalf("delivery %d: %v, %v", id, list, err)
	}
	return list[0]
}

func (f *fixture) attempts(id int64) []event.Attempt {
	f.t.Helper()
	list, err := f.store.Attempts(context.Background(), id)
	if err != nil {
		f.t.Fatal(err)
	}
	return list
}

// offsets are the starts of a delivery's attempts, from the fixture's start.
func (f *fixture) offsets(id int64) []time.Duration {
	f.t.Helper()
	var out []time.Duration
	for _, attempt := range f.attempts(id) {
		out = append(out, attempt.Start.Sub(startTime()))
	}
	return out
}

// count is how many of the stored deliveries are in a state.
func (f *fixture) count(state event.DeliveryState) int {
	f.t.Helper()
	stats, err := f.store.Stats(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	if state == event.DeliverySent {
		return int(stats.Sent)
	}
	return int(stats.Deliveries[state])
}

func (f *fixture) health(name string) event.DestinationHealth {
	f.t.Helper()
	list, err := f.store.Destinations(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	for _, health := range list {
		if health.Name == name {
			return health
		}
	}
	return event.DestinationHealth{Name: name, State: event.DestinationEnabled}
}

// incidents are those of a cause, closed ones included.
func (f *fixture) incidents(cause event.Cause) []event.OpenIncident {
	f.t.Helper()
	list, err := f.store.Incidents(context.Background(), false)
	if err != nil {
		f.t.Fatal(err)
	}
	var out []event.OpenIncident
	for _, incident := range list {
		if incident.Cause == cause {
			out = append(out, incident)
		}
	}
	return out
}

// outages are the incidents of a destination, of whatever cause, the newest
// first.
func (f *fixture) outages(name string) []event.OpenIncident {
	f.t.Helper()
	list, err := f.store.Incidents(context.Background(), false)
	if err != nil {
		f.t.Fatal(err)
	}
	return slices.DeleteFunc(list, func(i event.OpenIncident) bool {
		return i.Cause.Family() != event.FamilyDestination || i.Subject != name
	})
}

// route compiles a destination called app and its policy.
func (f *fixture) use(cfg config.Destination) {
	f.t.Helper()
	f.routes = []Route{routeOf(f.t, "app", cfg, f.clock.Now)}
	f.dispatcher()
}

func routeOf(t testing.TB, name string, cfg config.Destination, clock func() time.Time) Route {
	t.Helper()
	policy, problems := PolicyOf(BuiltInPolicies(), cfg.Retry, "destination."+name+".retry")
	cfg.Secret = config.NewSecret(testSecret)
	d, found := deliver.New(name, cfg, "destination."+name, deliver.Options{
		Env: func(string) (string, bool) { return "", false }, Clock: clock, Retry4xx: policy.Retry4xx})
	if err := append(problems, found...).Err(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return RouteTo(d, policy)
}

// outpost is a destination on one port that can go down and come back.
type outpost struct {
	t       testing.TB
	address string
	handler http.HandlerFunc
	server  *http.Server
}

func newOutpost(t testing.TB, handler http.HandlerFunc) *outpost {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &outpost{t: t, address: listener.Addr().String(), handler: handler}
	o.serve(listener)
	t.Cleanup(o.down)
	return o
}

func (o *outpost) serve(listener net.Listener) {
	o.server = &http.Server{Handler: o.handler}
	go func(s *http.Server) { _ = s.Serve(listener) }(o.server)
}

func (o *outpost) url() string { return "http://" + o.address }

func (o *outpost) down() { _ = o.server.Close() }

func (o *outpost) up() {
	o.t.Helper()
	var listener net.Listener
	testkit.Poll(o.t, 10*time.Second, "the port free again", func() (ok bool) {
		var err error
		listener, err = net.Listen("tcp", o.address)
		return err == nil
	})
	o.serve(listener)
}
