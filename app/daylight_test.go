package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"creel/event"
	"creel/jobs"
	"creel/store"
)

// chronicle lets five days pass in a zone, around a moment, and writes down what
// happens by the clock: what is purged, which signals fire, who is told what, and
// when a list is compared. Its times are those since the beginning.
func chronicle(t *testing.T, zone *time.Location, moment time.Time) []string {
	t.Helper()
	p := newPremises(t, `silence = "24h"`)
	begin := moment.Add(-48 * time.Hour).UTC()
	p.stop()
	p.zone = zone
	p.clock.Set(begin)
	p.open()
	var lines []string
	note := func(format string, args ...any) {
		lines = append(lines, fmt.Sprintf("%4s ", p.clock.Now().Sub(begin))+fmt.Sprintf(format, args...))
	}
	daily := jobs.NewReconcile(jobs.ReconcileOptions{Store: p.store, Clock: p.now, Log: p.opt.Log,
		Every: func() map[string]time.Duration { return map[string]time.Duration{"shop": 24 * time.Hour} },
		Compare: func(ctx context.Context, source string, after jobs.Compared) error {
			note("compared since %s", after.Until.Sub(begin))
			return jobs.Compared{At: p.now(), Until: p.now()}.Keep(ctx, p.store, p.now(), source)
		}})
	keep := store.Retention{Default: 24 * time.Hour}
	p.receive("bad", 1)
	for hour := 0; hour < 5*24; hour += 3 {
		if hour < 60 { // twelve hours after the change it falls silent
			p.receive("order.paid", 1)
		}
		p.pass(3*time.Hour, false)
		purged, _, err := p.store.Purge(t.Context(), p.now(), keep)
		p.must(err)
		if purged.Events > 0 {
			note("purged %d", purged.Events)
		}
		daily.Step(t.Context(), p.now())
		for _, told := range p.told() {
			note("told %q", told)
		}
		for _, s := range p.Signals() {
			if s.Firing {
				note("%s since %s", s.Name, s.Since.Sub(begin))
			}
			if s.Name == event.SignalSilence {
				note("silent for %.0f minutes of %.0f", s.Value/60, s.Threshold/60)
			}
		}
	}
	return lines
}

// Days have twenty-four hours, wherever the server is: what comes daily comes
// once around the hour that New York skips and the one that it has twice, and
// when it would come in UTC.
func TestBugJOB13OnceEach(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	for _, moment := range []time.Time{time.Date(2026, 3, 8, 7, 0, 0, 0, time.UTC), time.Date(2026, 11, 1, 6, 0, 0, 0, time.UTC)} {
		t.Run(moment.Format("January"), func(t *testing.T) {
			t.Parallel()
			if _, before := moment.Add(-time.Second).In(zone).Zone(); before == func() int { _, after := moment.In(zone).Zone(); return after }() {
				t.Fatal("no clock is changed then")
			}
			there, plain := chronicle(t, zone, moment), chronicle(t, nil, moment)
			for i := range max(len(there), len(plain)) {
				if i >= len(there) || i >= len(plain) || there[i] != plain[i] {
					t.Fatalf("they part at line %d:\n%s\n\n%s", i, strings.Join(there[max(i-3, 0):min(i+3, len(there))], "\n"), strings.Join(plain[max(i-3, 0):min(i+3, len(plain))], "\n"))
				}
			}
			count := func(what string, wanted int) {
				t.Helper()
				n := 0
				for _, line := range there {
					if strings.Contains(line, what) {
						n++
					}
				}
				if n != wanted {
					t.Errorf("%q happened %d times in five days, want %d:\n%s", what, n, wanted, strings.Join(there, "\n"))
				}
			}
			count("compared since", 4) // the first day only remembers
			count(`told "[creel] shop is silent"`, 1)
			count("purged 1", 20)
			if at := slices.IndexFunc(there, func(line string) bool { return strings.Contains(line, `told "[creel] shop is silent"`) }); at < 0 ||
				!strings.HasPrefix(strings.TrimSpace(there[at]), "84h") && !strings.HasPrefix(strings.TrimSpace(there[at]), "81h") {
				t.Errorf("it was told at line %d: %s", at, there[max(at, 0)])
			}
		})
	}
}
