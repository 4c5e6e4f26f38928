package store

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"creel/event"
)

// BenchmarkClaim is P8's first part: the median claim of 32 due events beside
// many that are processed, with a tenth as many that wait.
func BenchmarkClaim(b *testing.B) {
	for _, processed := range []int{10_000, 1_000_000, 5_000_000} {
		b.Run(fmt.Sprint(processed), func(b *testing.B) { benchmarkClaim(b, processed) })
	}
}

const sqlManyEvents = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
	INSERT INTO event (source, account, id, state, attempts, received_at, next_at, finished_at, type, object, version, part, content)
	SELECT 'bench', '', ?2 || i, ?3, 0, i, CASE ?3 WHEN 'pending' THEN i END, CASE ?3 WHEN 'pending' THEN NULL ELSE i END,
		't', '', '', '', zeroblob(16) FROM n`

func benchmarkClaim(b *testing.B, processed int) {
	if testing.Short() && processed > 10_000 {
		processed = 10_000
	}
	s := newStore(b)
	ctx := context.Background()
	fill := func(n int, prefix string, state event.State) {
		err := s.write(ctx, work, n, func(t *tx) error {
			_, err := t.exec(sqlManyEvents, n, prefix, string(state))
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	fill(processed, "done_", event.Done)
	fill(processed/10, "wait_", event.Pending)
	now := time.UnixMilli(int64(processed) * 2)
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		_, works, err := s.Settle(ctx, now, nil, 32)
		took = append(took, time.Since(start))
		if err != nil || len(works) == 0 {
			b.Fatalf("%d claimed, %v", len(works), err)
		}
		finishes := make([]event.Finish, len(works))
		for i, work := range works {
			finishes[i] = event.Finish{Seq: work.Seq, Claim: work.Claim, Run: work.Run, State: event.Pending, NextAt: now, Release: true}
		}
		if _, _, err := s.Settle(ctx, now, finishes, 0); err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs/claim")
}
