package jobs

import (
	"slices"
	"testing"
)

// checkProbe demands that the probe that found the destination again was one of
// the sixteen oldest, behind those that had spent an attempt.
func checkProbe(t *testing.T, events []string, spent int) {
	t.Helper()
	oldest := slices.Sorted(slices.Values(events))
	if at := slices.Index(oldest, events[0]); at >= spent+16 {
		t.Errorf("%s was the probe, number %d in the order", events[0], at)
	}
}

// checkOrder demands that the events came in order: whenever one comes, no more
// earlier ones are missing than can be in flight beside it or had spent an
// attempt when the hold began.
func checkOrder(t *testing.T, events []string, holes int) {
	t.Helper()
	place := make(map[string]int, len(events))
	for i, id := range slices.Sorted(slices.Values(events)) {
		place[id] = i
	}
	came, first := make([]bool, len(events)), 0 // the first that has not come
	for i, id := range events {
		came[place[id]] = true
		for first < len(came) && came[first] {
			first++
		}
		if missing := place[id] - i; missing > holes {
			t.Fatalf("%s came as number %d: more than %d before it are missing, the first is number %d", id, i, holes, first)
		}
	}
}
