package jobs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"creel/event"
)

const (
	// tallyMinutes is how far a tally looks back: this minute and those before.
	tallyMinutes = 60
	// tallyFlush is how often counts go into the store, while there are new ones.
	tallyFlush = time.Minute
)

// TallyStore is what a tally needs of the store.
type TallyStore interface {
	Tallies(ctx context.Context) ([]event.MinuteCount, error)
	// SaveTallies stores counts of minutes as they are by now, and drops older
	// ones of the same kinds and subjects, but for the newest of each.
	SaveTallies(ctx context.Context, now time.Time, counts []event.MinuteCount, keep time.Duration) error
}

// Tally answers "how many in the last hour": of sources and destinations of the
// configuration, by the minute. Counting is a lock and an addition. It outlives
// a restart: what is new goes into the store once a minute and at the stop; a
// kill loses the minute since, an idle server writes nothing.
//
// A nil Tally counts nothing.
type Tally struct {
	store TallyStore
	clock func() time.Time
	log   zerolog.Logger
	wake  chan struct{} // one place: set by the first count after a flush

	mu       sync.Mutex
	windows  map[tallied]*window
	due      time.Time // of the next flush; zero while there is nothing new
	failures int       // of the store, in a row
}

// tallied is what a window counts.
type tallied struct {
	kind    event.TallyKind
	subject string
}

// window is a ring of minutes. A minute keeps its place until the one that
// comes an hour later takes it, so that a clock that jumps spoils no more than
// what it jumps over.
type window struct {
	minutes [tallyMinutes]minute
	last    int64     // the newest minute in which something was counted
	exact   time.Time // within that minute; zero where it came out of the store
}

type minute struct {
	at        int64 // since 1970
	n, stored int64
}

// TallyOptions are what a tally is made of.
type TallyOptions struct {
	Store TallyStore
	Clock func() time.Time
	Log   zerolog.Logger
}

// NewTally makes a tally that counts nothing before it is configured.
func NewTally(opt TallyOptions) *Tally {
	return &Tally{store: opt.Store, clock: opt.Clock, log: opt.Log, wake: make(chan struct{}, 1), windows: map[tallied]*window{}}
}

// Configure says what there is to count. What is known keeps its counts.
func (t *Tally) Configure(sources, destinations []string) {
	ofSource, ofDestination, ofServer := event.TallyKinds()
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := map[tallied]*window{}
	keep := func(kinds []event.TallyKind, subjects []string) {
		for _, kind := range kinds {
			for _, subject := range subjects {
				what := tallied{kind, subject}
				if kept[what] = t.windows[what]; kept[what] == nil {
					kept[what] = &window{}
				}
			}
		}
	}
	keep(ofSource, sources)
	keep(ofDestination, destinations)
	keep(ofServer, []string{""})
	t.windows = kept
}

// Restore adds what an earlier server counted.
func (t *Tally) Restore(ctx context.Context) error {
	counts, err := t.store.Tallies(ctx)
	if err != nil {
		return fmt.Errorf("restore tallies: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range counts {
		w := t.windows[tallied{c.Kind, c.Subject}]
		if w == nil {
			continue
		}
		w.last = max(w.last, c.Minute)
		if m := w.minute(c.Minute); m != nil {
			m.n += c.N
			m.stored += c.N
		}
	}
	return nil
}

// Count adds n to the current minute. What the configuration does not know is
// not counted.
func (t *Tally) Count(kind event.TallyKind, subject string, n int) {
	if t == nil || n <= 0 {
		return
	}
	now := t.clock()
	at := minuteOf(now)
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.windows[tallied{kind, subject}]
	if w == nil {
		return
	}
	w.put(at, int64(n))
	w.exact = now.UTC()
	if t.due.IsZero() {
		t.due = now.Add(tallyFlush)
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

// Hour is how often something happened in the last hour.
func (t *Tally) Hour(kind event.TallyKind, subject string, now time.Time) int64 {
	return t.Between(kind, subject, minuteOf(now)-tallyMinutes+1, minuteOf(now))
}

// Between is how often something happened in the minutes from first to last, as
// far as they are kept.
func (t *Tally) Between(kind event.TallyKind, subject string, first, last int64) (sum int64) {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.windows[tallied{kind, subject}]
	if w == nil {
		return 0
	}
	for i := range w.minutes {
		if m := &w.minutes[i]; m.at >= first && m.at <= last {
			sum += m.n
		}
	}
	return sum
}

// Last is when something last happened, however long ago: by the minute where
// an earlier server counted it. It is zero where nothing is known to have.
func (t *Tally) Last(kind event.TallyKind, subject string) time.Time {
	if t == nil {
		return time.Time{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.windows[tallied{kind, subject}]
	switch {
	case w == nil || w.last == 0:
		return time.Time{}
	case minuteOf(w.exact) == w.last:
		return w.exact
	}
	return time.Unix(w.last*60, 0).UTC()
}

// Step stores what is new, if it is time, and tells when it wants to be called
// again; zero says that there is nothing new.
func (t *Tally) Step(ctx context.Context, now time.Time) (time.Time, error) {
	t.mu.Lock()
	due := t.due
	if due.Sub(now) > tallyFlush { // the clock was set back
		due = now.Add(tallyFlush)
		t.due = due
	}
	t.mu.Unlock()
	if due.IsZero() || now.Before(due) {
		return due, nil
	}
	return t.flush(ctx, now)
}

// flush stores what is new. Counts that come meanwhile go with the next one.
func (t *Tally) flush(ctx context.Context, now time.Time) (time.Time, error) {
	t.mu.Lock()
	counts := t.unsaved(minuteOf(now))
	t.due = time.Time{}
	t.mu.Unlock()
	if len(counts) == 0 {
		return time.Time{}, nil
	}
	err := t.store.SaveTallies(ctx, now, counts, tallyMinutes*time.Minute)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.due = now.Add(tallyFlush)
		if t.failures++; t.failures == 1 {
			t.log.Warn().Err(err).Int(event.FieldCount, len(counts)).
				Str(event.FieldHint, "they are counted on and stored later; see the store's own log lines").Msg("tallies could not be stored")
		}
		return t.due, fmt.Errorf("store tallies: %w", err)
	}
	t.failures = 0
	for _, c := range counts {
		if w := t.windows[tallied{c.Kind, c.Subject}]; w != nil {
			if m := &w.minutes[placeOfMinute(c.Minute)]; m.at == c.Minute {
				m.stored = c.N
			}
		}
	}
	return t.due, nil
}

// unsaved lists the minutes of the last hour that the store does not have as
// they are, kind by kind and subject by subject, with mu held.
func (t *Tally) unsaved(now int64) []event.MinuteCount {
	var counts []event.MinuteCount
	for what, w := range t.windows {
		for i := range w.minutes {
			if m := &w.minutes[i]; m.n != m.stored && m.at <= now && m.at > now-tallyMinutes {
				counts = append(counts, event.MinuteCount{Kind: what.kind, Subject: what.subject, Minute: m.at, N: m.n})
			}
		}
	}
	slices.SortFunc(counts, func(a, b event.MinuteCount) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Minute, b.Minute))
	})
	return counts
}

// Run stores counts until ctx ends, and what is left then. Whatever counts has
// to be stopped before.
func (t *Tally) Run(ctx context.Context) {
	timer := time.NewTimer(tallyFlush)
	defer timer.Stop()
	for ctx.Err() == nil {
		next, _ := t.Step(ctx, t.clock()) // logged, and tried again
		timer.Stop()
		if !next.IsZero() {
			timer.Reset(max(next.Sub(t.clock()), time.Millisecond))
		}
		select {
		case <-ctx.Done():
		case <-t.wake:
		case <-timer.C:
		}
	}
	_, _ = t.flush(context.WithoutCancel(ctx), t.clock()) // logged; what is lost is a minute of counts
}

func minuteOf(now time.Time) int64 { return now.Unix() / 60 }

func placeOfMinute(at int64) int64 { return (at%tallyMinutes + tallyMinutes) % tallyMinutes }

// minute is the place of a minute; nil where it is taken by a later one.
func (w *window) minute(at int64) *minute {
	m := &w.minutes[placeOfMinute(at)]
	switch {
	case m.at > at:
		return nil
	case m.at < at:
		*m = minute{at: at}
	}
	return m
}

// put counts in a minute, which takes the place of whatever a clock that was
// set back since has left there.
func (w *window) put(at, n int64) {
	m := &w.minutes[placeOfMinute(at)]
	if m.at != at {
		*m = minute{at: at}
	}
	m.n += n
	w.last = at
}
