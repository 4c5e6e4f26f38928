package jobs

import (
	"fmt"
	"testing"
	"time"

	"creel/event"
	"creel/meter"
)

// An event counts once, when its end is stored: not when it is given back, and
// not when its effects were refused and its second finish is still to come.
func TestEventsCountOnce(t *testing.T) {
	t.Parallel()
	received := time.Unix(1000, 0)
	for _, row := range []struct {
		name   string
		run    int
		finish event.Finish
		err    error
		want   [4]int64 // done, ignored, dead, later
		timed  int64
	}{
		{"done", 1, event.Finish{State: event.Done}, nil, [4]int64{1, 0, 0, 0}, 1},
		{"replayed", 2, event.Finish{State: event.Done}, nil, [4]int64{1, 0, 0, 0}, 0},
		{"ignored", 1, event.Finish{State: event.Ignored}, nil, [4]int64{0, 1, 0, 0}, 1},
		{"dead", 1, event.Finish{State: event.Dead}, nil, [4]int64{0, 0, 1, 0}, 1},
		{"refused", 1, event.Finish{State: event.Done}, fmt.Errorf("x: %w", event.ErrRefused), [4]int64{0, 0, 1, 0}, 1},
		{"mismatch", 1, event.Finish{State: event.Done}, fmt.Errorf("x: %w", event.ErrMismatch), [4]int64{0, 0, 1, 0}, 1},
		{"not yet", 1, event.Finish{State: event.Done}, fmt.Errorf("x: %w", event.ErrNotYet), [4]int64{}, 0},
		{"claim lost", 1, event.Finish{State: event.Done}, event.ErrClaimLost, [4]int64{}, 0},
		{"later", 1, event.Finish{State: event.Pending}, nil, [4]int64{0, 0, 0, 1}, 0},
		{"given back", 1, event.Finish{State: event.Pending, Release: true}, nil, [4]int64{}, 0},
	} {
		c := eventCounts{latency: meter.NewHistogram(meter.Long())}
		work := event.Work{Event: event.Event{Run: row.run, ReceivedAt: received}}
		c.settled(&work, &row.finish, row.err, received.Add(time.Second))
		if got := [4]int64{c.done.Load(), c.ignored.Load(), c.dead.Load(), c.later.Load()}; got != row.want {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
		if got := c.latency.Read(); got.Count != row.timed || got.Sum != time.Duration(row.timed)*time.Second {
			t.Errorf("%s: timed %d, %s", row.name, got.Count, got.Sum)
		}
	}
}

// Attempts count by their place in the run, ends once; a delivery that is given
// back counts nowhere, an alert apart, and a replay has no latency.
func TestDeliveriesCountOnce(t *testing.T) {
	t.Parallel()
	received := time.Unix(1000, 0)
	c := newRouteCounts()
	sent := event.DeliveryFinish{State: event.DeliverySent, Attempt: event.Attempt{Start: received.Add(time.Second), Duration: time.Second, Outcome: event.OK}}
	again := event.DeliveryFinish{State: event.DeliveryReady, Attempt: event.Attempt{Outcome: event.Transient}}
	first := event.Shipment{Delivery: event.Delivery{Run: 1, Tries: 1}, ReceivedAt: received}
	second, replayed, alert := first, first, first
	second.Tries, replayed.Run, alert.Alert = 2, 2, 7
	c.written(&first, &event.DeliveryFinish{State: event.DeliveryReady, Release: true})
	c.written(&first, &again)
	c.written(&second, &sent)
	c.written(&replayed, &sent)
	c.written(&alert, &sent)
	if c.first[event.Transient] != 1 || c.first[event.OK] != 2 || c.again[event.OK] != 1 || len(c.again) != 1 {
		t.Errorf("first %v, again %v", c.first, c.again)
	}
	if c.ends[event.DeliverySent] != 2 || len(c.ends) != 1 || c.alerts[event.DeliverySent] != 1 {
		t.Errorf("ends %v, alerts %v", c.ends, c.alerts)
	}
	if r := c.latency.Read(); r.Count != 1 || r.Sum != 2*time.Second {
		t.Errorf("latency %d, %s", r.Count, r.Sum)
	}
}

// BenchmarkEventCounted is what the metrics cost an event in the worker.
func BenchmarkEventCounted(b *testing.B) {
	c := eventCounts{latency: meter.NewHistogram(meter.Long())}
	work, finish := event.Work{Event: event.Event{Run: 1}}, event.Finish{State: event.Done}
	for b.Loop() {
		c.settled(&work, &finish, nil, time.Time{}.Add(time.Second))
	}
}
