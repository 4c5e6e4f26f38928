package deliver

import (
	"crypto/x509"
	"net"
	"slices"
	"sync"
	"time"
)

const (
	// mostPools is how many addresses that events chose have connections kept.
	mostPools = 64
	// mostKeptEach is how many connections are kept to each.
	mostKeptEach = 2
)

// pools makes connections to addresses that events choose. Each address has a
// pool of its own; the one that was used longest ago makes room for another.
// All dial by one dialer, which checks the address each time.
type pools struct {
	dialer  net.Dialer
	connect time.Duration
	roots   *x509.CertPool

	mu     sync.Mutex
	known  []placed // the one that was used last is the last
	closed bool
}

// placed is the pool of one address.
type placed struct {
	address, name string
	secure        bool
	pool          *pool
}

func newPools(connect time.Duration, opt Options) *pools {
	return &pools{dialer: net.Dialer{Resolver: opt.Resolver, ControlContext: guard}, connect: connect, roots: opt.RootCAs}
}

// of is the pool of a target's address.
func (p *pools) of(t *target) *pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.known, func(k placed) bool {
		return k.address == t.address && k.name == t.name && k.secure == t.secure
	})
	if i >= 0 {
		found := p.known[i]
		p.known = append(slices.Delete(p.known, i, i+1), found)
		return found.pool
	}
	fresh := newPool(t, &p.dialer, p.connect, mostKeptEach, p.roots)
	if p.closed {
		fresh.close()
		return fresh
	}
	if len(p.known) >= mostPools {
		p.known[0].pool.close()
		p.known = slices.Delete(p.known, 0, 1)
	}
	p.known = append(p.known, placed{t.address, t.name, t.secure, fresh})
	return fresh
}

// close drops what is kept.
func (p *pools) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.known {
		k.pool.close()
	}
	p.known, p.closed = nil, true
}
