package jobs

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"creel/config"
	"creel/deliver"
	"creel/event"
	"creel/internal/testkit"
)

// counting is a carrier of another type than a destination.
type counting struct{ n atomic.Int64 }

func (c *counting) Attempt(context.Context, event.Shipment, time.Time) deliver.Result {
	c.n.Add(1)
	return deliver.Result{Attempt: event.Attempt{Spent: true, Status: 200, Outcome: event.OK}, Wrote: true}
}

// TestConfigureUnderWay swaps the carrier of a destination, for one of another
// type and back, while its deliveries go out: the race detector sees whether
// anything of a route is read meanwhile.
func TestConfigureUnderWay(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	f := newFixture(t)
	f.use(config.Destination{URL: app.URL})
	first, second := f.routes[0], f.routes[0]
	other := &counting{}
	second.Carrier, second.GiveUpAfter = other, 100*time.Hour
	f.add(300, "app")
	done := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		var err error
		for i := 0; err == nil; i++ {
			select {
			case <-done:
				ended <- nil
				return
			default:
				err = f.d.Configure([]Route{[]Route{first, second}[i%2]})
			}
		}
		ended <- err
	}()
	f.settle()
	testkit.Poll(t, 20*time.Second, "all sent", func() bool {
		f.settle()
		return f.count(event.DeliverySent) == 300
	})
	close(done)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if sent := app.Count() + int(other.n.Load()); sent != 300 || other.n.Load() == 0 {
		t.Errorf("%d sends, %d of them by the other", sent, other.n.Load())
	}
}

// TestUnreserveGivesTheTokenBack because a delivery that was not born has used
// nothing of the rate: at one an hour a replay would starve its destination.
func TestUnreserveGivesTheTokenBack(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	f := newFixture(t)
	f.use(config.Destination{URL: app.URL, Rate: 1.0 / 3600})
	f.settle()
	for n := range 5 {
		if !f.d.Reserve("app") {
			t.Fatalf("no place after %d that were given back", n)
		}
		if f.d.Reserve("app") {
			t.Fatal("two within the hour")
		}
		f.d.Unreserve("app")
	}
	f.d.Unreserve("app") // nothing was reserved
	if !f.d.Reserve("app") || f.d.Reserve("app") {
		t.Error("the rate is not one an hour")
	}
}
