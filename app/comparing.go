package app

import (
	"sync"
	"time"

	"creel/admin"
)

// comparing keeps two comparisons of one source apart, and tells how far the
// last one of each is.
type comparing struct {
	mu   sync.Mutex
	last map[string]*admin.Reconciling
}

func (c *comparing) begin(ask admin.AskReconcile, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := c.last[ask.Source]; last != nil && !last.Ended {
		return false
	}
	if c.last == nil {
		c.last = map[string]*admin.Reconciling{}
	}
	c.last[ask.Source] = &admin.Reconciling{Began: now, Import: ask.Import, Again: ask.Redeliver}
	return true
}

func (c *comparing) end(name string) { c.note(name, func(r *admin.Reconciling) { r.Ended = true }) }

// note changes what is told of the comparison that goes on.
func (c *comparing) note(name string, change func(*admin.Reconciling)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c.last[name])
}

func (c *comparing) far(name string) (admin.Reconciling, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := c.last[name]; last != nil {
		return *last, true
	}
	return admin.Reconciling{}, false
}
