package receiver

import (
	"net/netip"
	"sync"
	"time"
)

const (
	hushBurst = 20              // log lines that one address gets at once
	hushEvery = 3 * time.Second // and then one line in this time
	hushPeers = 1024            // addresses that are remembered
	// All addresses together: a sender with many addresses fills no disk.
	hushAllBurst = 200
	hushAllEvery = 100 * time.Millisecond
)

// hush bounds the log lines about failed requests, by address and in all. It
// decides about lines only: no request is refused because of it.
type hush struct {
	mu      sync.Mutex
	peers   map[netip.Addr]*bucket
	all     bucket
	swept   time.Time
	swallow int // lines left out since the last one
}

// bucket is a token bucket that is refilled when it is looked at.
type bucket struct {
	tokens float64
	at     time.Time
}

func newHush() *hush {
	return &hush{peers: make(map[netip.Addr]*bucket), all: bucket{tokens: hushAllBurst}}
}

// allow tells whether a line about peer may be written now, and how many were
// left out before it.
func (h *hush) allow(peer netip.Addr, now time.Time) (left int, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.bucketOf(peer, now).take(now, hushBurst, hushEvery) || !h.all.take(now, hushAllBurst, hushAllEvery) {
		h.swallow++
		return 0, false
	}
	left, h.swallow = h.swallow, 0
	return left, true
}

// bucketOf finds the bucket of an address. An IPv6 client owns a /64 at
// least, so that counts as one address. When too many are remembered the full
// buckets go (they remember nothing); when none is full the newcomers share
// the one of the zero address.
func (h *hush) bucketOf(peer netip.Addr, now time.Time) *bucket {
	if peer.Is6() {
		if prefix, err := peer.Prefix(64); err == nil {
			peer = prefix.Addr()
		}
	}
	if found := h.peers[peer]; found != nil {
		return found
	}
	if len(h.peers) >= hushPeers {
		h.sweep(now)
	}
	if len(h.peers) >= hushPeers {
		peer = netip.Addr{}
		if found := h.peers[peer]; found != nil {
			return found
		}
	}
	fresh := &bucket{tokens: hushBurst, at: now}
	h.peers[peer] = fresh
	return fresh
}

// sweep costs a look at every bucket, so it is done at most once a second.
func (h *hush) sweep(now time.Time) {
	if since := now.Sub(h.swept); since >= 0 && since < time.Second {
		return
	}
	h.swept = now
	for peer, b := range h.peers {
		b.fill(now, hushBurst, hushEvery)
		if b.tokens >= hushBurst {
			delete(h.peers, peer)
		}
	}
}

func (b *bucket) fill(now time.Time, burst float64, every time.Duration) {
	if passed := now.Sub(b.at); passed > 0 {
		b.tokens = min(burst, b.tokens+float64(passed)/float64(every))
	}
	b.at = now
}

func (b *bucket) take(now time.Time, burst float64, every time.Duration) bool {
	b.fill(now, burst, every)
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
