package jobs

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"creel/event"
	"creel/internal/testkit"
	"creel/store"
)

// countedStore is a tally's store that counts the writes, and fails on demand.
type countedStore struct {
	*store.Store
	saves int
	rows  int
	fail  error
}

func (c *countedStore) SaveTallies(ctx context.Context, now time.Time, counts []event.MinuteCount, keep time.Duration) error {
	if c.fail != nil {
		return c.fail
	}
	c.saves++
	c.rows += len(counts)
	return c.Store.SaveTallies(ctx, now, counts, keep)
}

// tallies is a tally on a real store with a fake clock.
type tallies struct {
	*Tally
	t     *testing.T
	clock *testkit.Clock
	saved *countedStore
	logs  *testkit.Log
}

func newTallies(t *testing.T) *tallies {
	t.Helper()
	s, err := store.Open(context.Background(), store.Options{Path: t.TempDir() + "/creel.db", Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	f := &tallies{t: t, clock: testkit.NewClock(startTime()), saved: &countedStore{Store: s}, logs: &testkit.Log{}}
	f.restart()
	return f
}

// restart is a kill, and the next server.
func (f *tallies) restart() {
	f.t.Helper()
	f.Tally = NewTally(TallyOptions{Store: f.saved, Clock: f.clock.Now, Log: zerolog.New(f.logs)})
	f.Configure([]string{"shop"}, []string{"app"})
	if err := f.Restore(context.Background()); err != nil {
		f.t.Fatal(err)
	}
}

func (f *tallies) step() time.Time {
	f.t.Helper()
	next, err := f.Step(context.Background(), f.clock.Now())
	if err != nil {
		f.t.Fatal(err)
	}
	return next
}

func (f *tallies) hour() int64 { return f.Hour(event.TallyNew, "shop", f.clock.Now()) }

func (f *tallies) want(what string, want int64) {
	f.t.Helper()
	if got := f.hour(); got != want {
		f.t.Errorf("%s: %d in the last hour, want %d", what, got, want)
	}
}

func TestTallyLooksBackAnHour(t *testing.T) {
	t.Parallel()
	f := newTallies(t)
	for range 120 { // one a minute, and two in each
		f.Count(event.TallyNew, "shop", 1)
		f.Count(event.TallyNew, "shop", 1)
		f.clock.Advance(time.Minute)
	}
	f.want("after two hours", 118) // the current minute has none yet
	f.Count(event.TallyNew, "nobody", 5)
	f.Count(event.TallySent, "shop", 5)
	f.Count(event.TallyNew, "app", 5)
	f.want("what is not configured", 118)
	if n := f.Between(event.TallyNew, "shop", minuteOf(f.clock.Now())-3, minuteOf(f.clock.Now())); n != 6 {
		t.Errorf("%d in three minutes", n)
	}
	f.clock.Advance(time.Hour)
	f.want("an hour later", 0)
	if last := f.Last(event.TallyNew, "shop"); !last.Equal(startTime().Add(119 * time.Minute)) {
		t.Errorf("last at %s", last)
	}
	f.clock.Advance(17 * time.Second)
	f.Count(event.TallyNew, "shop", 1)
	if last := f.Last(event.TallyNew, "shop"); !last.Equal(f.clock.Now()) {
		t.Errorf("just now is %s", last)
	}
	var none *Tally
	none.Count(event.TallyNew, "shop", 1)
	if none.Hour(event.TallyNew, "shop", startTime()) != 0 || !none.Last(event.TallyNew, "shop").IsZero() {
		t.Error("a nil tally counts")
	}
}

// An hour of counting writes once a minute, an idle server nothing, and a flush
// what is new alone.
func TestTallyWritesOnceAMinuteAndNothingWhileIdle(t *testing.T) {
	t.Parallel()
	f := newTallies(t)
	if next := f.step(); !next.IsZero() {
		t.Errorf("an idle tally wants to be called at %s", next)
	}
	for range 3600 {
		f.Count(event.TallyNew, "shop", 1)
		f.step()
		f.clock.Advance(time.Second)
	}
	f.step()
	f.clock.Advance(time.Minute)
	f.step()
	saves := f.saved.saves
	if saves < 58 || saves > 60 || f.saved.rows > 2*saves {
		t.Errorf("%d writes with %d rows in an hour", saves, f.saved.rows)
	}
	for range 1000 {
		f.clock.Advance(time.Minute)
		if next := f.step(); !next.IsZero() {
			t.Fatalf("idle, and it wants to be called at %s", next)
		}
	}
	if f.saved.saves != saves {
		t.Errorf("%d writes while idle", f.saved.saves-saves)
	}
	kept, err := f.saved.Tallies(context.Background())
	if err != nil || len(kept) < 58 || len(kept) > 60 {
		t.Errorf("%d minutes are kept, %v", len(kept), err)
	}
	f.Count(event.TallyNew, "shop", 1)
	f.clock.Advance(time.Minute)
	f.step()
	if kept, _ = f.saved.Tallies(context.Background()); len(kept) != 1 {
		t.Errorf("%d minutes are kept a day later: %+v", len(kept), kept)
	}
}

// A stop keeps everything, a kill all but the last minute; the newest minute
// tells when something last happened, however long ago.
func TestTallyOutlivesARestart(t *testing.T) {
	t.Parallel()
	f := newTallies(t)
	f.Count(event.TallyNew, "shop", 7)
	f.clock.Advance(time.Minute)
	f.step()
	f.Count(event.TallyNew, "shop", 2)
	f.restart()
	f.want("after a kill", 7)
	f.Count(event.TallyNew, "shop", 3)
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	f.Run(stopped)
	f.restart()
	f.want("after a stop", 10)
	f.clock.Advance(24 * time.Hour)
	f.restart()
	f.want("after a day", 0)
	if last := f.Last(event.TallyNew, "shop"); !last.Equal(startTime().Add(time.Minute)) {
		t.Errorf("last at %s", last)
	}
}

func TestTallyAndClocksThatJump(t *testing.T) {
	t.Parallel()
	f := newTallies(t)
	f.Count(event.TallyNew, "shop", 5)
	f.clock.Advance(30 * time.Minute)
	f.Count(event.TallyNew, "shop", 5)
	f.clock.Advance(-30 * time.Minute)
	f.want("set back", 5)
	f.Count(event.TallyNew, "shop", 1)
	f.clock.Advance(-3 * time.Hour)
	f.want("set back far", 0)
	f.Count(event.TallyNew, "shop", 2)
	f.want("counted there", 2)
	f.clock.Advance(time.Minute)
	if next := f.step(); !next.IsZero() && next.After(f.clock.Now().Add(time.Minute)) {
		t.Errorf("after the jump it stores at %s", next)
	}
	f.clock.Advance(2 * time.Minute)
	f.step()
	f.restart()
	f.want("restored", 2)
	f.clock.Advance(1000 * time.Hour)
	f.want("set forward", 0)
	f.Count(event.TallyNew, "shop", 3)
	f.want("counted there", 3)
}

// A store that fails costs nothing but the write, and one log line.
func TestTallyKeepsWhatTheStoreDoesNotTake(t *testing.T) {
	t.Parallel()
	f := newTallies(t)
	f.saved.fail = errors.New("the disk is full")
	f.Count(event.TallyNew, "shop", 5)
	for range 10 {
		f.clock.Advance(time.Minute)
		if _, err := f.Step(context.Background(), f.clock.Now()); !errors.Is(err, f.saved.fail) {
			t.Errorf("%v", err)
		}
	}
	if n := strings.Count(f.logs.String(), "tallies could not be stored"); n != 1 {
		t.Errorf("%d log lines", n)
	}
	f.saved.fail = nil
	f.clock.Advance(time.Minute)
	f.step()
	f.restart()
	f.want("once it is well", 5)
}

func TestTallyCountsWhoeverCounts(t *testing.T) {
	t.Parallel()
	f := newTallies(t)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 1000 {
				f.Count(event.TallyNew, "shop", 1)
			}
		})
	}
	for range 20 {
		f.clock.Advance(10 * time.Second)
		f.step()
	}
	wait.Wait()
	f.want("eight at once", 8000)
}

func BenchmarkTallyCount(b *testing.B) {
	tally := NewTally(TallyOptions{Clock: time.Now})
	tally.Configure([]string{"shop"}, nil)
	b.ReportAllocs()
	for b.Loop() {
		tally.Count(event.TallyNew, "shop", 1)
	}
}
