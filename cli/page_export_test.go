package cli_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"creel/internal/testkit"
)

// The page leads to all dead letters in one piece, beyond what a page of the API
// has, for whoever has logged in and nobody else.
func TestThePageLeadsToAllDeadLetters(t *testing.T) {
	t.Parallel()
	const dead = 205 // the API gives 200 at once
	s := newSite(t, "")
	s.app.Script(testkit.Answer{Status: 422, Body: "unknown price pr_9"})
	s.Start(t)
	for i := range dead {
		s.send(t, fmt.Sprintf(`{"id":"evt_%d","type":"order.paid"}`, i))
	}
	await(t, s.Process, dead, "deliveries", "--state", "dead", "--json", "--limit", "500")
	ana := visit(t, s.Process, "ana", firstPassword(t, s.Process))
	_, text := ana.see(t, "/?view=flat&source=shop")
	if !strings.Contains(text, "answered: unknown price pr_9") {
		t.Error("the page does not show what the app answered")
	}
	link := regexp.MustCompile(`href="([^"]*dead-letters\.jsonl[^"]*)"`).FindStringSubmatch(text)
	if link == nil {
		t.Fatalf("no link: %s", text)
	}
	res, text := ana.see(t, html.UnescapeString(link[1]))
	if res.StatusCode != http.StatusOK || !strings.Contains(res.Header.Get("Content-Disposition"), "dead-letters.jsonl") {
		t.Fatalf("%s %v", res.Status, res.Header)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		var one struct {
			Event    struct{ Key string }
			Delivery struct{ State string }
		}
		if err := json.Unmarshal([]byte(line), &one); err != nil || one.Delivery.State != "dead" {
			t.Fatalf("%q: %v", line, err)
		}
		seen[one.Event.Key] = true
	}
	if len(seen) != dead || strings.Count(text, "\n") != dead {
		t.Errorf("%d dead letters on %d lines, want %d", len(seen), strings.Count(text, "\n"), dead)
	}
	if got := strange(t, s.Process, "GET", "/api/v1/dead-letters.jsonl", ""); got.status != http.StatusUnauthorized {
		t.Errorf("a stranger is answered %d", got.status)
	}
}
