package jobs

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"creel/event"
	"creel/handlers"
	"creel/internal/testkit"
)

const soon = 20 * time.Second

// run lets the worker's loop go and returns what ends it.
func (w *workshop) run() (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	worker := w.worker
	go func() {
		defer close(done)
		worker.Run(ctx)
	}()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			select {
			case <-done:
			case <-time.After(soon):
				w.t.Error("the worker does not stop")
			}
		})
	}
	w.t.Cleanup(stop)
	return stop
}

// until waits for events to reach a state.
func (w *workshop) until(state event.State, ids ...string) {
	w.t.Helper()
	for _, id := range ids {
		testkit.Poll(w.t, soon, id+" to be "+string(state), func() bool { return w.find(id).State == state })
	}
}

func numbered(name string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s-%d", name, i)
	}
	return ids
}

// gate is a handler that holds events whose id begins with stuck until it is
// opened, and heeds its context.
type gate struct {
	open    chan struct{}
	inside  atomic.Int64
	most    atomic.Int64
	entered atomic.Int64
}

func newGate() *gate { return &gate{open: make(chan struct{})} }

func (g *gate) handle(ctx context.Context, e handlers.Event) ([]event.Effect, error) {
	if !strings.HasPrefix(e.Key.ID, "stuck") {
		return nil, nil
	}
	g.entered.Add(1)
	inside := g.inside.Add(1)
	defer g.inside.Add(-1)
	for most := g.most.Load(); inside > most && !g.most.CompareAndSwap(most, inside); most = g.most.Load() {
	}
	select {
	case <-g.open:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestGateA8AHandlerThatBlocksHoldsUpNobody(t *testing.T) {
	t.Parallel()
	for name, handed := range map[string]bool{"handed over": true, "claimed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate()
			w := newWorkshop(t, g.handle)
			if handed {
				w.store.SetHandoff(w.worker)
			}
			w.accept("before", "stuck", "beside")
			w.run()
			w.until(event.Done, "before", "beside")
			w.acceptAs("plain", "plain")
			w.accept("behind")
			w.until(event.Done, "plain", "behind")
			w.expect("stuck", event.Claimed, 1)
			close(g.open)
			w.until(event.Done, "stuck")
			for _, id := range []string{"before", "stuck", "beside", "plain", "behind"} {
				w.expect(id, event.Done, 1)
			}
			if free := w.worker.Reserve(1000); free != 64 {
				t.Errorf("%d places are free, want all 64", free)
			}
		})
	}
}

// A handler that never returns is left behind at the worker's timeout: the
// event has spent an attempt, and so do its next ones.
func TestGateA8AHandlerThatNeverReturnsSpendsItsOwnAttempts(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	w := newWorkshop(t, func(_ context.Context, e handlers.Event) ([]event.Effect, error) {
		if e.Key.ID == "stuck" {
			<-release
		}
		return nil, nil
	})
	w.timeout = 20 * time.Millisecond
	w.hire()
	w.accept("a", "stuck", "b")
	for range 6 {
		w.step()
		w.clock.Advance(2 * time.Hour)
	}
	w.expect("a", event.Done, 1)
	w.expect("b", event.Done, 1)
	if dead := w.expect("stuck", event.Dead, 6); !strings.Contains(dead.Error, "timeout") {
		t.Errorf("the dead event says %q", dead.Error)
	}
	w.incidents(1)
}

// What no store can apply hurts its own event alone, at once or after its
// attempts.
func TestGateA8AHandlerThatReturnsNonsenseHurtsOnlyItsEvent(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t, func(_ context.Context, e handlers.Event) ([]event.Effect, error) {
		switch e.Key.ID {
		case "nil":
			return []event.Effect{nil}, nil
		case "nowhere":
			return []event.Effect{e.Forward("nowhere")}, nil
		case "empty":
			return []event.Effect{event.Record{}}, nil
		case "stateless":
			return []event.Effect{event.SetState{Key: "k"}}, nil
		case "goexit":
			runtime.Goexit()
		}
		return []event.Effect{e.Forward("app")}, nil
	})
	bad := []string{"nil", "nowhere", "empty", "stateless", "goexit"}
	w.accept(append([]string{"good-1"}, append(bad, "good-2")...)...)
	for range 6 {
		w.step()
		w.clock.Advance(2 * time.Hour)
	}
	w.expect("good-1", event.Done, 1)
	w.expect("good-2", event.Done, 1)
	for _, id := range bad {
		if found := w.find(id); found.State != event.Dead || found.Error == "" {
			t.Errorf("%s is %s: %q", id, found.State, found.Error)
		}
	}
	if lines := w.errorLines(); lines != len(bad) {
		t.Errorf("%d lines at error level for %d dead events:\n%s", lines, len(bad), w.logs.String())
	}
}

// panicking is a rulebook with a bug of its own: not in a handler, but around
// it.
type panicking struct{ *Rulebook }

func (p panicking) Decide(ctx context.Context, work event.Work) handlers.Decision {
	if work.Key.ID == "poison" {
		panic("our own bug")
	}
	return p.Rulebook.Decide(ctx, work)
}

func TestGateA8APanicOfOurOwnCountsAsAnAttempt(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t, func(context.Context, handlers.Event) ([]event.Effect, error) { return nil, nil })
	rules := panicking{w.worker.opt.Rules().(*Rulebook)}
	w.worker.opt.Rules = func() Rules { return rules }
	w.accept("a", "poison", "b")
	for range 6 {
		w.step()
		w.clock.Advance(2 * time.Hour)
	}
	w.expect("a", event.Done, 1)
	w.expect("b", event.Done, 1)
	if dead := w.expect("poison", event.Dead, 6); !strings.Contains(dead.Error, "our own bug") {
		t.Errorf("the dead event says %q", dead.Error)
	}
}

// At most Slow events are decided at once and at most half the room waits for
// them; what is more goes back unspent, and the others pass it by.
func TestSlowEventsAreBoundedAndPassedBy(t *testing.T) {
	t.Parallel()
	g := newGate()
	w := newWorkshop(t, g.handle)
	slow := numbered("stuck", 150)
	w.accept(slow...)
	w.acceptAs("plain", numbered("plain", 20)...)
	w.run()
	w.until(event.Done, numbered("plain", 20)...)
	testkit.Poll(t, soon, "all places to be taken", func() bool { return g.inside.Load() == 8 })
	claimed, pending := 0, 0
	for _, id := range slow {
		switch found := w.find(id); {
		case found.State == event.Claimed && found.Attempts == 1:
			claimed++
		case found.State == event.Pending && found.Attempts == 0 && found.NextAt.After(w.clock.Now()):
			pending++
			if wait := found.NextAt.Sub(w.clock.Now()); wait > mostPutOff {
				t.Errorf("%s is put off by %s", id, wait)
			}
		default:
			t.Errorf("%s is %s after %d attempts, due %s", id, found.State, found.Attempts, found.NextAt)
		}
	}
	if claimed < 8 || claimed > 8+32 {
		t.Errorf("%d are claimed, %d are put off", claimed, pending)
	}
	w.acceptAs("plain", "late")
	w.until(event.Done, "late")
	close(g.open)
	w.allDone(slow)
	for _, id := range slow {
		w.expect(id, event.Done, 1)
	}
	if most := g.most.Load(); most != 8 {
		t.Errorf("%d were decided at once, want 8", most)
	}
}

// Handed over as they come, slow events take half of the room and no more.
func TestSlowEventsLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	g := newGate()
	w := newWorkshop(t, g.handle)
	w.store.SetHandoff(w.worker)
	w.run()
	for _, id := range numbered("stuck", 200) {
		w.accept(id)
	}
	testkit.Poll(t, soon, "the worker to have seen them all", func() bool {
		return w.worker.reserved.Load() <= 32 && g.inside.Load() == 8
	})
	for _, id := range numbered("plain", 50) {
		w.acceptAs("plain", id)
		w.until(event.Done, id)
	}
	if held := w.worker.reserved.Load(); held > 32 {
		t.Errorf("slow events hold %d of 64 places", held)
	}
}

// A large body counts for more: what waits is bounded in bytes.
func TestSlowEventsAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	s := slow{places: 1, room: 100}
	big := task{work: event.Work{Payload: event.Payload{Body: make([]byte, slowBytes/3)}}}
	admitted := 0
	for range 10 {
		if s.admit(big) {
			admitted++
		}
	}
	if admitted != 3 {
		t.Errorf("%d were admitted, want 3", admitted)
	}
	for range 3 {
		if _, ok := s.next(); !ok {
			t.Error("nothing is next")
		}
	}
	if s.bytes != 0 {
		t.Errorf("%d bytes are left in an empty queue", s.bytes)
	}
	if !s.admit(task{work: event.Work{Payload: event.Payload{Body: make([]byte, 2*slowBytes)}}}) {
		t.Error("one that is larger than the bound is never admitted")
	}
}

// One that has to be alone waits for those that run, and those that wait wait
// for it.
func TestAloneIsAlone(t *testing.T) {
	t.Parallel()
	s := slow{places: 2, room: 10}
	s.admit(task{work: event.Work{Event: event.Event{Seq: 1}}})
	s.admit(task{work: event.Work{Event: event.Event{Seq: 2}}})
	expect := func(seq int64) {
		t.Helper()
		got, ok := s.next()
		if ok != (seq > 0) || got.work.Seq != seq {
			t.Errorf("next is %d (%t), want %d", got.work.Seq, ok, seq)
		}
		if ok {
			s.running++
		}
	}
	expect(1)
	s.admit(task{work: event.Work{Event: event.Event{Seq: 3}, Alone: true}})
	expect(0)
	s.running--
	expect(3)
	expect(0)
	s.running--
	expect(0) // it has ended, and its end is not stored yet
	s.alone = nil
	expect(2)
}

func TestAStopGivesBackWhatIsSlowUnspent(t *testing.T) { // counts goroutines: nothing may run beside it
	before := goleak.IgnoreCurrent()
	g := newGate()
	w := newWorkshop(t, g.handle)
	w.store.SetHandoff(w.worker)
	stop := w.run()
	ids := numbered("stuck", 30)
	w.accept(ids...)
	testkit.Poll(t, soon, "all places to be taken", func() bool { return g.inside.Load() == 8 })
	w.acceptAs("plain", "plain")
	w.until(event.Done, "plain")
	stop()
	for _, id := range ids {
		w.expect(id, event.Pending, 0)
	}
	if free := w.worker.Reserve(1000); free != 64 {
		t.Errorf("%d places are free after the stop, want all 64", free)
	}
	if entered := g.entered.Load(); entered != 8 {
		t.Errorf("%d handlers were called, want 8: the stop starts none", entered)
	}
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := goleak.Find(before); err != nil {
		t.Errorf("goroutines are left: %v", err)
	}
}

// killer is a handler that kills its process with one event. In the first
// process the others are in hand when it does; later, nothing else may be.
type killer struct {
	entered chan struct{}
	mu      sync.Mutex
	gone    chan struct{} // closed when the process is gone
	boots   int
	inside  map[string]bool
	beside  []string // who ran beside the poison after the first death
}

func (p *killer) handle(_ context.Context, e handlers.Event) ([]event.Effect, error) {
	id := e.Key.ID
	p.mu.Lock()
	gone, first := p.gone, p.boots == 0
	p.inside[id] = true
	if !first && p.inside["poison"] {
		for other := range p.inside {
			if other != "poison" {
				p.beside = append(p.beside, other)
			}
		}
	}
	p.mu.Unlock()
	if id == "poison" {
		p.entered <- struct{}{}
	}
	if id == "poison" || first && strings.HasPrefix(id, "beside") {
		<-gone
	}
	p.mu.Lock()
	delete(p.inside, id)
	p.mu.Unlock()
	return nil, nil
}

// die ends the process: what its handlers return from then on is written by
// nobody.
func (p *killer) die() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.gone)
	p.gone = make(chan struct{})
	p.boots++
	p.inside = map[string]bool{}
}

// A process that dies in one of several handlers that run at once: after it
// each of the events in hand runs alone, so that the one that kills spends its
// own attempts only. What needs no handler goes on beside it.
func TestGateA8APoisonAmongHandlersSpendsItsOwnAttempts(t *testing.T) {
	t.Parallel()
	p := &killer{entered: make(chan struct{}, 1), gone: make(chan struct{}), inside: map[string]bool{}}
	w := newWorkshop(t, p.handle)
	w.store.SetHandoff(w.worker)
	w.accept("beside-0", "poison", "beside-1", "beside-2")
	kills := 0
	for ; kills < 20 && w.diesOf(p, kills); kills++ {
		w.open()
		w.hire()
		w.store.SetHandoff(w.worker)
	}
	if dead := w.expect("poison", event.Dead, 6); !strings.Contains(dead.Error, "the process stopped during attempt 6") {
		t.Errorf("the dead event says %q", dead.Error)
	}
	if kills > 7 {
		t.Errorf("the poison killed %d processes", kills)
	}
	if len(p.beside) > 0 {
		t.Errorf("beside the poison ran %v", p.beside)
	}
	for _, id := range slices.Concat(numbered("beside", 3), numbered("plain", kills), numbered("later", kills)) {
		w.until(event.Done, id)
		w.expect(id, event.Done, 1)
	}
}

// diesOf runs one process until the poison kills it; false says that it lives.
func (w *workshop) diesOf(p *killer, boot int) (died bool) {
	w.t.Helper()
	stop := w.run()
	testkit.Poll(w.t, soon, "the poison to kill or to be dead", func() bool {
		select {
		case <-p.entered:
			died = true
			return true
		default:
			return w.find("poison").State == event.Dead
		}
	})
	if !died {
		return false
	}
	w.accept(fmt.Sprint("later-", boot))
	w.acceptAs("plain", fmt.Sprint("plain-", boot))
	w.until(event.Done, fmt.Sprint("plain-", boot))
	if err := w.store.Close(); err != nil {
		w.t.Fatal(err)
	}
	p.die()
	stop()
	w.clock.Advance(time.Second)
	return true
}
