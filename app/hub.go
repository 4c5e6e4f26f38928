package app

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"creel/admin"
	"creel/event"
	"creel/store"
)

// tick is what is known of something at the moment in which it happened: the
// rest is read when somebody wants to know.
type tick struct {
	admin.Happening
	seq int64 // of the event; 0 where it is about none
}

const (
	// hubRoom is how many ticks wait for one listener.
	hubRoom = 4096
	// maxListeners bounds who follows at once.
	maxListeners = 16
)

// hub tells listeners of what happens. While nobody listens it costs the load
// of a number; a listener that is too slow misses ticks and is told how many.
type hub struct {
	count     atomic.Int32 // of listeners
	mu        sync.Mutex
	listeners []*listener
	closed    chan struct{}
}

type listener struct {
	ticks   chan tick
	missed  atomic.Int64
	stopped <-chan struct{} // the server is about to end
}

func newHub() *hub { return &hub{closed: make(chan struct{})} }

// heard tells whether anybody listens.
func (h *hub) heard() bool { return h.count.Load() > 0 }

// tell never waits.
func (h *hub) tell(t tick) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.listeners {
		select {
		case l.ticks <- t:
		default:
			l.missed.Add(1)
		}
	}
}

// listen begins to collect what happens; leave ends it.
func (h *hub) listen() (l *listener, leave func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.listeners) == maxListeners {
		return nil, nil, tooMany{fmt.Errorf("%d follow already, which is all that can at once: end one of them", maxListeners)}
	}
	l = &listener{ticks: make(chan tick, hubRoom), stopped: h.closed}
	h.listeners = append(h.listeners, l)
	h.count.Add(1)
	return l, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.listeners = slices.DeleteFunc(h.listeners, func(other *listener) bool { return other == l })
		h.count.Add(-1)
	}, nil
}

// tooMany is refused for now.
type tooMany struct{ error }

func (tooMany) Unwrap() error { return event.ErrBusy }

// close lets every listener go. It is called once, at the stop.
func (h *hub) close() { close(h.closed) }

// next waits for ticks and takes what is there, up to most of them. Nothing at
// all means that the listening is over.
func (l *listener) next(ctx context.Context, most int) []tick {
	var list []tick
	select {
	case t := <-l.ticks:
		list = append(list, t)
	case <-ctx.Done():
		return nil
	case <-l.stopped:
		return nil
	}
	for len(list) < most {
		select {
		case t := <-l.ticks:
			list = append(list, t)
			continue
		default:
		}
		break
	}
	if missed := l.missed.Swap(0); missed > 0 {
		list = append(list, tick{Happening: admin.Happening{At: list[len(list)-1].At, What: admin.LeftOut, Count: int(missed)}})
	}
	return list
}

// witness is the store as the loops see it: what they settle is told.
type witness struct {
	*store.Store
	hub   *hub
	clock func() time.Time
}

// Settle implements jobs.Inbox.
func (w witness) Settle(ctx context.Context, now time.Time, finishes []event.Finish, claim int) ([]event.Finished, []event.Work, error) {
	finished, claimed, err := w.Store.Settle(ctx, now, finishes, claim)
	if err != nil || !w.hub.heard() {
		return finished, claimed, err
	}
	for i := range finished {
		if finishes[i].Release {
			continue
		}
		one := admin.Happening{At: w.clock(), What: admin.EventDecided}
		if finished[i].Err == nil { // else the row says what the store made of it
			one.State, one.Error, one.NextAt = string(finishes[i].State), finishes[i].Error, finishes[i].NextAt
		}
		w.hub.tell(tick{one, finishes[i].Seq})
	}
	return finished, claimed, nil
}

// Ship implements jobs.Outbox.
func (w witness) Ship(ctx context.Context, now time.Time, finishes []event.DeliveryFinish, claims []event.ShipmentClaim) ([]error, []event.Shipment, error) {
	errs, shipments, err := w.Store.Ship(ctx, now, finishes, claims)
	if err != nil || !w.hub.heard() {
		return errs, shipments, err
	}
	for i := range finishes {
		f := &finishes[i]
		if f.Release || errs[i] != nil {
			continue
		}
		w.hub.tell(tick{Happening: admin.Happening{At: f.Attempt.Start.Add(f.Attempt.Duration), What: admin.DeliveryTried, Delivery: f.ID,
			State: string(f.State), NextAt: f.NextAt, Attempt: f.Attempt.Number, Status: f.Attempt.Status, Outcome: f.Attempt.Outcome,
			Duration: f.Attempt.Duration.Milliseconds(), Error: f.Attempt.Error}})
	}
	return errs, shipments, nil
}
