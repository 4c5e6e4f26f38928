package meter

import (
	"sync/atomic"
	"time"
)

// Histogram counts durations by buckets. Any goroutine may observe and read.
type Histogram struct {
	bounds  []time.Duration // upper ones, the longest last
	buckets []atomic.Int64  // one more than bounds
	sum     atomic.Int64    // nanoseconds
}

// NewHistogram makes a histogram of the given upper bounds, shortest first. It
// keeps the slice.
func NewHistogram(bounds []time.Duration) *Histogram {
	return &Histogram{bounds: bounds, buckets: make([]atomic.Int64, len(bounds)+1)}
}

// Observe counts one duration. Less than nothing, from a clock that was set
// back, counts as nothing.
func (h *Histogram) Observe(d time.Duration) {
	d = max(d, 0)
	i := 0
	for i < len(h.bounds) && d > h.bounds[i] {
		i++
	}
	h.buckets[i].Add(1)
	h.sum.Add(int64(d))
}

// Reading is a histogram at one moment.
type Reading struct {
	Bounds []time.Duration // upper ones; shared, not to be changed
	Below  []int64         // observations up to each bound
	Count  int64           // all of them
	Sum    time.Duration
}

// Read takes the counts. Observations that come meanwhile are in it or not.
func (h *Histogram) Read() Reading {
	r := Reading{Bounds: h.bounds, Below: make([]int64, len(h.bounds)), Sum: time.Duration(h.sum.Load())}
	for i := range h.buckets {
		r.Count += h.buckets[i].Load()
		if i < len(r.Below) {
			r.Below[i] = r.Count
		}
	}
	return r
}

// Short are bounds for what takes moments: an answer, an attempt, a commit.
func Short() []time.Duration {
	const ms = time.Millisecond
	return []time.Duration{ms / 2, ms, 2 * ms, 5 * ms, 10 * ms, 25 * ms, 50 * ms, 100 * ms, 250 * ms, 500 * ms,
		time.Second, 2500 * ms, 5 * time.Second, 10 * time.Second, 30 * time.Second}
}

// Long are bounds for what may wait for somebody: from milliseconds to days.
func Long() []time.Duration {
	const ms = time.Millisecond
	return []time.Duration{5 * ms, 10 * ms, 25 * ms, 50 * ms, 100 * ms, 250 * ms, 500 * ms, time.Second, 2500 * ms,
		5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour}
}
