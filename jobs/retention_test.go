package jobs

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

type purgeScript struct {
	batches []int64
	fail    error
	at      []time.Time
}

func (p *purgeScript) Purge(_ context.Context, now time.Time) (int64, bool, error) {
	p.at = append(p.at, now)
	if len(p.batches) == 0 {
		return 0, false, p.fail
	}
	n := p.batches[0]
	p.batches = p.batches[1:]
	return n, true, nil
}

// A step takes batch after batch, at one moment, and ends at the first that
// fails with what it has done.
func TestRetentionTakesAllBatches(t *testing.T) {
	t.Parallel()
	for _, fail := range []error{nil, errors.New("the disk is gone")} {
		store := &purgeScript{batches: []int64{200, 200, 7}, fail: fail}
		now := time.Date(2026, 3, 8, 7, 0, 0, 0, time.UTC) // an hour that New York has not
		r := NewRetention(RetentionOptions{Store: store, Clock: func() time.Time { return now }, Log: zerolog.Nop()})
		if n := r.Step(t.Context(), now); n != 407 || len(store.at) != 4 {
			t.Errorf("%d events in %d batches", n, len(store.at))
		}
		for _, at := range store.at {
			if !at.Equal(now) {
				t.Errorf("a batch at %v", at)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n := NewRetention(RetentionOptions{Store: &purgeScript{batches: []int64{1}}, Clock: time.Now, Log: zerolog.Nop()}).Step(ctx, time.Time{}); n != 0 {
		t.Errorf("%d events after the stop", n)
	}
}
