package store

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"creel/event"
)

// A report that runs for as long as it likes has a connection of its own:
// intake does not wait for it.
func TestBugACK04ALongReportDoesNotBlockIntake(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.receive("before")
	ctx, cancel := context.WithCancel(t.Context())
	started, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- sc.snapshot(ctx, func(s snapshot) error {
			first := true
			return s.list(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
				SELECT n.i FROM n, event`, nil, func(row) error {
				if first {
					first = false
					close(started)
				}
				return ctx.Err()
			})
		})
	}()
	<-started
	for i := range 200 {
		sc.receive(fmt.Sprintf("evt_%d", i))
	}
	select {
	case err := <-ended:
		t.Fatalf("the report ended before the intake did: %v", err)
	default:
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the report ended with %v", err)
	}
	want(t, "state", sc.detail("evt_199").State, event.Pending)
}
