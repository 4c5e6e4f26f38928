package jobs

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// clockSlack is how far a clock may go back without having been set:
	// corrections by NTP are smaller.
	clockSlack = time.Second
	// aheadSlack is the same ahead, where a machine that was busy looks alike.
	aheadSlack = time.Minute
)

// WatchOptions are what a watch is made of.
type WatchOptions struct {
	Clock func() time.Time
	// Passed is the time that passed by a clock that can not be set. Where it is
	// nil, the monotonic reading of the clock's own times tells. Where they have
	// none, a step ahead is not told from time that passed, and one back is seen
	// less what has passed since the last look.
	Passed func() time.Duration
	// Back follows a step back of the clock in the store.
	Back func(ctx context.Context, now time.Time, by time.Duration) error
	// Ahead is told of a step ahead; may be nil.
	Ahead func(now time.Time, by time.Duration)
}

// Watch notices that the clock was set. The loops that keep times look at it
// before they write any: the first that sees a step back has the store follow
// it, the others wait for that, so that nothing is written by the new time
// while what was written by the old one is moved.
type Watch struct {
	opt WatchOptions

	mu     sync.Mutex
	last   time.Time
	passed time.Duration
	steps  Steps
}

// NewWatch makes a watch that begins to look with its first Look.
func NewWatch(opt WatchOptions) *Watch { return &Watch{opt: opt} }

// Steps are how far the clock was set, in all, since the watch began.
type Steps struct{ Back, Ahead time.Duration }

// Look looks at the clock and tells how far it was set so far. It compares the
// times that are shown: the monotonic reading beside them goes on whatever the
// clock is set to. After an error the step is seen again by the next look.
func (w *Watch) Look(ctx context.Context) (Steps, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.opt.Clock()
	passed, known := w.since(now)
	step := now.Round(0).Sub(w.last.Round(0).Add(passed))
	switch {
	case w.last.IsZero():
	case step < -clockSlack:
		if w.opt.Back != nil {
			if err := w.opt.Back(ctx, now, -step); err != nil {
				return w.steps, fmt.Errorf("following the clock, which was set back by %s: %w", -step, err)
			}
		}
		w.steps.Back -= step
	case step > aheadSlack && known:
		w.steps.Ahead += step
		if w.opt.Ahead != nil {
			w.opt.Ahead(now, step)
		}
	}
	w.last = now
	if w.opt.Passed != nil {
		w.passed = w.opt.Passed()
	}
	return w.steps, nil
}

// since is the time that passed since the last look; false where nothing tells.
func (w *Watch) since(now time.Time) (time.Duration, bool) {
	if w.opt.Passed != nil {
		return w.opt.Passed() - w.passed, true
	}
	if steady := now != now.Round(0) && w.last != w.last.Round(0); !steady {
		return 0, false
	}
	return now.Sub(w.last), true
}

// since tells the steps that came since the last call, of which seen is kept.
func (s Steps) since(seen *Steps) Steps {
	fresh := Steps{s.Back - seen.Back, s.Ahead - seen.Ahead}
	*seen = s
	return fresh
}

// moved is a time of the clock as it is by the clock that was set: the
// monotonic reading would keep it where it was.
func moved(at time.Time, by time.Duration) time.Time {
	if at.IsZero() {
		return at
	}
	return at.Round(0).Add(by)
}
