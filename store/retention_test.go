package store

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"creel/event"
)

const month = 30 * 24 * time.Hour

func (sc *scene) purge(keep Retention) Purged {
	sc.t.Helper()
	var all Purged
	for more := true; more; {
		var done Purged
		var err error
		done, more, err = sc.Purge(sc.t.Context(), sc.now, keep)
		must(sc.t, err)
		all.Events, all.Bytes, all.Kept = all.Events+done.Events, all.Bytes+done.Bytes, all.Kept+done.Kept
	}
	return all
}

// What is over loses what it carried, what is needed keeps it byte for byte,
// in one row or not, and a purge again finds nothing more.
func TestRetention(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	bodies := map[string]string{}
	body := func(id string) string {
		bodies[id] = fmt.Sprintf(`{"id":%q,"canary":"%s"}`, id, strings.Repeat(id, 20))
		return bodies[id]
	}
	// One transaction, so that they share a row of bytes.
	for _, id := range []string{"done", "dead", "sent", "unsent", "queued"} {
		sc.accept(sc.receipt(body(id), item(id, bodies[id])))
	}
	works := map[string]event.Work{}
	for _, w := range sc.claim(5) {
		works[w.Key.ID] = w
	}
	sc.finish(done(works["done"]))
	sc.finish(dead(works["dead"]))
	sc.finish(done(works["sent"], forward(works["sent"], "app")))
	shipments := sc.send(1)
	sc.ship([]event.DeliveryFinish{outcome(shipments[0], event.DeliverySent)})
	sc.finish(done(works["unsent"], forward(works["unsent"], "app")))
	sc.finish(event.Finish{Seq: works["queued"].Seq, Claim: works["queued"].Claim, State: event.Pending, NextAt: sc.now, Release: true})
	want(t, "purged at once", sc.purge(Retention{Default: month}), Purged{})
	sc.later(month)
	got := sc.purge(Retention{Default: month})
	if got.Events != 2 || got.Kept != 3 || got.Bytes == 0 {
		t.Errorf("purged %+v", got)
	}
	want(t, "purged again", sc.purge(Retention{Default: month}), Purged{})
	for id, text := range bodies {
		d := sc.detail(id)
		stays := id != "done" && id != "sent"
		if stays != (string(d.Body) == text) || !stays && len(d.Body)+len(d.Header) != 0 {
			t.Errorf("%s carries %q", id, d.Body)
		}
	}
	want(t, "answers", sc.number(`SELECT count(*) FROM attempt WHERE answer <> ''`), 0)
	want(t, "rows of bytes", sc.number(`SELECT count(*) FROM payload`), 3)
	// What was needed is over now, and goes a day later.
	a := sc.replay(event.Selector{Keys: []event.Key{key("done"), key("dead")}})
	want(t, "replayed", a.Done, 1)
	sc.later(24 * time.Hour)
	for _, w := range sc.claim(5) {
		sc.finish(done(w))
	}
	for _, s := range sc.send(5) {
		sc.ship([]event.DeliveryFinish{outcome(s, event.DeliverySent)})
	}
	want(t, "purged in the end", sc.purge(Retention{Default: month}).Events, 3)
	want(t, "rows of bytes", sc.number(`SELECT count(*) FROM payload`)+sc.number(`SELECT count(*) FROM kept_body`), 0)
	want(t, "events", sc.number(`SELECT count(*) FROM event`), 5)
	if again := sc.accept(sc.receipt(bodies["done"], item("done", bodies["done"]))); again[0].Result != event.Duplicate {
		t.Errorf("a purged event that comes again is %s", again[0].Result)
	}
}

// Sources keep as long as they say, and nothing is written when nothing is
// due.
func TestRetentionOfSources(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	for _, source := range []string{"short", "long", "ever"} {
		it := item("e", "{}")
		it.Key.Source, it.State = source, event.Ignored
		sc.accept(sc.receipt("{}", it))
	}
	keep := Retention{Default: 2 * month, Sources: map[string]time.Duration{"short": month, "ever": 0}}
	sc.later(month)
	want(t, "after a month", sc.purge(keep).Events, 1)
	before := sc.counts.batches.Load()
	sc.purge(keep)
	want(t, "transactions of a purge without work", sc.counts.batches.Load()-before, 0)
	sc.later(month)
	want(t, "after two", sc.purge(keep).Events, 1)
	sc.later(24 * month)
	want(t, "after years", sc.purge(keep).Events, 0)
	want(t, "kept for ever", sc.number(`SELECT count(*) FROM event WHERE payload IS NOT NULL`), 1)
}

// Whatever the history and however the batches fall, a body is there as long
// as it is needed, and no row of bytes is left over.
func TestRetentionLosesNothing(t *testing.T) {
	t.Parallel()
	oneAtATime(t)
	rapid.Check(t, func(rt *rapid.T) {
		sc := newScene(t)
		bodies := map[string]string{}
		open := map[string]bool{}
		for n := range rapid.IntRange(1, 12).Draw(rt, "requests") {
			var items []event.Item
			text := fmt.Sprintf(`{"request":%d,"fill":%q}`, n, strings.Repeat("x", rapid.IntRange(0, 40000).Draw(rt, "fill")))
			for i := range rapid.IntRange(1, 4).Draw(rt, "events") {
				id := fmt.Sprintf("e%d-%d", n, i)
				it := item(id, text)
				if open[id] = rapid.Bool().Draw(rt, "open"); !open[id] {
					it.State = event.Ignored
				}
				it.DropBody = !open[id] && rapid.Bool().Draw(rt, "dropped")
				items, bodies[id] = append(items, it), text
			}
			sc.accept(sc.receipt(text, items...))
		}
		sc.later(month)
		for range 2 {
			sc.purge(Retention{Default: month})
			for id, text := range bodies {
				if d := sc.detail(id); open[id] && string(d.Body) != text || !open[id] && len(d.Body) != 0 {
					rt.Fatalf("%s, open %t, carries %d bytes of %d", id, open[id], len(d.Body), len(text))
				}
			}
			works := sc.claim(500)
			for _, w := range works[:len(works)/2] {
				sc.finish(done(w))
				open[w.Key.ID] = false
			}
			sc.later(25 * time.Hour)
		}
		sc.purge(Retention{Default: month})
		rows := sc.number(`SELECT count(*) FROM payload WHERE id NOT IN (SELECT payload FROM event WHERE payload IS NOT NULL)`)
		missing := sc.number(`SELECT count(*) FROM event WHERE payload IS NOT NULL AND payload NOT IN (SELECT id FROM payload)`)
		if rows+missing != 0 {
			rt.Fatalf("%d rows nobody names, %d events without their row", rows, missing)
		}
	})
}

// What went is not in the file either: a row that is deleted leaves its bytes in
// pages that are free, for whoever reads the file or a copy of it.
func TestRetentionLeavesNoBytesInTheFile(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	const canary, each = "canary-7f3a9c", 40
	for round := range 3 { // a statement that was prepared before does as well
		for i := range each {
			id := fmt.Sprintf("e%d-%d", round, i)
			body := fmt.Sprintf(`{"id":%q,"text":"%s"}`, id, strings.Repeat(canary, 1+i*i*4))
			sc.accept(sc.receipt(body, item(id, body)))
		}
		for _, w := range sc.claim(each) {
			sc.finish(done(w, forward(w, "app")))
		}
		for _, s := range sc.send(each) {
			o := outcome(s, event.DeliverySent)
			o.Attempt.Answer = "ok " + canary
			sc.ship([]event.DeliveryFinish{o})
		}
		sc.later(month)
		want(t, "purged", sc.purge(Retention{Default: month}).Events, each)
	}
	must(t, sc.Close())
	text, err := os.ReadFile(sc.path)
	must(t, err)
	if n := strings.Count(string(text), canary); n > 0 {
		t.Errorf("%d times it is in the file", n)
	}
	sc.open("again")
}

// A batch is small in bytes too: nothing else is written while it runs.
func TestRetentionTakesLargeBodiesFewAtATime(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	const size, count = 1 << 20, 12
	for i := range count {
		id := fmt.Sprintf("e%d", i)
		body := fmt.Sprintf(`{"id":%q,"text":"%s"}`, id, strings.Repeat("x", size))
		sc.accept(sc.receipt(body, item(id, body)))
	}
	for _, w := range sc.claim(count)[1:] {
		sc.finish(done(w))
	}
	sc.later(month)
	calls, most, all := 0, int64(0), Purged{}
	for more := true; more; calls++ {
		var did Purged
		var err error
		did, more, err = sc.Purge(t.Context(), sc.now, Retention{Default: month})
		must(t, err)
		most = max(most, did.Bytes)
		all.Events, all.Kept = all.Events+did.Events, all.Kept+did.Kept
	}
	if most > purgeBytes+2*size || calls < 3 || all.Events != count-1 || all.Kept != 1 {
		t.Errorf("%d batches of up to %d bytes: %+v", calls, most, all)
	}
}
