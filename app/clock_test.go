package app

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"creel/admin"
	"creel/event"
	"creel/internal/testkit"
)

const (
	threeBack = -3 * time.Hour
	dayAhead  = 24 * time.Hour
)

// noNegative demands that no figure, signal or metric is less than nothing, and
// that nothing began later than now.
func (p *premises) noNegative(when string) {
	p.t.Helper()
	told, err := p.Statistics(context.Background())
	p.must(err)
	text, err := json.Marshal(told)
	p.must(err)
	if strings.Contains(string(text), ":-") {
		p.t.Errorf("%s: a figure is negative: %s", when, text)
	}
	for _, s := range p.Signals() {
		if s.Value < 0 || s.Since.After(p.clock.Now()) {
			p.t.Errorf("%s: %+v", when, s)
		}
	}
	for _, one := range told.(Statistics).Destinations {
		if one.Since.After(p.clock.Now()) {
			p.t.Errorf("%s: %+v", when, one)
		}
	}
	out := httptest.NewRecorder()
	admin.Metrics(p.Metrics)(out, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(out.Body.String()) {
		if value := line[strings.LastIndexByte(line, ' ')+1:]; !strings.HasPrefix(line, "#") && strings.HasPrefix(value, "-") {
			p.t.Errorf("%s: %s", when, line)
		}
	}
}

// asked works until the app was asked so often: a worker may have an event in
// its hands a moment after it was accepted.
func (p *premises) asked(n int) {
	p.t.Helper()
	testkit.Poll(p.t, 30*time.Second, "the app to be asked", func() bool {
		p.work()
		p.send()
		return len(p.app.Requests()) == n
	})
}

// TestGateF5Server sets the clock of a whole server, while it runs and over a
// restart: what is due goes out within a minute, alerts too, nothing is claimed
// again, nothing is negative, and nobody is told of trouble that there is not.
func TestGateF5Server(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]time.Duration{"back": threeBack, "ahead": dayAhead} {
		for _, when := range []string{"while it runs", "at a stop", "while it is down"} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				p := newSteady(t, ``)
				for range 30 { // its usual pause is an hour
					p.receive("order.paid", 1)
					p.pass(time.Hour, false)
				}
				limit := p.signal(event.SignalSilence, "shop").Threshold
				p.app.Script(testkit.Answer{Status: 500}, testkit.Answer{})
				p.receive("order.paid", 1)
				p.asked(31)
				p.receive("order.paid", 2) // delivered at once, or claimed
				p.receive("bad", 1)
				sent := len(p.app.Requests())
				switch when {
				case "while it runs":
					p.clock.Advance(by)
				case "at a stop":
					p.clock.Advance(by)
					p.restart()
				default:
					p.stop()
					p.clock.Advance(by)
					p.open()
				}
				p.must(p.signals.Step(context.Background(), p.clock.Now()))
				p.noNegative("at once")
				p.pass(time.Minute, false)
				if n := p.deliveries(event.DeliverySent); n != 33 {
					t.Errorf("%d deliveries were sent", n)
				}
				if n := len(p.app.Requests()) - sent; n != 3 {
					t.Errorf("%d requests after the step", n)
				}
				p.noNegative("after a minute")
				p.pass(time.Minute, false)
				p.wantTold("of the dead one", "[creel] an event of shop has failed for good")
				p.pass(50*time.Minute, false)
				p.receive("order.paid", 1)
				p.pass(time.Hour, false)
				p.wantTold("for two hours")
				// A day without a server is one without receipts.
				unknown := when != "while it runs" && by > 0
				if got := p.signal(event.SignalSilence, "shop"); got.Threshold > 1.1*limit && !unknown || got.Firing {
					t.Errorf("%+v, the limit was %v", got, limit)
				}
				p.noNegative("after two hours")
			})
		}
	}
}

// A clock that was a year ahead for a moment holds up nothing after it was set
// right, however it was: comparisons go on, and what was learned counts.
func TestGateF5AYearAheadAndBack(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		p := newSteady(t, `silence = "2h"`)
		p.receive("order.paid", 1)
		p.pass(time.Minute, false)
		p.clock.Advance(365 * 24 * time.Hour)
		p.app.Script(testkit.Answer{Status: 500}, testkit.Answer{})
		p.receive("order.paid", 1)
		p.asked(2)
		p.clock.Advance(-365 * 24 * time.Hour)
		if restart {
			p.restart()
		}
		p.pass(time.Minute, false)
		if n := p.deliveries(event.DeliverySent); n != 2 {
			t.Errorf("restart %v: %d of 2 deliveries were sent", restart, n)
		}
		p.wantTold("before it is silent")
		p.pass(3*time.Hour, false)
		p.wantTold("in silence", "[creel] shop is silent")
		p.noNegative("in silence")
	}
}
