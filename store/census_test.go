package store

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"creel/event"
)

// A census says what the rows say, whatever way they went.
func TestCensusCountsWhatIsOpenAndDead(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	for i, state := range event.DeliveryStates() {
		for range i + 1 {
			_, d := sc.deliver(fmt.Sprintf("d-%s-%d", state, sc.number(`SELECT count(*) FROM delivery`)))
			sc.force("delivery", "id", d.ID, string(state), `attempts = 1, tries = 1`)
			if state == event.DeliveryDead {
				must(t, sc.write(t.Context(), work, 1, func(t *tx) error { return deliveryFailed(t, 1, d.ID) }))
			}
		}
	}
	for _, state := range event.States() {
		seq := sc.receive("e-" + string(state))
		sc.force("event", "seq", seq, string(state), `attempts = 1`)
		if state == event.Dead {
			must(t, sc.write(t.Context(), work, 1, func(t *tx) error { return eventFailed(t, 1, seq, nil, true) }))
		}
	}
	c, err := sc.Census(context.Background())
	must(t, err)
	for _, state := range []event.State{event.Pending, event.Claimed, event.Dead} {
		want(t, "events "+string(state), c.Events[state], int64(sc.number(`SELECT count(*) FROM event WHERE state = ?`, string(state))))
	}
	for _, state := range []event.DeliveryState{event.DeliveryReady, event.DeliveryWaiting, event.DeliveryInDoubt, event.DeliveryDead} {
		n := sc.number(`SELECT count(*) FROM delivery WHERE state = ?`, string(state))
		if n == 0 {
			t.Errorf("no delivery is %s", state)
		}
		want(t, "deliveries "+string(state), c.Deliveries["app"][state], int64(n))
	}
	want(t, "destinations", len(c.Deliveries), 1)
}

// No statement of a census looks at a row.
func TestCensusReadsIndexesAlone(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	for query, index := range map[string]string{
		sqlCensusEvents: "COVERING INDEX event_open (state=?)", sqlCensusReady: "COVERING INDEX delivery_due",
		sqlCensusStuck: "COVERING INDEX delivery_stuck", sqlCensusIncidents: "INDEX incident_open",
	} {
		if plan := sc.plan(query); !strings.Contains(plan, index) {
			t.Errorf("the plan does not use %s:\n%s", index, plan)
		}
	}
}

// BenchmarkCensus is what a count costs beside 500,000 dead events, as many
// dead deliveries and as many that wait.
func BenchmarkCensus(b *testing.B) {
	n := 500_000
	if testing.Short() {
		n = 5_000
	}
	s := newStore(b)
	must(b, s.write(context.Background(), work, n, func(t *tx) error {
		if _, err := t.exec(sqlManyEvents, n, "dead_", string(event.Dead)); err != nil {
			return err
		}
		for _, state := range []event.DeliveryState{event.DeliveryDead, event.DeliveryReady} {
			if _, err := t.exec(sqlManyDeliveries, n, string(state)); err != nil {
				return err
			}
		}
		return nil
	}))
	for b.Loop() {
		start := time.Now()
		c, err := s.Census(context.Background())
		// The dead are counted by their failures, which these rows do not name.
		if err != nil || c.Deliveries["app_3"][event.DeliveryReady] != int64(n/10) {
			b.Fatalf("%v %v", c, err)
		}
		b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms")
	}
}

const sqlManyDeliveries = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
	INSERT INTO delivery (event, rule, key, destination, state, created_at, next_at, finished_at)
	SELECT i, 'r', ?2 || i, 'app_' || (i % 10), ?2, i, CASE ?2 WHEN 'ready' THEN i END, CASE ?2 WHEN 'ready' THEN NULL ELSE i END FROM n`
