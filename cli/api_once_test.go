package cli_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"creel/internal/testkit"
)

// eventually asks until the answer is as it should be.
func (p *program) eventually(t *testing.T, operation string, is func(listed) bool) {
	t.Helper()
	testkit.Poll(t, soon, operation, func() bool { return is(decode[listed](t, p.want(t, 200, operation, nil, nil))) })
}

// TestGateO2APIARepeatIsOneAction sends one request for a replay many times at
// once, and again after the server has started anew: one action, and everything
// is sent again once.
func TestGateO2APIARepeatIsOneAction(t *testing.T) {
	t.Parallel()
	const dead = 12
	s := deadSite(t, dead)
	p := newProgram(t, s.Process, "robot", "operate")
	ask := object{"query": "state:dead source:shop since:24h", "reason": "price was added"}
	var all sync.WaitGroup
	got := make([]answer, 8)
	for i := range got {
		all.Go(func() { got[i] = p.ask(t, "POST /replay", nil, ask, "Idempotency-Key", "run 1") })
	}
	all.Wait()
	first := decode[actionLine](t, got[0].text)
	for _, one := range got {
		if a := decode[actionLine](t, one.text); one.status != 200 || a.ID != first.ID || a.Done != dead || a.Selected != dead {
			t.Errorf("of %d repeats one is answered %d %s", len(got), one.status, one.text)
		}
	}
	await(t, s.Process, 0, "deliveries", "--state", "dead", "--json")
	testkit.Poll(t, soon, "all to be sent again", func() bool { return sentTimes(s) >= 2*dead })

	s.app.Script(testkit.Answer{Status: 422})
	s.send(t, `{"id":"late","type":"order.paid"}`) // a repeat does not mean what died since
	await(t, s.Process, 1, "deliveries", "--state", "dead", "--json")
	if exit := s.Terminate(); exit.Code != 0 {
		t.Fatalf("stop: %+v", exit)
	}
	s.Start(t)
	p.base = s.AdminURL("/api/v1")
	again := p.ask(t, "POST /replay", nil, ask, "Idempotency-Key", "run 1")
	if again.text != got[0].text {
		t.Errorf("after a restart: %s, want %s", again.text, got[0].text)
	}
	if n := sentTimes(s); n != 2*dead+1 {
		t.Errorf("%d requests at the app, want %d", n, 2*dead+1)
	}
	ask["reason"] = "another one"
	if text := p.want(t, 422, "POST /replay", nil, ask, "Idempotency-Key", "run 1"); !strings.Contains(text, "another request had that key") {
		t.Errorf("another request under the key: %s", text)
	}
	other := newProgram(t, s.Process, "robot", "operate")
	if a := decode[actionLine](t, other.want(t, 200, "POST /replay", nil, ask, "Idempotency-Key", "run 1")); a.ID == first.ID || a.Actor != "token:robot#2" {
		t.Errorf("the same key of another token: %+v", a)
	}
	if n := len(lines[actionLine](t, s.Process, "audit", "--json")); n != 4 { // two tokens, two replays
		t.Errorf("the audit trail has %d actions", n)
	}
}

// Two programs whose plans mean the same events act on each once.
func TestTwoPlansOfTheAPIAreOneReplay(t *testing.T) {
	t.Parallel()
	s := deadSite(t, 6)
	p := newProgram(t, s.Process, "robot", "operate")
	var plans [2]struct{ ID string }
	for i := range plans {
		plans[i] = decode[struct{ ID string }](t, p.want(t, 200, "POST /plans", nil, object{"action": "replay", "query": "state:dead"}))
	}
	var all sync.WaitGroup
	for i := range 4 { // each twice
		all.Go(func() {
			p.ask(t, "POST /plans/{id}/carry", []any{plans[i%2].ID}, object{"reason": fmt.Sprint("plan ", i%2)})
		})
	}
	all.Wait()
	await(t, s.Process, 0, "deliveries", "--state", "dead", "--json")
	testkit.Poll(t, soon, "all to be sent again", func() bool { return sentTimes(s) >= 12 })
	done, actions := 0, 0
	for _, a := range lines[actionLine](t, s.Process, "audit", "--json") {
		if a.Action == "replay" {
			done, actions = done+a.Done, actions+1
		}
	}
	if done != 6 || actions != 2 || sentTimes(s) != 12 {
		t.Errorf("%d replayed by %d actions, %d requests", done, actions, sentTimes(s))
	}
}
