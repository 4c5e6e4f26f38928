package app

import (
	"context"
	"time"

	"creel/event"
	"creel/jobs"
)

const (
	// clockSlack is how far behind what was written last a clock may be at a
	// start without having been set back.
	clockSlack = time.Second
	// doubtful is how far ahead of it a clock has to be, for bodies not to be
	// removed on its word at once.
	doubtful = 30 * 24 * time.Hour
)

// newWatch makes what notices that the clock was set, for all loops.
func (a *App) newWatch() *jobs.Watch {
	return jobs.NewWatch(jobs.WatchOptions{Clock: a.opt.Clock, Passed: a.opt.Passed, Back: a.setBack,
		Ahead: func(_ time.Time, by time.Duration) {
			a.opt.Log.Warn().Dur("by", by).Msg("the clock was set ahead, or the machine slept")
		}})
}

// setBack brings closer what a clock that was set back left too far ahead.
func (a *App) setBack(ctx context.Context, now time.Time, by time.Duration) error {
	moved, err := a.store.SetBack(ctx, now, by)
	if err != nil {
		return err
	}
	a.opt.Log.Warn().Dur("by", by).Int(event.FieldCount, moved).Msg("the clock was set back: what was due stays due")
	return a.clampDue(ctx, now)
}

// clampDue is for what no step of the clock explains that anybody saw: nothing
// waits longer than its policy can have asked for.
func (a *App) clampDue(ctx context.Context, now time.Time) error {
	snapshot := a.snapshot.Load()
	longest := make(map[string]time.Duration, len(snapshot.Routes))
	for _, route := range snapshot.Routes {
		longest[route.Name] = route.Longest
	}
	moved, err := a.store.ClampDue(ctx, now, snapshot.longestWait(), longest)
	if moved > 0 {
		a.opt.Log.Warn().Int(event.FieldCount, moved).Msg("work that was due too far ahead is due sooner")
	}
	return err
}

// compareClock looks whether the clock was set while no server was there.
func (a *App) compareClock(ctx context.Context) error {
	seen, err := a.store.Seen(ctx)
	if err != nil {
		return err
	}
	now := a.opt.Clock()
	if back := seen.Sub(now); back > clockSlack {
		return a.setBack(ctx, now, back)
	}
	a.doubt = !seen.IsZero() && now.Sub(seen) > doubtful
	if err := a.clampDue(ctx, now); err != nil {
		return err
	}
	return a.store.NoteSeen(ctx, now)
}

// noteSeen remembers how late it was when the server ended, and follows a step
// that no loop has seen. Where that fails, it is known to a minute before.
func (a *App) noteSeen(ctx context.Context) error {
	if _, err := a.watch.Look(ctx); err == nil {
		_ = a.store.NoteSeen(ctx, a.opt.Clock())
	}
	return nil
}
