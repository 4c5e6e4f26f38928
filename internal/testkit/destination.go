package testkit

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Fault is what a destination does instead of answering.
type Fault int

// The faults of a destination. All of them happen after the whole request was
// read: the sender can not know whether the work was done.
const (
	NoFault Fault = iota
	// Hang never answers; the request ends when the sender gives up or the
	// test ends.
	Hang
	// Close closes the connection without a byte.
	Close
	// Reset does the same with a TCP reset.
	Reset
	// HalfAnswer announces more bytes than it sends, then closes.
	HalfAnswer
	// Endless sends a 200 and a body that does not end.
	Endless
)

// Answer is what a destination says to one request.
type Answer struct {
	Status int // 200 where it is 0
	Header map[string]string
	Body   string
	Fault  Fault
	// Wait, where it is set, is waited for before the answer.
	Wait <-chan struct{}
}

// Received is one request that a destination has read whole.
type Received struct {
	Number  int // 1 for the first
	Method  string
	URL     string
	Proto   string
	Host    string
	Header  http.Header
	Body    []byte
	At      time.Time
	Peer    string // address of the connection: two requests of one connection share it
	Trouble error  // why the body could not be read whole
}

// ID is the webhook-id of the request.
func (r Received) ID() string { return r.Header.Get("webhook-id") }

// Destination is a real HTTP server that gives the answers of a script and
// keeps every request byte for byte.
type Destination struct {
	URL    string
	Server *httptest.Server

	mu       sync.Mutex
	script   []Answer
	answer   func(Received) Answer
	requests []Received
	changed  chan struct{}

	busy     atomic.Int64
	mostBusy atomic.Int64
	open     atomic.Int64
	done     chan struct{}
}

// NewDestination starts a destination that answers 200 until it is told
// otherwise. It stops with the test.
func NewDestination(t testing.TB) *Destination {
	t.Helper()
	return start(t, false)
}

// NewTLSDestination is the same behind a certificate that nobody trusts but
// the client of Server.Client.
func NewTLSDestination(t testing.TB) *Destination {
	t.Helper()
	return start(t, true)
}

func start(t testing.TB, tls bool) *Destination {
	d := &Destination{changed: make(chan struct{}), done: make(chan struct{})}
	d.Server = httptest.NewUnstartedServer(http.HandlerFunc(d.serve))
	d.Server.Config.ConnState = d.count
	if tls {
		d.Server.StartTLS()
	} else {
		d.Server.Start()
	}
	d.URL = d.Server.URL
	t.Cleanup(func() {
		close(d.done)
		d.Server.CloseClientConnections()
		d.Server.Close()
	})
	return d
}

// Script gives the answers of the next requests, one each; the last one goes
// on for all that follow.
func (d *Destination) Script(answers ...Answer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.script, d.answer = answers, nil
}

// Answer lets a function decide each answer; it may be called concurrently.
func (d *Destination) Answer(decide func(Received) Answer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.script, d.answer = nil, decide
}

// Requests returns what was received so far, in the order of receipt.
func (d *Destination) Requests() []Received {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]Received(nil), d.requests...)
}

// Count is how many requests were received.
func (d *Destination) Count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.requests)
}

// Counts is how often each webhook-id was received.
func (d *Destination) Counts() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	counts := make(map[string]int, len(d.requests))
	for _, r := range d.requests {
		counts[r.ID()]++
	}
	return counts
}

// Busy is how many requests are being answered now; MostBusy is the highest
// number that there was.
func (d *Destination) Busy() int     { return int(d.busy.Load()) }
func (d *Destination) MostBusy() int { return int(d.mostBusy.Load()) }

// Open is the number of open connections.
func (d *Destination) Open() int { return int(d.open.Load()) }

// Wait waits until n requests were received and returns them.
func (d *Destination) Wait(t testing.TB, n int, limit time.Duration) []Received {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for {
		d.mu.Lock()
		got, changed := len(d.requests), d.changed
		d.mu.Unlock()
		if got >= n {
			return d.Requests()
		}
		select {
		case <-changed:
		case <-deadline.C:
			t.Fatalf("waited %v for %d requests at the destination, got %d", limit, n, got)
		}
	}
}

func (d *Destination) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		d.open.Add(1)
	case http.StateClosed, http.StateHijacked:
		d.open.Add(-1)
	}
}

func (d *Destination) serve(w http.ResponseWriter, r *http.Request) {
	busy := d.busy.Add(1)
	defer d.busy.Add(-1)
	for most := d.mostBusy.Load(); busy > most && !d.mostBusy.CompareAndSwap(most, busy); {
		most = d.mostBusy.Load()
	}
	body, err := io.ReadAll(r.Body)
	got := Received{
		Method: r.Method, URL: r.URL.String(), Proto: r.Proto, Host: r.Host,
		Header: r.Header.Clone(), Body: body, At: time.Now(), Peer: r.RemoteAddr, Trouble: err,
	}
	answer := d.take(&got)
	if answer.Wait != nil {
		select {
		case <-answer.Wait:
		case <-r.Context().Done():
			return
		case <-d.done:
			return
		}
	}
	d.say(w, r, answer)
}

// take keeps the request and decides the answer in one step, so that a script
// is given in the order of receipt.
func (d *Destination) take(got *Received) Answer {
	d.mu.Lock()
	got.Number = len(d.requests) + 1
	d.requests = append(d.requests, *got)
	decide := d.answer
	var answer Answer
	if len(d.script) > 0 {
		answer = d.script[0]
		if len(d.script) > 1 {
			d.script = d.script[1:]
		}
	}
	close(d.changed)
	d.changed = make(chan struct{})
	d.mu.Unlock()
	if decide != nil {
		return decide(*got)
	}
	return answer
}
