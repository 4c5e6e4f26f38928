package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"creel/internal/testkit"
)

// verdict is a rule as creel drill --json prints it.
type verdict struct {
	Rule, Verdict, Reason string
	Sample                bool
	Kills                 int
	Findings              []struct{ Scene, Verdict, Reason, Hint string }
}

func drill(t *testing.T, p *testkit.Process, want int, args ...string) map[string]verdict {
	t.Helper()
	code, stdout, stderr := p.Run(t, append([]string{"drill", "--json"}, args...)...)
	if code != want {
		t.Fatalf("drill: exit %d, want %d\n%s%s", code, want, stdout, stderr)
	}
	all := map[string]verdict{}
	for line := range strings.Lines(string(stdout)) {
		var v verdict
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all[v.Rule] = v
	}
	return all
}

// more are two rules beside that of the example's configuration.
const more = `
[[rule]]
name  = "steady"
match = { source = "shop", types = ["order.*"] }
key   = "{body.type}/seen"
go    = "steady"

[[rule]]
name  = "stuck"
match = { source = "shop", types = ["stuck.*"] }
go    = "stuck"

[worker]
timeout = "100ms"
`

// TestDrillFindsFickleHandler drills handlers: one that makes something up each
// time, one that does not, and one that does not return.
func TestDrillFindsFickleHandler(t *testing.T) {
	t.Parallel()
	p := custom(t, "examples/custom-binary/testdata/fickle", "http://127.0.0.1:1/", more, `"big orders"`, `"fickle"`, "{body.number}/big-order", "{body.id}/order")
	all := drill(t, p, 1)
	fickle := all["tell the owner of big orders"]
	if fickle.Verdict != "FAIL" || len(fickle.Findings) != 1 || fickle.Findings[0].Scene != "twice" || !strings.Contains(fickle.Findings[0].Reason, "ticket") {
		t.Errorf("a handler that is not the same twice: %+v", fickle)
	}
	if steady := all["steady"]; steady.Verdict != "ok" || steady.Kills != 5 {
		t.Errorf("a handler that is: %+v", steady)
	}
	if stuck := all["stuck"]; stuck.Verdict != "not drilled" || !strings.Contains(stuck.Reason, "timeout") {
		t.Errorf("a handler that does not return: %+v", stuck)
	}
	if _, err := os.Stat(p.Dir + "/creel.db"); err == nil {
		t.Error("a drill made the database")
	}
}
