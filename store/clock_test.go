package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"creel/event"
)

// A clock that was set back takes with it what is due, in its order, and leaves
// what is due already.
func TestSetBack(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	const back = 3 * time.Hour
	sc.deliver("sent")
	again := outcome(sc.send(1)[0], event.DeliveryReady)
	again.NextAt = sc.now.Add(5 * time.Hour)
	sc.ship([]event.DeliveryFinish{again})
	due := func(id string, at time.Duration) {
		t.Helper()
		sc.receive(id)
		w := sc.claim(1)[0]
		must(t, sc.finish(event.Finish{Seq: w.Seq, Claim: w.Claim, Run: 1, State: event.Pending, NextAt: sc.now.Add(at)}).Err)
	}
	late := map[string]time.Duration{"long ago": -4 * time.Hour, "two hours": -2 * time.Hour, "one hour": -time.Hour, "soon": time.Minute, "later": time.Hour}
	for _, id := range []string{"long ago", "two hours", "one hour", "soon", "later"} {
		due(id, 5*time.Hour+late[id])
	}
	sc.later(5 * time.Hour) // all but the last two are past due
	sc.now = sc.now.Add(-back)
	moved, err := sc.SetBack(t.Context(), sc.now, back)
	must(t, err)
	want(t, "moved", moved, 5)
	next := func(id string) time.Duration {
		t.Helper()
		return time.UnixMilli(int64(sc.number(fmt.Sprintf(`SELECT next_at FROM event WHERE id = '%s'`, id)))).Sub(sc.now)
	}
	for id, wanted := range map[string]time.Duration{"long ago": -time.Hour, "two hours": 0, "one hour": 0, "soon": time.Minute, "later": time.Hour} {
		want(t, id, next(id), wanted)
	}
	at, some, err := sc.NextDelivery(t.Context(), "app")
	must(t, err)
	want(t, "delivery", some && at.Equal(sc.now), true)
	seen, err := sc.Seen(t.Context())
	must(t, err)
	want(t, "seen", seen, sc.now)
	for _, id := range []string{"long ago", "two hours", "one hour"} { // in their order
		want(t, "next", sc.claim(1)[0].Key.ID, id)
	}
	want(t, "more", len(sc.claim(1)), 0)
}

// More than one transaction moves everything once.
func TestSetBackMany(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	const n = 3 * recoverChunk
	for i := range n {
		sc.receive(fmt.Sprint(i))
		if i%recoverChunk == 0 {
			sc.later(time.Millisecond)
		}
	}
	for {
		works := sc.claim(256)
		if len(works) == 0 {
			break
		}
		for i := range works {
			must(t, sc.finish(event.Finish{Seq: works[i].Seq, Claim: works[i].Claim, Run: 1, State: event.Pending, NextAt: sc.now.Add(time.Duration(works[i].Seq) * time.Second)}).Err)
		}
	}
	due := func() string {
		return fmt.Sprint(sc.number(`SELECT count(*) FROM event WHERE next_at - ` + fmt.Sprint(sc.now.UnixMilli()) + ` = seq * 1000`))
	}
	want(t, "due in their time", due(), fmt.Sprint(n))
	sc.now = sc.now.Add(-10 * time.Minute) // less than they are spread over
	moved, err := sc.SetBack(t.Context(), sc.now, 10*time.Minute)
	must(t, err)
	want(t, "moved", moved, n)
	want(t, "due in their time", due(), fmt.Sprint(n))
}

// What was seen outlives a restart, and goes back with the clock alone.
func TestSeen(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	seen := func(wanted time.Time) {
		t.Helper()
		at, err := sc.Seen(context.Background())
		must(t, err)
		want(t, "seen", at, wanted)
	}
	seen(time.Time{})
	must(t, sc.NoteSeen(t.Context(), sc.now))
	seen(sc.now)
	must(t, sc.NoteSeen(t.Context(), sc.now.Add(-time.Hour)))
	seen(sc.now)
	must(t, sc.SaveTallies(t.Context(), sc.now.Add(time.Minute), []event.MinuteCount{{Kind: event.TallyNew, Subject: "gen", Minute: 1, N: 1}}, time.Hour))
	sc.crash("boot2")
	seen(sc.now.Add(time.Minute))
	sc.later(time.Hour)
	sc.receive("within the last minute") // of the server
	seen(sc.now)
	sc.now = sc.now.Add(-2 * time.Hour)
	_, err := sc.SetBack(t.Context(), sc.now, 2*time.Hour)
	must(t, err)
	seen(sc.now)
	sc.crash("boot3")
	seen(sc.now)
}

// TestGateF5RetentionGoesOn: an event that came while the clock was a year ahead
// keeps its body for its time, and holds up nobody's after it.
func TestGateF5RetentionGoesOn(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	receive := func(id string) {
		t.Helper()
		sc.receive(id)
		sc.finish(done(sc.claim(1)[0]))
	}
	receive("before")
	sc.later(365 * 24 * time.Hour)
	receive("ahead")
	sc.now = sc.now.Add(-365*24*time.Hour + time.Hour)
	receive("after")
	carried := func(what string, wanted int) {
		t.Helper()
		want(t, what, sc.number(`SELECT count(*) FROM event WHERE payload IS NOT NULL`), wanted)
	}
	sc.later(month - 2*time.Hour)
	sc.purge(Retention{Default: month})
	carried("at once", 3)
	sc.later(2 * time.Hour)
	would, err := sc.Purgeable(t.Context(), sc.now, Retention{Default: month}, nil)
	must(t, err)
	want(t, "would purge", would.Events, 2)
	sc.purge(Retention{Default: month})
	carried("after a month", 1)
	sc.later(month)
	sc.purge(Retention{Default: month})
	carried("after two months", 0)
}
