package receiver

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"creel/event"
	"creel/source"
)

// Rejected is one request that failed its verification, or was refused before
// it, as the drawer keeps it. What is exported holds no header that would carry a secret.
type Rejected struct {
	ID       int64     `json:"id"` // counts up from 1 at the start of the server
	At       time.Time `json:"at"`
	Source   string    `json:"source"`
	Peer     string    `json:"peer"`
	Cause    string    `json:"cause"`
	Detail   string    `json:"detail,omitempty"` // for the operator
	Method   string    `json:"method"`
	Host     string    `json:"host"`
	Query    string    `json:"query,omitempty"`
	Header   string    `json:"header"`    // "Name: value" lines
	Body     []byte    `json:"body"`      // the first bytes
	BodySize int       `json:"body_size"` // as announced where it was not read; 0 where that was not either
	Unread   bool      `json:"unread,omitempty"`
	// Accepted are the events that it came to when an operator had it verified
	// again.
	Accepted []event.Key `json:"accepted,omitempty"`

	// hidden are the header lines that prove who a sender is. They leave this
	// package in a Request alone, to be verified again.
	hidden string
}

// Cut tells whether a part of the body was not kept, so that nothing can be
// verified.
func (r *Rejected) Cut() bool { return r.Unread || r.BodySize > len(r.Body) }

// Missing says, to an operator, what was not kept of the body of a request that
// is cut.
func (r *Rejected) Missing() string {
	if r.Unread {
		return "its body was not read, and is not kept, so nothing can be verified: its sender has to send it again"
	}
	return fmt.Sprintf("the drawer has kept %d of the %d bytes of its body, so nothing can be verified", len(r.Body), r.BodySize)
}

// Request is the request as it came, with the headers that are not shown: it
// is for verifying, not for showing.
func (r *Rejected) Request() *source.Request {
	return &source.Request{Method: r.Method, Query: r.Query, Header: source.ReadHeaderLines(r.Header + r.hidden), Body: r.Body}
}

// size is about what the entry holds in memory.
func (r *Rejected) size() int {
	const fixed = 256
	return fixed + len(r.Host) + len(r.Query) + len(r.Header) + len(r.hidden) + len(r.Body) + len(r.Detail)
}

// drawer keeps the last rejected requests in memory, bounded in entries and
// in bytes, so that unverified traffic writes nothing to disk.
type drawer struct {
	mu         sync.Mutex
	entries    []Rejected // oldest first
	bytes      int
	last       int64
	maxEntries int
	maxBytes   int
	maxBody    int
}

func newDrawer(maxEntries, maxBytes, maxBody int) *drawer {
	return &drawer{maxEntries: maxEntries, maxBytes: maxBytes, maxBody: maxBody}
}

// put keeps a copy of the entry, its body cut, and lets the oldest fall out. It
// gives the number of the entry.
func (d *drawer) put(entry Rejected) int64 {
	entry.BodySize = max(entry.BodySize, len(entry.Body))
	entry.Body = slices.Clone(entry.Body[:min(len(entry.Body), d.maxBody)])
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last++
	entry.ID = d.last
	d.entries = append(d.entries, entry)
	d.bytes += entry.size()
	out := 0
	for len(d.entries)-out > d.maxEntries || (d.bytes > d.maxBytes && out < len(d.entries)) {
		d.bytes -= d.entries[out].size()
		out++
	}
	d.entries = slices.Delete(d.entries, 0, out)
	return entry.ID
}

// list gives up to limit entries, the newest first.
func (d *drawer) list(limit int) []Rejected {
	d.mu.Lock()
	defer d.mu.Unlock()
	if limit <= 0 || limit > len(d.entries) {
		limit = len(d.entries)
	}
	out := slices.Clone(d.entries[len(d.entries)-limit:])
	slices.Reverse(out)
	return out
}

// get finds an entry by its ID.
func (d *drawer) get(id int64) (Rejected, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, entry := range d.entries {
		if entry.ID == id {
			return entry, true
		}
	}
	return Rejected{}, false
}

// accepted notes the events that an entry came to, if it is still here.
func (d *drawer) accepted(id int64, events []event.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.entries {
		if d.entries[i].ID == id {
			d.entries[i].Accepted = events
		}
	}
}
