package admin

import (
	"strings"
	"testing"

	"creel/event"
)

func TestAnswerLine(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"":      "",
		" \n\t": "",
		"{\n  \"error\": \"unknown price pr_9\"\n}\n": `{ "error": "unknown price pr_9" }`,
		strings.Repeat("é", AnswerSize):               strings.Repeat("é", AnswerSize),
		strings.Repeat("é", AnswerSize+1):             strings.Repeat("é", AnswerSize-1) + "…",
	} {
		if got := AnswerLine(answer); got != want {
			t.Errorf("%q: %q, want %q", answer, got, want)
		}
	}
}

// The hint is for an app that refuses who sends, and names where to look.
func TestSecretHint(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		d    event.Delivery
		want bool
	}{
		"401":       {event.Delivery{Destination: "app", Status: 401}, true},
		"403":       {event.Delivery{Destination: "app", Status: 403}, true},
		"422":       {event.Delivery{Destination: "app", Status: 422}, false},
		"no answer": {event.Delivery{Destination: "app"}, false},
		"a mail":    {event.Delivery{Destination: "app", Target: "a@b.test", Status: 403}, false},
	} {
		if got := SecretHint(c.d); (got != "") != c.want || c.want && !strings.Contains(got, "[destination.app] secret") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
