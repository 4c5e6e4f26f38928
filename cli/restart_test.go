package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"creel/internal/testkit"
)

// github is a configuration with GitHub's preset, whose ids are not signed.
func github(destination string) string {
	return frame + fmt.Sprintf(`
[[source]]
name     = "hub"
provider = "github"
secrets  = ["env:SHOP_SECRET"]
forward  = "app"

[destination.app]
url    = %q
secret = "env:APP_SECRET"
`, destination)
}

// TestBugDUP04RedeliveryAfterARestart sends GitHub's redelivery, which has the
// same id, and a captured body under a fresh id, before and after restarts and
// a kill: all are duplicates.
func TestBugDUP04RedeliveryAfterARestart(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	s.configure(t, github(s.app.URL))
	body := []byte(`{"ref":"refs/heads/main","repository":{"id":1,"owner":{"login":"octocat"}}}`)
	send := func(id string) {
		t.Helper()
		sender := testkit.Sender{URL: s.URL("/in/hub"), Secret: s.canary.Secret, Sign: testkit.SignGitHub}
		if status, answer := sender.Do(t, sender.Request(t, id, body, time.Now())); status != http.StatusOK {
			t.Fatalf("answered %d %q", status, answer)
		}
	}
	const first = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
	s.Start(t)
	send(first)
	await(t, s.Process, 1, "deliveries", "--state", "sent", "--json")
	send(first)
	s.Terminate()
	s.Start(t)
	send(first)
	s.Kill()
	s.Start(t)
	send("00000000-0000-0000-0000-000000000001")
	events := lines[eventLine](t, s.Process, "events", "--json")
	if len(events) != 1 || events[0].ID != first || events[0].Duplicates != 3 {
		t.Errorf("events %+v", events)
	}
	if n := s.app.Count(); n != 1 {
		t.Errorf("%d sends", n)
	}
	if exit := s.Terminate(); exit.Code != 0 {
		t.Errorf("stop: %+v", exit)
	}
}

// TestPausedDestination pauses a destination while events come, over a
// restart: nothing is sent, no attempt is spent, and all of it goes once the
// destination is resumed.
func TestPausedDestination(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	s.Start(t)
	command(t, s.Process, 0, "pause", "app", "--reason", "deploy")
	const waiting = 5
	for n := range waiting {
		s.send(t, fmt.Sprintf(`{"id":"evt_%d","type":"order.paid"}`, n))
	}
	await(t, s.Process, waiting, "events", "--state", "done", "--json")
	s.Terminate()
	s.Start(t)
	for _, d := range lines[deliveryLine](t, s.Process, "deliveries", "--json") {
		if d.State != "ready" || d.Attempts != 0 {
			t.Errorf("while it is paused: %+v", d)
		}
	}
	if n := s.app.Count(); n != 0 {
		t.Errorf("%d sends to a paused destination", n)
	}
	command(t, s.Process, 0, "resume", "app")
	await(t, s.Process, waiting, "deliveries", "--state", "sent", "--json")
	for _, d := range lines[deliveryLine](t, s.Process, "deliveries", "--json") {
		if d.Attempts != 1 {
			t.Errorf("after it was resumed: %+v", d)
		}
	}
	if n := s.app.Count(); n != waiting {
		t.Errorf("%d sends", n)
	}
	var trail []string
	for _, a := range lines[actionLine](t, s.Process, "audit", "--json") {
		trail = append(trail, a.Action+" "+a.Target+" "+a.Reason)
	}
	if got := strings.Join(trail, ", "); got != "resume app , pause app deploy" {
		t.Errorf("audited %q", got)
	}
}

// TestHealth asks a server that runs, and one that is about to.
func TestHealth(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	s.Start(t)
	var report struct {
		Ready  bool
		Checks map[string]string
	}
	if err := json.Unmarshal([]byte(command(t, s.Process, 0, "health", "--json", "--wait", "10s")), &report); err != nil {
		t.Fatal(err)
	}
	if !report.Ready || report.Checks["store"] != "ok" || report.Checks["worker"] != "ok" || report.Checks["dispatcher"] != "ok" {
		t.Errorf("reported %+v", report)
	}
	request, err := http.NewRequest(http.MethodGet, s.AdminURL("/readyz"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer := exchange(t, request); !strings.HasPrefix(answer, "200 OK") {
		t.Errorf("readyz: %s", answer)
	}
	// A start that is waited for before it happens.
	s.Terminate()
	waited := make(chan int, 1)
	go func() {
		code, _, _ := s.Run(t, "health", "--wait", "20s")
		waited <- code
	}()
	s.Start(t)
	if code := <-waited; code != 0 {
		t.Errorf("waiting for the start: exit %d", code)
	}
}
