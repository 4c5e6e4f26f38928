package store

import (
	"context"
	"strings"
	"testing"

	"creel/event"
)

// What an operator has accepted is audited in the transaction that stores it:
// neither is there without the other.
func TestGateO2AcceptedRejects(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	ctx := context.Background()
	action := event.Action{Kind: event.ActionReadmit, Actor: "cli:ann", Reason: "secret repaired", Target: "1", At: sc.now}

	must(t, sc.write(ctx, work, 1, func(t *tx) error {
		_, err := t.exec(`CREATE TRIGGER no_action BEFORE INSERT ON action BEGIN SELECT raise(ABORT, 'no'); END`)
		return err
	}))
	if _, _, err := sc.AcceptFor(ctx, sc.receipt("{}", item("a", "{}")), action); err == nil {
		t.Fatal("accepted without an audit row")
	}
	if events, err := sc.Events(ctx, event.Selector{}, event.Page{Limit: 9}); err != nil || len(events) > 0 {
		t.Fatalf("%d events without an audit row, %v", len(events), err)
	}
	must(t, sc.write(ctx, work, 1, func(t *tx) error {
		_, err := t.exec(`DROP TRIGGER no_action`)
		return err
	}))

	got, done, err := sc.AcceptFor(ctx, sc.receipt("{}", item("a", "{}"), item("b", "b")), action)
	must(t, err)
	want(t, "events", len(got.Items), 2)
	want(t, "first", got.Items[0].Result, event.New)
	_, again, err := sc.AcceptFor(ctx, sc.receipt("{}", item("a", "{}")), action)
	must(t, err)
	actions, err := sc.Actions(ctx, event.Page{Limit: 9})
	must(t, err)
	want(t, "actions", len(actions), 2)
	want(t, "kind", actions[1].Kind, event.ActionReadmit)
	want(t, "done", actions[1].Done, 2)
	if actions[1].Finished.IsZero() || actions[1].ID != done.ID || actions[0].ID != again.ID {
		t.Errorf("actions %+v, done %+v", actions, done)
	}
	results := ""
	for _, id := range []int64{done.ID, again.ID} {
		items, err := sc.ActionItems(ctx, id, 0)
		must(t, err)
		for _, item := range items {
			results += item.Event.ID + " " + item.Result + ", "
		}
	}
	want(t, "results", strings.TrimSuffix(results, ", "), "a accepted, b accepted, a duplicate")

	noted, err := sc.Note(ctx, sc.now, event.Action{Kind: event.ActionPair, Actor: "cli:ann", Target: "asana"})
	must(t, err)
	actions, err = sc.Actions(ctx, event.Page{Limit: 1})
	must(t, err)
	want(t, "noted", actions[0].ID, noted.ID)
	want(t, "target", actions[0].Target, "asana")
	sc.crash("boot2") // a restart does not take them for actions that were cut short
	if _, err := sc.Recover(ctx, sc.now, nil); err != nil {
		t.Error(err)
	}
}
