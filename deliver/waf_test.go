package deliver

import (
	"strings"
	"testing"
	"time"

	"creel/config"
	"creel/event"
	"creel/internal/testkit"
)

// TestBugOUT09 is answered by something before the app: 200 and a page. It
// counts, and the attempt shows what it was.
func TestBugOUT09(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	d := compiled(t, config.Destination{URL: app.URL})
	const page = "<html>Request Rejected</html>"
	for _, c := range []struct{ kind, body, want string }{
		{"text/html", page, "text/html: " + page},
		{"TEXT/HTML; charset=utf-8", page, "text/html: " + page},
		{"text/plain; charset=utf-8", "ok", "ok"},
		{"application/json", "{}", "{}"},
		{"application/problem+json; x=y", "{}", "{}"},
		{"text/html", "", ""},
		{"nonsense", page, page},
		{"a b/c d", page, page},
		{"x/" + strings.Repeat("y", 200), page, page},
		{"text/html", strings.Repeat("x", 5000), "text/html: " + strings.Repeat("x", mostKept-len("text/html: "))},
	} {
		app.Script(testkit.Answer{Header: map[string]string{"Content-Type": c.kind}, Body: c.body})
		a := d.Attempt(t.Context(), shipment(), time.Now()).Attempt
		if a.Outcome != event.OK || a.Answer != c.want {
			t.Errorf("%s: %s %q, want %q", c.kind, a.Outcome, a.Answer, c.want)
		}
	}
}
