package jobs

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"creel/event"
	"creel/internal/testkit"
	"creel/store"
)

// comparer is a store, a clock and the sources that are compared.
type comparer struct {
	*Reconcile
	store *store.Store
	clock *testkit.Clock
	every map[string]time.Duration
	asked []string
	err   error
}

func newComparer(t *testing.T) *comparer {
	t.Helper()
	c := &comparer{clock: testkit.NewClock(startTime()), every: map[string]time.Duration{"shop": 168 * time.Hour, "never": 0}}
	s, err := store.Open(context.Background(), store.Options{Path: filepath.Join(t.TempDir(), "creel.db"), Log: zerolog.Nop(), Clock: c.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	c.store = s
	c.start()
	return c
}

// start makes the loop anew, as a restart does.
func (c *comparer) start() {
	c.Reconcile = NewReconcile(ReconcileOptions{Store: c.store, Clock: c.clock.Now, Log: zerolog.Nop(),
		Every: func() map[string]time.Duration { return c.every },
		Compare: func(ctx context.Context, source string, after Compared) error {
			c.asked = append(c.asked, source)
			if c.err != nil {
				return c.err
			}
			after.At, after.Until = c.clock.Now(), c.clock.Now().Add(-15*time.Minute)
			return after.Keep(ctx, c.store, c.clock.Now(), source)
		}})
}

// pass steps every ten minutes of a stretch, and tells what was compared in it.
func (c *comparer) pass(d time.Duration) (asked []string) {
	c.asked = nil
	for end := c.clock.Now().Add(d); c.clock.Now().Before(end); {
		c.clock.Advance(10 * time.Minute)
		c.Step(context.Background(), c.clock.Now())
	}
	return c.asked
}

// Every source is compared in its time, across restarts, one that fails again
// within the hour, and one that is not to be compared never.
func TestReconcileByItself(t *testing.T) {
	t.Parallel()
	c := newComparer(t)
	if asked := c.pass(167 * time.Hour); len(asked) > 0 {
		t.Errorf("within its first week: %v", asked)
	}
	if asked := c.pass(2 * time.Hour); !slices.Equal(asked, []string{"shop"}) {
		t.Errorf("after a week: %v", asked)
	}
	c.pass(100 * time.Hour)
	c.start()
	if asked := c.pass(60 * time.Hour); len(asked) > 0 {
		t.Errorf("a restart compares: %v", asked)
	}
	c.err = errors.New("the list is not there")
	if asked := c.pass(12 * time.Hour); len(asked) < 2 || len(asked) > 12 {
		t.Errorf("one that fails is tried %d times in 12 hours", len(asked))
	}
	c.err = nil
	if asked := c.pass(24 * time.Hour); len(asked) != 1 {
		t.Errorf("and then %v", asked)
	}
	c.every["shop"] = 0
	if asked := c.pass(400 * time.Hour); len(asked) > 0 {
		t.Errorf("switched off: %v", asked)
	}
	// What is new begins with today, and the clock may be wrong.
	c.every["later"] = 24 * time.Hour
	if asked := c.pass(24 * time.Hour); len(asked) > 0 {
		t.Errorf("a new source: %v", asked)
	}
	if asked := c.pass(time.Hour); !slices.Equal(asked, []string{"later"}) {
		t.Errorf("a day later: %v", asked)
	}
	c.clock.Advance(-1000 * time.Hour)
	if asked := c.pass(time.Hour); !slices.Equal(asked, []string{"later"}) {
		t.Errorf("a clock that was set back by weeks stops it: %v", asked)
	}
}

// A gap is not left behind: the next comparison begins with it.
func TestReconcileGoesBackToTheGap(t *testing.T) {
	t.Parallel()
	until := startTime()
	if since := (Compared{Until: until}).Since(24 * time.Hour); !since.Equal(until.Add(-24 * time.Hour)) {
		t.Errorf("without a gap since %v", since)
	}
	if since := (Compared{Until: until, Open: until.Add(-400 * time.Hour)}).Since(24 * time.Hour); !since.Equal(until.Add(-400 * time.Hour)) {
		t.Errorf("with a gap since %v", since)
	}
}

// A list that can not be read for hours is told of once, and no longer when the
// source is not compared any more.
func TestWhatCanNotBeComparedIsTold(t *testing.T) {
	t.Parallel()
	c := newComparer(t)
	open := func() int {
		t.Helper()
		list, err := c.store.Incidents(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for i := range list {
			if list[i].Cause == event.CauseNotCompared && list[i].Subject == "shop" && strings.Contains(list[i].Detail, "HTTP 401") {
				n++
			}
		}
		return n
	}
	c.pass(time.Hour)
	c.err = errors.New("HTTP 401 Unauthorized")
	c.pass(168 * time.Hour)
	c.pass(5 * time.Hour)
	if n := open(); n != 0 {
		t.Errorf("%d incidents after five hours", n)
	}
	c.pass(3 * time.Hour)
	if n := open(); n != 1 {
		t.Errorf("%d incidents after eight hours", n)
	}
	c.start()
	c.pass(24 * time.Hour)
	if n := open(); n != 1 {
		t.Errorf("%d incidents after a restart and a day", n)
	}
	c.every = map[string]time.Duration{"shop": 0}
	c.pass(time.Hour)
	if n := open(); n != 0 {
		t.Error("it is told of a source that is not compared")
	}
}
