package jobs

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"creel/event"
	"creel/meter"
)

// EventCounts are what a worker has done since the start.
type EventCounts struct {
	Done, Ignored, Dead int64
	Later               int64         // attempts at events that will be made again
	Latency             meter.Reading // from the receipt to the commit of its first run
	Waiting             int           // events in memory that were handed over and are not decided
}

// eventCounts count as events are settled.
type eventCounts struct {
	done, ignored, dead, later atomic.Int64
	latency                    *meter.Histogram
}

// settled counts what became of an event by at. One whose effects could not be
// applied counts when its second finish is settled.
func (c *eventCounts) settled(work *event.Work, finish *event.Finish, err error, at time.Time) {
	state := finish.State
	if errors.Is(err, event.ErrMismatch) || errors.Is(err, event.ErrRefused) {
		state = event.Dead // the store has written it
	} else if err != nil {
		return
	}
	switch {
	case state == event.Done:
		c.done.Add(1)
	case state == event.Ignored:
		c.ignored.Add(1)
	case state == event.Dead:
		c.dead.Add(1)
	case state == event.Pending && !finish.Release:
		c.later.Add(1)
		return
	default:
		return
	}
	if work.Run == 1 { // a replay says nothing about how fast we are
		c.latency.Observe(at.Sub(work.ReceivedAt))
	}
}

// Counts tells what was done since the start.
func (w *Worker) Counts() EventCounts {
	return EventCounts{
		Done: w.counts.done.Load(), Ignored: w.counts.ignored.Load(), Dead: w.counts.dead.Load(), Later: w.counts.later.Load(),
		Latency: w.counts.latency.Read(), Waiting: int(w.reserved.Load()),
	}
}

// RouteCounts are what became of the deliveries to one destination since the
// start, and how it stands.
type RouteCounts struct {
	Name  string
	State event.DestinationState
	// First and Again count attempts that are in the store: the first of their
	// runs, and those after it.
	First, Again map[event.Outcome]int64
	Ends         map[event.DeliveryState]int64 // sent, dead and in doubt
	Alerts       map[event.DeliveryState]int64 // the same of alerts, which Ends leaves out
	Attempts     meter.Reading                 // how long attempts took
	Latency      meter.Reading                 // from the receipt to the end of the attempt that was sent, first runs alone
	Sending      int                           // claimed: in flight, or waiting for a place
}

// routeCounts count as ends of deliveries are written. The dispatcher's mu
// owns them.
type routeCounts struct {
	first, again      map[event.Outcome]int64
	ends, alerts      map[event.DeliveryState]int64
	attempts, latency *meter.Histogram
}

func newRouteCounts() routeCounts {
	return routeCounts{
		first: map[event.Outcome]int64{}, again: map[event.Outcome]int64{}, ends: map[event.DeliveryState]int64{}, alerts: map[event.DeliveryState]int64{},
		attempts: meter.NewHistogram(meter.Short()), latency: meter.NewHistogram(meter.Long()),
	}
}

// written counts an end that is in the store.
func (c *routeCounts) written(s *event.Shipment, finish *event.DeliveryFinish) {
	if finish.Release {
		return
	}
	attempt := &finish.Attempt
	if s.Tries <= 1 {
		c.first[attempt.Outcome]++
	} else {
		c.again[attempt.Outcome]++
	}
	c.attempts.Observe(attempt.Duration)
	if finish.State == event.DeliveryReady {
		return
	}
	if s.Alert != 0 {
		c.alerts[finish.State]++
		return
	}
	c.ends[finish.State]++
	if finish.State == event.DeliverySent && s.Run == 1 && !s.ReceivedAt.IsZero() {
		c.latency.Observe(attempt.Start.Add(attempt.Duration).Sub(s.ReceivedAt))
	}
}

// Counts tells what became of deliveries since the start, by destination of
// the routes in force.
func (d *Dispatcher) Counts() []RouteCounts {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]RouteCounts, 0, len(d.destinations))
	for name, to := range d.destinations {
		c := RouteCounts{Name: name, State: to.State, First: maps.Clone(to.counts.first), Again: maps.Clone(to.counts.again),
			Ends: maps.Clone(to.counts.ends), Alerts: maps.Clone(to.counts.alerts), Attempts: to.counts.attempts.Read(), Latency: to.counts.latency.Read(),
			Sending: to.flying + to.reserved + len(to.queue)}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b RouteCounts) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
