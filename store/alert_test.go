package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"creel/event"
)

// hears lets two recipients be told of everything; what they are told says how
// often it happened.
func (sc *scene) hears() {
	sc.SetTeller(func(i event.OpenIncident, m event.Moment) []event.Telling {
		message := event.Alert{Subject: fmt.Sprintf("%s %s of %s, %d times", m, i.Cause, i.Subject, i.Count), Text: i.Detail}.Message()
		return []event.Telling{
			{Destination: event.Mail, Target: "owner@example.com", Message: message, Wait: 10 * time.Second},
			{Destination: "ops", Message: message, Wait: 10 * time.Second},
		}
	})
}

// die receives one event and makes it a dead letter.
func (sc *scene) die(id string) {
	sc.t.Helper()
	sc.receive(id)
	works := sc.claim(1)
	must(sc.t, sc.finish(dead(works[0])).Err)
}

func (sc *scene) alerts(state event.DeliveryState) []string {
	sc.t.Helper()
	list, err := sc.Deliveries(context.Background(), DeliveryFilter{State: state}, event.Page{})
	must(sc.t, err)
	out := []string{}
	for _, d := range list {
		if d.Alert == 0 {
			sc.t.Errorf("delivery %d is no alert: %+v", d.ID, d)
		}
		out = append(out, strings.TrimPrefix(d.Key, alertMark)+" "+d.Destination)
	}
	return out
}

// ring sends what is due to both recipients and returns the subjects.
func (sc *scene) tellAll(end event.DeliveryState) []string {
	sc.t.Helper()
	subjects := []string{}
	for _, name := range []string{event.Mail, "ops"} {
		_, shipments := sc.ship(nil, event.ShipmentClaim{Destination: name, Max: 50})
		for _, s := range shipments {
			alert, err := event.AlertOf(s.Message)
			must(sc.t, err)
			subjects = append(subjects, alert.Subject)
			f := outcome(s, end)
			f.Alert, f.Incident = s.Alert, nil
			errs, _ := sc.ship([]event.DeliveryFinish{f})
			must(sc.t, errs[0])
		}
	}
	return subjects
}

func (sc *scene) all(what string, got []string, wanted ...string) {
	sc.t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(wanted) {
		sc.t.Errorf("%s: %q, want %q", what, got, wanted)
	}
}

func (sc *scene) replayAll() {
	sc.t.Helper()
	_, err := sc.Replay(context.Background(), sc.now, event.Action{Selector: event.Selector{State: event.Dead}})
	must(sc.t, err)
}

func (sc *scene) finishAll() {
	sc.t.Helper()
	for _, w := range sc.claim(100) {
		must(sc.t, sc.finish(done(w)).Err)
	}
}

// Five hundred events that fail alike are one alert, which says how many there
// were when it went out; its end is told to those who had it, once.
func TestBugJOB09ManyFailuresAreOneAlert(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.hears()
	for i := range 500 {
		sc.die(fmt.Sprintf("evt_%d", i))
	}
	sc.all("before it is time", sc.tellAll(event.DeliverySent))
	sc.later(10 * time.Second)
	sc.all("told", sc.tellAll(event.DeliverySent), "opened dead_event of r, 500 times", "opened dead_event of r, 500 times")
	i := sc.open1(event.CauseDeadEvent, "r")
	if i == nil || !i.NotifiedAt.Equal(sc.now) || !i.AlertedAt.Equal(start) {
		t.Fatalf("incident %+v", i)
	}
	sc.crash("boot2")
	sc.hears()
	must(t, sc.KeepIncidents(context.Background(), sc.now))
	sc.die("late")
	sc.later(time.Hour)
	sc.all("after a restart", sc.tellAll(event.DeliverySent))
	sc.replayAll()
	for range 6 {
		sc.finishAll()
	}
	sc.all("its end, at first", sc.tellAll(event.DeliverySent))
	sc.later(returnWithin)
	sc.all("its end", sc.tellAll(event.DeliverySent), "resolved dead_event of r, 501 times", "resolved dead_event of r, 501 times")
	sc.later(time.Hour)
	sc.all("nothing more", sc.tellAll(event.DeliverySent))
}

// What is over before it was told is told to nobody, and its end neither.
func TestAnIncidentThatPassesIsNotTold(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.hears()
	sc.die("a")
	sc.later(time.Second)
	sc.replayAll()
	sc.later(time.Hour)
	sc.all("told", sc.tellAll(event.DeliverySent))
	sc.all("withdrawn", sc.alerts(event.DeliveryDiscarded), "1/opened ops", "1/opened mail")
}

// What comes back within two minutes is the same incident: whoever knows of it
// hears nothing, whoever does not hears of it.
func TestAnIncidentThatReturns(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.hears()
	sc.die("a")
	sc.replayAll()
	sc.finishAll()
	sc.later(time.Minute)
	sc.die("b")
	sc.all("untold before", sc.tellAll(event.DeliverySent), "opened dead_event of r, 2 times", "opened dead_event of r, 2 times")
	sc.replayAll()
	sc.finishAll()
	sc.later(time.Minute)
	sc.die("c")
	sc.later(time.Hour)
	sc.all("told before", sc.tellAll(event.DeliverySent))
	if i := sc.open1(event.CauseDeadEvent, "r"); i == nil || i.ID != 1 || i.Count != 3 || i.Dead != 1 {
		t.Errorf("incident %+v", i)
	}
	sc.replayAll()
	sc.finishAll()
	sc.later(returnWithin)
	sc.all("its end", sc.tellAll(event.DeliverySent), "resolved dead_event of r, 3 times", "resolved dead_event of r, 3 times")
	sc.die("d")
	sc.later(time.Minute)
	sc.all("another one", sc.tellAll(event.DeliverySent), "opened dead_event of r, 1 times", "opened dead_event of r, 1 times")
}

// An alert that is in the air when its incident ends decides when it lands:
// both are told, or none.
func TestAnIncidentThatEndsWhileItIsTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		finish func(*event.DeliveryFinish)
		crash  bool
		told   int
	}{
		"sent":        {finish: func(f *event.DeliveryFinish) { f.State = event.DeliverySent }, told: 1},
		"not sent":    {finish: func(f *event.DeliveryFinish) { f.State = event.DeliveryReady; f.Attempt.Outcome = event.Transient }},
		"dead":        {finish: func(f *event.DeliveryFinish) { f.State = event.DeliveryDead; f.Attempt.Outcome = event.Permanent }},
		"given back":  {finish: func(f *event.DeliveryFinish) { f.Release = true }},
		"answer lost": {finish: func(f *event.DeliveryFinish) { f.State = event.DeliveryReady; f.Attempt.Outcome = event.Unknown }, told: 1},
		"crash":       {crash: true, told: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc := newScene(t)
			sc.hears()
			sc.die("a")
			sc.later(time.Minute)
			_, air := sc.ship(nil, event.ShipmentClaim{Destination: "ops", Max: 1})
			sc.replayAll()
			if c.crash {
				sc.crash("boot2")
				sc.hears()
				_, err := sc.Recover(context.Background(), sc.now, nil)
				must(t, err)
			} else {
				f := outcome(air[0], event.DeliverySent)
				f.Alert = air[0].Alert
				c.finish(&f)
				errs, _ := sc.ship([]event.DeliveryFinish{f})
				must(t, errs[0])
			}
			sc.later(time.Hour)
			told := sc.tellAll(event.DeliverySent)
			if len(told) != c.told || c.told == 1 && !strings.HasPrefix(told[0], "resolved") {
				t.Errorf("told %q", told)
			}
			if list, err := sc.DeadAlerts(context.Background()); err != nil || len(list) != 0 {
				t.Errorf("dead alerts of an incident that is over: %v %v", list, err)
			}
		})
	}
}

// An alert that can not be sent opens no incident, and shows until its incident
// is seen to.
func TestAnAlertThatDiesIsNoTrouble(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.hears()
	ctx := context.Background()
	sc.die("a")
	sc.later(time.Minute)
	sc.tellAll(event.DeliveryDead)
	list, err := sc.Incidents(ctx, false)
	must(t, err)
	if len(list) != 1 || !list[0].NotifiedAt.IsZero() {
		t.Errorf("incidents %+v", list)
	}
	alerts, err := sc.DeadAlerts(ctx)
	must(t, err)
	if len(alerts) != 2 || alerts[0].Alert != 1 || alerts[0].EventSeq != 0 {
		t.Errorf("dead alerts %+v", alerts)
	}
	events, err := sc.Events(ctx, event.Selector{State: event.Dead}, event.Page{})
	must(t, err)
	if len(events) != 1 {
		t.Errorf("%d events among the dead letters", len(events))
	}
	done, err := sc.Acknowledge(ctx, sc.now, event.Action{Actor: "ana", Target: "1"})
	must(t, err)
	if alerts, _ = sc.DeadAlerts(ctx); len(alerts) != 0 || done.Done != 1 {
		t.Errorf("%d dead alerts, %+v", len(alerts), done)
	}
}

// Whoever acknowledges is in the audit trail; no alert goes out any more, and
// what only happened is over.
func TestAcknowledge(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.hears()
	ctx := context.Background()
	sc.die("a")
	sc.accept(sc.receipt("other", item("a", "other")))
	sc.later(time.Minute)
	done, err := sc.Acknowledge(ctx, sc.now, event.Action{Actor: "ana", Target: event.AllIncidents, Reason: "on it"})
	must(t, err)
	if done.Done != 2 || done.ID == 0 {
		t.Errorf("%+v", done)
	}
	sc.die("b")
	sc.later(time.Hour)
	must(t, sc.KeepIncidents(ctx, sc.now))
	sc.all("told", sc.tellAll(event.DeliverySent))
	if i := sc.open1(event.CauseDeadEvent, "r"); i == nil || i.AcknowledgedBy != "ana" || i.Count != 2 {
		t.Errorf("incident %+v", i)
	}
	if i := sc.open1(event.CauseConflict, "gen"); i != nil {
		t.Errorf("a conflict is open: %+v", i)
	}
	again, err := sc.Acknowledge(ctx, sc.now, event.Action{Actor: "ben", Target: "1"})
	must(t, err)
	if again.Done != 0 || again.Refused != 1 {
		t.Errorf("again: %+v", again)
	}
	if _, err := sc.Acknowledge(ctx, sc.now, event.Action{Actor: "ben", Target: "one"}); !errors.Is(err, event.ErrNotFound) {
		t.Errorf("a strange number: %v", err)
	}
	actions, err := sc.Actions(ctx, event.Page{})
	must(t, err)
	if len(actions) != 2 || actions[1].Kind != event.ActionAck || actions[1].Actor != "ana" || actions[1].Reason != "on it" {
		t.Errorf("audit %+v", actions)
	}
}

// What was opened while there was nobody to tell is told once there is
// somebody; what is quiet for a day is over, and told to be.
func TestIncidentsAreKept(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	ctx := context.Background()
	sc.receive("a")
	sc.accept(sc.receipt("other", item("a", "other")))
	must(t, sc.KeepIncidents(ctx, sc.now))
	sc.hears()
	before := sc.Gauges().Units
	must(t, sc.KeepIncidents(ctx, sc.now))
	sc.later(10 * time.Second)
	sc.all("told", sc.tellAll(event.DeliverySent), "opened conflict of gen, 1 times", "opened conflict of gen, 1 times")
	if sc.Gauges().Units == before {
		t.Error("nothing was written")
	}
	before = sc.Gauges().Units
	sc.later(23 * time.Hour)
	must(t, sc.KeepIncidents(ctx, sc.now))
	if n := sc.Gauges().Units - before; n != 0 {
		t.Errorf("%d writes with nothing to do", n)
	}
	sc.later(time.Hour)
	must(t, sc.KeepIncidents(ctx, sc.now))
	sc.later(returnWithin)
	sc.all("its end", sc.tellAll(event.DeliverySent), "resolved conflict of gen, 1 times", "resolved conflict of gen, 1 times")
}

// A dead letter that nobody sees to does not hide the next ones for ever.
func TestOldDeadLettersDoNotHideNewOnes(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.hears()
	sc.die("a")
	sc.later(time.Minute)
	want(t, "told", len(sc.tellAll(event.DeliverySent)), 2)
	sc.later(23 * time.Hour)
	sc.die("b")
	sc.later(time.Minute)
	want(t, "told within a day", len(sc.tellAll(event.DeliverySent)), 0)
	sc.later(24 * time.Hour)
	sc.die("c")
	sc.later(time.Minute)
	sc.all("told after a day", sc.tellAll(event.DeliverySent), "opened dead_event of r, 1 times", "opened dead_event of r, 1 times")
}

// What is told becomes worse: those who know are told once more, those who do
// not hear of it as it is now.
func TestAnIncidentThatEscalates(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	health := event.DestinationHealth{Name: "app", State: event.DestinationHeld}
	down := &event.Incident{Cause: event.CauseDestinationDown, Subject: "app"}
	disabled := &event.Incident{Cause: event.CauseDestinationDisabled, Subject: "app"}
	for _, known := range []bool{true, false} {
		sc := newScene(t)
		sc.hears()
		must(t, sc.SaveDestination(ctx, sc.now, health, down, nil))
		sc.later(time.Minute)
		wanted := []string{}
		if known {
			want(t, "told that it is down", len(sc.tellAll(event.DeliverySent)), 2)
			wanted = append(wanted, "escalated destination_disabled of app, 1 times", "escalated destination_disabled of app, 1 times")
		} else {
			wanted = append(wanted, "opened destination_disabled of app, 1 times", "opened destination_disabled of app, 1 times")
		}
		for range 3 {
			must(t, sc.SaveDestination(ctx, sc.now, health, disabled, nil))
			must(t, sc.SaveDestination(ctx, sc.now, health, down, nil))
		}
		must(t, sc.SaveDestination(ctx, sc.now, health, disabled, nil))
		sc.later(time.Minute)
		sc.all("told", sc.tellAll(event.DeliverySent), wanted...)
		must(t, sc.SaveDestination(ctx, sc.now, health, nil, &event.Incident{Cause: event.CauseDestinationDown, Subject: "app"}))
		sc.later(time.Hour)
		want(t, "told that it is over", len(sc.tellAll(event.DeliverySent)), 2)
	}
}

// A rule can not take the place of an alert.
func TestARuleMakesNoAlert(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.hears()
	sc.receive("a")
	w := sc.claim(1)[0]
	must(t, sc.finish(done(w, event.Forward{Key: "=incident/1/opened", Rule: "r", Destination: "ops"},
		event.Forward{Key: "incident/1/opened", Rule: "r2", Destination: "ops"})).Err)
	sc.die("b")
	sc.later(time.Minute)
	_, shipments := sc.ship(nil, event.ShipmentClaim{Destination: "ops", Max: 9})
	alerts := 0
	for _, s := range shipments {
		if s.Alert != 0 {
			alerts++
		} else if s.Event.ID != "a" {
			t.Errorf("%+v", s)
		}
	}
	if len(shipments) != 3 || alerts != 1 {
		t.Errorf("%d shipments, %d alerts", len(shipments), alerts)
	}
}

// What parks a lane is told by what is dead at its head, not twice.
func TestAParkedLaneIsToldOnce(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.hears()
	for _, id := range []string{"a", "b"} {
		it := item(id, id)
		it.Lane = "l"
		sc.accept(sc.receipt(id, it))
	}
	w := sc.claim(1)[0]
	f := dead(w)
	f.Incident.Subject = "gen"
	must(t, sc.finish(f).Err)
	if sc.open1(event.CauseLaneParked, "gen") == nil {
		t.Fatal("the lane is not parked")
	}
	sc.later(time.Minute)
	want(t, "told", len(sc.tellAll(event.DeliverySent)), 2)
	must(t, sc.KeepIncidents(context.Background(), sc.now))
	sc.later(time.Minute)
	want(t, "told again", len(sc.tellAll(event.DeliverySent)), 0)
}
