package deliver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"sync"
	"time"
)

// idleConnection is how long a connection is kept for the next attempt.
// Many application servers close theirs after 5 s (Node's default); a
// request that crosses such a close on the wire has an unknown outcome.
const idleConnection = 4 * time.Second

// pool makes the connections of one destination and keeps those that can be
// used again: at most as many as attempts may run at once. No proxy is asked,
// because what the configuration names is what is dialled. HTTP/1.1 only,
// because one connection then carries one attempt at a time and its bytes say
// whether anything of the attempt was written.
type pool struct {
	// dial makes the socket. Where an event decided the address, the dialer's
	// Control checks what the name led to: it runs after the lookup.
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	secure  *tls.Config // nil for plain HTTP
	address string
	connect time.Duration // bounds the dial, and the TLS handshake once more
	most    int

	mu     sync.Mutex
	idle   []*conn // the one that was used last is the last
	closed bool
	sweep  *time.Timer // closes what is kept for too long; nil where nothing is kept
}

func newPool(t *target, dialer *net.Dialer, connect time.Duration, inFlight int, roots *x509.CertPool) *pool {
	p := &pool{dial: dialer.DialContext, address: t.address, connect: connect, most: inFlight}
	if t.secure {
		p.secure = &tls.Config{ServerName: t.name, RootCAs: roots, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	}
	return p
}

// take returns a connection that nobody else uses, and whether it carried a
// request before. Where fresh is set it dials in any case.
func (p *pool) take(ctx context.Context, now, deadline time.Time, fresh bool) (c *conn, reused bool, err error) {
	for !fresh {
		c := p.youngest()
		if c == nil {
			break
		}
		if now.Sub(c.since) < idleConnection && c.isQuiet() {
			return c, true, nil
		}
		_ = c.stream.Close()
	}
	c, err = p.open(ctx, deadline)
	return c, false, err
}

func (p *pool) youngest() *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	if last < 0 {
		return nil
	}
	c := p.idle[last]
	p.idle[last] = nil
	p.idle = p.idle[:last]
	return c
}

// open dials, and shakes hands where the destination speaks TLS.
func (p *pool) open(ctx context.Context, deadline time.Time) (*conn, error) {
	dialing, cancel := context.WithDeadline(ctx, earlier(deadline, time.Now().Add(p.connect)))
	defer cancel()
	plain, err := p.dial(dialing, "tcp", p.address)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	s := &socket{Conn: plain}
	if p.secure == nil {
		return newConn(s, s), nil
	}
	shaking, cancel := context.WithDeadline(ctx, earlier(deadline, time.Now().Add(p.connect)))
	defer cancel()
	secured := tls.Client(s, p.secure)
	if err := secured.HandshakeContext(shaking); err != nil {
		_ = plain.Close()
		return nil, fmt.Errorf("shaking hands: %w", err)
	}
	return newConn(s, secured), nil
}

// put keeps a connection whose last exchange is over, or closes it.
func (p *pool) put(c *conn) {
	c.since = time.Now()
	if !p.keep(c) {
		_ = c.stream.Close()
	}
}

func (p *pool) keep(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) >= p.most {
		return false
	}
	p.idle = append(p.idle, c)
	if p.sweep == nil {
		p.sweep = time.AfterFunc(idleConnection, p.expire)
	}
	return true
}

// expire closes what was kept for too long and comes again for the rest.
func (p *pool) expire() {
	for _, c := range p.expired(time.Now()) {
		_ = c.stream.Close()
	}
}

func (p *pool) expired(now time.Time) []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for n < len(p.idle) && now.Sub(p.idle[n].since) >= idleConnection {
		n++
	}
	old := append([]*conn(nil), p.idle[:n]...)
	left := copy(p.idle, p.idle[n:])
	clear(p.idle[left:])
	p.idle = p.idle[:left]
	switch {
	case p.closed || left == 0:
		p.sweep = nil
	default:
		p.sweep.Reset(p.idle[0].since.Add(idleConnection).Sub(now))
	}
	return old
}

// close drops what is kept; what is in use is closed when it comes back.
func (p *pool) close() {
	p.mu.Lock()
	old := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, c := range old {
		_ = c.stream.Close()
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
