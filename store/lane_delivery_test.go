package store

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"creel/event"
)

// sendInLane applies events that have a delivery to app each, in one lane there.
func (sc *scene) sendInLane(lane string, ids ...string) {
	sc.t.Helper()
	for _, id := range ids {
		sc.receive(id)
		w := sc.claim(1)[0]
		f := forward(w, "app")
		f.Lane = lane
		must(sc.t, sc.finish(done(w, f)).Err)
		sc.checkLanes()
	}
}

// sent are the events of shipments, in their order.
func sent(shipments []event.Shipment) string {
	var ids []string
	for _, s := range shipments {
		ids = append(ids, s.Event.ID)
	}
	return strings.Join(ids, " ")
}

func app(n int) event.ShipmentClaim { return event.ShipmentClaim{Destination: "app", Max: n} }

// The deliveries of a lane go one after another; a retry is not overtaken.
func TestGateA5DeliveriesOfALaneKeepTheirOrder(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.sendInLane("x", "A", "B", "C")
	sc.sendInLane("y", "D")
	sc.sendInLane("", "E")
	first := sc.send(10)
	want(t, "at once", sent(first), "A D E")
	sc.checkLanes()
	retry := outcome(first[0], event.DeliveryReady)
	retry.NextAt = sc.now.Add(time.Minute)
	errs, next := sc.ship([]event.DeliveryFinish{retry, outcome(first[1], event.DeliverySent)}, app(10))
	must(t, errs[0])
	want(t, "while A waits for its next attempt", sent(next), "")
	sc.checkLanes()
	sc.later(time.Minute)
	order := ""
	for s := sc.send(10); len(s) > 0; {
		order += sent(s)
		_, s = sc.ship([]event.DeliveryFinish{outcome(s[0], event.DeliverySent)}, app(10))
		sc.checkLanes()
	}
	want(t, "order", order, "ABC")
}

// A dead delivery, or one in doubt, parks its lane at its destination alone.
func TestGateA5ADeadDeliveryParksItsLaneAtItsDestination(t *testing.T) {
	t.Parallel()
	decide := func(kind event.ActionKind) func(*scene, int64) {
		return func(sc *scene, id int64) {
			a, err := sc.Decide(context.Background(), sc.now, event.Action{Kind: kind, Target: fmt.Sprint(id)})
			must(sc.t, err)
			want(sc.t, "decided", a.Done, 1)
		}
	}
	act := func(kind event.ActionKind) func(*scene, int64) {
		return func(sc *scene, _ int64) { want(sc.t, "done", sc.actLane(kind, "A").Done, 1) }
	}
	ends := map[string]struct {
		stuck event.DeliveryState
		act   func(*scene, int64)
		next  string
	}{
		"skipped":            {event.DeliveryDead, act(event.ActionLaneSkip), "B"},
		"replayed":           {event.DeliveryDead, act(event.ActionReplay), "A"},
		"discarded":          {event.DeliveryDead, act(event.ActionDiscard), "B"},
		"in doubt, skipped":  {event.DeliveryInDoubt, act(event.ActionLaneSkip), "B"},
		"in doubt, was sent": {event.DeliveryInDoubt, decide(event.ActionWasSent), "B"},
		"in doubt, again":    {event.DeliveryInDoubt, decide(event.ActionSendAgain), "A"},
		"in doubt, given up": {event.DeliveryInDoubt, decide(event.ActionGiveUp), ""},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc := newScene(t)
			sc.sendInLane("x", "A", "B")
			sc.sendInLane("y", "D")
			s := sc.send(10)
			want(t, "at once", sent(s), "A D")
			errs, next := sc.ship([]event.DeliveryFinish{outcome(s[0], end.stuck), outcome(s[1], event.DeliverySent)}, app(10))
			must(t, errs[0])
			want(t, "behind it", sent(next), "")
			sc.checkLanes()
			sc.sendInLane("x", "C")
			want(t, "behind it", sent(sc.send(10)), "")
			lanes, err := sc.Lanes(context.Background(), "", 10)
			must(t, err)
			if len(lanes) != 1 || lanes[0].Destination != "app" || lanes[0].Event != key("A") || lanes[0].Delivery != s[0].ID ||
				lanes[0].State != string(end.stuck) || lanes[0].Waiting != 2 || lanes[0].Since.IsZero() {
				t.Errorf("lanes %+v", lanes)
			}
			if i := sc.open1(event.CauseLaneParked, "app"); i == nil || i.Count != 1 {
				t.Errorf("incident %+v, want one", i)
			}
			end.act(sc, s[0].ID)
			sc.checkLanes()
			next = sc.send(10)
			want(t, "then", sent(next), end.next)
			if open := sc.open1(event.CauseLaneParked, "app") != nil; open != (end.next == "") {
				t.Errorf("the incident is open: %v", open)
			}
			for len(next) > 0 {
				_, next = sc.ship([]event.DeliveryFinish{outcome(next[0], event.DeliverySent)}, app(10))
				sc.checkLanes()
			}
			waiting := 0
			if end.next == "" {
				waiting = 2
			}
			want(t, "left waiting", sc.number("SELECT count(*) FROM delivery WHERE state IN ('waiting', 'ready')"), waiting)
		})
	}
}

// A delivery is born in the dispatcher's hands only where it is the head, and
// two destinations are two orders.
func TestOnlyTheHeadIsBornInFlight(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	born := map[string]string{}
	var shipments []event.Shipment
	for _, id := range []string{"A", "B"} {
		sc.receive(id)
		w := sc.claim(1)[0]
		to, also := forward(w, "app"), forward(w, "audit")
		to.Lane, to.Claimed, also.Lane, also.Claimed = "x", true, "x", id == "B"
		got := sc.finish(done(w, to, also))
		must(t, got.Err)
		for _, s := range got.Shipments {
			born[id] += s.Destination + " "
		}
		shipments = append(shipments, got.Shipments...)
		sc.checkLanes()
	}
	want(t, "A", born["A"], "app ")
	want(t, "B", born["B"], "")
	want(t, "waiting", sc.detail("B").Deliveries[0].State, event.DeliveryWaiting)
	_, next := sc.ship([]event.DeliveryFinish{outcome(shipments[0], event.DeliverySent)}, app(10))
	want(t, "next", sent(next), "B")
}

// on_dead = "skip" holds nobody up, and a crash neither.
func TestALaneOfDeliveriesThatSkips(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	for _, id := range []string{"A", "B", "C"} {
		sc.receive(id)
		w := sc.claim(1)[0]
		f := forward(w, "app")
		f.Lane, f.LaneSkip = "x", true
		must(t, sc.finish(done(w, f)).Err)
	}
	_, next := sc.ship([]event.DeliveryFinish{outcome(sc.send(1)[0], event.DeliveryDead)}, app(10))
	want(t, "next", sent(next), "B")
	sc.crash("boot2")
	got, err := sc.Recover(context.Background(), sc.now, func(string, int) bool { return true })
	must(t, err)
	want(t, "in doubt", got.InDoubt, 1)
	sc.checkLanes()
	want(t, "past the one in doubt", sent(sc.send(10)), "C")
}

// The same crash where a delivery in doubt holds up the others.
func TestACrashLeavesALaneParkedByDoubt(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.sendInLane("x", "A", "B")
	sc.send(1)
	sc.crash("boot2")
	_, err := sc.Recover(context.Background(), sc.now, func(string, int) bool { return true })
	must(t, err)
	sc.checkLanes()
	want(t, "behind it", sent(sc.send(10)), "")
	lanes, err := sc.Lanes(context.Background(), "", 10)
	must(t, err)
	want(t, "parked", len(lanes), 1)
	want(t, "since", lanes[0].Since, sc.now)
}

// Parked lanes are listed in pages, each with all of its places.
func TestLanesInPages(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	for i := range 5 {
		lane := numbered("lane", i)
		sc.line(lane, numbered("e", i))
		w := sc.claim(1)[0]
		must(t, sc.finish(dead(w)).Err)
	}
	sc.sendInLane("lane-00002", "s")
	_, _ = sc.ship([]event.DeliveryFinish{outcome(sc.send(1)[0], event.DeliveryDead)})
	seen := ""
	for after := ""; ; {
		lanes, err := sc.Lanes(context.Background(), after, 2)
		must(t, err)
		if len(lanes) == 0 {
			break
		}
		for _, l := range lanes {
			seen += l.Lane + " " + l.Destination + ";"
			after = l.Lane
		}
	}
	want(t, "seen", seen, "lane-00000 ;lane-00001 ;lane-00002 ;lane-00002 app;lane-00003 ;lane-00004 ;")
}
