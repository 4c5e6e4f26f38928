package model

import (
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"creel/event"
)

// wanted is how many steps are run: the short form goes with every run of the
// tests, the long one with -steps=20000.
var wanted = flag.Int("steps", 2000, "how many steps of random histories are run")

// longHistory is how many steps a history has on average.
const longHistory = "80"

// TestMain sets rapid's own flags where the command line leaves them alone. The
// seed is drawn here, so that a run that went well can be repeated too.
func TestMain(m *testing.M) {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{"rapid.steps": longHistory, "rapid.seed": strconv.FormatUint(rand.Uint64(), 10)} {
		if given[name] {
			continue
		}
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// scratch is a folder in memory where there is one: the histories crash
// processes, not machines, and half of their time would be waiting for a disk.
func scratch(t *rapid.T) (dir string, remove func()) {
	for _, parent := range []string{"/dev/shm", ""} {
		if dir, err := os.MkdirTemp(parent, "creel-model-"); err == nil {
			return dir, func() { _ = os.RemoveAll(dir) }
		}
	}
	t.Fatal("no folder for a database")
	return "", nil
}

// TestRandomHistories runs random histories until enough steps are made. Each
// ends in fair weather, and then all of its work has to come to its end.
func TestRandomHistories(t *testing.T) {
	want, steps, histories, failed := *wanted, 0, 0, false
	t.Logf("seed %s", flag.Lookup("rapid.seed").Value)
	t.Cleanup(func() {
		if failed {
			t.Logf("the first failure came with step %d", want)
		}
	})
	for steps < want {
		rapid.Check(t, func(t *rapid.T) {
			if steps >= want && !failed {
				return // but not while a failure is shrunk
			}
			well := false
			defer func() {
				if !well && !failed {
					failed, want = true, steps // shrinking makes more of them
				}
			}()
			rapid.SyncTest(t, func(t *rapid.T) {
				dir, remove := scratch(t)
				defer remove()
				w := newWorld(t, dir)
				defer w.end()
				histories++
				acts := w.acts()
				check := acts[""]
				acts[""] = func(t *rapid.T) {
					steps++
					check(t)
				}
				t.Repeat(acts)
				w.quiesce(t)
			})
			well = true
		})
	}
	t.Logf("%d steps in %d histories", steps, histories)
}

// end closes the store whatever became of the history: its goroutines must not
// outlive it.
func (w *world) end() {
	w.eye.close(w.t)
	_ = w.store.Close()
}

// quiesce lets all work come to its end in fair weather.
func (w *world) quiesce(t *rapid.T) {
	w.crash()
	w.sky.weather = map[string]weather{}
	w.ship() // what foul weather left to be written
	for _, to := range []string{app, desk, event.Mail} {
		w.open1(to)
	}
	w.settle(t)
	w.bulk(t, event.ActionReplay)
	w.settle(t)
	for range len(w.m.events) { // those that hold up others, one after another
		if _, waiting := w.m.rest(); waiting == 0 {
			break
		}
		for _, e := range w.m.deadLetters() {
			a, err := w.store.SkipLane(t.Context(), w.clock.Now(), w.keyed(e))
			done, refused := w.one(w.m.skip(e))
			w.acted(a, err, done, refused)
		}
		for _, p := range w.m.parcels {
			if p.state == event.DeliveryInDoubt && !p.passes && p.lane != "" {
				a, err := w.store.SkipLane(t.Context(), w.clock.Now(), w.keyed(p.of))
				done, refused := w.one(w.m.skip(p.of))
				w.acted(a, err, done, refused)
			}
		}
		w.settle(t)
	}
	if open, waiting := w.m.rest(); open+waiting > 0 {
		w.m.problem("%d events and deliveries are not at their end, %d of them wait for a lane", open+waiting, waiting)
	}
	w.bulk(t, event.ActionDiscard)
	if letters := w.m.deadLetters(); len(letters) > 0 {
		w.m.problem("event %d is still among the dead letters after all were discarded", letters[0].seq)
	}
	w.check(t)
}

// settle works off all that is due within a day.
func (w *world) settle(t *rapid.T) {
	for range 30 {
		w.work()
		w.ship()
		w.check(t)
		if open, _ := w.m.rest(); open == 0 {
			return
		}
		w.clock.Advance(time.Hour)
	}
}

// rest counts what is neither at its end nor waiting for an operator, and what
// waits for the head of its lane.
func (m *model) rest() (open, waiting int) {
	for _, e := range m.events {
		switch {
		case e.waits:
			waiting++
		case e.state == event.Pending || e.state == event.Claimed:
			open++
		}
	}
	for _, p := range m.parcels {
		switch p.state {
		case event.DeliveryWaiting:
			waiting++
		case event.DeliveryReady, event.DeliverySending:
			open++
		}
	}
	return open, waiting
}
