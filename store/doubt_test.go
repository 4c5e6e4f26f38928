package store

import (
	"context"
	"slices"
	"strconv"
	"testing"

	"creel/event"
)

func (sc *scene) decide(kind event.ActionKind, id int64) event.Action {
	sc.t.Helper()
	done, err := sc.Decide(context.Background(), sc.now, event.Action{Kind: kind, Actor: "ana", Reason: "asked the app", Target: strconv.FormatInt(id, 10)})
	must(sc.t, err)
	return done
}

func TestADeliveryInDoubtIsDecidedOnceAndAudited(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind  event.ActionKind
		state event.DeliveryState
		run   int
	}{
		{event.ActionWasSent, event.DeliverySent, 1},
		{event.ActionSendAgain, event.DeliveryReady, 2},
		{event.ActionGiveUp, event.DeliveryDead, 1},
	} {
		sc := newScene(t)
		sc.deliver("a")
		shipments := sc.send(1)
		sc.ship([]event.DeliveryFinish{outcome(shipments[0], event.DeliveryInDoubt)})
		done := sc.decide(c.kind, shipments[0].ID)
		want(t, "done", done.Done, 1)
		delivery := sc.detail("a").Deliveries[0]
		want(t, "state", delivery.State, c.state)
		want(t, "run", delivery.Run, c.run)
		want(t, "webhook key", delivery.Key, shipments[0].Key)
		again := sc.decide(c.kind, shipments[0].ID)
		want(t, "refused the second time", again.Refused, 1)
		actions, err := sc.Actions(context.Background(), event.Page{Limit: 10})
		must(t, err)
		want(t, "audit rows", len(actions), 2)
		if open := sc.open1(event.CauseDeadDelivery, delivery.Destination); (open != nil) != (c.state == event.DeliveryDead) {
			t.Errorf("%s: the incident of a dead delivery is %+v", c.kind, open)
		}
	}
}

func TestWaitingDestinationsAreNamedOnce(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	for _, id := range []string{"a", "b"} {
		w := event.Work{}
		sc.receive(id)
		w = sc.claim(1)[0]
		must(t, sc.finish(done(w, forward(w, "app"), forward(w, "audit"))).Err)
	}
	names, err := sc.WaitingDestinations(context.Background())
	must(t, err)
	if !slices.Equal(names, []string{"app", "audit"}) {
		t.Errorf("waiting are %q", names)
	}
}
