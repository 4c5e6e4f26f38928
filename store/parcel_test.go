package store

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"creel/event"
)

// What is committed together is read back apart, whatever its sizes.
func TestParcelsGiveEachEventItsBytes(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sizes := []int{0, 1, 100, 1024, parcelBytes / 2, parcelBytes - 24, parcelBytes, parcelBytes + 1, 3 * parcelBytes, 5, 7}
	body := func(i int) string { return strings.Repeat(string(rune('a'+i)), sizes[i]) }
	sc.together(len(sizes), func(i int) {
		r := sc.receipt(body(i), item(numbered("e", i), body(i)))
		r.Header, r.Query = strings.Repeat("h", i), strings.Repeat("q", 2*i)
		if _, err := sc.Accept(context.Background(), r); err != nil {
			t.Error(err)
		}
	})
	check := func(i int, got event.Payload) {
		t.Helper()
		if string(got.Body) != body(i) || got.Header != strings.Repeat("h", i) || got.Query != strings.Repeat("q", 2*i) {
			t.Errorf("event %d reads back %d, %d and %d bytes", i, len(got.Body), len(got.Header), len(got.Query))
		}
	}
	for i := range sizes {
		check(i, sc.detail(numbered("e", i)).Payload)
	}
	works := sc.claim(len(sizes))
	want(t, "claimed", len(works), len(sizes))
	for _, w := range works {
		var i int
		for i = range sizes {
			if w.Key.ID == numbered("e", i) {
				break
			}
		}
		check(i, w.Payload)
	}
	if n := sc.number("SELECT count(*) FROM payload"); n >= len(sizes) {
		t.Errorf("%d rows for %d payloads", n, len(sizes))
	}
}

// A receipt that fails takes its own bytes back, and nobody else's.
func TestGateA15FailingReceiptLeavesTheBytesOfOthers(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	const senders = 40
	var failed atomic.Int32
	sc.together(senders, func(i int) {
		body := strings.Repeat(string(rune('A'+i)), 4000)
		items := []event.Item{item(numbered("e", i), body)}
		if i%4 == 3 {
			items = append(items, item("", "refused by the schema"))
		}
		if _, err := sc.Accept(context.Background(), sc.receipt(body, items...)); err != nil {
			failed.Add(1)
		}
	})
	want(t, "failed", failed.Load(), senders/4)
	want(t, "events", sc.number("SELECT count(*) FROM event"), senders*3/4)
	header := len(sc.receipt("").Header)
	want(t, "bytes", sc.number("SELECT sum(length(data)) FROM payload"), senders*3/4*(4000+header))
	for i := range senders {
		if i%4 != 3 {
			want(t, "body", string(sc.detail(numbered("e", i)).Body), strings.Repeat(string(rune('A'+i)), 4000))
		}
	}
}
