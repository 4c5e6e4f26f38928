package store

import (
	"context"
	"testing"

	"creel/event"
)

// sentAll sends what is due and says that all of it arrived.
func (sc *scene) sentAll(max int) (sent []event.Shipment) {
	sc.t.Helper()
	for out := sc.send(max); len(out) > 0; out = sc.send(max) {
		for _, s := range out {
			sc.ship([]event.DeliveryFinish{outcome(s, event.DeliverySent)})
		}
		sent = append(sent, out...)
	}
	return sent
}

// A resend sends the same delivery again, in its next run; without it nothing
// that was sent moves.
func TestResendIsTheSameDeliveryAgain(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.deliver("a")
	first := sc.sentAll(1)[0]
	keys := event.Selector{Keys: []event.Key{key("a")}}

	sc.replay(keys)
	must(t, sc.finish(done(sc.claim(1)[0])).Err)
	want(t, "sent by a replay", len(sc.send(1)), 0)

	a, err := sc.Replay(context.Background(), sc.now, event.Action{Actor: "ann", Reason: "lost", Selector: keys, Resend: true})
	must(t, err)
	want(t, "done", a.Done, 1)
	again := sc.sentAll(1)
	want(t, "sent again", len(again), 1)
	want(t, "delivery", again[0].Delivery.ID, first.Delivery.ID)
	want(t, "key", again[0].Delivery.Key, first.Delivery.Key)
	want(t, "run", again[0].Delivery.Run, 2)
	want(t, "attempt", again[0].Delivery.Attempts, 1)
	d := sc.detail("a")
	want(t, "attempts kept", len(d.Deliveries[0].Attempts), 2)
	want(t, "state", d.Deliveries[0].State, event.DeliverySent)
	items, err := sc.ActionItems(context.Background(), a.ID, 0)
	must(t, err)
	want(t, "result", items[0].Result, resultResent)
	kept, err := sc.Action(context.Background(), a.ID)
	must(t, err)
	want(t, "audited", kept.Resend, true)
}

// With a destination in the selection, a resend is to that one alone. What is
// in doubt is left alone.
func TestResendToOneDestination(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.sendTo("", []string{"app", "audit"}, "a", "b", "c")
	for _, to := range []string{"app", "audit"} {
		_, out := sc.ship(nil, event.ShipmentClaim{Destination: to, Max: 3})
		sc.ship([]event.DeliveryFinish{outcome(out[0], event.DeliverySent), outcome(out[1], event.DeliverySent), outcome(out[2], event.DeliveryInDoubt)})
	}
	_, err := sc.Replay(context.Background(), sc.now, event.Action{Selector: event.Selector{Destination: "audit"}, Resend: true})
	must(t, err)
	want(t, "audit", sc.states("audit"), "2 ready 1 in_doubt ")
	want(t, "app", sc.states("app"), "2 sent 1 in_doubt ")
}

// A resend of a lane goes in the order of the lane, one at a time.
func TestResendKeepsTheLane(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.sendTo("lane", []string{"app"}, "a", "b", "c")
	sc.sentAll(8)
	want(t, "all sent", sc.states("app"), "3 sent ")
	_, err := sc.Replay(context.Background(), sc.now, event.Action{Selector: event.Selector{All: true}, Resend: true})
	must(t, err)
	want(t, "in the lane", sc.states("app"), "2 waiting 1 ready ")
	order := ""
	for _, s := range sc.sentAll(8) {
		order += s.Delivery.Event.ID
	}
	want(t, "order", order, "abc")
}
