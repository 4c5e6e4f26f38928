package store

import (
	"strconv"
	"sync/atomic"

	"creel/event"
)

// desk is what inbox and outbox keep beside the rows: the counter of claim
// tokens, the way into the worker's memory, and the bells that commits ring.
type desk struct {
	boot       string
	counter    atomic.Uint64
	handoff    atomic.Pointer[Handoff]
	events     chan struct{}
	deliveries chan struct{}
	lanes      atomic.Bool // some event or delivery may be in a lane
	actions    actions
	lost       lost
	objections objections
	teller     atomic.Pointer[event.Teller]
	alerted    atomic.Bool  // the open transaction wrote alerts: the dispatcher is to look
	ownTimeout atomic.Int64 // nanoseconds that statements of the owner's may run for one event
}

func newDesk(boot string) desk {
	return desk{
		boot:       boot,
		events:     make(chan struct{}, 1),
		deliveries: make(chan struct{}, 1),
	}
}

// Handoff is the worker's bounded memory. Places are reserved before an event
// is stored, so that its claim is born with its row; after the commit the
// event is handed over with its body, and nobody reads it back.
type Handoff interface {
	// Reserve takes up to n places and tells how many it got.
	Reserve(n int) int
	// Hand gives events that are claimed and committed; each fills one
	// reserved place. It must not block: the writer calls it.
	Hand(works []event.Work)
	// Release gives places back unused. It must not block.
	Release(n int)
}

// SetHandoff names the worker that takes new events from memory. Without one,
// all events are claimed by Settle.
func (s *Store) SetHandoff(h Handoff) {
	if h == nil {
		s.desk.handoff.Store(nil)
		return
	}
	s.desk.handoff.Store(&h)
}

// EventsReady is rung (one place, coalescing) by commits that left an event
// due.
func (s *Store) EventsReady() <-chan struct{} { return s.desk.events }

// DeliveriesReady is rung (one place, coalescing) by commits that left a
// delivery due, and when a destination was paused or resumed.
func (s *Store) DeliveriesReady() <-chan struct{} { return s.desk.deliveries }

// token makes a claim token. Its boot tells a claim of this run from one that
// a dead run left behind; its counter tells one claim from the next.
func (d *desk) token() event.Claim {
	return event.Claim(d.mark() + strconv.FormatUint(d.counter.Add(1), 36))
}

// mark is what every token of this boot begins with.
func (d *desk) mark() string { return d.boot + "." }

func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}
