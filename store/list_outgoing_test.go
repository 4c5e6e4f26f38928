package store

import (
	"context"
	"testing"

	"creel/event"
)

// The deliveries of some events are counted by their states; of events without
// one, and of others, nothing is.
func TestOutgoingOfEvents(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	_, a := sc.deliver("a")
	_, b := sc.deliver("b")
	sc.receive("c")
	sc.force("delivery", "id", a.ID, "dead", "attempts = 1, tries = 1, probe = 0")
	none := sc.detail("c").Seq
	out, err := sc.Outgoing(context.Background(), []int64{a.EventSeq, none})
	must(t, err)
	want(t, "events", len(out), 1)
	want(t, "dead", out[a.EventSeq][event.DeliveryDead], 1)
	out, err = sc.Outgoing(context.Background(), []int64{a.EventSeq, b.EventSeq, none, 999})
	must(t, err)
	want(t, "events", len(out), 2)
	total := 0
	for _, n := range out[b.EventSeq] {
		total += n
	}
	want(t, "deliveries of b", total, 1)
	want(t, "dead of b", out[b.EventSeq][event.DeliveryDead], 0)
}
