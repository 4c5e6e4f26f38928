package jobs

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"creel/config"
	"creel/event"
	"creel/handlers"
)

const (
	threeBack = -3 * time.Hour
	dayAhead  = 24 * time.Hour
)

// clockTower is a worker and a dispatcher beside one watch over a clock that a
// test sets, while the time that passes is another matter.
type clockTower struct {
	*workshop
	site   *app
	port   *outpost
	passed time.Duration
	fails  map[string]int // how often each event fails first
	mu     sync.Mutex
	tries  map[string][]time.Duration
}

func newClockTower(t *testing.T) *clockTower {
	t.Helper()
	c := &clockTower{fails: map[string]int{}, tries: map[string][]time.Duration{}}
	c.workshop = newWorkshop(t, func(_ context.Context, e handlers.Event) ([]event.Effect, error) {
		c.mu.Lock() // events are decided side by side
		defer c.mu.Unlock()
		c.tries[e.Key.ID] = append(c.tries[e.Key.ID], c.passed)
		if len(c.tries[e.Key.ID]) <= c.fails[e.Key.ID] {
			return nil, errors.New("not now")
		}
		return nil, nil
	})
	c.watch = NewWatch(WatchOptions{Clock: c.clock.Now, Passed: func() time.Duration { return c.passed },
		Back: func(ctx context.Context, now time.Time, by time.Duration) error {
			_, err := c.store.SetBack(ctx, now, by)
			return err
		}})
	c.site = &app{clock: c.clock}
	c.port = newOutpost(t, c.site.ServeHTTP)
	c.use(config.Destination{URL: c.port.url()})
	c.hire()
	return c
}

// pass lets time pass, with both loops every second.
func (c *clockTower) pass(d time.Duration) {
	c.t.Helper()
	for end := c.passed + d; ; {
		c.step()
		c.settle()
		if c.passed >= end {
			return
		}
		c.clock.Advance(time.Second)
		c.passed += time.Second
	}
}

// TestGateF5DueWorkResumes sets the clock while events and deliveries are fresh,
// wait for a retry, or are in somebody's hands: all go on as if nothing had
// happened, no attempt is spent on it, and none comes before its time.
func TestGateF5DueWorkResumes(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]time.Duration{"back": threeBack, "ahead": dayAhead} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClockTower(t)
			c.fails["once"], c.fails["thrice"] = 1, 3
			c.accept("once", "thrice")
			c.pass(31 * time.Second) // thrice failed at 0, 5 and 30 seconds: the next is 2 minutes later
			c.site.status.Store(500)
			c.acceptAs("plain", "failing")
			c.pass(0)
			c.site.status.Store(0)
			c.accept("fresh")
			c.acceptAs("plain", "sent")
			_, held, err := c.store.Settle(t.Context(), c.clock.Now(), nil, 1) // in somebody's hands
			if err != nil || len(held) != 1 {
				t.Fatal(held, err)
			}
			c.clock.Advance(by)
			c.pass(time.Minute)
			c.expect(held[0].Key.ID, event.Claimed, 1)
			c.expect("once", event.Done, 2)
			for _, id := range []string{"fresh", "sent", "failing"} {
				if id != held[0].Key.ID {
					c.expect(id, event.Done, 1)
				}
			}
			if n := c.count(event.DeliverySent); n != 2 {
				t.Errorf("%d of 2 deliveries were sent", n)
			}
			if got := c.delivery(1); got.Attempts != 2 {
				t.Errorf("the delivery that failed once had %d attempts", got.Attempts)
			}
			if by < 0 {
				c.expect("thrice", event.Pending, 3)
			}
			c.pass(time.Minute)
			c.expect("thrice", event.Done, 4)
			if at := c.tries["thrice"]; by < 0 && len(at) == 4 && at[3]-at[2] < 2*time.Minute {
				t.Errorf("it was tried at %v: the last time too early", at)
			}
		})
	}
}

// TestGateF5Held sets the clock while a destination is held: the next probe
// comes in its time and finds it again, and it counts as held for as long as it
// was. Nothing is disabled because of a clock.
func TestGateF5Held(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]time.Duration{"back": threeBack, "ahead": dayAhead} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClockTower(t)
			c.port.down()
			c.acceptAs("plain", "1", "2", "3", "4")
			c.pass(30 * time.Second)
			if c.health("app").State != event.DestinationHeld {
				t.Fatalf("%+v", c.health("app"))
			}
			c.clock.Advance(by)
			c.pass(40 * time.Second)
			if h := c.health("app"); h.State != event.DestinationHeld || h.Since.After(c.clock.Now()) || h.ProbeAt.Sub(c.clock.Now()) > longestProbe {
				t.Fatalf("at %v: %+v", c.clock.Now(), h)
			}
			c.port.up()
			c.pass(2 * time.Minute)
			if h := c.health("app"); h.State != event.DestinationEnabled || h.Since.After(c.clock.Now()) || h.LastSuccess.After(c.clock.Now()) {
				t.Fatalf("%+v", h)
			}
			if n := c.count(event.DeliverySent); n != 4 {
				t.Errorf("%d of 4 deliveries were sent", n)
			}
			found := c.outages("app")
			if len(found) != 1 || strings.Contains(found[0].Detail, "held for 3h") || strings.Contains(found[0].Detail, "held for 24h") ||
				strings.Contains(found[0].Detail, "-") && strings.Contains(found[0].Detail, "held for -") {
				t.Errorf("%+v", found)
			}
		})
	}
}

// TestGateF5InTheAir sets the clock back while an attempt is under way that
// fails then: the next one comes in its time.
func TestGateF5InTheAir(t *testing.T) {
	t.Parallel()
	c := newClockTower(t)
	reached, answer := make(chan struct{}), make(chan int)
	c.port.down()
	c.port.handler = func(w http.ResponseWriter, _ *http.Request) {
		reached <- struct{}{}
		w.WriteHeader(<-answer)
	}
	c.port.up()
	c.acceptAs("plain", "1")
	c.step()
	for range 2 { // the claim, and the start
		if _, err := c.d.Step(t.Context(), c.clock.Now()); err != nil {
			t.Fatal(err)
		}
	}
	<-reached
	c.clock.Advance(threeBack)
	if _, err := c.d.Step(t.Context(), c.clock.Now()); err != nil { // it sees the clock, the attempt goes on
		t.Fatal(err)
	}
	answer <- 500
	go func() { <-reached; answer <- 200 }()
	c.pass(10 * time.Second)
	if n := c.count(event.DeliverySent); n != 1 {
		t.Errorf("%+v", c.delivery(1))
	}
}

// TestGateF5GivenBack stops a worker after the clock was set back: what it gives
// back is due, also to a server that saw no step.
func TestGateF5GivenBack(t *testing.T) {
	t.Parallel()
	c := newClockTower(t)
	c.accept("1")
	_, works, err := c.store.Settle(t.Context(), c.clock.Now(), nil, 1)
	if err != nil || len(works) != 1 {
		t.Fatal(works, err)
	}
	c.worker.Reserve(1)
	c.worker.Hand(works)
	c.clock.Advance(threeBack)
	c.worker.release()
	c.watch = nil
	c.crash()
	c.hire()
	c.step()
	c.expect("1", event.Done, 1)
}

// TestGateF5Silence: a source that speaks every hour is not silent because the
// clock was set ahead, is heard after it was set back, and what was learned of
// its pauses stays.
func TestGateF5Silence(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]time.Duration{"back": threeBack, "ahead": dayAhead, "back, and silent": threeBack} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWatch(t)
			var passed time.Duration
			watch := NewWatch(WatchOptions{Clock: w.clock.Now, Passed: func() time.Duration { return passed }})
			w.s = NewSignals(SignalOptions{Store: brokenStore{w.saved.Store, w}, Tally: w.Tally, Free: func() int64 { return w.free },
				WAL: func() int64 { return w.wal }, Clock: w.clock.Now, Log: zerolog.New(w.logs), Watch: watch})
			w.s.Configure(w.cfg)
			hours := func(n int, heard bool) {
				t.Helper()
				for range 2 * n {
					passed += 30 * time.Minute
					w.look(30 * time.Minute)
					for _, s := range w.s.List() {
						if s.Value < 0 || s.Since.After(w.clock.Now()) {
							t.Errorf("at %v: %+v", w.clock.Now(), s)
						}
					}
					if heard {
						w.Count(event.TallyReceipts, "shop", 1)
					}
				}
			}
			hours(30, true)
			usual := w.signal(event.SignalSilence, "shop").Threshold
			w.clock.Advance(by)
			if !strings.HasSuffix(name, "silent") {
				hours(4, true)
			}
			w.wantOpen("after the step", "")
			if got := w.signal(event.SignalSilence, "shop"); got.Threshold > 1.1*usual || got.Firing {
				t.Errorf("the usual limit was %v, now %+v", usual, got)
			}
			hours(4, false) // and one that falls silent is noticed all the same
			w.wantOpen("in silence", "silence shop")
		})
	}
}

// A step ahead is like a start: what waited over it is not past due since then.
func TestGateF5Oldest(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]time.Duration{"back": threeBack, "ahead": dayAhead} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClockTower(t)
			signals := NewSignals(SignalOptions{Store: c.store, Tally: c.tally, Free: func() int64 { return 1 << 40 },
				WAL: func() int64 { return 0 }, Clock: c.clock.Now, Log: zerolog.Nop(), Watch: c.watch})
			oldest := func() event.Signal {
				t.Helper()
				if err := signals.Step(t.Context(), c.clock.Now()); err != nil {
					t.Fatal(err)
				}
				return signals.List()[0]
			}
			later := func(d time.Duration) { c.clock.Advance(d); c.passed += d }
			later(time.Hour)
			oldest()
			c.accept("1")
			c.clock.Advance(by)
			if got := oldest(); got.Firing || got.Value != 0 {
				t.Errorf("at once: %+v", got)
			}
			later(20 * time.Minute) // the worker stalls
			if got := oldest(); !got.Firing || got.Value < 19*60 || got.Value > 21*60 {
				t.Errorf("after twenty minutes: %+v", got)
			}
		})
	}
}

// TestGateF5Retention: what is gone does not come back, so a step ahead removes
// nothing for a day; and what a wrong clock dated ahead holds nothing up.
func TestGateF5Retention(t *testing.T) {
	t.Parallel()
	var passed time.Duration
	clock := startTime()
	now := func() time.Time { return clock }
	store := &purgeScript{}
	r := NewRetention(RetentionOptions{Store: store, Clock: now, Log: zerolog.Nop(),
		Watch: NewWatch(WatchOptions{Clock: now, Passed: func() time.Duration { return passed }})})
	hours := func(n int) int {
		store.at = nil
		for range n {
			clock, passed = clock.Add(time.Hour), passed+time.Hour
			r.Step(t.Context(), clock)
		}
		return len(store.at)
	}
	if n := hours(3); n != 3 {
		t.Errorf("%d purges in 3 hours", n)
	}
	clock = clock.Add(dayAhead)
	if n := hours(24); n != 0 {
		t.Errorf("%d purges in the day after the clock was set ahead", n)
	}
	if n := hours(3); n != 3 {
		t.Errorf("%d purges in 3 hours, a day later", n)
	}
	clock = clock.Add(threeBack)
	if n := hours(3); n != 3 {
		t.Errorf("%d purges after it was set back", n)
	}
	if r := NewRetention(RetentionOptions{Store: store, Clock: now, Log: zerolog.Nop(), Doubt: true}); r.waits != retentionDoubt {
		t.Errorf("a start in doubt waits for %d steps", r.waits)
	}
}

// Small corrections are none, a step is seen once, and again where following it
// failed.
func TestWatch(t *testing.T) {
	t.Parallel()
	clock, passed, fail := startTime(), time.Duration(0), error(nil)
	var followed []time.Duration
	w := NewWatch(WatchOptions{Clock: func() time.Time { return clock }, Passed: func() time.Duration { return passed },
		Back: func(_ context.Context, _ time.Time, by time.Duration) error {
			followed = append(followed, by)
			return fail
		}})
	look := func(step, time time.Duration, want Steps) {
		t.Helper()
		clock, passed = clock.Add(step+time), passed+time
		if got, err := w.Look(t.Context()); got != want || !errors.Is(err, fail) {
			t.Errorf("%+v %v, want %+v", got, err, want)
		}
	}
	look(0, 0, Steps{})
	look(-time.Second, 0, Steps{})
	look(0, 20*time.Second, Steps{})
	look(time.Minute, time.Hour, Steps{})
	fail = errors.New("the disk is gone")
	look(threeBack, time.Second, Steps{})
	fail = nil
	look(0, time.Second, Steps{Back: -threeBack})
	look(0, time.Second, Steps{Back: -threeBack})
	look(dayAhead, time.Second, Steps{Back: -threeBack, Ahead: dayAhead})
	if len(followed) != 2 || followed[0] != -threeBack || followed[1] != -threeBack {
		t.Errorf("followed %v", followed)
	}
	// A clock whose times have a monotonic reading needs nothing beside it.
	real := NewWatch(WatchOptions{Clock: time.Now})
	for range 3 {
		if got, err := real.Look(t.Context()); got != (Steps{}) || err != nil {
			t.Error(got, err)
		}
	}
}
