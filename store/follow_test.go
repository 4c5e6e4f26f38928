package store

import (
	"context"
	"slices"
	"testing"

	"creel/event"
)

func TestReadByNumber(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	ctx := context.Background()
	var seqs []int64
	for i := range 60 {
		seqs = append(seqs, sc.receive(numbered("e", i)))
	}
	events, err := sc.EventsBySeq(ctx, append(slices.Clone(seqs[3:]), 1<<40))
	must(t, err)
	want(t, "events", len(events), 57)
	for _, w := range sc.claim(2) {
		must(t, sc.finish(done(w, forward(w, "app"))).Err)
	}
	deliveries, err := sc.DeliveriesByID(ctx, []int64{1, 2, 3})
	must(t, err)
	want(t, "deliveries", len(deliveries), 2)
	want(t, "type", deliveries[0].Type, "invoice.paid")
	want(t, "state", deliveries[0].State, event.DeliveryReady)
	want(t, "event", deliveries[0].Event.Source, "gen")
	none, err := sc.EventsBySeq(ctx, nil)
	must(t, err)
	want(t, "none", len(none), 0)
}
