package testkit

import (
	"sync"
	"time"
)

// Clock is a time that stands still until a test moves it. Its methods may be
// called from any goroutine.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that stands at the given time, in UTC and cut to
// the millisecond as the store keeps times.
func NewClock(start time.Time) *Clock {
	return &Clock{now: start.UTC().Truncate(time.Millisecond)}
}

// Now is the time of the clock; the method value is what rooms take as their
// clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Set puts the clock to a time, backwards too.
func (c *Clock) Set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now.UTC().Truncate(time.Millisecond)
}

// Advance moves the clock and returns the new time.
func (c *Clock) Advance(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return c.now
}
