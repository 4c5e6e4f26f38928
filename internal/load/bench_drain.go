package main

import (
	"context"
	"fmt"
	"time"
)

// benchDrain is P11: a backlog drains as fast as events come in, and an app
// that takes 10 ms is kept busy in all its places.
func benchDrain(ctx context.Context, b *run) error {
	alone, err := b.loadCreel(ctx, load{connections: 64, duration: b.duration, size: bodySize}, setup{}, "creel")
	if err != nil {
		return err
	}
	fast, err := b.backlog(ctx, b.drain, 64, 0)
	if err != nil {
		return err
	}
	b.note("P11", fmt.Sprintf("drain of %d over intake", b.drain), fast/alone.PerSecond, "", 1, true)
	const inFlight, delay = 16, 10 * time.Millisecond
	slow, err := b.backlog(ctx, b.drain/10, inFlight, delay)
	if err != nil {
		return err
	}
	b.note("P11", "drain to an app that takes 10 ms over its places", slow/(inFlight/delay.Seconds()), "", 0.85, true)
	return nil
}

// backlog stores events for a paused destination, resumes it and measures
// from the first arrival to the last.
func (b *run) backlog(ctx context.Context, events, inFlight int, delay time.Duration) (perSecond float64, err error) {
	s, err := newSink("127.0.0.1:0", delay)
	if err != nil {
		return 0, err
	}
	defer s.close()
	a := newArrivals(s)
	dir, err := b.folder()
	if err != nil {
		return 0, err
	}
	p, err := b.creel(ctx, dir, setup{destination: s.url(), inFlight: inFlight})
	if err != nil {
		return 0, err
	}
	defer p.kill()
	if err := b.operate(ctx, dir, "pause", "app", "-c", "creel.toml", "--reason", "backlog"); err != nil {
		return 0, err
	}
	l := load{url: p.url(), connections: 64, events: events, size: bodySize}
	r, err := l.run(ctx)
	if err != nil {
		return 0, err
	}
	b.keep("creel, paused destination", r)
	if n := a.count(); n > inFlight {
		return 0, fmt.Errorf("%d events arrived at a paused destination", n)
	}
	if err := b.operate(ctx, dir, "resume", "app", "-c", "creel.toml", "--reason", "drain"); err != nil {
		return 0, err
	}
	peak := watch(ctx, p.pid())
	err = a.wait(ctx, r.Events, 5*time.Minute)
	memory := peak()
	if err != nil {
		return 0, err
	}
	if delay == 0 {
		b.note("P6", fmt.Sprintf("memory while draining %d", events), memory, "MB", 64, false)
	}
	return float64(r.Events) / a.last.Sub(a.first).Seconds(), p.stop()
}
