package examples_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"creel/event"
	"creel/internal/testkit"
)

// TestTheEventsOfTheExamples sends what the READMEs send, line by line, and
// finds what they say of it.
func TestTheEventsOfTheExamples(t *testing.T) {
	t.Parallel()
	migrations, err := filepath.Abs("orders/sql")
	if err != nil {
		t.Fatal(err)
	}
	tools := testkit.NewDestination(t)
	const secret = "a-secret-that-the-sender-knows"
	for _, c := range []struct {
		folder, source string
		replace, env   []string
		states         map[string]event.State
		deliveries     int
	}{
		{
			folder: "orders", source: "shop", replace: []string{`migrations = "sql"`, `migrations = "` + migrations + `"`}, env: []string{"SHOP_SECRET=" + secret},
			states: map[string]event.State{
				"evt_1": event.Done, "evt_2": event.Pending, "evt_3": event.Done, "evt_4": event.Done, "evt_5": event.Dead, "evt_6": event.Pending,
			},
		},
		{
			folder: "feedback-alerts", source: "feedback", replace: []string{"http://127.0.0.1:3000/team-channel", tools.URL},
			env:    []string{"FEEDBACK_SECRET=" + secret, "TEAM_SECRET=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
			states: map[string]event.State{"evt_1": event.Done, "evt_2": event.Done, "evt_3": event.Done}, deliveries: 2,
		},
		{
			folder: "chat", source: "shop", replace: []string{"https://hooks.slack.com", tools.URL, "https://discord.com", tools.URL, "https://ntfy.sh", tools.URL,
				"https://api.postmarkapp.com", tools.URL, "https://events.pagerduty.com", tools.URL},
			env:    []string{"SHOP_SECRET=" + secret, "SLACK_HOOK=T000/B000/XXXX", "DISCORD_HOOK=1234/token", "NTFY_TOPIC=a-topic", "POSTMARK_TOKEN=a-token-of-the-server", "PAGERDUTY_KEY=an-integration-key-of-32-letters"},
			states: map[string]event.State{"evt_1": event.Done, "evt_2": event.Done}, deliveries: 5,
		},
	} {
		t.Run(c.folder, func(t *testing.T) {
			t.Parallel()
			events, err := os.ReadFile(filepath.Join(c.folder, "events.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			e := newExample(t, c.folder, c.replace, c.env...)
			e.sender = testkit.Sender{URL: e.URL("/in/" + c.source), Secret: secret, Sign: testkit.SignPlain}
			e.send(strings.Split(strings.TrimSpace(string(events)), "\n")...)
			e.await(c.states)
			if got := e.list("deliveries"); len(got) != c.deliveries {
				t.Errorf("%d deliveries, want %d: %+v", len(got), c.deliveries, got)
			}
			e.stop()
		})
	}
}
