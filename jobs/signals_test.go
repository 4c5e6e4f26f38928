package jobs

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"creel/config"
	"creel/event"
	"creel/internal/testkit"
	"creel/store"
)

// watch is signals on a real store with a fake clock, tallies and gauges that a
// test sets.
type watch struct {
	*tallies
	s         *Signals
	cfg       *config.Config
	free, wal int64
	broken    error
}

// brokenStore can not write while the test says so.
type brokenStore struct {
	*store.Store
	w *watch
}

// DeadSince lets the tally speak alone: a test counts dead letters that no row
// is of.
func (b brokenStore) DeadSince(_ context.Context, _ event.FailureKind, _ string, _ time.Time, most int) (int, error) {
	return most, nil
}

func (b brokenStore) Healthy() error { return b.w.broken }

func (b brokenStore) RaiseIncident(ctx context.Context, now time.Time, i event.Incident) error {
	if b.w.broken != nil {
		return b.w.broken
	}
	return b.Store.RaiseIncident(ctx, now, i)
}

func newWatch(t *testing.T) *watch {
	t.Helper()
	w := &watch{tallies: newTallies(t), cfg: config.Default(), free: 1 << 40}
	w.cfg.Sources = []config.Source{{Name: "shop"}}
	w.cfg.Destinations = map[string]config.Destination{"app": {URL: "http://127.0.0.1:1"}}
	w.start()
	return w
}

func (w *watch) start() {
	w.s = NewSignals(SignalOptions{Store: brokenStore{w.saved.Store, w}, Tally: w.Tally, Free: func() int64 { return w.free },
		WAL: func() int64 { return w.wal }, Clock: w.clock.Now, Log: zerolog.New(w.logs)})
	w.s.Configure(w.cfg)
}

// look lets time pass and measures.
func (w *watch) look(d time.Duration) {
	w.t.Helper()
	if err := w.s.Step(context.Background(), w.clock.Advance(d)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watch) signal(name event.SignalName, subject string) event.Signal {
	w.t.Helper()
	for _, s := range w.s.List() {
		if s.Name == name && s.Subject == subject {
			return s
		}
	}
	w.t.Fatalf("there is no signal %s of %q", name, subject)
	return event.Signal{}
}

// open are the causes of the open incidents.
func (w *watch) open() string {
	w.t.Helper()
	list, err := w.saved.Incidents(context.Background(), true)
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, i := range list {
		out = append(out, strings.TrimSpace(string(i.Cause)+" "+i.Subject))
	}
	return strings.Join(out, ", ")
}

func (w *watch) wantOpen(what, want string) {
	w.t.Helper()
	if got := w.open(); got != want {
		w.t.Errorf("%s: open is %q, want %q", what, got, want)
	}
}

func TestSignalsOfCounts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind    event.TallyKind
		subject string
		n       int
		open    string
	}{
		"failed signatures":          {event.TallyRejects, "shop", 20, "signature_failures shop"},
		"fewer":                      {event.TallyRejects, "shop", 19, ""},
		"attempts at events":         {event.TallyRetries, "shop", 20, "processing_failures shop"},
		"fewer of them":              {event.TallyRetries, "shop", 19, ""},
		"guesses":                    {event.TallyGuesses, "", 20, "login_failures"},
		"fewer guesses":              {event.TallyGuesses, "", 19, ""},
		"dead events":                {event.TallyDeadEvents, "shop", 5, "dead_letters shop"},
		"dead deliveries":            {event.TallyDeadDeliveries, "app", 5, "dead_letters app"},
		"fewer dead":                 {event.TallyDeadDeliveries, "app", 4, ""},
		"attempts, the dispatcher's": {event.TallyFailed, "app", 50, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWatch(t)
			w.look(time.Minute)
			w.Count(c.kind, c.subject, c.n)
			w.look(time.Minute)
			w.wantOpen("at once", c.open)
			w.look(2 * time.Hour)
			w.wantOpen("two hours later", "")
		})
	}
}

// What fails as often as ever is no news; five times as often is.
func TestFailedSignaturesAboveWhatIsUsual(t *testing.T) {
	t.Parallel()
	w := newWatch(t)
	for range 4 * 24 * 6 {
		w.Count(event.TallyRejects, "shop", 3) // 15 an hour
		w.look(10 * time.Minute)
	}
	w.wantOpen("as usual", "")
	w.Count(event.TallyRejects, "shop", 45)
	w.look(time.Minute)
	w.wantOpen("four times as many", "")
	w.Count(event.TallyRejects, "shop", 60)
	w.look(time.Minute)
	w.wantOpen("eight times as many", "signature_failures shop")
	for range 20 * 6 {
		w.Count(event.TallyRejects, "shop", 30)
		w.look(10 * time.Minute)
	}
	w.wantOpen("it goes on, and does not become usual", "signature_failures shop")
}

// Thresholds have a distance between begin and end, so that a value at its
// threshold does not open one incident after another.
func TestSignalsDoNotFlap(t *testing.T) {
	t.Parallel()
	w := newWatch(t)
	opened := map[int64]bool{}
	for i := range 40 {
		w.free = 256<<20 + int64(i%2*2-1)<<20
		w.look(time.Minute)
		list, err := w.saved.Incidents(context.Background(), false)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range list {
			opened[one.ID] = true
		}
	}
	if len(opened) != 1 || w.open() != "disk_free" {
		t.Errorf("%d incidents, open is %q", len(opened), w.open())
	}
	w.free = 1 << 30
	w.look(time.Minute)
	w.wantOpen("enough room", "")
	w.wal = 200 << 20
	w.look(time.Minute)
	w.wantOpen("a large WAL", "wal_size")
	w.wal = 1 << 20
	w.look(time.Minute)
	w.wantOpen("a small WAL", "")
}

// While nothing can be written nobody can be told: it is told afterwards.
func TestAnOutageOfTheStoreIsToldAfterwards(t *testing.T) {
	t.Parallel()
	w := newWatch(t)
	w.look(time.Minute)
	w.broken = errors.New("the disk is full")
	for range 5 {
		if err := w.s.Step(context.Background(), w.clock.Advance(time.Minute)); err == nil && w.s.signalFires(event.SignalStore) {
			t.Error("an incident was written while nothing can be")
		}
	}
	if s := w.signal(event.SignalStore, ""); !s.Firing {
		t.Errorf("the page does not show it: %+v", s)
	}
	w.wantOpen("while it lasts", "")
	w.broken = nil
	w.look(time.Minute)
	w.wantOpen("afterwards", "store_unavailable")
	w.look(15 * time.Minute)
	w.wantOpen("later", "")
}

func (s *Signals) signalFires(name event.SignalName) bool {
	for _, one := range s.List() {
		if one.Name == name {
			return one.Firing
		}
	}
	return false
}

// An idle server writes nothing for its signals, and one that fires is not
// written again.
func TestSignalsWriteNothingWhileNothingChanges(t *testing.T) {
	t.Parallel()
	w := newWatch(t)
	w.Count(event.TallyReceipts, "shop", 1)
	w.look(time.Minute)
	w.look(time.Minute)
	w.wal = 200 << 20
	w.look(10 * time.Minute)
	w.look(10 * time.Minute)
	before := w.saved.Gauges().Units
	for range 500 {
		w.look(time.Minute)
	}
	if n := w.saved.Gauges().Units - before; n != 0 {
		t.Errorf("%d writes", n)
	}
}

// A signal that fires goes on over a restart with one incident; one whose source
// is gone from the configuration ends.
func TestSignalsOutliveARestart(t *testing.T) {
	t.Parallel()
	w := newWatch(t)
	w.Count(event.TallyDeadEvents, "shop", 5)
	w.look(time.Minute)
	began := w.signal(event.SignalDead, "shop").Since
	if _, err := w.flush(context.Background(), w.clock.Now()); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(time.Minute)
	w.restart()
	w.start()
	w.look(time.Minute)
	if s := w.signal(event.SignalDead, "shop"); !s.Firing || !s.Since.Equal(began) {
		t.Errorf("%+v, began %v", s, began)
	}
	w.wantOpen("after a restart", "dead_letters shop")
	w.cfg = config.Default()
	w.s.Configure(w.cfg)
	w.look(time.Minute)
	w.wantOpen("its source is gone", "")
}

// A source that never spoke is silent only where its owner said so; one that
// spoke gets an hour after a start to be heard.
func TestSilenceOfASource(t *testing.T) {
	t.Parallel()
	w := newWatch(t)
	w.look(time.Minute)
	w.look(30 * 24 * time.Hour)
	w.wantOpen("never spoke", "")
	day := config.Duration(24 * time.Hour)
	w.cfg.Sources[0].Signals.Silence = &day
	w.look(time.Minute)
	w.wantOpen("never spoke, and should have", "silence shop")
	w.Count(event.TallyReceipts, "shop", 1)
	w.look(time.Minute)
	w.wantOpen("spoke", "")
	w.look(23 * time.Hour)
	w.wantOpen("within a day", "")
	if err := w.s.flush(context.Background(), w.clock.Now(), true); err != nil {
		t.Fatal(err)
	}
	if _, err := w.flush(context.Background(), w.clock.Now()); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(48 * time.Hour)
	w.restart()
	w.start()
	w.look(59 * time.Minute)
	w.wantOpen("just started", "")
	w.look(2 * time.Minute)
	w.wantOpen("an hour after the start", "silence shop")
	off := config.Duration(0)
	w.cfg.Sources[0].Signals.Silence = &off
	w.look(time.Minute)
	w.wantOpen("switched off", "")
}

// What waits for a destination that is held is not past due; what gathered
// meanwhile may take its time while it goes on; what stalls is.
func TestOldestDeliveries(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := &watch{tallies: &tallies{t: t, clock: f.clock, Tally: f.tally, saved: &countedStore{Store: f.store}, logs: f.logs}, cfg: config.Default(), free: 1 << 40}
	w.cfg.Destinations = map[string]config.Destination{"app": {URL: "http://127.0.0.1:1"}}
	w.start()
	ctx := context.Background()
	for range 40 {
		f.add(1, "app")
		f.clock.Advance(time.Minute)
	}
	set := func(state event.DestinationState) {
		t.Helper()
		health := event.DestinationHealth{Name: "app", State: state, Since: f.clock.Now()}
		if err := f.store.SaveDestination(ctx, f.clock.Now(), health, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	set(event.DestinationHeld)
	w.look(3 * time.Hour)
	w.look(3 * time.Hour)
	w.wantOpen("held", "")
	set(event.DestinationEnabled)
	for range 30 { // one a minute
		_, shipments, err := f.store.Ship(ctx, f.clock.Now(), nil, []event.ShipmentClaim{{Destination: "app", Max: 1}})
		if err != nil || len(shipments) != 1 {
			t.Fatal(err)
		}
		w.look(time.Minute)
	}
	w.wantOpen("it works the backlog off", "")
	w.look(14 * time.Minute)
	w.wantOpen("it pauses", "")
	w.look(2 * time.Minute)
	w.wantOpen("it stalls", "oldest_unprocessed app")
}

// The heartbeat is there while trouble would be told, and never quotes its URL.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 3 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(server.Close)
	var ill error
	logs := &testkit.Log{}
	h := NewHeartbeat(func() error { return ill }, zerolog.New(logs))
	ctx := context.Background()
	step := func(what string, want int64) {
		t.Helper()
		h.Step(ctx)
		if got := calls.Load(); got != want {
			t.Errorf("%s: %d calls, want %d", what, got, want)
		}
	}
	step("not configured", 0)
	h.Configure(server.URL+"/secret-uuid", 7*time.Second)
	if wait := h.Step(ctx); wait != 7*time.Second {
		t.Errorf("waits %v", wait)
	}
	step("well", 2)
	ill = errors.New("the signals were not evaluated")
	step("blind", 2)
	step("blind still", 2)
	ill = nil
	step("well again", 3) // and the service fails
	server.Close()
	h.Step(ctx)
	if text := logs.String(); strings.Contains(text, "secret-uuid") || strings.Count(text, "\n") != 1 {
		t.Errorf("the log says\n%s", text)
	}
	if err := (&Signals{}).Evaluated(); !errors.Is(err, errBlind) {
		t.Errorf("signals that never ran: %v", err)
	}
}
