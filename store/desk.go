package store

import (
	"strconv"
	"sync/atomic"

	"creel/event"
)

// Handoff takes work that was born claimed, so that a claim needs no write of
// its own. Reserve grants up to n places; Hand fills granted places after the
// commit; Release gives unused ones back. None of them may block.
type Handoff interface {
	Reserve(n int) int
	Hand([]event.Work)
	Release(n int)
}

// desk is what inbox and outbox keep in memory beside the rows.
type desk struct {
	boot            string
	claims          atomic.Uint64
	handoff         atomic.Pointer[Handoff]
	eventsReady     chan struct{}
	deliveriesReady chan struct{}
}

func newDesk(boot string) desk {
	return desk{boot: boot, eventsReady: make(chan struct{}, 1), deliveriesReady: make(chan struct{}, 1)}
}

// SetHandoff says who takes work that was born claimed. Without one every
// event is born pending.
func (d *desk) SetHandoff(h Handoff) { d.handoff.Store(&h) }

// EventsReady is woken by a commit that left an event to be claimed. It holds
// one signal: many commits are one wake-up.
func (d *desk) EventsReady() <-chan struct{} { return d.eventsReady }

// DeliveriesReady is the same for deliveries.
func (d *desk) DeliveriesReady() <-chan struct{} { return d.deliveriesReady }

// nextClaim is a claim token: the boot, which dies with this process, and a
// counter.
func (d *desk) nextClaim() event.Claim {
	return event.Claim(d.boot + "." + strconv.FormatUint(d.claims.Add(1), 36))
}

// ring leaves one signal in a channel of one place.
func ring(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
