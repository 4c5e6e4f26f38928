package store

import (
	"context"
	"strings"
	"testing"

	"creel/event"
)

// Of each of some deliveries the answer to the last attempt of its present run
// is read, and no other.
func TestAnswersOfDeliveries(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	var all []event.Delivery
	for _, id := range []string{"twice", "replayed", "unanswered", "never"} {
		_, d := sc.deliver(id)
		all = append(all, event.Delivery{ID: d.ID, Run: 1})
	}
	all[1].Run = 2 // and died in it before it was tried
	tried := func(d event.Delivery, number int, answer string) {
		sc.change("INSERT INTO attempt (delivery, run, number, spent, start, duration, status, outcome, error, answer) VALUES (?, 1, ?, 1, 0, 1, 422, 'permanent', 'no', ?)",
			d.ID, number, answer)
	}
	tried(all[0], 1, "first")
	tried(all[0], 2, "unknown price pr_9")
	tried(all[1], 1, "of the run before")
	tried(all[2], 1, "of another attempt")
	tried(all[2], 2, "")
	found, err := sc.Answers(context.Background(), all)
	must(t, err)
	want(t, "answers", len(found), 1)
	want(t, "the last one", found[all[0].ID], "unknown price pr_9")
	found, err = sc.Answers(context.Background(), nil)
	must(t, err)
	want(t, "of none", len(found), 0)
}

// The last attempts are found by their primary key.
func TestAnswersAreFoundByKey(t *testing.T) {
	t.Parallel()
	plan := newScene(t).plan(sqlAnswers)
	if !strings.Contains(plan, "SEARCH last USING PRIMARY KEY (delivery=? AND run=? AND number=?)") || !strings.Contains(plan, "SEARCH attempt USING PRIMARY KEY (delivery=? AND run=?)") {
		t.Errorf("the plan:\n%s", plan)
	}
}
