package jobs

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"creel/config"
	"creel/event"
)

// TestBugPoisonedDestination has one delivery on which the receiver breaks off,
// first in the order: alone until its destination is held, or with others from
// the start. The others are sent, it spends its own attempts and is dead.
func TestBugPoisonedDestination(t *testing.T) {
	t.Parallel()
	for name, alone := range map[string]bool{"held by it": true, "among others": false} {
		for _, most := range []int{1, 8} {
			t.Run(fmt.Sprintf("%s, %d in flight", name, most), func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				site := &app{clock: f.clock}
				port := newOutpost(t, func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("Creel-Event") == "s//evt_000001" {
						panic(http.ErrAbortHandler) // closes the connection
					}
					site.ServeHTTP(w, r)
				})
				f.use(config.Destination{URL: port.url(), MaxInFlight: most})
				f.add(1, "app")
				if alone {
					f.runUntil(startTime().Add(time.Hour))
					if f.health("app").State != event.DestinationHeld {
						t.Fatal("not held")
					}
				}
				f.add(20, "app")
				f.runUntil(f.clock.Now().Add(5 * time.Hour))
				good, outages := 20, 1
				for !alone && good < 24 && f.delivery(1).State != event.DeliveryDead {
					// Where the good ones were all answered before it broke off for
					// the first time, it is alone again, which looks like an outage:
					// the next one shows that the destination is alive.
					good, outages = good+1, outages+1
					f.add(1, "app")
					f.runUntil(f.clock.Now().Add(5 * time.Hour))
				}
				checkPoisoned(t, f, good, outages, alone)
			})
		}
	}
}

func checkPoisoned(t *testing.T, f *fixture, good, outages int, held bool) {
	t.Helper()
	if sent := f.count(event.DeliverySent); sent != good {
		t.Errorf("%d of %d sent", sent, good)
	}
	// The death is all that is left of an outage that is over.
	got, dead := f.outages("app"), f.incidents(event.CauseDeadDelivery)
	// What took its last attempt may have looked like an outage, for which it
	// gets one more.
	least := f.routes[0].Policy.Attempts
	if d := f.delivery(1); d.State != event.DeliveryDead || d.Attempts < least || d.Attempts > least+len(got) || held && d.Attempts != least {
		t.Errorf("%+v", d)
	}
	if len(dead) != 1 || dead[0].Count != 1 || dead[0].Over() || len(got) > outages || held && len(got) != 1 {
		t.Errorf("incidents %+v, %+v", got, dead)
	}
	for _, outage := range got {
		if outage.ResolvedAt.IsZero() {
			t.Errorf("incident of an outage %+v", outage)
		}
	}
	if health := f.health("app"); health.State != event.DestinationEnabled {
		t.Errorf("%+v", health)
	}
}

// TestOvertakenInAnOutage has a delivery that broke off while others were sent:
// an outage that it then meets alone must not take its attempts.
func TestOvertakenInAnOutage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	site := &app{clock: f.clock}
	var breaks atomic.Bool
	breaks.Store(true)
	port := newOutpost(t, func(w http.ResponseWriter, r *http.Request) {
		if breaks.Load() && r.Header.Get("Creel-Event") == "s//evt_000001" {
			panic(http.ErrAbortHandler)
		}
		site.ServeHTTP(w, r)
	})
	f.use(config.Destination{URL: port.url(), MaxInFlight: 1})
	f.add(5, "app")
	f.settle()
	port.down()
	f.runUntil(startTime().Add(8 * time.Hour))
	if f.health("app").State != event.DestinationDisabled {
		t.Error("not disabled")
	}
	breaks.Store(false)
	port.up()
	f.runUntil(startTime().Add(9 * time.Hour))
	if sent := f.count(event.DeliverySent); sent != 5 {
		t.Errorf("%d of 5 sent", sent)
	}
}
