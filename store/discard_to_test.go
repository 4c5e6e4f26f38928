package store

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"creel/event"
)

// sendTo applies events that have a delivery to each destination, in a lane
// there where one is named.
func (sc *scene) sendTo(lane string, destinations []string, ids ...string) {
	sc.t.Helper()
	for _, id := range ids {
		sc.receive(id)
		w := sc.claim(1)[0]
		var effects []event.Effect
		for _, name := range destinations {
			f := forward(w, name)
			f.Lane = lane
			effects = append(effects, f)
		}
		must(sc.t, sc.finish(done(w, effects...)).Err)
	}
}

func (sc *scene) states(destination string) string {
	sc.t.Helper()
	text := ""
	for _, state := range event.DeliveryStates() {
		if n := sc.number(`SELECT count(*) FROM delivery WHERE destination = ? AND state = ?`, destination, string(state)); n > 0 {
			text += fmt.Sprintf("%d %s ", n, state)
		}
	}
	return text
}

// What waits for a destination that is gone is discarded, whatever it waits
// for, with its audit row; nothing else is touched. The dry run has said so.
func TestDiscardWhatWaitsForADestination(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	ctx := context.Background()
	both := []string{"old", "app"}
	sc.sendTo("", both, "a", "b", "c", "d")
	sc.sendTo("lane", both, "e", "f", "g")
	_, s := sc.ship(nil, event.ShipmentClaim{Destination: "old", Max: 4})
	doubt := outcome(s[1], event.DeliveryInDoubt)
	sc.ship([]event.DeliveryFinish{outcome(s[0], event.DeliveryDead), doubt, outcome(s[2], event.DeliverySent)}) // s[3] is in flight
	down := &event.Incident{Cause: event.CauseDestinationDown, Subject: "old", Detail: "nobody there"}
	must(t, sc.SaveDestination(ctx, sc.now, event.DestinationHealth{Name: "old", State: event.DestinationHeld}, down, nil))
	want(t, "old before", sc.states("old"), "2 waiting 1 ready 1 sending 1 sent 1 dead 1 in_doubt ")
	app := sc.states("app")

	a := event.Action{Actor: "ann", Reason: "it is gone", Target: "old"}
	var plan []string
	must(t, sc.ForeseeDiscard(ctx, a, func(o DiscardOutlook) error {
		if o.Whole || o.Refused != "" || o.Deliveries != 1 {
			t.Errorf("%+v", o)
		}
		plan = append(plan, o.Event.Key.ID)
		return nil
	}))
	want(t, "planned", fmt.Sprint(plan), "[a b e f g]")
	want(t, "the plan changes nothing", sc.states("old"), "2 waiting 1 ready 1 sending 1 sent 1 dead 1 in_doubt ")

	got, err := sc.Discard(ctx, sc.now, a)
	must(t, err)
	want(t, "selected", got.Selected, 5)
	want(t, "done", got.Done, 5)
	want(t, "old", sc.states("old"), "1 sending 1 sent 5 discarded ")
	want(t, "app", sc.states("app"), app)
	want(t, "events", sc.number(`SELECT count(*) FROM event WHERE state = 'done'`), 7)
	want(t, "open incidents", sc.number(`SELECT count(*) FROM incident WHERE resolved_at IS NULL`), 0)
	items, err := sc.ActionItems(ctx, got.ID, 0)
	must(t, err)
	want(t, "items", len(items), 5)
	want(t, "result", items[0].Result, resultDiscarded)
	actions, err := sc.Actions(ctx, event.Page{})
	must(t, err)
	want(t, "audited", actions[0].Target+" "+actions[0].Reason, "old it is gone")
	want(t, "claimed", len(must2(sc.ship(nil, event.ShipmentClaim{Destination: "old", Max: 9}))), 0)

	got, err = sc.Discard(ctx, sc.now, a)
	must(t, err)
	want(t, "again", got.Selected, 0)
	sc.checkLanes()
}

func must2(_ []error, shipments []event.Shipment) []event.Shipment { return shipments }

// A narrower selection keeps the rest.
func TestDiscardForADestinationIsNarrowed(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.sendTo("", []string{"old"}, "a", "b", "c")
	got, err := sc.Discard(context.Background(), sc.now, event.Action{Target: "old",
		Selector: event.Selector{Keys: []event.Key{key("b")}}})
	must(t, err)
	want(t, "done", got.Done, 1)
	want(t, "old", sc.states("old"), "2 ready 1 discarded ")
}

// A discard that a crash cut goes on as what it was.
func TestDiscardForADestinationGoesOnAfterACrash(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.sendTo("", []string{"old", "app"}, "a", "b", "c")
	a := event.Action{Kind: event.ActionDiscard, Target: "old", At: sc.now}
	picks, err := sc.pick(context.Background(), a)
	must(t, err)
	a.Selected = len(picks)
	must(t, sc.write(context.Background(), work, 1, func(t *tx) error {
		_, err := insertAction(t, &a, freeze(picks))
		return err
	}))
	sc.crash("boot2")
	_, err = sc.Recover(context.Background(), sc.now, nil)
	must(t, err)
	sc.desk.actions.running.Wait()
	want(t, "old", sc.states("old"), "3 discarded ")
	want(t, "app", sc.states("app"), "3 ready ")
}

// The plan of a plain discard says what the discard then does.
func TestForeseeDiscard(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	deadLetters(sc)
	sc.receive("waits")
	keys := []event.Key{key("dead"), key("half"), key("fine"), key("waits")}
	a := event.Action{Selector: event.Selector{Keys: keys}}
	var plan string
	must(t, sc.ForeseeDiscard(context.Background(), a, func(o DiscardOutlook) error {
		plan += fmt.Sprintf("%s %t %d %q\n", o.Event.Key.ID, o.Whole, o.Deliveries, o.Refused)
		return nil
	}))
	want(t, "plan", plan, "dead true 0 \"\"\nhalf false 1 \"\"\nfine false 0 \"nothing of it is dead\"\nwaits false 0 \"already queued\"\n")
	got, err := sc.Discard(context.Background(), sc.now, a)
	must(t, err)
	want(t, "done", got.Done, 2)
	want(t, "refused", got.Refused, 2)
}

// One incident for a destination, whatever follows: it turns worse and better,
// deaths only count on it, and with the outage it is over. Deaths alone are not.
func TestOneIncidentForAnOutage(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	ctx := context.Background()
	say := func(cause event.Cause) {
		t.Helper()
		must(t, sc.SaveDestination(ctx, sc.now, event.DestinationHealth{Name: "app", State: event.DestinationHeld},
			&event.Incident{Cause: cause, Subject: "app", Detail: string(cause) + " it is"}, nil))
	}
	only := func(what string, cause event.Cause, count int) {
		t.Helper()
		list, err := sc.Incidents(ctx, false)
		must(t, err)
		list = slices.DeleteFunc(list, func(i event.OpenIncident) bool { return i.Cause.Family() != cause.Family() })
		if len(list) != 1 || list[0].Cause != cause || list[0].Count != count {
			t.Fatalf("%s: %+v", what, list)
		}
	}
	sc.deliver("a")
	sc.ship([]event.DeliveryFinish{outcome(sc.send(1)[0], event.DeliveryDead)})
	only("a death", event.CauseDeadDelivery, 1)
	over := &event.Incident{Subject: "app", Detail: "well"}
	must(t, sc.SaveDestination(ctx, sc.now, event.DestinationHealth{Name: "app", State: event.DestinationEnabled}, nil, over))
	want(t, "a death is open after an all-clear", sc.number(`SELECT count(*) FROM incident WHERE resolved_at IS NULL`), 1)
	sc.deliver("b")
	b := sc.send(1)[0]
	for _, cause := range []event.Cause{event.CauseDestinationFailing, event.CauseDestinationDown, event.CauseDestinationDisabled, event.CauseDestinationDown} {
		say(cause)
		only(string(cause), cause, 1)
	}
	sc.ship([]event.DeliveryFinish{outcome(b, event.DeliveryDead)})
	only("a death in the outage", event.CauseDestinationDown, 1)
	only("joins those that are dead already", event.CauseDeadDelivery, 2)
	list, err := sc.Destinations(ctx)
	must(t, err)
	want(t, "trouble", list[0].Trouble, event.CauseDestinationDown)
	must(t, sc.SaveDestination(ctx, sc.now, event.DestinationHealth{Name: "app", State: event.DestinationEnabled}, nil, over))
	incidents, err := sc.Incidents(ctx, false)
	must(t, err)
	want(t, "what it was, and is", incidents[0].Detail, "destination_down it is; over: well")
	want(t, "over", incidents[0].ResolvedAt, sc.now)
	want(t, "dead still", incidents[1].Dead, 2)
	sc.later(time.Hour)
	sc.replay(event.Selector{State: event.Dead})
	want(t, "open", sc.number(`SELECT count(*) FROM incident WHERE resolved_at IS NULL`), 0)
}
