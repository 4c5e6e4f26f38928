package receiver

import (
	"container/list"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Listener bounds the connections of senders. Where a plain limit would let
// half-open connections keep everybody else out until their time is over, this
// one closes the connection that has gone longest without a request and takes
// the new one in. A newcomer waits when every connection has a request in
// work, or has had too little time to send one.
type Listener struct {
	net.Listener
	max int

	mu      sync.Mutex
	open    int
	waiting *list.List // of *conn, the longest without a request first
	free    *sync.Cond
	closed  bool
}

// evictAfter is the time that a connection has for its request before it may
// have to make room. A flood of n half-open connections delays an honest one
// by n / max times this.
const evictAfter = 100 * time.Millisecond

// defaultConnections take about 28 MB when all of them are half open.
const defaultConnections = 2048

// Listen bounds a listener of cleartext HTTP/1 connections to max at once;
// 2,048 where max is 0.
func Listen(inner net.Listener, max int) *Listener {
	if max <= 0 {
		max = defaultConnections
	}
	l := &Listener{Listener: inner, max: max, waiting: list.New()}
	l.free = sync.NewCond(&l.mu)
	return l
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.admit(raw); c != nil {
			return c, nil
		}
		_ = raw.Close()
	}
}

// admit counts a connection in, after making room for it. It returns nil when
// the listener was closed meanwhile.
func (l *Listener) admit(raw net.Conn) *conn {
	l.mu.Lock()
	evicted := l.room()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.open++
	c := &conn{Conn: raw, listener: l, counted: true, since: time.Now()}
	c.place = l.waiting.PushBack(c)
	c.head.arm()
	l.mu.Unlock()
	if evicted != nil {
		_ = evicted.Conn.Close()
	}
	return c
}

// room waits until there is a place, or until one can be taken from a
// connection, which it returns. The caller holds mu.
func (l *Listener) room() *conn {
	for l.open >= l.max && !l.closed {
		front := l.waiting.Front()
		if front == nil {
			l.free.Wait()
			continue
		}
		oldest := front.Value.(*conn)
		left := evictAfter - time.Since(oldest.since)
		if left <= 0 {
			if oldest.evict() {
				l.forget(oldest)
				return oldest
			}
			oldest.since = time.Now()
			l.waiting.MoveToBack(front)
			continue
		}
		alarm := time.AfterFunc(left, l.wake)
		l.free.Wait()
		alarm.Stop()
	}
	return nil
}

func (l *Listener) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free.Broadcast()
}

// forget takes a connection out of the count. The caller holds mu.
func (l *Listener) forget(c *conn) {
	if c.place != nil {
		l.waiting.Remove(c.place)
		c.place = nil
	}
	if c.counted {
		c.counted = false
		l.open--
		l.free.Signal()
	}
}

// Close implements net.Listener. Connections that are open stay.
func (l *Listener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.free.Broadcast()
	l.mu.Unlock()
	return l.Listener.Close()
}

// Open is how many connections there are now.
func (l *Listener) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// connState is the server's hook: it keeps the list of those that wait for a
// request.
func connState(raw net.Conn, state http.ConnState) {
	c, ok := raw.(*conn)
	if !ok {
		return
	}
	switch state {
	case http.StateActive:
		c.listener.busy(c)
	case http.StateIdle:
		c.head.arm()
		c.listener.idle(c)
	}
}

func (l *Listener) busy(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.place != nil {
		l.waiting.Remove(c.place)
		c.place = nil
	}
}

func (l *Listener) idle(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.counted && c.place == nil {
		c.since = time.Now()
		c.place = l.waiting.PushBack(c)
		l.free.Signal() // somebody may wait for a connection that can go
	}
}

// conn is a counted connection whose request heads are looked at.
type conn struct {
	net.Conn
	listener *Listener
	head     head
	place    *list.Element // in listener.waiting; its mu owns this and counted
	counted  bool
	since    time.Time // without a request; mu owns it
	evicted  atomic.Bool
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		if bad := c.head.look(p[:n]); bad != nil {
			return 0, bad
		}
		// It may have had to make room after its bytes were read and before they
		// were looked at: a request whose answer can not arrive is not begun.
		if c.evicted.Load() {
			return 0, net.ErrClosed
		}
	}
	return n, err
}

// evict marks a connection that has to make room, unless there is a request: of
// this and a Read at the same time at least one sees what the other did.
func (c *conn) evict() bool {
	c.evicted.Store(true)
	if c.hasRequest() {
		c.evicted.Store(false)
		return false
	}
	return true
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.listener.mu.Lock()
	c.listener.forget(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// hasRequest tells whether the connection waits for us rather than we for it:
// its head is complete, or bytes have come that the server, short of time,
// has not read yet.
func (c *conn) hasRequest() bool {
	if !c.head.armed.Load() {
		return true
	}
	socket, ok := c.Conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	unread := false
	_ = raw.Control(func(fd uintptr) {
		var one [1]byte
		n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		unread = err == nil && n > 0
	})
	return unread
}

// CloseWrite lets the server end its side first, so that a sender that is
// still writing reads the answer before the reset.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
