package jobs

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"creel/deliver"
	"creel/event"
)

// Outbox is what the dispatcher needs of the store.
type Outbox interface {
	// Ship finishes deliveries and claims others in one transaction.
	Ship(ctx context.Context, now time.Time, finishes []event.DeliveryFinish, claims []event.ShipmentClaim) ([]error, []event.Shipment, error)
	// NextDelivery is the time of the earliest ready delivery of a destination.
	NextDelivery(ctx context.Context, destination string) (time.Time, bool, error)
	// DeliveriesReady wakes the dispatcher after a commit that made some ready.
	DeliveriesReady() <-chan struct{}
	Destinations(ctx context.Context) ([]event.DestinationHealth, error)
	// SaveDestination keeps a change of health with what the trouble is now, and
	// ends the incident of an outage that is over. It must not take a
	// destination out of the paused state.
	SaveDestination(ctx context.Context, now time.Time, health event.DestinationHealth, trouble, over *event.Incident) error
	// OldestDelivery tells since when the oldest ready delivery of a destination
	// waits.
	OldestDelivery(ctx context.Context, destination string) (time.Time, bool, error)
	// GiveUp makes dead letters of the ready deliveries of a destination that
	// wait since before a time.
	GiveUp(ctx context.Context, now time.Time, destination string, before time.Time, reason string) (int, error)
}

// Carrier makes one attempt; *deliver.Destination is the real one.
type Carrier interface {
	Attempt(ctx context.Context, s event.Shipment, now time.Time) deliver.Result
}

// Route is a destination with its limits and its retry policy.
type Route struct {
	Name     string
	Carrier  Carrier
	Policy   Policy
	InFlight int     // attempts at once
	Rate     float64 // attempts started in a second; 0 is no limit
	Review   bool    // a send whose answer was lost waits for a person
	// Repeats is how often in a run a send whose answer was lost is repeated
	// before it waits for a person; 0 is no limit.
	Repeats int
	// Longest is the longest that a delivery can wait for its next attempt.
	Longest time.Duration
	// GiveUpAfter is how long a delivery waits, for whatever reason, before it
	// becomes a dead letter; 0 is for ever.
	GiveUpAfter time.Duration
}

// Limited is a carrier that knows its own limits: a compiled destination, be
// it a URL, a command or a folder.
type Limited interface {
	Carrier
	Name() string
	InFlight() int
	Rate() float64
	Review() bool
	MaxRetryAfter() time.Duration
}

// RouteTo is the route of a compiled destination.
func RouteTo(d Limited, policy Policy) Route {
	return Route{Name: d.Name(), Carrier: d, Policy: policy, InFlight: d.InFlight(), Rate: d.Rate(), Review: d.Review(),
		Longest: policy.Longest(d.MaxRetryAfter())}
}

// RouteToMail is the route of the mail server: a mail can not be taken back,
// so that one whose answer was lost is repeated once at most.
func RouteToMail(m *deliver.Mailer, policy Policy) Route {
	return Route{Name: event.Mail, Carrier: m, Policy: policy, InFlight: m.InFlight(), Rate: m.Rate(), Review: m.Review(),
		Repeats: 1, Longest: policy.Longest(0)}
}

// InDoubt tells whether a delivery waits for a person, after so many answers
// were lost in its run.
func (r *Route) InDoubt(lost int) bool { return r.Review || r.Repeats > 0 && lost > r.Repeats }

// asks tells whether a delivery whose answer was lost may come to wait for a
// person: then a crash must not take what only waited for a place for sent.
func (r *Route) asks() bool { return r.Review || r.Repeats > 0 }

// DispatcherOptions are what a dispatcher is made of.
type DispatcherOptions struct {
	Outbox Outbox
	Routes []Route
	Clock  func() time.Time
	Jitter func() float64 // 0 ≤ jitter < 1
	Log    zerolog.Logger
	Grace  time.Duration // how long a stop waits for attempts in flight
	// Tally counts the attempts of each destination. Where it is nil the
	// dispatcher has its own, which no restart outlives.
	Tally *Tally
	// Hidden tells which texts of an event no error and no answer may quote; nil
	// is none.
	Hidden func(source string, p event.Payload) []string
	// Watch notices that the clock was set. Where it is nil the dispatcher has
	// its own, and the store is left as it is.
	Watch *Watch
}

// The reasons why a dispatcher can not be made.
var (
	errNoOutbox = errors.New("jobs: a dispatcher needs an outbox, a clock and jitter")
	errNoName   = errors.New("jobs: a route needs a name and a carrier")
)

// Dispatcher sends deliveries: those that the worker hands over with their
// claims, and those that it claims when they are due. It holds destinations
// that are down, and finds them again.
type Dispatcher struct {
	opt    DispatcherOptions
	tally  *Tally
	wake   chan struct{}
	air    context.Context // of every attempt; ends when a stop has waited long enough
	cancel context.CancelFunc
	began  time.Time    // for a clock that can not be set
	beat   atomic.Int64 // nanoseconds from began to the last completed step

	mu           sync.Mutex
	destinations map[string]*destination
	ended        []ended
	saves        []saving
	flying       int  // attempts that run, those of removed destinations included
	stale        bool // the store's destinations have to be read again
	stopping     bool
	failures     int   // of the store, in a row
	steps        Steps // of the clock, as far as they were followed
}

// destination is the dispatcher's view of one route.
type destination struct {
	name string // the route's, which never changes
	Route
	health
	flight
	due    time.Time // of the earliest ready delivery that is known; zero for none
	look   bool      // the store may hold ready ones that are not known
	giveUp time.Time // when to look for deliveries that have waited too long; zero is now
	counts routeCounts
}

// ended is a delivery whose turn is over, on its way into the store.
type ended struct {
	to       *destination
	shipment event.Shipment
	finish   event.DeliveryFinish
}

// NewDispatcher makes a dispatcher; Run starts it.
func NewDispatcher(opt DispatcherOptions) (*Dispatcher, error) {
	if opt.Outbox == nil || opt.Clock == nil || opt.Jitter == nil {
		return nil, errNoOutbox
	}
	d := &Dispatcher{opt: opt, tally: opt.Tally, wake: make(chan struct{}, 1), destinations: map[string]*destination{}, stale: true, began: time.Now()}
	if opt.Watch == nil {
		d.opt.Watch = NewWatch(WatchOptions{Clock: opt.Clock})
	}
	d.air, d.cancel = context.WithCancel(context.Background())
	if d.tally == nil {
		d.tally = NewTally(TallyOptions{Clock: opt.Clock, Log: opt.Log})
	}
	if err := d.Configure(opt.Routes); err != nil {
		return nil, err
	}
	return d, nil
}

// Configure replaces the routes. What is in flight ends as it began; the
// deliveries of a destination that is gone stay where they are.
func (d *Dispatcher) Configure(routes []Route) error {
	for _, route := range routes {
		if route.Name == "" || route.Carrier == nil {
			return errNoName
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	kept := make(map[string]*destination, len(routes))
	for _, route := range routes {
		to, known := d.destinations[route.Name]
		if !known {
			to = &destination{name: route.Name, flight: newFlight(route.InFlight, route.Rate, route.asks()), look: true, counts: newRouteCounts()}
			to.health.Name, to.health.State = route.Name, event.DestinationEnabled
		}
		to.Route, to.giveUp = route, time.Time{}
		to.flight.configure(route.InFlight, route.Rate, route.asks())
		if to.ahead == 0 {
			d.giveBackQueue(to)
		}
		kept[route.Name] = to
	}
	for name, to := range d.destinations {
		if _, stays := kept[name]; !stays {
			d.giveBackQueue(to)
		}
	}
	d.destinations, d.stale = kept, true
	if d.opt.Tally == nil {
		d.tally.Configure(nil, slices.Collect(maps.Keys(kept)))
	}
	d.signal()
	return nil
}

// Refresh tells that the store's destinations were changed by somebody else:
// by creel pause or resume.
func (d *Dispatcher) Refresh() {
	d.mu.Lock()
	d.stale = true
	d.mu.Unlock()
	d.signal()
}

// Idle is how long ago the dispatcher last came round: one that hangs shows.
func (d *Dispatcher) Idle() time.Duration { return time.Since(d.began) - time.Duration(d.beat.Load()) }

func (d *Dispatcher) signal() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Run sends until ctx ends, then waits for what is in flight, at most the
// grace, and gives the rest back. The worker has to be stopped before.
func (d *Dispatcher) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		next, err := d.Step(ctx, d.opt.Clock())
		d.beat.Store(int64(time.Since(d.began)))
		timer.Reset(d.pause(next, err))
		select {
		case <-ctx.Done():
		case <-d.wake:
		case <-d.opt.Outbox.DeliveriesReady():
			d.lookAgain()
		case <-timer.C:
			if next.IsZero() {
				d.lookAgain()
			}
		}
	}
	d.drain()
}

// idleLook is how often an idle dispatcher looks into the store without being
// told to: a clock that was set is noticed within it.
const idleLook = 30 * time.Second

// pause is how long Run sleeps. After trouble with the store it grows.
func (d *Dispatcher) pause(next time.Time, err error) time.Duration {
	switch {
	case err != nil:
		return min(100*time.Millisecond<<min(d.failures, 7), 10*time.Second)
	case next.IsZero():
		return idleLook
	}
	return min(max(next.Sub(d.opt.Clock()), 0), idleLook)
}

// lookAgain marks every destination as possibly having new deliveries.
func (d *Dispatcher) lookAgain() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, to := range d.destinations {
		to.look = true
	}
}
