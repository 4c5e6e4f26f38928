package crash

import (
	"strings"
	"testing"
	"time"

	"creel/internal/testkit"
)

// TestGateD6 kills the server between a send and its mark: the destination
// has read the request and has not answered.
func TestGateD6(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		setting string
		sends   int
		state   string
	}{
		"retry sends once more under the same identity": {`on_doubt = "retry"`, 2, "sent"},
		"review sends nothing":                          {`on_doubt = "review"`, 1, "in_doubt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			destination := testkit.NewDestination(t)
			destination.Script(testkit.Answer{Fault: testkit.Hang}, testkit.Answer{})
			p, canary := serve(t, destination.URL, want.setting)
			p.Start(t)
			sender := testkit.Sender{URL: p.URL("/in/load"), Secret: canary.Secret, Sign: testkit.SignPlain}
			body := []byte(`{"id":"evt_1","type":"order.paid","note":"` + canary.Payload + `"}`)
			if status, answer := sender.Send(t, "", body); status != 200 {
				t.Fatalf("answered %d %q", status, answer)
			}
			destination.Wait(t, 1, 10*time.Second)
			p.Kill()

			p.Start(t)
			testkit.Poll(t, 20*time.Second, "the delivery to be "+want.state, func() bool {
				return look(t, p.Dir, `SELECT count(*) FROM delivery WHERE state = ?`, want.state) == 1
			})
			if says := strings.Contains(string(p.Stderr()), "creel deliveries --state in_doubt"); says != (want.state == "in_doubt") {
				t.Errorf("the start says what to do next: %t", says)
			}
			if exit := p.Terminate(); exit.Code != 0 {
				t.Errorf("stop: %+v", exit)
			}
			got := destination.Requests()
			if len(got) != want.sends {
				t.Fatalf("%d sends, want %d", len(got), want.sends)
			}
			for _, r := range got {
				if r.ID() == "" || r.ID() != got[0].ID() || string(r.Body) != string(body) {
					t.Errorf("send %d has another identity or body: %q %q", r.Number, r.ID(), r.Body)
				}
			}
			sound(t, p.Dir)
		})
	}
}
