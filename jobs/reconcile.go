package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"creel/event"
)

const (
	reconcileTick = time.Minute
	// reconcileAgain is the wait after a comparison that failed, and
	// reconcileTold for how long it has to go on failing to be trouble.
	reconcileAgain = time.Hour
	reconcileTold  = 6 * time.Hour
)

// ReconcileStore keeps what was compared last, and tells of what can not be.
type ReconcileStore interface {
	ReconcileSettings
	Incidents(ctx context.Context, openOnly bool) ([]event.OpenIncident, error)
	RaiseIncident(ctx context.Context, now time.Time, i event.Incident) error
	EndIncident(ctx context.Context, now time.Time, cause event.Cause, subject string) error
}

// ReconcileSettings keep what was compared last.
type ReconcileSettings interface {
	Setting(ctx context.Context, name string) (value string, ok bool, err error)
	KeepSetting(ctx context.Context, now time.Time, name, value string) error
}

// Compared is what is remembered of a source's comparisons with the list of its
// sender.
type Compared struct {
	At    time.Time `json:"at,omitzero"`   // when the last one ended
	Until time.Time `json:"until"`         // up to where the list was compared
	Open  time.Time `json:"open,omitzero"` // since when events are missing that were not brought in
}

// ReadCompared reads it; false where the source was never looked at.
func ReadCompared(ctx context.Context, s ReconcileSettings, source string) (c Compared, ok bool, err error) {
	text, ok, err := s.Setting(ctx, comparedName(source))
	if err != nil || !ok {
		return c, false, err
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return Compared{}, false, nil // not ours to understand: it begins anew
	}
	return c, true, nil
}

// Keep stores it.
func (c Compared) Keep(ctx context.Context, s ReconcileSettings, now time.Time, source string) error {
	text, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("keep what was compared: %w", err)
	}
	return s.KeepSetting(ctx, now, comparedName(source), string(text))
}

func comparedName(source string) string { return "reconciled " + source }

// Since is where the next comparison begins: overlap before the end of the last,
// or where events are missing still.
func (c Compared) Since(overlap time.Duration) time.Time {
	since := c.Until.Add(-overlap)
	if !c.Open.IsZero() && c.Open.Before(since) {
		return c.Open
	}
	return since
}

// ReconcileOptions are what the weekly comparison is made of.
type ReconcileOptions struct {
	Store ReconcileStore
	// Every tells how often each source is compared; 0 is never.
	Every func() map[string]time.Duration
	// Compare compares a source, after was what is remembered of it, and keeps
	// what is to be remembered. One that succeeds ends the incident of those
	// that failed.
	Compare func(ctx context.Context, source string, after Compared) error
	Clock   func() time.Time
	Log     zerolog.Logger
}

// Reconcile compares sources with the lists of their senders, each in its time
// and one after another.
type Reconcile struct {
	opt   ReconcileOptions
	again map[string]time.Time // when one that failed is tried again
	fails map[string]time.Time // since when one fails
}

// NewReconcile makes one; Run starts it.
func NewReconcile(opt ReconcileOptions) *Reconcile {
	return &Reconcile{opt: opt, again: map[string]time.Time{}, fails: map[string]time.Time{}}
}

// Run works until ctx ends.
func (r *Reconcile) Run(ctx context.Context) {
	ticker := time.NewTicker(reconcileTick)
	defer ticker.Stop()
	for {
		r.Step(ctx, r.opt.Clock())
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Step compares what is due at now, and returns how many sources that was. A
// source that it sees for the first time is only remembered: what its sender
// lists of the time before was never meant to be here.
func (r *Reconcile) Step(ctx context.Context, now time.Time) (compared int) {
	every := r.opt.Every()
	for _, source := range slices.Sorted(maps.Keys(every)) {
		if every[source] <= 0 || ctx.Err() != nil || now.Before(r.again[source]) && !r.again[source].After(now.Add(reconcileAgain)) {
			continue
		}
		done, err := r.source(ctx, now, source, every[source])
		switch {
		case ctx.Err() != nil:
			return compared
		case err != nil:
			r.again[source] = now.Add(reconcileAgain)
			r.failed(ctx, now, source, err)
			r.opt.Log.Warn().Err(err).Str(event.FieldSource, source).Str(event.FieldHint, "it is tried again within the hour; creel reconcile "+source+" says the same").
				Msg("a source could not be compared with its sender's list")
		case done:
			delete(r.fails, source)
			compared++
		}
	}
	r.forget(ctx, now, every)
	return compared
}

// failed tells of a source that could not be compared for a while. What can not
// be told now is with the next failure.
func (r *Reconcile) failed(ctx context.Context, now time.Time, source string, why error) {
	since, known := r.fails[source]
	if !known || since.After(now) {
		r.fails[source] = now
		return
	}
	if now.Sub(since) < reconcileTold {
		return
	}
	_ = r.opt.Store.RaiseIncident(ctx, now, event.Incident{Cause: event.CauseNotCompared, Subject: source, Detail: fmt.Sprintf(
		"the list of its sender could not be read since %s, so that nobody would notice what is missing: %v. It is tried again every hour; creel reconcile %s does it now.",
		since.UTC().Format(time.RFC3339), why, source)})
}

// forget ends what is told of sources that are not compared any more.
func (r *Reconcile) forget(ctx context.Context, now time.Time, every map[string]time.Duration) {
	open, err := r.opt.Store.Incidents(ctx, true)
	if err != nil {
		return // the next step
	}
	for i := range open {
		if source := open[i].Subject; open[i].Cause == event.CauseNotCompared && every[source] <= 0 {
			_ = r.opt.Store.EndIncident(ctx, now, event.CauseNotCompared, source)
			delete(r.fails, source)
		}
	}
}

func (r *Reconcile) source(ctx context.Context, now time.Time, source string, every time.Duration) (bool, error) {
	last, known, err := ReadCompared(ctx, r.opt.Store, source)
	if err != nil {
		return false, err
	}
	if !known {
		return false, Compared{Until: now}.Keep(ctx, r.opt.Store, now, source)
	}
	if last.Until.After(now) {
		// A clock that was set back: what came since that is not known yet.
		last.At, last.Until = time.Time{}, now.Add(-every)
	}
	at := last.At
	if at.IsZero() {
		at = last.Until
	}
	if now.Before(at.Add(every)) {
		return false, nil
	}
	return true, r.opt.Compare(ctx, source, last)
}
