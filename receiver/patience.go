package receiver

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// patience gives the contexts that bound how long requests wait for the
// store. It is never the request's own context: net/http cancels that one
// when the sender hangs up or its read deadline passes, while the insert
// waits. Requests that come within one slot share a context, so that a
// request costs no timer of its own.
type patience struct {
	wait time.Duration
	slot time.Duration
	mu   sync.Mutex
	now  atomic.Pointer[shared]
}

type shared struct {
	context.Context
	cancel context.CancelFunc
	until  time.Time // when the next one is due
}

func newPatience(wait time.Duration) *patience {
	return &patience{wait: wait, slot: max(wait/32, time.Millisecond)}
}

// context returns one that ends after wait, and at most a slot later.
func (p *patience) context() context.Context {
	now := time.Now()
	if s := p.now.Load(); s != nil && now.Before(s.until) {
		return s
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.now.Load(); s != nil && now.Before(s.until) {
		return s
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.slot+p.wait)
	s := &shared{Context: ctx, cancel: cancel, until: now.Add(p.slot)}
	p.now.Store(s)
	return s
}
