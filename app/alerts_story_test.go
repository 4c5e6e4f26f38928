package app

import (
	"context"
	"encoding/json"
	"net/mail"
	"strings"
	"testing"
	"time"

	"creel/event"
	"creel/internal/testkit"
)

// step lets short times pass, as a test of seconds needs it.
func (p *premises) step(d, by time.Duration) {
	p.t.Helper()
	for end := p.clock.Now().Add(d); p.clock.Now().Before(end); {
		p.advance(min(by, end.Sub(p.clock.Now())))
		p.work()
		p.send()
		p.must(p.signals.Step(context.Background(), p.clock.Now()))
	}
}

// texts are the alerts by HTTP that came so far, in the order of coming.
func (p *premises) texts() []event.Alert {
	p.t.Helper()
	var list []event.Alert
	for _, r := range p.ops.Requests() {
		var a event.Alert
		p.must(json.Unmarshal(r.Body, &a))
		list = append(list, a)
	}
	return list
}

func (p *premises) wantSaid(text string, parts ...string) {
	p.t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			p.t.Errorf("it says %q, without %q", text, part)
		}
	}
}

func (p *premises) replayDead() {
	p.t.Helper()
	_, err := p.Act(context.Background(), event.Action{Kind: event.ActionReplay, Selector: event.Selector{State: event.Dead}})
	p.must(err)
}

// The app stops, comes back and refuses what waited: the outage is over when it
// answered, and what died is told until nothing is dead.
func TestAnOutageThatEndsInDeadLetters(t *testing.T) {
	t.Parallel()
	p := newPremises(t, `silence = "0s"`)
	p.app.Script(testkit.Answer{Fault: testkit.Close})
	for range 3 {
		p.receive("order.paid", 1)
		p.work()
		p.send()
	}
	down := p.clock.Now()
	p.step(12*time.Second, time.Second)
	p.wantTold("down", "[creel] app is down: 3 deliveries wait")
	p.app.Script(testkit.Answer{Status: 422})
	p.step(20*time.Second, time.Second)
	if n := p.deliveries(event.DeliveryDead); n != 3 {
		t.Fatalf("%d are dead", n)
	}
	p.step(4*time.Minute, 10*time.Second)
	p.wantTold("over", "[creel] over: app is down", "[creel] a delivery to app has failed for good, 3 times")
	all, err := p.store.Incidents(context.Background(), false)
	p.must(err)
	until := all[len(all)-1].ResolvedAt // the probe came, after 5 and 10 seconds
	if until.Before(down.Add(15*time.Second)) || until.After(down.Add(19*time.Second)) {
		t.Errorf("down from %s until %s", down, until)
	}
	for _, a := range p.texts() {
		if a.State == "resolved" {
			p.wantSaid(a.Text, "it was down for 1", "3 deliveries died", "HTTP 422", "Until: "+until.Format(time.RFC3339))
		} else if a.Cause == string(event.CauseDeadDelivery) {
			p.wantSaid(a.Text, "3 deliveries died, and 3 are dead", "HTTP 422", "creel replay --destination app --state dead")
		}
	}
	if open := p.open1(); len(open) != 1 || open[0].Cause != event.CauseDeadDelivery || open[0].Dead != 3 || open[0].Count != 3 {
		t.Errorf("open %+v", open)
	}
	p.app.Script(testkit.Answer{Status: 204})
	p.replayDead()
	p.step(4*time.Minute, 10*time.Second)
	if open := p.open1(); len(open) != 0 {
		t.Errorf("open with nothing dead: %+v", open)
	}
	p.wantTold("replayed", "[creel] over: a delivery to app has failed for good")
}

// What was replayed is no dead letter: no trouble of it begins, and what has
// begun is over.
func TestWhatWasReplayedIsNotDead(t *testing.T) {
	t.Parallel()
	p := newPremises(t, `silence = "0s"`)
	p.app.Script(testkit.Answer{Status: 422})
	p.receive("order.paid", 6)
	p.step(3*time.Second, time.Second)
	if n := p.deliveries(event.DeliveryDead); n != 6 {
		t.Fatalf("%d are dead", n)
	}
	p.app.Script(testkit.Answer{Status: 204})
	p.replayDead()
	p.step(20*time.Minute, 10*time.Second)
	p.wantTold("replayed before it was told")
	p.wantFiring(false, event.SignalDead, "app")
	if open := p.open1(); len(open) != 0 {
		t.Errorf("open with nothing dead: %+v", open)
	}
	// Somebody sees to the first: the signal speaks for the next, until they are
	// replayed, and says how many there are by then.
	p.app.Script(testkit.Answer{Status: 422})
	p.receive("order.paid", 1)
	p.step(time.Minute, 10*time.Second)
	_, err := p.Act(context.Background(), event.Action{Kind: event.ActionAck, Actor: "ana", Target: event.AllIncidents})
	p.must(err)
	p.receive("order.paid", 5)
	p.step(time.Minute, 10*time.Second)
	p.receive("order.paid", 2)
	p.step(time.Minute, 10*time.Second)
	p.wantFiring(true, event.SignalDead, "app")
	for _, i := range p.open1() {
		if i.Cause == event.SignalDead.Cause() {
			p.wantSaid(i.Detail, "8 deliveries of app")
		} else if i.Cause == event.CauseDeadDelivery {
			p.wantSaid(i.Detail, "8 deliveries died, and 8 are dead")
		}
	}
	p.app.Script(testkit.Answer{Status: 204})
	p.replayDead()
	p.step(2*time.Minute, 10*time.Second)
	p.wantFiring(false, event.SignalDead, "app")
	for _, i := range p.open1() {
		if i.Cause != event.CauseDestinationFailing { // the attempts of the hour did fail
			t.Errorf("open with nothing dead: %+v", i)
		}
	}
	p.step(20*time.Minute, time.Minute)
	if told := strings.Join(p.told(), "\n"); strings.Contains(told, "fails") {
		t.Errorf("told when all was well: %s", told)
	}
}

// An outage that returns is one incident. Its end tells all the time down, and
// has the date at which it was written.
func TestTwoOutagesInOne(t *testing.T) {
	t.Parallel()
	p := newPremises(t, `silence = "0s"`)
	outage := func(long time.Duration) (ended time.Time) {
		p.app.Script(testkit.Answer{Fault: testkit.Close})
		p.receive("order.paid", 3)
		p.step(long, time.Second)
		p.app.Script(testkit.Answer{Status: 204})
		for len(p.open1()) > 0 {
			p.step(time.Second, time.Second)
		}
		return p.clock.Now()
	}
	outage(30 * time.Second)
	p.step(96*time.Second, time.Second)
	if open := p.open1(); len(open) != 0 {
		t.Fatalf("open %+v", open)
	}
	p.app.Script(testkit.Answer{Fault: testkit.Close})
	p.receive("order.paid", 3)
	p.step(3*time.Second, time.Second)
	if open := p.open1(); len(open) != 1 {
		t.Fatalf("open %+v", open)
	} else {
		p.wantSaid(open[0].Detail, "it was down before, for 3")
	}
	ended := outage(20 * time.Second)
	p.step(4*time.Minute, time.Second)
	list, err := p.store.Incidents(context.Background(), false)
	p.must(err)
	if len(list) != 1 || list[0].Downs != 2 || list[0].ResolvedAt.After(ended) {
		t.Errorf("incidents %+v", list)
	}
	p.wantSaid(list[0].Detail, "it was down 2 times, for 1m")
	if strings.Contains(list[0].Detail, "held for") {
		t.Errorf("it says %q", list[0].Detail)
	}
	mails := p.mail.Mails()
	last, err := mail.ReadMessage(strings.NewReader(string(mails[len(mails)-1].Data)))
	p.must(err)
	date, err := last.Header.Date()
	if err != nil || date.Before(ended.Add(time.Minute)) || !strings.HasPrefix(last.Header.Get("Subject"), "[creel] over: ") {
		t.Errorf("%q is of %s, the end was at %s: %v", last.Header.Get("Subject"), date, ended, err)
	}
}

// Dead letters that lie there hide no outage, and are not over with it.
func TestDeadLettersHideNoOutage(t *testing.T) {
	t.Parallel()
	p := newPremises(t, `silence = "0s"`)
	p.app.Script(testkit.Answer{Status: 422})
	p.receive("order.paid", 1)
	p.step(time.Minute, 10*time.Second)
	p.wantTold("dead", "[creel] a delivery to app has failed for good")
	p.app.Script(testkit.Answer{Fault: testkit.Close})
	p.receive("order.paid", 3)
	p.step(time.Minute, 10*time.Second)
	p.wantTold("down", "[creel] app is down: 3 deliveries wait")
	p.app.Script(testkit.Answer{Status: 204})
	p.step(5*time.Minute, 10*time.Second)
	p.wantTold("back", "[creel] over: app is down")
	if open := p.open1(); len(open) != 1 || open[0].Cause != event.CauseDeadDelivery {
		t.Errorf("open %+v", open)
	}
}
