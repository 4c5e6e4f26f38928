package cli_test

import (
	"fmt"
	"strings"
	"testing"

	"creel/internal/testkit"
)

// TestReplayResend sends again what was sent, to the destination that is named,
// under the same identity; the dry run has said so. Without --resend nothing
// goes twice.
func TestReplayResend(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	audit := testkit.NewDestination(t)
	s.configure(t, plain(s.app.URL, "")+fmt.Sprintf(`
[[rule]]
name = "copies"
  [rule.forward]
  to = "audit"
[destination.audit]
url    = %q
secret = "env:APP_SECRET"
`, audit.URL))
	s.Start(t)
	for n := range 3 {
		s.send(t, fmt.Sprintf(`{"id":"evt_%d","type":"order.paid"}`, n))
	}
	await(t, s.Process, 6, "deliveries", "--state", "sent", "--json")

	would := func(args ...string) (said []string) {
		for _, line := range lines[planLine](t, s.Process, append([]string{"replay", "--dry-run", "--json", "--type", "order.*"}, args...)...) {
			for _, e := range line.Effects {
				said = append(said, e.Destination+" "+e.Would)
			}
		}
		return said
	}
	for _, c := range []struct {
		args       []string
		app, audit string
	}{
		{nil, "app skip: already sent", "audit skip: already sent"},
		{[]string{"--resend"}, "app send again: it was sent", "audit send again: it was sent"},
		{[]string{"--resend", "--destination", "app"}, "app send again: it was sent", "audit skip: already sent"},
	} {
		all := strings.Join(would(c.args...), "\n")
		if strings.Count(all, c.app) != 3 || strings.Count(all, c.audit) != 3 {
			t.Errorf("replay --dry-run %v says\n%s", c.args, all)
		}
	}

	command(t, s.Process, 0, "replay", "--type", "order.*")
	await(t, s.Process, 3, "events", "--state", "done", "--json")
	said := command(t, s.Process, 0, "replay", "--type", "order.*", "--destination", "app", "--resend", "--reason", "the app lost a day")
	if !strings.Contains(said, "Replayed: 3 of 3, action 2 in the audit trail.") {
		t.Errorf("the resend says %q", said)
	}
	s.app.Wait(t, 6, soon)
	await(t, s.Process, 6, "deliveries", "--state", "sent", "--json")
	for id, n := range s.app.Counts() {
		if n != 2 {
			t.Errorf("%s came %d times", id, n)
		}
	}
	if n := audit.Count(); n != 3 {
		t.Errorf("%d sends to the other destination", n)
	}
	for _, r := range s.app.Requests() {
		if r.Header.Get("Creel-Attempt") != "1" {
			t.Errorf("attempt %s of %s", r.Header.Get("Creel-Attempt"), r.ID())
		}
	}
	if text := command(t, s.Process, 0, "audit"); !strings.Contains(text, "replay --resend ") {
		t.Errorf("the audit trail says\n%s", text)
	}
	for _, item := range lines[itemLine](t, s.Process, "audit", "2", "--json") {
		if item.Result != "replayed and sent again" {
			t.Errorf("audited %+v", item)
		}
	}
}

// TestReplayResendOfWhatNoRuleMakes sends a delivery again that the rules do not
// make any more; the dry run names it.
func TestReplayResendOfWhatNoRuleMakes(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	s.Start(t)
	s.send(t, `{"id":"evt_1","type":"order.paid"}`)
	await(t, s.Process, 1, "deliveries", "--state", "sent", "--json")
	s.configure(t, strings.Replace(plain(s.app.URL, ""), "forward = \"app\"\n", "", 1))
	command(t, s.Process, 0, "reload")
	plan := lines[planLine](t, s.Process, "replay", "--dry-run", "--resend", "--json", "shop//evt_1")
	if len(plan) != 1 || len(plan[0].Effects) != 1 || plan[0].Effects[0].Would != "send again: it was sent" || plan[0].Effects[0].Destination != "app" {
		t.Errorf("planned %+v", plan)
	}
	command(t, s.Process, 0, "replay", "--resend", "shop//evt_1")
	if got := s.app.Wait(t, 2, soon); got[0].ID() != got[1].ID() {
		t.Errorf("sent as %s and %s", got[0].ID(), got[1].ID())
	}
}

// TestReplayRate begins a slow replay: it goes on by itself when its command is
// killed, and when the server is; the same command again follows the same
// action; the audit trail shows how far it is.
func TestReplayRate(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	s.app.Script(testkit.Answer{Status: 422})
	s.Start(t)
	for n := range dead {
		s.send(t, fmt.Sprintf(`{"id":"evt_%d","type":"order.paid"}`, n))
	}
	await(t, s.Process, dead, "deliveries", "--state", "dead", "--json")
	s.app.Script(testkit.Answer{Status: 204})

	slow := []string{"replay", "--state", "dead", "--since", "24h", "--rate", "1/m", "--reason", "slowly"}
	first := s.Begin(t, slow...)
	testkit.Poll(t, soon, "the command to say how it goes on", func() bool { return strings.Contains(first.Stderr(), "It goes on as action 1") })
	first.Kill()
	second := s.Begin(t, slow...)
	testkit.Poll(t, soon, "the same command to follow it", func() bool { return strings.Contains(second.Stderr(), "under way already, as action 1") })
	s.Kill()
	testkit.Poll(t, soon, "the command to see that the server is gone", func() bool { return strings.Contains(second.Stderr(), "The server has stopped after 1 of 20") })
	s.Start(t)
	third := s.Begin(t, slow...)
	testkit.Poll(t, soon, "the same command to follow it after a kill", func() bool { return strings.Contains(third.Stderr(), "under way already, as action 1") })
	if text := command(t, s.Process, 0, "audit"); !strings.Contains(text, "replay --rate 1/m (goes on)") || !strings.Contains(text, "1 of 20") {
		t.Errorf("the audit trail says\n%s", text)
	}
	select {
	case <-second.Ended():
		t.Errorf("the command did not wait for the server: %+v, %s", second.Wait(), second.Stderr())
	default:
	}
	if n := s.count(t, `SELECT count(*) FROM action`); n != 1 {
		t.Errorf("%d actions", n)
	}
	// The others are not held up by the slow one, which finds them done.
	command(t, s.Process, 0, "replay", "--state", "dead")
	await(t, s.Process, dead, "deliveries", "--state", "sent", "--json")
	command(t, s.Process, 2, "replay", "--state", "dead", "--rate", "50")
}

// TestReplayRateWithoutAServer begins a replay where nobody would work off what
// it releases: it goes on, at its rate, with the server.
func TestReplayRateWithoutAServer(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	s.app.Script(testkit.Answer{Status: 422})
	s.Start(t)
	for n := range dead {
		s.send(t, fmt.Sprintf(`{"id":"evt_%d","type":"order.paid"}`, n))
	}
	await(t, s.Process, dead, "deliveries", "--state", "dead", "--json")
	s.Terminate()
	for range 2 { // the second is the first
		said := command(t, s.Process, 0, "replay", "--state", "dead", "--rate", "100/s")
		if !strings.Contains(said, "Replayed: 1 of 20, action 1") || !strings.Contains(said, "the others go at 100/s when creel serve does") {
			t.Errorf("said %q", said)
		}
	}
	s.app.Script(testkit.Answer{Status: 204})
	s.Start(t)
	await(t, s.Process, dead, "deliveries", "--state", "sent", "--json")
	actions := lines[actionLine](t, s.Process, "audit", "--json")
	if len(actions) != 1 || actions[0].Done != dead {
		t.Errorf("audited %+v", actions)
	}
	if items := lines[itemLine](t, s.Process, "audit", "1", "--json"); len(items) != dead {
		t.Errorf("%d keys are audited", len(items))
	}
}
