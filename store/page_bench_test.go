package store

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"creel/event"
)

// The fill of BenchmarkPage: of five events one is dead or has a dead delivery,
// in one of a hundred groups of six sources.
const (
	sqlFillFailures = `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 199)
		INSERT INTO failure (id, fingerprint, kind, source, destination, status_class, text, first_at, last_at)
		SELECT i + 1, CAST(printf('%016d', i) AS BLOB), CASE WHEN i < 100 THEN 'event' ELSE 'delivery' END, 'source' || (i % 6),
			CASE WHEN i < 100 THEN '' ELSE 'app' || (i % 3) END, 0, 'failed in way ' || i, 1, 1 FROM n`
	sqlFillEvents = `WITH RECURSIVE n(i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
		INSERT INTO event (source, account, id, state, attempts, received_at, finished_at, type, object, version, part, content, error, failure, duplicate_at)
		SELECT CASE WHEN i % 100000 = 77 THEN 'rare' ELSE 'source' || (i % 6) END, 'acct_' || (i % 10), 'evt_' || printf('%x', i * 2654435761 % 4294967296),
			CASE WHEN i % 10 = 0 THEN 'dead' ELSE 'done' END, 1, 1700000000000 + i * 1000, 1700000000000 + i * 1000 + 500,
			'kind' || (i % 6) || '.of' || (i % 5), 'in_' || printf('%08x', i / 3 * 2654435761 % 4294967296), '', '', zeroblob(16),
			CASE WHEN i % 10 = 0 THEN 'failed with number ' || i ELSE '' END,
			CASE WHEN i % 10 = 0 THEN 1 + (i / 10 % 16) * 6 + i % 6 END, CASE WHEN i % 50 = 0 THEN 1700000000000 + i * 1000 END FROM n`
	sqlFillDeliveries = `INSERT INTO delivery (event, rule, key, destination, state, attempts, tries, status, created_at, finished_at, error, failure)
		SELECT seq, 'r', '=' || printf('%09d', seq) || '/r', 'app' || (seq % 3), CASE WHEN seq % 10 = 1 THEN 'dead' ELSE 'sent' END, 1, 1, 200,
			received_at, finished_at + 5, '', CASE WHEN seq % 10 = 1 THEN 101 + seq % 96 END FROM event WHERE seq % 10 < 4 AND seq > ?1 AND seq <= ?2`
	sqlFillCounts = `UPDATE failure SET dead = (SELECT count(*) FROM event WHERE failure = failure.id) + (SELECT count(*) FROM delivery WHERE failure = failure.id),
		last_at = 1700000000000 + id`
)

// fillPage makes a database of many events, a fifth of them dead letters.
func fillPage(b testing.TB, sc *scene, events int64) {
	b.Helper()
	ctx := context.Background()
	unit := func(run func(*tx) error) { must(b, sc.write(ctx, work, 1, run)) }
	unit(func(t *tx) error { _, err := t.exec(sqlFillFailures); return err })
	for from := int64(0); from < events; from += 50_000 {
		to := min(from+50_000, events)
		unit(func(t *tx) error {
			if _, err := t.exec(sqlFillEvents, from+1, to); err != nil {
				return err
			}
			_, err := t.exec(sqlFillDeliveries, from, to)
			return err
		})
	}
	unit(func(t *tx) error { _, err := t.exec(sqlFillCounts); return err })
	for n := int64(0); n < events/zoneSize; n += zonesAtOnce {
		unit(func(t *tx) error { return fileZones(t, events/zoneSize) })
	}
}

// pageFile is where the database of BenchmarkPage is made and left, for those
// that measure what is read of it over HTTP.
var pageFile = flag.String("page-file", "", "database that BenchmarkPage leaves behind")

// BenchmarkPage is P12: what the page and the API read, each in milliseconds,
// beside two and a half million events with 500,000 dead letters among them.
func BenchmarkPage(b *testing.B) {
	events := int64(2_500_000)
	if testing.Short() {
		events = 50_000
	}
	sc := newScene(b)
	if *pageFile != "" {
		must(b, sc.Close())
		sc.path = *pageFile
		sc.open("boot1")
	}
	fillPage(b, sc, events)
	ctx := context.Background()
	page := event.Page{Limit: 50}
	now := time.UnixMilli(1700000000000 + events*1000).UTC()
	search := func(s event.Selector) func() error {
		return func() error { _, err := sc.EventPage(ctx, s, page); return err }
	}
	letters := func(s event.Selector, cursor string) func() error {
		return func() error { _, err := sc.DeadLetters(ctx, s, cursor, 50); return err }
	}
	middle := fmt.Sprintf("%de%d", 1700000000000+events*500, events/2)
	for _, q := range []struct {
		name string
		run  func() error
	}{
		{"groups by size", func() error {
			_, err := sc.Failures(ctx, now, FailureFilter{}, FailuresBySize, FailureCursor{}, 50)
			return err
		}},
		{"groups of a source", func() error {
			_, err := sc.Failures(ctx, now, FailureFilter{Source: "source1", Text: "way"}, FailuresByLast, FailureCursor{}, 50)
			return err
		}},
		{"dead letters of fifty groups of one", func() error {
			groups := make([]event.Failure, 50)
			for i := range groups {
				groups[i] = event.Failure{ID: int64(i + 75), Kind: []event.FailureKind{event.FailedEvent, event.FailedDelivery}[(i+75)/101]}
			}
			_, err := sc.Lone(ctx, groups)
			return err
		}},
		{"behind fifty dead letters", func() error {
			found, err := sc.DeadLetters(ctx, event.Selector{}, "", 50)
			for i := range found.Letters {
				if err == nil {
					_, _, err = sc.Behind(ctx, &found.Letters[i], 101)
				}
			}
			return err
		}},
		{"dead counts", func() error { _, err := sc.DeadCounts(ctx); return err }},
		{"dead letters", letters(event.Selector{}, "")},
		{"dead letters, half way down", letters(event.Selector{}, middle)},
		{"dead letters of a group", letters(event.Selector{Failure: 7}, "")},
		{"dead letters of a source", letters(event.Selector{Source: "source3"}, "")},
		{"dead letters to a destination", letters(event.Selector{Destination: "app1"}, "")},
		{"dead letters with an error that none has", letters(event.Selector{Error: "nobody"}, "")},
		{"dead letters of a type", letters(event.Selector{Type: "kind1.*"}, "")},
		{"dead letters of an object", letters(event.Selector{Object: "in_00000000"}, "")},
		{"dead letters by a word", letters(event.Selector{Word: "evt_9e3779b"}, "")},
		{"events", search(event.Selector{})},
		{"deliveries of fifty events", func() error {
			seqs := make([]int64, 50)
			for i := range seqs {
				seqs[i] = events - int64(i)*977
			}
			_, err := sc.Outgoing(ctx, seqs)
			return err
		}},
		{"events of a source", search(event.Selector{Source: "source2"})},
		{"events of a rare source", search(event.Selector{Source: "rare"})},
		{"events of no source", search(event.Selector{Source: "none"})},
		{"events of a type", search(event.Selector{Type: "kind3.of3"})},
		{"events of a month long ago", search(event.Selector{Since: time.UnixMilli(1700000000000).UTC(), Until: time.UnixMilli(1700000000000 + 100_000_000).UTC()})},
		{"events that are done", search(event.Selector{State: event.Done, Source: "rare"})},
		{"events with an error that none has", search(event.Selector{Error: "nobody"})},
		{"events of an object", search(event.Selector{Object: "in_00000000"})},
		{"events of an object that is not there", search(event.Selector{Object: "in_none"})},
		{"events with a value", search(event.Selector{Index: []event.IndexMatch{{Field: "body.a", Value: "1"}}})},
		{"events by an id", search(event.Selector{ID: "evt_9e3779b1"})},
		{"events by a word", search(event.Selector{Word: "in_9e377"})},
		{"events by a word that all have", search(event.Selector{Word: "evt_"})},
		{"duplicates", func() error { _, err := sc.Duplicates(ctx, event.Event{}, 50); return err }},
		{"conflicts", func() error { _, err := sc.Conflicts(ctx, page); return err }},
		{"deliveries", func() error { _, err := sc.Deliveries(ctx, DeliveryFilter{}, page); return err }},
		{"deliveries to a destination that has none", func() error {
			_, err := sc.DeliveryPage(ctx, DeliveryFilter{Destination: "none"}, page)
			return err
		}},
		{"deliveries of a source that has none", func() error {
			_, err := sc.DeliveryPage(ctx, DeliveryFilter{Source: "none", State: event.DeliveryDead}, page)
			return err
		}},
		{"deliveries in doubt", func() error {
			_, err := sc.Deliveries(ctx, DeliveryFilter{State: event.DeliveryInDoubt}, page)
			return err
		}},
		{"deliveries to a destination that are dead", func() error {
			_, err := sc.Deliveries(ctx, DeliveryFilter{State: event.DeliveryDead, Destination: "app2"}, page)
			return err
		}},
		{"census", func() error { _, err := sc.Census(ctx); return err }},
		{"lanes", func() error { _, err := sc.Lanes(ctx, "", 50); return err }},
		{"audit", func() error { _, err := sc.Actions(ctx, page); return err }},
		{"an event", func() error { _, err := sc.EventsBySeq(ctx, []int64{events / 2}); return err }},
		{"a body", func() error {
			_, err := sc.WriteBody(ctx, 1, io.Discard)
			if err != nil {
				err = nil // nothing is kept of those
			}
			return err
		}},
	} {
		b.Run(q.name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				must(b, q.run())
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}
