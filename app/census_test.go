package app

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"creel/event"
	"creel/store"
)

// Quick counts are those of the moment; slow ones keep nobody waiting, run one
// at a time and not one after another.
func TestCensusKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	var taken atomic.Int64
	gate := make(chan struct{})
	c := newCensus(func(context.Context) (store.Census, error) {
		n := taken.Add(1)
		if n == 2 {
			<-gate
		}
		if n == 3 {
			return store.Census{}, errors.New("no")
		}
		return store.Census{Events: map[event.State]int64{event.Dead: n}}, nil
	})
	ready := func() { c.mu.Lock(); c.next = time.Time{}; c.mu.Unlock() }
	at := time.Unix(1000, 0)
	c.counts(at)
	<-ended(c)
	if got := c.counts(at); got.Events[event.Dead] != 1 || !got.at.Equal(at) {
		t.Fatalf("the first count is %v at %s", got.Events, got.at)
	}
	ready()
	for range 3 { // one runs, and everybody gets the last one meanwhile
		if got := c.counts(at.Add(time.Minute)); got.Events[event.Dead] != 1 || !got.at.Equal(at) {
			t.Errorf("while it is counted: %v at %s", got.Events, got.at)
		}
	}
	running := ended(c)
	close(gate)
	<-running
	if got := c.counts(at.Add(2 * time.Minute)); got.Events[event.Dead] != 2 || taken.Load() != 2 {
		t.Errorf("right after a slow count: %v, counted %d times", got.Events, taken.Load())
	}
	ready()
	c.counts(at.Add(3 * time.Minute)) // fails
	<-ended(c)
	if got := c.counts(at.Add(3 * time.Minute)); got.Events[event.Dead] != 2 {
		t.Errorf("a count that failed took the place of the last: %v", got.Events)
	}
	if err := c.stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	ready()
	before := taken.Load()
	if c.counts(at); taken.Load() != before {
		t.Error("it counts after its end")
	}
}

// ended is closed when no count runs.
func ended(c *census) chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running != nil {
		return c.running
	}
	closed := make(chan struct{})
	close(closed)
	return closed
}
