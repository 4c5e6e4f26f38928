package admin_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"creel/admin"
)

// What is shipped beside the binary: paths from here.
const (
	rulesFile     = "../deploy/prometheus-rules.yml"
	rulesTestFile = "../deploy/prometheus-rules.test.yml"
	dashboardFile = "../deploy/grafana-dashboard.json"
	operations    = "../docs/operations.md"
)

func shipped(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	metricName = regexp.MustCompile(`\b(?:creel|go|process)_[a-z0-9_]+`)
	alertName  = regexp.MustCompile(`(?m)^ +- alert: (\w+)$`)
	runbook    = regexp.MustCompile(`(?m)^ +runbook_url: docs/operations\.md#([\w-]+)$`)
	tested     = regexp.MustCompile(`(?m)^ +alertname: (\w+)$`)
	heading    = regexp.MustCompile(`(?m)^#+ (.+)$`)
	tableRow   = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (counter|gauge|histogram) \\| ([^|]+) \\| ([^|]+) \\|$")
	backQuoted = regexp.MustCompile("`([a-z_]+)`")
)

// unknown lists the metrics that an expression names and nobody writes.
func unknown(expr string) (names []string) {
	known := map[string]bool{}
	for _, f := range admin.Families() {
		known[f.Name] = true
		if f.Kind == "histogram" {
			known[f.Name+"_bucket"], known[f.Name+"_sum"], known[f.Name+"_count"] = true, true, true
		}
	}
	for _, name := range metricName.FindAllString(expr, -1) {
		if !known[name] {
			names = append(names, name)
		}
	}
	return names
}

// The dashboard asks for metrics that exist, the first ones among them.
func TestGateO7DashboardNamesMetricsThatExist(t *testing.T) {
	t.Parallel()
	text := shipped(t, dashboardFile)
	var board struct {
		Title  string
		Panels []struct {
			Type, Title string
			Targets     []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(text), &board); err != nil {
		t.Fatal(err)
	}
	all, n := "", 0
	for _, panel := range board.Panels {
		if panel.Type != "row" && len(panel.Targets) == 0 {
			t.Errorf("the panel %q shows nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			all += target.Expr + "\n"
			n++
			if !metricName.MatchString(target.Expr) {
				t.Errorf("the panel %q asks for no metric: %s", panel.Title, target.Expr)
			}
			for _, name := range unknown(target.Expr) {
				t.Errorf("the panel %q asks for %s, which nobody writes", panel.Title, name)
			}
		}
	}
	if n < 20 {
		t.Errorf("the dashboard has %d queries", n)
	}
	for _, name := range []string{admin.MetricSignal, admin.MetricEvents, admin.MetricDestination, admin.MetricOutbox} {
		if !strings.Contains(all, name) {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}

// Each alert asks for metrics that exist, has its entry in the runbook and a
// test of its own.
func TestGateO7AlertRulesAreWhole(t *testing.T) {
	t.Parallel()
	rules, tests, page := shipped(t, rulesFile), shipped(t, rulesTestFile), shipped(t, operations)
	for _, name := range unknown(rules + tests) {
		t.Errorf("the rules name %s, which nobody writes", name)
	}
	anchors := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(page, -1) {
		anchors[strings.ToLower(strings.ReplaceAll(h[1], " ", "-"))] = true
	}
	alerts, links := alertName.FindAllStringSubmatch(rules, -1), runbook.FindAllStringSubmatch(rules, -1)
	if len(alerts) < 15 || len(alerts) != len(links) {
		t.Fatalf("%d alerts and %d links into the runbook", len(alerts), len(links))
	}
	var triedNames []string
	for _, m := range tested.FindAllStringSubmatch(tests, -1) {
		triedNames = append(triedNames, m[1])
	}
	for i, alert := range alerts {
		if want := strings.ToLower(alert[1]); links[i][1] != want || !anchors[want] {
			t.Errorf("%s links to #%s; docs/operations.md needs the heading %q", alert[1], links[i][1], alert[1])
		}
		if n := len(slices.DeleteFunc(slices.Clone(triedNames), func(name string) bool { return name != alert[1] })); n < 2 {
			t.Errorf("%s is tested %d times, want it firing and quiet", alert[1], n)
		}
	}
}

// The page for operators lists every metric as it is, and no other.
func TestGateO7EveryMetricIsDocumented(t *testing.T) {
	t.Parallel()
	type row struct{ kind, labels string }
	listed := map[string]row{}
	for _, m := range tableRow.FindAllStringSubmatch(shipped(t, operations), -1) {
		var labels []string
		for _, label := range backQuoted.FindAllStringSubmatch(m[3], -1) {
			labels = append(labels, label[1])
		}
		listed[m[1]] = row{m[2], strings.Join(labels, " ")}
	}
	for _, f := range admin.Families() {
		got, ok := listed[f.Name]
		if want := (row{f.Kind, strings.Join(f.Labels, " ")}); !ok || got != want {
			t.Errorf("docs/operations.md says %+v of %s, want %+v", got, f.Name, want)
		}
		delete(listed, f.Name)
	}
	for name := range listed {
		t.Errorf("docs/operations.md lists %s, which nobody writes", name)
	}
}
