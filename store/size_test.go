package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"creel/event"
)

// A received event costs little more than what it carried: at most 1.2 times
// body and headers, indexes included, after a checkpoint.
func TestDiskForAReceivedEvent(t *testing.T) {
	t.Parallel()
	oneAtATime(t)
	const events, senders = 3072, 64 // in batches of 64, as under load
	header := strings.Join([]string{
		"Host: hooks.example.com", "User-Agent: Stripe/1.0 (+https://stripe.com/docs/webhooks)",
		"Content-Type: application/json; charset=utf-8", "Content-Length: 1024",
		"Stripe-Signature: t=1700000000,v1=" + strings.Repeat("0123456789abcdef", 4),
	}, "\n")
	sc := newScene(t)
	m := &memory{places: events}
	sc.SetHandoff(m)
	empty := sc.used()
	for range events / senders {
		sc.together(senders, func(int) {
			id := "evt_" + rand.Text()[:24]
			body := id + strings.Repeat("x", 1024-len(id))
			it := item(id, body)
			it.Object, it.Version = "in_1MtHbELkdIwHu7ixl4OzzPMv", "1700000000"
			r := sc.receipt(body, it)
			r.Header = header
			if _, err := sc.Accept(context.Background(), r); err != nil {
				t.Error(err)
			}
		})
	}
	carried := float64(1024 + len(header))
	report := func(what string) float64 {
		bytes := float64(sc.used()-empty) / float64(len(m.works))
		t.Logf("%s: %.0f bytes an event, %.3f times what it carried", what, bytes, bytes/carried)
		if testing.Verbose() {
			sc.tables()
		}
		return bytes / carried
	}
	sc.settle(0)
	report("in hand")
	for works := range slices.Chunk(m.works, 256) {
		var ends []event.Finish
		for _, w := range works {
			ends = append(ends, done(w))
		}
		sc.settle(0, ends...)
	}
	if ratio := report("done"); ratio > 1.2 {
		t.Errorf("an event costs %.3f times what it carried", ratio)
	}
	sc.replay(event.Selector{})
	for works := sc.claim(256); len(works) > 0; works = sc.claim(256) {
		var ends []event.Finish
		for _, w := range works {
			ends = append(ends, done(w, forward(w, "app")))
		}
		sc.settle(0, ends...)
	}
	for s := sc.send(256); len(s) > 0; s = sc.send(256) {
		var ends []event.DeliveryFinish
		for i := range s {
			ends = append(ends, outcome(s[i], event.DeliverySent))
		}
		sc.ship(ends)
	}
	report("delivered")
}

// together holds the writer until n senders wait for it, so that they share a
// transaction.
func (sc *scene) together(n int, send func(i int)) {
	sc.t.Helper()
	running, held := make(chan struct{}), make(chan struct{})
	must(sc.t, sc.submit(work, &unit{done: func(error) {}, run: func(*tx) error {
		close(running)
		<-held
		return nil
	}}))
	<-running
	go func() {
		for waiting := 0; waiting < n; waiting, _ = sc.queue.lens() {
			runtime.Gosched()
		}
		close(held)
	}()
	each(n, send)
}

// used is the size of the database less the pages that wait to be used again.
func (sc *scene) used() int {
	sc.t.Helper()
	return sc.number("SELECT (page_count - freelist_count) * page_size FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()")
}

// tables prints what each b-tree takes.
func (sc *scene) tables() {
	err := sc.list(context.Background(), "SELECT name, sum(pgsize), sum(unused), count(*) FROM dbstat GROUP BY name HAVING count(*) > 1 ORDER BY 2 DESC", nil, func(r row) error {
		fmt.Printf("%-28s %9d bytes, %3d%% used\n", r.text(0), r.int64(1), 100-100*r.int64(2)/r.int64(1))
		return nil
	})
	must(sc.t, err)
}
