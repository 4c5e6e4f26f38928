package model

import (
	"context"
	"fmt"
	"path/filepath"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"creel/event"
	"creel/handlers"
	"creel/internal/testkit"
	"creel/jobs"
	"creel/store"
)

const (
	// room and batch are small, so that both are often full.
	room, batch = 4, 3
)

// eventPolicy is the retry policy of events.
func eventPolicy() jobs.Policy {
	return jobs.Policy{Name: "event", Delays: []time.Duration{5 * time.Second, time.Minute, 10 * time.Minute}, Attempts: 4}
}

// world is one history: the real rooms on one file, and their model.
type world struct {
	t     *rapid.T
	m     *model
	sky   *sky
	clock *testkit.Clock
	path  string
	boots int
	next  int // number of the next plan

	rules      *handlers.Rules
	store      *store.Store
	eye        *eye
	worker     *jobs.Worker
	dispatcher *jobs.Dispatcher
	porter     *porter
	door       *door

	troubles []trouble // of the next writes of the rooms
	dirty    bool      // an answer was lost: the store has claims that nobody knows
	stopping bool
	owing    bool // the worker has ends to write that it decided earlier
	back     bool // the clock was set back and the dispatcher has not seen it
	stirred  int  // writes of the dispatcher
}

func newWorld(t *rapid.T, dir string) *world {
	w := &world{t: t, m: newModel(), clock: testkit.NewClock(time.Date(2026, 3, 7, 22, 0, 0, 0, time.UTC)), path: filepath.Join(dir, "creel.db")}
	w.sky = newSky(w.m)
	var err error
	w.rules, err = rules()
	w.must(err)
	w.open()
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) route(name string) jobs.Route {
	for _, r := range w.sky.routes() {
		if r.Name == name {
			return r
		}
	}
	return jobs.Route{}
}

func (w *world) inDoubt(destination string, lost int) bool {
	route := w.route(destination)
	return route.InDoubt(lost)
}

// open starts a boot, as app does.
func (w *world) open() {
	w.t.Helper()
	ctx := context.Background()
	w.boots++
	w.dirty, w.stopping, w.owing, w.troubles = false, false, false, nil
	var err error
	w.store, err = store.Open(ctx, store.Options{Path: w.path, Log: zerolog.Nop(), Boot: fmt.Sprintf("boot%d", w.boots), Clock: w.clock.Now})
	w.must(err)
	w.eye = open(w.t, w.path)
	wired := &wire{w.store, w}
	w.dispatcher, err = jobs.NewDispatcher(jobs.DispatcherOptions{Outbox: wired, Routes: w.sky.routes(), Clock: w.clock.Now,
		Jitter: func() float64 { return 0.5 }, Log: zerolog.Nop(), Grace: time.Second,
		Watch: jobs.NewWatch(jobs.WatchOptions{Clock: w.clock.Now, Back: w.setBack})})
	w.must(err)
	w.porter = &porter{Dispatcher: w.dispatcher}
	w.worker = jobs.NewWorker(jobs.WorkerOptions{Inbox: wired, Shipper: w.porter, Clock: w.clock.Now, Log: zerolog.Nop(),
		Rules: func() jobs.Rules { return book{w.rules} }, Policy: eventPolicy, Timeout: func() time.Duration { return time.Minute },
		Jitter: func() float64 { return 0.5 }, Batch: batch, Room: room, Slow: 1})
	w.door = &door{Worker: w.worker, handed: map[int64]event.Claim{}}
	w.store.SetHandoff(w.door)
	_, err = w.store.Recover(ctx, w.clock.Now(), w.inDoubt)
	w.must(err)
	w.m.recover(w.inDoubt)
	w.must(w.clamp(ctx, w.clock.Now()))
	w.back = false
	_, err = w.shipOnce()
	w.must(err)
}

// setBack follows a clock that was set back.
func (w *world) setBack(ctx context.Context, now time.Time, by time.Duration) error {
	if _, err := w.store.SetBack(ctx, now, by); err != nil {
		return err
	}
	w.m.setBack(now, by)
	return w.clamp(ctx, now)
}

func (w *world) clamp(ctx context.Context, now time.Time) error {
	longest := map[string]time.Duration{}
	for _, r := range w.sky.routes() {
		longest[r.Name] = r.Longest
	}
	events := eventPolicy().Longest(0)
	_, err := w.store.ClampDue(ctx, now, events, longest)
	w.m.clamp(now, events, longest)
	return err
}

// close ends a boot with nothing written that was not.
func (w *world) close() {
	synctest.Wait()
	w.eye.close(w.t)
	w.must(w.store.Close())
	synctest.Wait()
}

func (w *world) crash() {
	w.close()
	w.open()
}

// stop ends a boot in order: nothing is left in hand.
func (w *world) stop() {
	dirty := w.dirty
	w.stopping, w.troubles = true, nil
	over, cancel := context.WithCancel(context.Background())
	cancel()
	w.worker.Run(over)
	w.porter.pass()
	w.dispatcher.Run(over)
	synctest.Wait()
	for _, e := range w.m.events {
		if e.state == event.Claimed && !dirty {
			w.m.problem("a stop left event %d claimed", e.seq)
		}
	}
	for _, p := range w.m.parcels {
		if p.state == event.DeliverySending && !dirty {
			w.m.problem("a stop left delivery %d in flight", p.id)
		}
	}
	w.crash()
}

// fault takes the trouble of the next write.
func (w *world) fault() trouble {
	if len(w.troubles) == 0 {
		return none
	}
	next := w.troubles[0]
	w.troubles = w.troubles[1:]
	return next
}

// work lets the worker do all that is due; false is that it met trouble.
func (w *world) work() bool {
	_, err := w.worker.Step(context.Background(), w.clock.Now())
	w.porter.pass()
	synctest.Wait()
	if w.owing = err != nil; w.owing {
		return false
	}
	if !w.dirty {
		places := w.worker.Reserve(room + 1)
		w.worker.Release(places)
		if places != room {
			w.m.problem("the worker has %d places, want %d", places, room)
		}
	}
	w.eye.nothingDue(w, "event", "state = 'pending' AND waits = 0 AND next_at <= ?1")
	return true
}

// shipOnce is one step of the dispatcher: what its attempts come to is not
// written yet.
func (w *world) shipOnce() (next time.Time, err error) {
	w.stirred = 0
	calls := w.sky.calls
	next, err = w.dispatcher.Step(context.Background(), w.clock.Now())
	synctest.Wait()
	w.stirred += w.sky.calls - calls
	w.back = w.back && err != nil
	return next, err
}

// mostSteps is more than a dispatcher needs for all that is due.
const mostSteps = 500

// ship lets the dispatcher do all that is due; false is that it met trouble.
func (w *world) ship() bool {
	for range mostSteps {
		next, err := w.shipOnce()
		if err != nil {
			return false
		}
		if w.stirred == 0 && (next.IsZero() || next.After(w.clock.Now())) {
			w.eye.nothingDue(w, "delivery", `state = 'ready' AND next_at <= ?1 AND (EXISTS (SELECT 1 FROM destination WHERE name = delivery.destination AND state = 'enabled')
				OR NOT EXISTS (SELECT 1 FROM destination WHERE name = delivery.destination))`)
			return true
		}
	}
	w.m.problem("the dispatcher does not come to rest")
	return false
}
