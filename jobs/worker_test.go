package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"creel/config"
	"creel/deliver"
	"creel/event"
	"creel/handlers"
	"creel/store"
)

// workshop is a worker on a real store with a fake clock. Its one rule calls
// a Go handler, so that a test says what happens to an event.
type workshop struct {
	*fixture
	worker  *Worker
	handle  handlers.Func
	rules   []config.Rule // beside those that are always there
	token   string        // what env:TOKEN is
	timeout time.Duration // of the rules; 0 is the default
	book    *Rulebook
	// laneless stores events without their lanes.
	laneless bool
}

func newWorkshop(t testing.TB, handle handlers.Func) *workshop {
	t.Helper()
	w := &workshop{fixture: newFixture(t), handle: handle}
	w.hire()
	return w
}

// hire makes a new worker, as a new boot does.
func (w *workshop) hire() {
	w.t.Helper()
	registry := handlers.NewRegistry()
	if err := registry.Register("test", func(ctx context.Context, e handlers.Event) ([]event.Effect, error) { return w.handle(ctx, e) }); err != nil {
		w.t.Fatal(err)
	}
	cfg := config.Default()
	source := config.DefaultSource()
	source.Name = "s"
	cfg.Sources = []config.Source{source}
	cfg.Rules = []config.Rule{
		{Name: "test", Match: config.Match{Source: config.StringList{"s"}, Types: []string{"t"}}, Go: "test"},
		{Name: "plain", Match: config.Match{Source: config.StringList{"s"}, Types: []string{"plain"}}, Forward: &config.Forward{To: config.StringList{"app"}}},
	}
	cfg.Rules = append(cfg.Rules, w.rules...)
	if w.timeout > 0 {
		cfg.Worker.Timeout = config.Duration(w.timeout)
	}
	destination := config.DefaultDestination()
	destination.URL = "http://127.0.0.1:1/"
	cfg.Destinations["app"] = destination
	rules, problems := handlers.Compile(cfg, handlers.Options{Registry: registry})
	if err := problems.Err(); err != nil {
		w.t.Fatal(err)
	}
	book := &Rulebook{Rules: rules, Fetchers: w.fetchers(cfg.Rules)}
	w.book = book
	policy := BuiltInPolicies()[PolicyDefault]
	w.worker = NewWorker(WorkerOptions{Inbox: w.store, Shipper: w.d, Clock: w.clock.Now, Jitter: func() float64 { return w.jitter },
		Rules: func() Rules { return book }, Policy: func() Policy { return policy }, Timeout: func() time.Duration { return 10 * time.Second },
		Log: zerolog.New(w.logs), Batch: 64, Room: 64, Slow: 8, Watch: w.watch})
}

func (w *workshop) fetchers(rules []config.Rule) map[string]*deliver.Fetcher {
	w.t.Helper()
	env := func(name string) (string, bool) { return w.token, name == "TOKEN" }
	fetchers := map[string]*deliver.Fetcher{}
	for _, rule := range rules {
		if rule.Fetch == nil {
			continue
		}
		fetcher, problems := deliver.NewFetcher(*rule.Fetch, "rule[0].fetch", deliver.Options{Env: env, Clock: w.clock.Now})
		if err := problems.Err(); err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(fetcher.Close)
		fetchers[rule.Name] = fetcher
	}
	return fetchers
}

func (w *workshop) accept(ids ...string) {
	w.t.Helper()
	w.acceptAs("t", ids...)
}

// acceptAs stores events of a type; those of type plain need no handler.
func (w *workshop) acceptAs(kind string, ids ...string) {
	w.t.Helper()
	receipt := &event.Receipt{Source: "s", Origin: event.FromWebhook, At: w.clock.Now(), Body: []byte(`{"ok":true}`)}
	for _, id := range ids {
		receipt.Items = append(receipt.Items, event.Item{Key: event.Key{Source: "s", ID: id}, Type: kind, State: event.Pending})
	}
	if _, err := w.store.Accept(context.Background(), receipt); err != nil {
		w.t.Fatal(err)
	}
}

func (w *workshop) step() int {
	w.t.Helper()
	n, err := w.worker.Step(context.Background(), w.clock.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *workshop) find(id string) event.Event {
	w.t.Helper()
	found, err := w.store.Find(context.Background(), event.Key{Source: "s", ID: id})
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func (w *workshop) expect(id string, state event.State, attempts int) event.Event {
	w.t.Helper()
	found := w.find(id)
	if found.State != state || found.Attempts != attempts {
		w.t.Errorf("%s is %s after %d attempts, want %s after %d (%s)", id, found.State, found.Attempts, state, attempts, found.Error)
	}
	return found
}

func (w *workshop) incidents(want int) []event.OpenIncident {
	w.t.Helper()
	open, err := w.store.Incidents(context.Background(), true)
	if err != nil {
		w.t.Fatal(err)
	}
	if len(open) != want {
		w.t.Errorf("%d incidents are open, want %d: %+v", len(open), want, open)
	}
	return open
}

func (w *workshop) errorLines() int {
	return w.logs.Count(`"level":"error"`)
}

func TestGateA7PermanentIsDeadAtOnceWithOneAlert(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t, func(context.Context, handlers.Event) ([]event.Effect, error) {
		return nil, handlers.Permanent(errors.New("the amount is no number"))
	})
	w.accept("a", "b")
	w.step()
	dead := w.expect("a", event.Dead, 1)
	if !strings.Contains(dead.Error, "the amount is no number") {
		t.Errorf("the dead event says %q", dead.Error)
	}
	w.expect("b", event.Dead, 1)
	if open := w.incidents(1); open[0].Count != 2 {
		t.Errorf("the incident counts %d events, want 2", open[0].Count)
	}
	if lines := w.errorLines(); lines != 2 {
		t.Errorf("%d lines at error level for 2 dead events", lines)
	}
}

func TestGateA7TransientIsTriedSixTimesOnSchedule(t *testing.T) {
	t.Parallel()
	var tries []time.Time
	w := newWorkshop(t, nil)
	w.handle = func(context.Context, handlers.Event) ([]event.Effect, error) {
		tries = append(tries, w.clock.Now())
		return nil, errors.New("the price list is not there")
	}
	w.accept("a")
	w.step()
	slots := []time.Duration{5 * time.Second, 25 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour}
	for i, slot := range slots {
		w.expect("a", event.Pending, i+1)
		w.clock.Advance(slot - time.Millisecond)
		if n := w.step(); n != 0 {
			t.Fatalf("attempt %d came before its slot of %s", i+2, slot)
		}
		w.clock.Advance(time.Millisecond)
		w.step()
	}
	w.expect("a", event.Dead, 6)
	if len(tries) != 6 {
		t.Errorf("the handler ran %d times, want 6", len(tries))
	}
	w.clock.Advance(30 * 24 * time.Hour)
	w.step()
	if len(tries) != 6 {
		t.Errorf("a dead event ran again")
	}
	w.incidents(1)
	if lines := w.errorLines(); lines != 1 {
		t.Errorf("%d lines at error level for one dead event", lines)
	}
}

func TestGateA8APanicHurtsOnlyItsEvent(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t, func(_ context.Context, e handlers.Event) ([]event.Effect, error) {
		if e.Key.ID == "poison" {
			panic("nil map")
		}
		return nil, nil
	})
	w.accept("before", "poison", "after")
	w.step()
	w.expect("before", event.Done, 1)
	w.expect("after", event.Done, 1)
	w.expect("poison", event.Pending, 1)
	for range 6 {
		w.clock.Advance(2 * time.Hour)
		w.step()
	}
	if dead := w.expect("poison", event.Dead, 6); !strings.Contains(dead.Error, "nil map") {
		t.Errorf("the dead event says %q", dead.Error)
	}
}

// A process that dies in a rule is a store that closes with claims in it.
func TestGateA8APoisonThatKillsTheProcessSpendsItsOwnAttempts(t *testing.T) {
	t.Parallel()
	errKilled := errors.New("the process is gone")
	w := newWorkshop(t, nil)
	w.handle = func(_ context.Context, e handlers.Event) ([]event.Effect, error) {
		if e.Key.ID == "poison" {
			panic(errKilled)
		}
		return nil, nil
	}
	w.accept("a", "poison", "b", "c")
	kills := 0
	for ; w.find("poison").State != event.Dead && kills < 20; kills++ {
		w.dieIn("poison")
	}
	dead := w.expect("poison", event.Dead, 6)
	if !strings.Contains(dead.Error, "the process stopped during attempt 6") {
		t.Errorf("the dead event says %q", dead.Error)
	}
	if kills > 8 {
		t.Errorf("the poison killed %d processes", kills)
	}
	for _, id := range []string{"a", "b", "c"} {
		w.expect(id, event.Done, 1)
	}
}

// dieIn claims as the worker does, and when the event is in the claim ends the
// boot there; events before it are settled.
func (w *workshop) dieIn(id string) {
	w.t.Helper()
	ctx := context.Background()
	var finishes []event.Finish
	for {
		_, works, err := w.store.Settle(ctx, w.clock.Now(), finishes, 64)
		if err != nil {
			w.t.Fatal(err)
		}
		finishes = finishes[:0]
		for _, work := range works {
			if work.Attempts > 6 {
				finishes = append(finishes, w.worker.decide(ctx, &task{work: work}, w.clock.Now()))
				continue
			}
			if work.Key.ID == id {
				w.crash()
				w.hire()
				return
			}
			finishes = append(finishes, event.Finish{Seq: work.Seq, Claim: work.Claim, Run: work.Run, State: event.Done})
		}
		if len(works) == 0 && len(finishes) == 0 {
			return
		}
	}
}

// lost loses the answer of the n-th Settle, which did its work.
type lost struct {
	*store.Store
	n int
}

func (l *lost) Settle(ctx context.Context, now time.Time, finishes []event.Finish, claim int) ([]event.Finished, []event.Work, error) {
	finished, works, err := l.Store.Settle(ctx, now, finishes, claim)
	l.n--
	if l.n == 0 {
		return nil, nil, fmt.Errorf("the answer was lost: %w", event.ErrUnavailable)
	}
	return finished, works, err
}

func TestGateA4AnAnswerThatIsLostToTheWorkerAppliesNothingTwice(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 4; n++ {
		runs := 0
		w := newWorkshop(t, func(_ context.Context, e handlers.Event) ([]event.Effect, error) {
			runs++
			return []event.Effect{e.Forward("app")}, nil
		})
		w.accept("a")
		w.worker.opt.Inbox = &lost{Store: w.store, n: n}
		for range 4 {
			_, _ = w.worker.Step(context.Background(), w.clock.Now()) // one of them fails
		}
		if n == 1 { // the claim was lost with the answer: the next start takes it back
			w.crash()
			w.hire()
			w.step()
		}
		if state := w.find("a").State; state != event.Done {
			t.Errorf("losing answer %d left the event %s", n, state)
		}
		deliveries, err := w.store.Deliveries(context.Background(), store.DeliveryFilter{}, event.Page{Limit: 10})
		if err != nil || len(deliveries) != 1 {
			t.Errorf("losing answer %d left %d deliveries, %v; want 1", n, len(deliveries), err)
		}
	}
}

func TestBugJOB04AnEventThatIsNotReadyIsDueAtItsRetryTime(t *testing.T) {
	t.Parallel()
	ready := false
	w := newWorkshop(t, func(context.Context, handlers.Event) ([]event.Effect, error) {
		if !ready {
			return nil, errors.New("not ready")
		}
		return nil, nil
	})
	w.accept("a")
	w.step()
	if due := w.expect("a", event.Pending, 1).NextAt; !due.Equal(w.clock.Now().Add(5 * time.Second)) {
		t.Errorf("it is due at %s, want in 5 s", due)
	}
	ready = true
	w.clock.Advance(5 * time.Second)
	w.step()
	w.expect("a", event.Done, 2)
}

func TestAStopGivesBackWhatWasHandedOverWithItsAttempt(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t, func(context.Context, handlers.Event) ([]event.Effect, error) { return nil, nil })
	w.store.SetHandoff(w.worker)
	w.accept("a", "b")
	w.expect("a", event.Claimed, 1)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w.worker.Run(ctx)
	for _, id := range []string{"a", "b"} {
		w.expect(id, event.Pending, 0)
	}
	if free := w.worker.Reserve(1000); free != 64 {
		t.Errorf("%d places are free after the stop, want all 64", free)
	}
}

// A sender that gives one logical event a new id each time is stopped by the
// business key: two receipts, one delivery, and the second run says so.
func TestBugDUP05TwoIdsForOneOperation(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t, func(_ context.Context, e handlers.Event) ([]event.Effect, error) {
		return []event.Effect{event.Forward{Key: "invoice/1/paid", Rule: e.Rule(), Destination: "app"}}, nil
	})
	w.accept("a")
	w.step()
	w.accept("b")
	w.step()
	w.expect("a", event.Done, 1)
	w.expect("b", event.Done, 1)
	deliveries, err := w.store.Deliveries(context.Background(), store.DeliveryFilter{}, event.Page{Limit: 10})
	if err != nil || len(deliveries) != 1 {
		t.Errorf("%d deliveries, %v; want one", len(deliveries), err)
	}
	detail, err := w.store.Event(context.Background(), event.Key{Source: "s", ID: "b"})
	if err != nil || len(detail.Verdicts) != 1 || detail.Verdicts[0].Decision != event.AlreadyApplied {
		t.Errorf("the second run decided %+v, %v", detail.Verdicts, err)
	}
}
