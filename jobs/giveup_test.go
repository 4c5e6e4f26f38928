package jobs

import (
	"context"
	"strings"
	"testing"
	"time"

	"creel/config"
	"creel/event"
)

// TestGiveUpAfter makes dead letters of what has waited a week for a destination
// that is down, on the incident of the outage, and of nothing younger. A replay
// waits a week anew.
func TestGiveUpAfter(t *testing.T) {
	t.Parallel()
	const week = 7 * 24 * time.Hour
	f := newFixture(t)
	site := &app{clock: f.clock}
	port := newOutpost(t, site.ServeHTTP)
	port.down()
	f.use(config.Destination{URL: port.url()})
	f.routes[0].GiveUpAfter = week
	f.dispatcher()
	f.add(700, "app")
	f.runUntil(startTime().Add(5 * 24 * time.Hour))
	f.add(20, "app")
	f.runUntil(startTime().Add(week - time.Second))
	if dead := f.count(event.DeliveryDead); dead != 0 {
		t.Fatalf("%d died before their time", dead)
	}
	f.runUntil(startTime().Add(week + time.Second))
	if dead, ready := f.count(event.DeliveryDead), f.count(event.DeliveryReady); dead != 700 || ready != 20 {
		t.Fatalf("%d of 700 were given up, %d wait", dead, ready)
	}
	d := f.delivery(1)
	if d.Error != "it waited longer than give_up_after = 168h0m0s" || !d.FinishedAt.Equal(startTime().Add(week)) {
		t.Errorf("%+v", d)
	}
	got := f.outages("app")
	if len(got) != 1 || got[0].Cause != event.CauseDestinationDisabled || !got[0].ResolvedAt.IsZero() {
		t.Errorf("incidents %+v", got)
	}
	if n := f.tally.Hour(event.TallyDeadDeliveries, "app", f.clock.Now()); n != 700 {
		t.Errorf("%d were counted", n)
	}
	f.crash()
	f.replayDead()
	f.runUntil(f.clock.Now().Add(week - 24*time.Hour))
	if dead, ready := f.count(event.DeliveryDead), f.count(event.DeliveryReady); dead != 20 || ready != 700 {
		t.Errorf("after the replay %d are dead, %d wait", dead, ready)
	}
	port.up()
	f.runUntil(f.clock.Now().Add(disabledProbe + time.Minute))
	if sent := f.count(event.DeliverySent); sent != 700 {
		t.Errorf("%d of 700 sent", sent)
	}
	if got := f.outages("app"); got[len(got)-1].ResolvedAt.IsZero() || !strings.Contains(got[len(got)-1].Detail, "20 deliveries died, the latest: deliveries were given up") {
		t.Errorf("incidents %+v", got)
	}
}

// TestGiveUpWhateverItWaitsFor gives up what waits for its next attempt or for its
// owner. Of a lane it is the head, which then parks those behind it.
func TestGiveUpWhateverItWaitsFor(t *testing.T) {
	t.Parallel()
	for name, pause := range map[string]bool{"a retry": false, "the owner": true} {
		f := newFixture(t)
		f.lanes = 2
		site := &app{clock: f.clock}
		site.status.Store(503)
		port := newOutpost(t, site.ServeHTTP)
		f.use(config.Destination{URL: port.url(), Retry: "patient"})
		f.routes[0].GiveUpAfter = time.Hour
		f.dispatcher()
		f.settle()
		if pause {
			f.pause()
		}
		f.add(4, "app")
		f.runUntil(startTime().Add(time.Hour - time.Second))
		if dead := f.count(event.DeliveryDead); dead != 0 {
			t.Errorf("%s: %d died before their time", name, dead)
		}
		f.runUntil(startTime().Add(time.Hour + 5*time.Minute))
		if dead, behind := f.count(event.DeliveryDead), f.count(event.DeliveryWaiting); dead != 2 || behind != 2 {
			t.Errorf("%s: %d of 2 were given up, %d wait behind them", name, dead, behind)
		}
		if parked := f.incidents(event.CauseLaneParked); len(parked) != 1 {
			t.Errorf("%s: incidents %+v", name, parked)
		}
	}
}

// Nothing is given up where nobody asked for it.
func TestNothingIsGivenUpByDefault(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	port := newOutpost(t, nil)
	port.down()
	f.use(config.Destination{URL: port.url()})
	f.add(5, "app")
	f.runUntil(startTime().Add(60 * 24 * time.Hour))
	if ready := f.count(event.DeliveryReady); ready != 5 {
		t.Errorf("%d of 5 wait after 60 days", ready)
	}
}

func (f *fixture) pause() {
	f.t.Helper()
	if _, err := f.store.Pause(context.Background(), f.clock.Now(), event.Action{Actor: "owner", Target: "app"}); err != nil {
		f.t.Fatal(err)
	}
	f.d.Refresh()
	f.settle()
}

func (f *fixture) replayDead() {
	f.t.Helper()
	a := event.Action{Actor: "owner", Selector: event.Selector{State: event.Dead}}
	if _, err := f.store.Replay(context.Background(), f.clock.Now(), a); err != nil {
		f.t.Fatal(err)
	}
	for {
		_, works, err := f.store.Settle(context.Background(), f.clock.Now(), nil, 256)
		if err != nil {
			f.t.Fatal(err)
		}
		if len(works) == 0 {
			return
		}
		finishes := make([]event.Finish, len(works))
		for i, work := range works {
			finishes[i] = event.Finish{Seq: work.Seq, Claim: work.Claim, Run: work.Run, State: event.Done}
		}
		if _, _, err := f.store.Settle(context.Background(), f.clock.Now(), finishes, 0); err != nil {
			f.t.Fatal(err)
		}
	}
}
