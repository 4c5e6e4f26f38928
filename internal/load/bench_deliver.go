package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// arrivals matches acknowledgements with what the destination received.
type arrivals struct {
	mu    sync.Mutex
	acked map[uint64]time.Time
	came  map[uint64]time.Time
	last  time.Time
	first time.Time
}

func newArrivals(s *sink) *arrivals {
	a := &arrivals{acked: map[uint64]time.Time{}, came: map[uint64]time.Time{}}
	tell := func(id []byte, at time.Time) {
		key := keyOf(id)
		a.mu.Lock()
		defer a.mu.Unlock()
		if _, again := a.came[key]; again {
			return
		}
		a.came[key] = at
		if a.first.IsZero() {
			a.first = at
		}
		a.last = at
	}
	s.received.Store(&tell)
	return a
}

func (a *arrivals) acknowledged(key uint64, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.acked[key] = at
}

func (a *arrivals) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.came)
}

// delays are the times from acknowledgement to arrival; an event may arrive
// before its sender has read the answer.
func (a *arrivals) delays() []time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	delays := make([]time.Duration, 0, len(a.acked))
	for key, acked := range a.acked {
		if came, ok := a.came[key]; ok {
			delays = append(delays, came.Sub(acked))
		}
	}
	slices.Sort(delays)
	return delays
}

// wait waits until n events arrived.
func (a *arrivals) wait(ctx context.Context, n int, limit time.Duration) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.Now().Add(limit)
	for a.count() < n {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d of %d events arrived within %v", a.count(), n, limit)
		}
	}
	return nil
}

// benchDelivered is P10: everything received is delivered, until the last one
// has arrived, over what is received alone.
func benchDelivered(ctx context.Context, b *run) error {
	var ratios []float64
	for range b.rounds {
		l := load{connections: 64, duration: b.duration, size: bodySize}
		alone, err := b.loadCreel(ctx, l, setup{}, "creel")
		if err != nil {
			return err
		}
		all, err := b.delivered(ctx, l)
		if err != nil {
			return err
		}
		ratios = append(ratios, all/alone.PerSecond)
	}
	b.note("P10", "received and delivered over received", median(ratios), "", 0.75, true)
	return nil
}

func (b *run) delivered(ctx context.Context, l load) (perSecond float64, err error) {
	s, err := newSink("127.0.0.1:0", 0)
	if err != nil {
		return 0, err
	}
	defer s.close()
	a := newArrivals(s)
	dir, err := b.folder()
	if err != nil {
		return 0, err
	}
	p, err := b.creel(ctx, dir, setup{destination: s.url(), inFlight: 64})
	if err != nil {
		return 0, err
	}
	defer p.kill()
	l.url = p.url()
	start := time.Now()
	r, err := l.run(ctx)
	b.keep("creel, delivering", r)
	if err == nil {
		err = a.wait(ctx, r.Events, time.Minute)
	}
	if err != nil {
		return 0, err
	}
	return float64(r.Events) / a.last.Sub(start).Seconds(), p.stop()
}

// benchSteady is P3: the acknowledgement at 1,000/s while every event is
// delivered, in an empty file and in a large one.
func benchSteady(ctx context.Context, b *run) error {
	empty, err := b.folder()
	if err != nil {
		return err
	}
	if err := b.steadyIn(ctx, empty, "empty", 15); err != nil {
		return err
	}
	full, err := b.large(ctx)
	if err != nil {
		return err
	}
	return b.steadyIn(ctx, full, fmt.Sprintf("%d rows", b.rows), 20)
}

func (b *run) steadyIn(ctx context.Context, dir, what string, goal float64) error {
	s, err := newSink("127.0.0.1:0", 0)
	if err != nil {
		return err
	}
	defer s.close()
	a := newArrivals(s)
	l := load{connections: 32, rate: 1000, duration: b.steady, size: bodySize}
	p, err := b.creel(ctx, dir, setup{destination: s.url(), inFlight: 32})
	if err != nil {
		return err
	}
	defer p.kill()
	l.url = p.url()
	r, err := l.run(ctx)
	b.keep("creel at 1,000/s, "+what, r)
	if err == nil {
		err = a.wait(ctx, r.Events, time.Minute)
	}
	if err != nil {
		return err
	}
	b.note("P3", "p99 at 1,000/s, "+what, r.P99, "ms", goal, false)
	b.note("P3", "max at 1,000/s, "+what, r.Max, "ms", 100, false)
	return p.stop()
}

// benchDelay is P5: from the acknowledgement to the request at the app.
func benchDelay(ctx context.Context, b *run) error {
	for _, rate := range []float64{50, 200, 1000} {
		s, err := newSink("127.0.0.1:0", 0)
		if err != nil {
			return err
		}
		a := newArrivals(s)
		dir, err := b.folder()
		if err != nil {
			return err
		}
		p, err := b.creel(ctx, dir, setup{destination: s.url(), inFlight: 32})
		if err != nil {
			return err
		}
		l := load{url: p.url(), connections: 32, rate: rate, duration: min(b.steady, 15*time.Second), size: bodySize, acknowledged: a.acknowledged}
		r, err := l.run(ctx)
		if err == nil {
			err = a.wait(ctx, r.Events, time.Minute)
		}
		err = errors.Join(err, p.stop())
		s.close()
		if err != nil {
			return err
		}
		b.keep("creel, delay", r)
		delays := a.delays()
		b.note("P5", fmt.Sprintf("acknowledgement to the app, p50 at %.0f/s", rate), at(delays, 0.5), "ms", 3, false)
		b.note("P5", fmt.Sprintf("acknowledgement to the app, p99 at %.0f/s", rate), at(delays, 0.99), "ms", 0, false)
	}
	return nil
}
