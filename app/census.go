package app

import (
	"context"
	"sync"
	"time"

	"creel/store"
)

const (
	// censusPatience is how long a scrape waits for the counts of this moment
	// before it takes those of an earlier one.
	censusPatience = 10 * time.Millisecond
	// censusShare is which part of the time may go into counting: one in so
	// many. With half a million dead letters one count takes some tenths
	// of a second.
	censusShare = 100
)

// census keeps the counts by state. A small database is counted at each call;
// a large one in the background, so that nobody waits, and rarely enough that
// it costs next to nothing. Nobody's asking costs nothing.
type census struct {
	take func(context.Context) (store.Census, error)

	mu      sync.Mutex
	last    counted
	running chan struct{} // closed when the count that runs has ended; nil while none does
	next    time.Time     // not before
	ended   bool
	cancel  context.CancelFunc
}

type counted struct {
	store.Census
	at time.Time // zero before the first
}

func newCensus(take func(context.Context) (store.Census, error)) *census { return &census{take: take} }

// counts gives the counts of this moment if they are quick to get, else the
// last ones. now is the time that they are marked with.
func (c *census) counts(now time.Time) counted {
	running := c.start(now)
	if running != nil {
		timer := time.NewTimer(censusPatience)
		defer timer.Stop()
		select {
		case <-running:
		case <-timer.C:
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// start begins a count unless one runs or it is too early, and returns what is
// closed at its end.
func (c *census) start(now time.Time) chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running != nil || c.ended || time.Now().Before(c.next) {
		return c.running
	}
	ctx, cancel := context.WithCancel(context.Background())
	running := make(chan struct{})
	c.running, c.cancel = running, cancel
	go func() {
		defer close(running)
		defer cancel()
		began := time.Now()
		result, err := c.take(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		if err == nil {
			c.last = counted{result, now}
		}
		c.running, c.next = nil, time.Now().Add(censusShare*time.Since(began))
	}()
	return running
}

// stop ends a count that runs and lets no other begin.
func (c *census) stop(ctx context.Context) error {
	c.mu.Lock()
	c.ended = true
	running, cancel := c.running, c.cancel
	c.mu.Unlock()
	if running == nil {
		return nil
	}
	cancel()
	select {
	case <-running:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
