package main

import (
	"context"
	"fmt"
	"net/url"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// load is one series of signed events to one source.
type load struct {
	url         string
	connections int
	duration    time.Duration
	events      int     // stop after as many; 0 is no limit
	rate        float64 // events a second for all connections; 0 is the closed loop
	size        int
	ordered     bool
	// acknowledged is told the key of each event when its 200 was read; it is
	// called from many goroutines.
	acknowledged func(key uint64, at time.Time)
}

// run sends the load and waits for every answer.
func (l load) run(ctx context.Context) (result, error) {
	to, err := url.Parse(l.url)
	if err != nil {
		return result{}, fmt.Errorf("read the address: %w", err)
	}
	all := newTally()
	var senders sync.WaitGroup
	ready := make(chan error, l.connections)
	begin := make(chan time.Time)
	turns := l.takeTurns()
	for i := range l.connections {
		senders.Add(1)
		go func() {
			defer senders.Done()
			l.sender(ctx, i, to, ready, begin, turns, all)
		}()
	}
	for range l.connections {
		if e := <-ready; e != nil {
			err = e
		}
	}
	start := time.Now()
	if err != nil {
		start = time.Time{} // tells the senders to go home
	}
	for range l.connections {
		begin <- start
	}
	if l.rate > 0 && err == nil {
		l.pace(ctx, start, turns)
	}
	senders.Wait()
	if err != nil {
		return result{}, err
	}
	return all.result(l.connections, l.rate, all.late.Sub(start)), nil
}

// sender is one connection's part of the load.
func (l load) sender(ctx context.Context, number int, to *url.URL, ready chan<- error, begin <-chan time.Time, turns []chan struct{}, all *tally) {
	m, err := newMaker(to.Host, to.Path, l.size, l.ordered)
	var c *conn
	if err == nil {
		c, err = dial(to.Host)
	}
	ready <- err
	start := <-begin
	if start.IsZero() || err != nil {
		return
	}
	own := newTally()
	defer func() { c.close(); all.merge(own) }()
	plan := l.plan(number, start)
	for n := 0; ctx.Err() == nil; n++ {
		intended, ok := plan(n)
		if !ok {
			return
		}
		if l.rate > 0 {
			if _, ok := <-turns[number]; !ok {
				return
			}
		}
		request := m.next()
		if l.rate == 0 {
			intended = time.Now()
		}
		status, err := c.exchange(request)
		now := time.Now()
		if err != nil {
			own.fail(err)
			if err := c.redial(); err != nil {
				own.fail(err)
				return
			}
			continue
		}
		own.add(status, now.Sub(intended), now)
		if status/100 == 2 && l.acknowledged != nil {
			l.acknowledged(m.key(), now)
		}
	}
}

// takeTurns makes the channels by which pace tells each connection to send.
func (l load) takeTurns() []chan struct{} {
	turns := make([]chan struct{}, l.connections)
	for i := range turns {
		turns[i] = make(chan struct{}, 1024) // a late connection catches up
	}
	return turns
}

// pace tells the connections in turn when to send, until the load is over. It
// is one thread that sleeps in the kernel: one in each connection would leave
// the runtime without anybody who watches the network.
func (l load) pace(ctx context.Context, start time.Time, turns []chan struct{}) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	plans := make([]func(int) (time.Time, bool), len(turns))
	for i := range plans {
		plans[i] = l.plan(i, start)
	}
	for n := 0; ctx.Err() == nil; n++ {
		i := n % len(turns)
		intended, ok := plans[i](n / len(turns))
		if !ok {
			break
		}
		waitUntil(intended)
		turns[i] <- struct{}{}
	}
	for _, turn := range turns {
		close(turn)
	}
}

// waitUntil blocks the thread: a timer of the runtime may be a millisecond
// late, which would stand in every latency of the open loop.
func waitUntil(t time.Time) {
	for wait := time.Until(t); wait > 0; wait = time.Until(t) {
		pause := syscall.NsecToTimespec(int64(wait))
		_ = syscall.Nanosleep(&pause, nil)
	}
}

// plan says when the n-th event of a connection is to be sent and whether
// there is one. In the open loop the connections take turns, so that the rate
// is steady as a whole; a late connection sends at once and its lateness
// counts as latency.
func (l load) plan(number int, start time.Time) func(n int) (time.Time, bool) {
	end := start.Add(l.duration)
	return func(n int) (time.Time, bool) {
		overall := n*l.connections + number
		if l.events > 0 && overall >= l.events {
			return time.Time{}, false
		}
		if l.rate == 0 {
			return start, l.duration == 0 || time.Now().Before(end)
		}
		at := start.Add(time.Duration(float64(overall) / l.rate * float64(time.Second)))
		return at, l.duration == 0 || at.Before(end)
	}
}
