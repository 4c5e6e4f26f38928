package app

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"creel/config"
	"creel/event"
	"creel/internal/testkit"
)

// Each of the five signals fires and clears, and is told once when it begins and
// once when it is over, by mail and to an endpoint.
func TestGateO3FiveSignals(t *testing.T) {
	t.Parallel()
	t.Run("oldest unprocessed", func(t *testing.T) {
		t.Parallel()
		p := newPremises(t, `silence = "0s"`)
		p.store.SetHandoff(nil) // nobody works
		p.receive("order.paid", 3)
		p.pass(14*time.Minute, true)
		p.wantFiring(false, event.SignalOldest, "")
		p.wantTold("before it is time")
		p.pass(4*time.Minute, true)
		p.wantFiring(true, event.SignalOldest, "")
		p.pass(time.Hour, true)
		p.wantTold("past due", "[creel] work for this server is past due")
		p.pass(5*time.Minute, false)
		p.wantFiring(false, event.SignalOldest, "")
		p.wantTold("worked off", "[creel] over: work for this server is past due")
	})
	t.Run("dead letters", func(t *testing.T) {
		t.Parallel()
		p := newPremises(t, `silence = "0s"`)
		p.receive("bad", 5)
		p.work()
		p.pass(5*time.Minute, false)
		p.wantFiring(true, event.SignalDead, "shop")
		p.wantTold("five dead letters", "[creel] an event of shop has failed for good, 5 times")
		p.pass(2*time.Hour, false)
		p.wantFiring(false, event.SignalDead, "shop")
		_, err := p.Act(context.Background(), event.Action{Kind: event.ActionDiscard, Selector: event.Selector{State: event.Dead}})
		p.must(err)
		p.pass(5*time.Minute, false)
		p.wantTold("discarded", "[creel] over: an event of shop has failed for good")
	})
	t.Run("dead letters while somebody sees to them", func(t *testing.T) {
		t.Parallel()
		p := newPremises(t, `silence = "0s"`)
		p.receive("bad", 1)
		p.pass(5*time.Minute, false)
		p.wantTold("one", "[creel] an event of shop has failed for good")
		_, err := p.Act(context.Background(), event.Action{Kind: event.ActionAck, Actor: "ana", Target: event.AllIncidents})
		p.must(err)
		p.receive("bad", 3)
		p.pass(5*time.Minute, false)
		p.wantTold("four")
		p.receive("bad", 1)
		p.pass(5*time.Minute, false)
		p.wantTold("five", "[creel] many dead letters of shop")
		p.pass(2*time.Hour, false)
		p.wantTold("an hour later", "[creel] over: many dead letters of shop")
	})
	t.Run("duplicates", func(t *testing.T) {
		t.Parallel()
		p := newPremises(t, `silence = "0s"`)
		p.receive("order.paid", 18)
		p.again("order.paid", 1)
		p.pass(5*time.Minute, false)
		p.wantFiring(false, event.SignalDuplicates, "shop") // too few to say anything
		p.again("order.paid", 1)
		p.pass(5*time.Minute, false)
		p.wantFiring(true, event.SignalDuplicates, "shop")
		p.wantTold("2 of 20", "[creel] many duplicates from shop")
		p.pass(2*time.Hour, false)
		p.wantFiring(false, event.SignalDuplicates, "shop")
		p.wantTold("an hour later", "[creel] over: many duplicates from shop")
	})
	t.Run("silence", func(t *testing.T) {
		t.Parallel()
		p := newPremises(t, ``)
		for range 30 {
			p.receive("order.paid", 1)
			p.pass(90*time.Minute, false)
		}
		p.wantTold("as usual")
		p.pass(2*time.Hour, false)
		p.wantFiring(true, event.SignalSilence, "shop")
		p.wantTold("silent", "[creel] shop is silent")
		p.receive("order.paid", 1)
		p.pass(5*time.Minute, false)
		p.wantFiring(false, event.SignalSilence, "shop")
		p.wantTold("heard", "[creel] over: shop is silent")
	})
	t.Run("reconciliation gap", func(t *testing.T) {
		t.Parallel()
		p := newPremises(t, `silence = "0s"`)
		now := p.clock.Now()
		p.must(p.store.SetGap(context.Background(), event.Gap{Source: "shop", At: now, Missing: 2, From: now.Add(-168 * time.Hour), Until: now}))
		p.pass(5*time.Minute, false)
		p.wantFiring(true, event.SignalGap, "shop")
		p.wantTold("two are missing", "[creel] events of shop are missing")
		p.must(p.store.SetGap(context.Background(), event.Gap{Source: "shop", At: now, From: now, Until: now}))
		p.pass(5*time.Minute, false)
		p.wantFiring(false, event.SignalGap, "shop")
		p.wantTold("recovered", "[creel] over: events of shop are missing")
	})
}

// A sender is away for three days: silence opens. Then three days of its events
// come within minutes, in any order: all are applied, silence is over, nothing
// else is told, and what was usual before is usual after.
func TestGateO14ThreeDaysWithinMinutes(t *testing.T) {
	t.Parallel()
	p := newPremises(t, ``)
	for range 40 {
		p.receive("order.paid", 1)
		p.pass(6*time.Hour, false)
	}
	limit := p.signal(event.SignalSilence, "shop").Threshold
	if limit < 12*3600 || limit > 12.5*3600 {
		t.Fatalf("the limit of silence is %.1f hours", limit/3600)
	}
	p.wantTold("as usual")
	p.pass(3*24*time.Hour-6*time.Hour, false)
	p.wantTold("three days later", "[creel] shop is silent")
	order := rand.New(rand.NewPCG(1, 2)).Perm(600)
	for i, number := range order {
		p.again("order.paid", 1000+number)
		if i%60 == 59 {
			p.pass(time.Minute, false)
		}
	}
	p.wantFiring(false, event.SignalSilence, "shop")
	for range 8 {
		p.pass(6*time.Hour, false)
		p.receive("order.paid", 1)
	}
	p.wantTold("its end, and nothing else", "[creel] over: shop is silent")
	if again := p.signal(event.SignalSilence, "shop").Threshold; again < limit || again > 2.1*limit {
		t.Errorf("the limit of silence is %.1f hours by now", again/3600)
	}
	if open := p.open1(); len(open) != 0 {
		t.Errorf("open incidents %+v", open)
	}
	if n := p.app.Count(); n != 40+600+8-1 {
		t.Errorf("%d deliveries", n)
	}
}

// A destination is down for all six attempts, and the server is restarted twice
// in between: one alert, and none again.
func TestBugJOB09OneAlertAcrossRestarts(t *testing.T) {
	t.Parallel()
	p := newPremises(t, `silence = "0s"`)
	p.app.Script(testkit.Answer{Status: 503})
	p.receive("order.paid", 1)
	p.work()
	p.send()
	for range 3 {
		p.pass(25*time.Minute, false)
		p.restart()
	}
	p.pass(30*time.Minute, false)
	if n := p.app.Count(); n != 6 {
		t.Errorf("%d attempts, want 6", n)
	}
	p.wantTold("a dead delivery", "[creel] a delivery to app has failed for good")
	p.restart()
	p.pass(time.Hour, false)
	p.wantTold("after another restart")
}

// A transient failure that ends in the dead letters is one alert, a permanent
// one too.
func TestGateA7OneAlertIsReceived(t *testing.T) {
	t.Parallel()
	p := newPremises(t, `silence = "0s"`)
	p.receive("bad", 1)
	p.work()
	p.app.Script(testkit.Answer{Status: 422})
	p.receive("order.paid", 1)
	p.pass(2*time.Hour, false)
	told := p.told()
	if len(told) != 2 || !strings.Contains(strings.Join(told, "\n"), "a delivery to app") || !strings.Contains(strings.Join(told, "\n"), "an event of shop") {
		t.Errorf("told %q", told)
	}
}

// A destination that is down is told to the others, with what waits for it.
func TestADestinationIsNotToldOfItself(t *testing.T) {
	t.Parallel()
	a := newAlerts(&config.Config{Alerts: config.Alerts{To: []string{"owner@example.com", "destination:ops"}}})
	i := event.OpenIncident{ID: 7, Incident: event.Incident{Cause: event.CauseDestinationDown, Subject: "ops"}, Waiting: 12}
	got := a.tell(i, event.MomentOpened)
	if len(got) != 1 || got[0].Destination != event.Mail || got[0].Target != "owner@example.com" {
		t.Fatalf("%+v", got)
	}
	alert, err := event.AlertOf(got[0].Message)
	if err != nil || alert.Subject != "[creel] ops is down: 12 deliveries wait" || alert.State != "open" || alert.Incident != "7" {
		t.Errorf("%v %+v", err, alert)
	}
	i.Subject = "app"
	if got := a.tell(i, event.MomentOpened); len(got) != 2 || got[1].Destination != "ops" {
		t.Errorf("%+v", got)
	}
}

func TestUnheard(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		to     []string
		warned string
	}{
		"nobody":          {nil, "nobody is told"},
		"by mail":         {[]string{"owner@example.com"}, ""},
		"an own endpoint": {[]string{"destination:ops"}, ""},
		"the app itself":  {[]string{"destination:app"}, "only destinations that events go to"},
		"and by mail":     {[]string{"destination:app", "owner@example.com"}, ""},
	} {
		cfg := &config.Config{Alerts: config.Alerts{To: c.to}, Sources: []config.Source{{Name: "shop", Forward: config.StringList{"app"}}}}
		problems := Unheard(cfg)
		if (c.warned == "") != (len(problems) == 0) || len(problems) > 0 && (!strings.Contains(problems[0].Message, c.warned) || !problems[0].Warning) {
			t.Errorf("%s: %v", name, problems)
		}
	}
}

// Every cause has words of its own.
func TestEveryCauseHasATitle(t *testing.T) {
	t.Parallel()
	causes := []event.Cause{event.CauseDeadEvent, event.CauseConflict, event.CauseUnreadable, event.CauseLaneParked, event.CauseDeadDelivery,
		event.CauseDestinationFailing, event.CauseDestinationDown, event.CauseDestinationDisabled, event.CauseDestinationGone}
	for _, name := range event.Signals() {
		if name != event.SignalSuccess { // its incident is that of the destination
			causes = append(causes, name.Cause())
		}
	}
	seen := map[string]bool{}
	for _, cause := range causes {
		title := shortTitle(&event.OpenIncident{Incident: event.Incident{Cause: cause, Subject: "it"}})
		if strings.Contains(title, "_") || seen[title] {
			t.Errorf("%s: %q", cause, title)
		}
		seen[title] = true
	}
}
