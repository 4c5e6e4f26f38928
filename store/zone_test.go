package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"creel/event"
)

// crowd stores many events, a few hundred a request, over a clock that is set
// back once.
func crowd(sc *scene, n int) {
	sc.t.Helper()
	for stored := 0; stored < n; {
		r := &event.Receipt{Source: "gen", Origin: event.FromWebhook, Body: []byte("{}")}
		if sc.later(time.Hour); stored == 3000 {
			sc.later(-2 * time.Hour)
		}
		r.At = sc.now
		for range min(500, n-stored) {
			it := item(fmt.Sprintf("evt_%06d", stored), "{}")
			it.Type, it.Object = "invoice.paid", fmt.Sprintf("in_%08d", stored/3)
			switch {
			case stored%1500 == 7:
				it.Key.Source, it.Type = "rare", "once.in.a.while"
			case stored >= 2100 && stored < 2200:
				it.Key.Account, it.Type = "acct_1", fmt.Sprintf("kind.%d", stored)
			}
			if stored%900 == 5 {
				it.Index = []event.IndexValue{{Field: "body.customer", Value: "cus_5"}, {Field: "body.customer", Value: "cus_6"}}
			}
			it.State = event.Ignored
			r.Items = append(r.Items, it)
			stored++
		}
		sc.accept(r)
	}
}

// Zones rule out what is not meant, and nothing else: a search by zones finds
// what a walk through all rows finds, whatever the bounds of a page.
func TestZonesRuleOutNothingThatIsMeant(t *testing.T) {
	t.Parallel()
	oneAtATime(t)
	sc := newScene(t)
	crowd(sc, 5*zoneSize+300)
	want(t, "zones", sc.number(`SELECT count(*) FROM zone_words`), 5)
	want(t, "zoned events", sc.number(`SELECT sum(n) FROM zone`), 5*zoneSize)
	want(t, "kinds of a zone with many", sc.number(`SELECT count(*) FROM zone WHERE type LIKE 'kind.%'`), zoneTypes-1)
	ctx := context.Background()
	all, err := sc.Events(ctx, event.Selector{}, event.Page{Limit: 500})
	must(t, err)
	want(t, "events", len(all), 500)
	for name, test := range map[string]struct {
		s     event.Selector
		means string // the same in SQL
	}{
		"source":          {event.Selector{Source: "rare"}, `source = 'rare'`},
		"type":            {event.Selector{Type: "once.*"}, `type = 'once.in.a.while'`},
		"type of many":    {event.Selector{Type: "kind.2150"}, `type = 'kind.2150'`},
		"type of none":    {event.Selector{Type: "nothing"}, `0`},
		"object":          {event.Selector{Object: "in_00000777"}, `object = 'in_00000777'`},
		"value":           {event.Selector{Index: []event.IndexMatch{{Field: "body.customer", Value: "cus_6"}}}, `seq IN (SELECT event FROM event_index)`},
		"two values":      {event.Selector{Index: []event.IndexMatch{{Field: "body.customer", Value: "cus_5"}, {Field: "body.customer", Value: "cus_7"}}}, `0`},
		"id":              {event.Selector{ID: "evt_00310"}, `id LIKE 'evt\_00310%' ESCAPE '\'`},
		"id of all":       {event.Selector{ID: "evt_0039"}, `id LIKE 'evt\_0039%' ESCAPE '\'`},
		"word: id":        {event.Selector{Word: "evt_002222"}, `id = 'evt_002222'`},
		"word: object":    {event.Selector{Word: "in_0000077"}, `object LIKE 'in\_0000077%' ESCAPE '\'`},
		"word: short":     {event.Selector{Word: "in_0000"}, `source <> ''`},
		"time":            {event.Selector{Since: start.Add(5 * time.Hour), Until: start.Add(7 * time.Hour)}, fmt.Sprintf(`received_at >= %d AND received_at < %d`, start.Add(5*time.Hour).UnixMilli(), start.Add(7*time.Hour).UnixMilli())},
		"account":         {event.Selector{Account: "acct_1"}, `account = 'acct_1'`},
		"source and type": {event.Selector{Source: "gen", Type: "once.*"}, `0`},
		"state":           {event.Selector{State: event.Ignored, Source: "rare"}, `source = 'rare'`},
		"another state":   {event.Selector{State: event.Done, Source: "rare"}, `0`},
		"newest":          {event.Selector{Source: "rare", Newest: 3000}, `source = 'rare' AND seq <= 3000`},
	} {
		var wanted []int64
		must(t, sc.list(ctx, `SELECT seq FROM event WHERE `+test.means+` ORDER BY seq DESC`, nil, func(r row) error {
			wanted = append(wanted, r.int64(0))
			return nil
		}))
		for _, bounds := range []searchBounds{usualSearch(), {zones: 1, dead: 10, deliveries: 3, groups: 1, named: 3}} {
			sc.Reader.search = bounds
			for _, limit := range []int{2, 500} {
				if limit == 2 && len(wanted) > 500 {
					continue
				}
				got := sc.pages(test.s, limit)
				if !slices.Equal(got, wanted) {
					t.Errorf("%s, %d a page: %d events, want %d: %v, %v", name, limit, len(got), len(wanted), got[:min(9, len(got))], wanted[:min(9, len(wanted))])
				}
			}
		}
		picks, err := sc.pick(ctx, event.Action{Selector: test.s})
		must(t, err)
		want(t, name+": picked", len(picks), len(wanted))
	}
}

func (sc *scene) pages(s event.Selector, limit int) (seqs []int64) {
	sc.t.Helper()
	page := event.Page{Limit: limit}
	for {
		found, err := sc.EventPage(context.Background(), s, page)
		must(sc.t, err)
		for _, e := range found.Events {
			seqs = append(seqs, e.Seq)
		}
		if len(found.Events) < limit && found.Next != 0 && !found.Partial {
			sc.t.Errorf("%s: a page is not full and does not say so", s.Query())
		}
		if page.Before = found.Next; found.Next == 0 {
			return seqs
		}
	}
}

// A search that walks a long way answers with what it has.
func TestASearchIsBounded(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	crowd(sc, 4*zoneSize)
	sc.Reader.search.zones = 1
	found, err := sc.EventPage(t.Context(), event.Selector{Error: "nobody has it"}, event.Page{})
	must(t, err)
	want(t, "partial", found.Partial, true)
	want(t, "next", found.Next, int64(3*zoneSize+1))
}

// Rows that came in another way are filed later, and found before.
func TestZonesCatchUp(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	const n = 12 * zoneSize
	must(t, sc.write(t.Context(), work, 1, func(t *tx) error {
		_, err := t.exec(sqlManyEvents, n-1, "done_", "done")
		return err
	}))
	want(t, "zones", sc.number(`SELECT count(*) FROM zone_words`), 0)
	want(t, "found before", len(sc.pages(event.Selector{ID: "done_77"}, 500)), 111)
	sc.receive("a")
	want(t, "zones", sc.number(`SELECT count(*) FROM zone_words`), zonesAtOnce)
	want(t, "found", len(sc.pages(event.Selector{Source: "gen"}, 10)), 1)
	want(t, "others", len(sc.pages(event.Selector{Source: "bench"}, 500)), n-1)
}

// Only a source that lists places pays for them, and a value that is too long
// is left out.
func TestIndexedValues(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	it := item("a", "{}")
	it.Index = []event.IndexValue{{Field: "body.a", Value: "1"}, {Field: "body.a", Value: "1"}, {Field: "body.b", Value: strings.Repeat("x", 257)}}
	sc.accept(sc.receipt("{}", it))
	sc.accept(sc.receipt("{}", it)) // a duplicate brings nothing
	sc.receive("b")
	want(t, "values", sc.number(`SELECT count(*) FROM event_index`), 1)
	want(t, "found", len(sc.pages(event.Selector{Index: []event.IndexMatch{{Field: "body.a", Value: "1"}}}, 9)), 1)
}

func TestAFilterHasAllItsWords(t *testing.T) {
	t.Parallel()
	words := map[uint64]struct{}{}
	for i := range 1000 {
		words[wordOf("o", fmt.Sprint("object_", i))] = struct{}{}
	}
	bits := bloomOf(words)
	want(t, "bytes", len(bits), 1250)
	for word := range words {
		if !mayHave(bits, word) {
			t.Fatal("a word is not there")
		}
	}
	wrong := 0
	for i := range 10_000 {
		if mayHave(bits, wordOf("o", fmt.Sprint("other_", i))) {
			wrong++
		}
	}
	if wrong > 200 {
		t.Errorf("%d of 10,000 other words seem to be there", wrong)
	}
	want(t, "of nothing", mayHave(bloomOf(nil), 7), false)
}

// Where a page ends early, it ends at the same place on both ways to the dead
// letters: none is passed over, and none comes twice.
func TestBothWaysToDeadLettersEndTogether(t *testing.T) {
	t.Parallel()
	oneAtATime(t)
	sc := newScene(t)
	fillPage(t, sc, 30*zoneSize)
	// The newer half has dead events alone.
	sc.change(`UPDATE delivery SET state = 'sent', failure = NULL WHERE state = 'dead' AND event > ?`, 15*zoneSize)
	sc.Reader.search = searchBounds{zones: 1, dead: 100, deliveries: 10, groups: 1, named: 2}
	for _, s := range []event.Selector{{State: event.Dead, Account: "acct_0"}, {State: event.Dead, Account: "acct_1"}, {State: event.Dead, Newest: 20_000}} {
		var wanted []int64
		must(t, sc.list(t.Context(), `SELECT seq FROM event WHERE (?1 = '' OR account = ?1) AND (?2 = 0 OR seq <= ?2) AND
			(state = 'dead' OR EXISTS (SELECT 1 FROM delivery WHERE event = seq AND delivery.state = 'dead')) ORDER BY seq DESC`,
			[]any{s.Account, s.Newest}, func(r row) error {
				wanted = append(wanted, r.int64(0))
				return nil
			}))
		for _, limit := range []int{40, 499} {
			if got := sc.pages(s, limit); !slices.Equal(got, wanted) || len(got) == 0 {
				t.Errorf("%s, %d a page: %d events, want %d", s.Query(), limit, len(got), len(wanted))
			}
		}
	}
}
