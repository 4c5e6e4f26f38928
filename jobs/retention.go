package jobs

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"creel/event"
)

// Purger is what retention needs of the store.
type Purger interface {
	// Purge takes away one small batch of what is older than it has to be kept
	// and returns how many events it was of; more says that there is more.
	Purge(ctx context.Context, now time.Time) (events int64, more bool, err error)
}

// RetentionOptions are what retention is made of.
type RetentionOptions struct {
	Store Purger
	Clock func() time.Time
	Log   zerolog.Logger
	Watch *Watch // notices that the clock was set; where it is nil the retention has its own
	// Doubt says that the clock may be far ahead at the start already.
	Doubt bool
}

// Retention takes away what events carried when it is old. It works in small
// batches, so that intake waits for none of them. What is gone does not come
// back: it waits for a day after the clock was set ahead, so that one that is
// wrong can be set right.
type Retention struct {
	opt   RetentionOptions
	steps Steps // of the clock, as far as they were followed
	waits int   // steps that it lets pass
}

// NewRetention makes a retention; Run starts it.
func NewRetention(opt RetentionOptions) *Retention {
	if opt.Watch == nil {
		opt.Watch = NewWatch(WatchOptions{Clock: opt.Clock})
	}
	r := &Retention{opt: opt}
	if opt.Doubt {
		r.doubt()
	}
	return r
}

const (
	// retentionEvery is how often old events are looked for. It is a length and
	// no time of day: nothing is skipped or doubled when clocks change.
	retentionEvery = time.Hour
	// retentionDoubt is how many of its steps a retention lets pass after the
	// clock was set ahead by more than retentionEvery.
	retentionDoubt = 24
	// retentionPause lets others write between two batches.
	retentionPause = 20 * time.Millisecond
)

// Run works until ctx ends.
func (r *Retention) Run(ctx context.Context) {
	timer := time.NewTimer(time.Minute) // a start has other things to do
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		r.Step(ctx, r.opt.Clock())
		timer.Reset(retentionEvery)
	}
}

// doubt lets the next steps pass. They are counted, because the clock is what
// is in doubt.
func (r *Retention) doubt() {
	r.waits = retentionDoubt
	r.opt.Log.Warn().Str(event.FieldHint, "look at the clock of this machine; creel prune removes what is old at once").
		Msg("the clock may be ahead: bodies are not removed for a day")
}

// noticeClock tells whether this step is to be let pass.
func (r *Retention) noticeClock(ctx context.Context) bool {
	steps, err := r.opt.Watch.Look(ctx)
	if err != nil {
		return true
	}
	if steps.since(&r.steps).Ahead > retentionEvery {
		r.doubt()
	}
	if r.waits > 0 {
		r.waits--
		return true
	}
	return false
}

// Step purges all that is old at now and returns how many events that was of.
// A batch that fails ends it: the next step goes on there.
func (r *Retention) Step(ctx context.Context, now time.Time) int64 {
	if r.noticeClock(ctx) {
		return 0
	}
	var all int64
	for more := true; more && ctx.Err() == nil; {
		var n int64
		var err error
		if n, more, err = r.opt.Store.Purge(ctx, now); err != nil {
			r.opt.Log.Warn().Err(err).Str(event.FieldHint, "it is tried again within the hour").Msg("old bodies could not be removed")
			break
		}
		all += n
		if more {
			select {
			case <-ctx.Done():
			case <-time.After(retentionPause):
			}
		}
	}
	if all > 0 {
		r.opt.Log.Info().Int64(event.FieldCount, all).Msg("bodies were removed after the retention")
	}
	return all
}
