package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"creel/config"
	"creel/event"
)

// signalEvery is how often the signals are looked at.
const signalEvery = 30 * time.Second

// rhythmFlush is how often what was learned goes into the store, while there is
// something new.
const rhythmFlush = 5 * time.Minute

// SignalStore is what the signals need of the store. Every read is a look-up.
type SignalStore interface {
	NextEvent(ctx context.Context) (time.Time, bool, error)
	NextDelivery(ctx context.Context, destination string) (time.Time, bool, error)
	Destinations(ctx context.Context) ([]event.DestinationHealth, error)
	Incidents(ctx context.Context, openOnly bool) ([]event.OpenIncident, error)
	Gaps(ctx context.Context) ([]event.Gap, error)
	Rhythms(ctx context.Context) ([]event.Rhythm, error)
	// SaveRhythms stores what was learned and forgets days outside first to last.
	SaveRhythms(ctx context.Context, rhythms []event.Rhythm, first, last int64) error
	RaiseIncident(ctx context.Context, now time.Time, i event.Incident) error
	// SayIncident renews what an open incident says.
	SayIncident(ctx context.Context, now time.Time, i event.Incident) error
	// DeadSince is how many dead letters of a source or destination died since a
	// time and are dead still, as far as most.
	DeadSince(ctx context.Context, kind event.FailureKind, subject string, since time.Time, most int) (int, error)
	EndIncident(ctx context.Context, now time.Time, cause event.Cause, subject string) error
	// KeepIncidents ends what has been quiet for long and tells of what nobody
	// was told of. It writes only where there is something to do.
	KeepIncidents(ctx context.Context, now time.Time) error
	// Healthy is nil, or why writes do not work now.
	Healthy() error
}

// Counter is how often something happened in the last hour, and when last.
type Counter interface {
	Hour(kind event.TallyKind, subject string, now time.Time) int64
	Between(kind event.TallyKind, subject string, first, last int64) int64
	Last(kind event.TallyKind, subject string) time.Time
}

// SignalOptions are what the signals are made of.
type SignalOptions struct {
	Store SignalStore
	Tally Counter
	// Free is the free disk space of the database, and WAL the size of its WAL,
	// in bytes; below 0 is not known.
	Free, WAL func() int64
	Clock     func() time.Time
	Log       zerolog.Logger
	Watch     *Watch // notices that the clock was set; where it is nil the signals have their own
}

// Signals measures what an owner wants to hear about: in constant time, from
// look-ups and tallies. A signal that fires has one incident, which is over
// when the signal is; nothing is written while none changes.
type Signals struct {
	opt    SignalOptions
	began  time.Time
	config atomic.Pointer[config.Config]

	mu        sync.Mutex
	list      []event.Signal
	asOf      time.Time // when list was measured; zero before the first
	evaluated time.Time // the same by a clock that can not be set

	// What follows belongs to the loop.
	firing  map[signalKey]time.Time
	rhythms map[string]*rhythm // nil until they are read
	heard   map[string]heardAt
	flushed time.Time
	moves   map[string]move
	usual   map[string]usualRejects
	broken  blackout
	failed  bool  // the last step did
	steps   Steps // of the clock, as far as they were followed
	// leap is a step ahead that this look has found, and leapt when that was by
	// the time before it.
	leap  time.Duration
	leapt time.Time
}

type signalKey struct {
	name    event.SignalName
	subject string
}

// NewSignals makes signals that measure nothing before they are configured.
func NewSignals(opt SignalOptions) *Signals {
	if opt.Watch == nil {
		opt.Watch = NewWatch(WatchOptions{Clock: opt.Clock})
	}
	s := &Signals{opt: opt, began: opt.Clock(), heard: map[string]heardAt{}, moves: map[string]move{}, usual: map[string]usualRejects{}}
	s.config.Store(config.Default())
	return s
}

// Configure says what there is to measure, and the thresholds.
func (s *Signals) Configure(cfg *config.Config) { s.config.Store(cfg) }

// List is what the last step measured: the five first signals first.
func (s *Signals) List() []event.Signal {
	list, _ := s.Measured()
	return list
}

// Measured is what the last step measured, and when that was: the zero time
// before the first.
func (s *Signals) Measured() ([]event.Signal, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]event.Signal{}, s.list...), s.asOf
}

// errBlind says that nobody would notice if something were wrong.
var errBlind = errors.New("the signals were not evaluated lately")

// Evaluated is nil while the signals come round, or why they do not.
func (s *Signals) Evaluated() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.evaluated.IsZero() || time.Since(s.evaluated) > 3*signalEvery {
		return errBlind
	}
	return nil
}

// Run measures until ctx ends, and stores what was learned then.
func (s *Signals) Run(ctx context.Context) {
	ticker := time.NewTicker(signalEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		_ = s.Step(ctx, s.opt.Clock()) // logged
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	_ = s.flush(context.WithoutCancel(ctx), s.opt.Clock(), true) // what is lost is a few minutes of pauses
}

// Step measures once, opens an incident for what has begun to fire, and ends
// those of what no longer does. What could not be written is tried again by the
// next step: it goes by what is open, not by what it remembers.
func (s *Signals) Step(ctx context.Context, now time.Time) error {
	err := s.step(context.WithoutCancel(ctx), now)
	if err != nil && !s.failed {
		s.opt.Log.Error().Err(err).Str(event.FieldHint, "they are looked at again; see the store's own log lines").
			Msg("signals could not be evaluated")
	}
	s.failed = err != nil
	return err
}

func (s *Signals) step(ctx context.Context, now time.Time) error {
	if err := s.noticeClock(ctx, now); err != nil {
		return err
	}
	s.broken.note(s.opt.Store.Healthy(), now)
	open, err := s.opt.Store.Incidents(ctx, true)
	if err != nil {
		return err
	}
	s.restore(open)
	if err := s.listen(ctx, now); err != nil {
		return err
	}
	measured, err := s.measure(ctx, now)
	if err != nil {
		return err
	}
	list := make([]event.Signal, len(measured))
	for i := range measured {
		list[i] = s.decide(&measured[i], now)
	}
	s.mu.Lock()
	s.list, s.asOf, s.evaluated = list, now, time.Now()
	s.mu.Unlock()
	if err := s.follow(ctx, now, measured, open); err != nil {
		return err
	}
	if err := s.opt.Store.KeepIncidents(ctx, now); err != nil {
		return err
	}
	return s.flush(ctx, now, false)
}

// noticeClock moves what is remembered by a clock that has been set since. A step
// ahead is like a start: nobody was silent, and nothing waited, while no time
// passed.
func (s *Signals) noticeClock(ctx context.Context, now time.Time) error {
	steps, err := s.opt.Watch.Look(ctx)
	if err != nil {
		return err
	}
	step := steps.since(&s.steps)
	s.leap, s.leapt = step.Ahead, now.Add(-step.Ahead)
	if step.Ahead > 0 {
		s.began = now
		for _, r := range s.rhythms {
			r.Last, r.fresh = moved(r.Last, step.Ahead), true
		}
	}
	if step.Back > 0 {
		s.began = moved(s.began, -step.Back)
		clear(s.moves)
		for _, at := range []*time.Time{&s.broken.from, &s.broken.until} {
			*at = moved(*at, -step.Back)
		}
	}
	return nil
}

// restore takes over, at the first step, what fired when the last server ended.
func (s *Signals) restore(open []event.OpenIncident) {
	if s.firing != nil {
		return
	}
	s.firing = map[signalKey]time.Time{}
	for i := range open {
		if name := event.SignalName(open[i].Cause); slices.Contains(event.Signals(), name) {
			s.firing[signalKey{name, open[i].Subject}] = open[i].OpenedAt
		}
	}
}

// measured is a signal with what decides whether it fires.
type measured struct {
	event.Signal
	starts, ends bool // one that fires goes on until it ends
	// mute says that other trouble is open which this follows from: it has no
	// incident of its own.
	mute   func(open []event.OpenIncident) bool
	detail string // for the incident
}

// decide tells whether a signal fires, and since when.
func (s *Signals) decide(m *measured, now time.Time) event.Signal {
	key := signalKey{m.Name, m.Subject}
	since, was := s.firing[key]
	m.Firing = m.starts || was && !m.ends
	switch {
	case !m.Firing:
		delete(s.firing, key)
	case !was:
		s.firing[key] = now
		since = now
	}
	if m.Firing {
		m.Since = since
	}
	return m.Signal
}

// follow brings the incidents in line with the signals.
func (s *Signals) follow(ctx context.Context, now time.Time, list []measured, open []event.OpenIncident) error {
	said := map[signalKey]string{}
	for i := range open {
		said[signalKey{event.SignalName(open[i].Cause), open[i].Subject}] = open[i].Detail
	}
	known := map[signalKey]bool{}
	for i := range list {
		m := &list[i]
		key := signalKey{m.Name, m.Subject}
		known[key] = m.Firing
		detail, has := said[key]
		if m.Firing && has && detail != m.detail && m.detail != "" && m.Unit != "seconds" {
			err := s.opt.Store.SayIncident(ctx, now, event.Incident{Cause: m.Name.Cause(), Subject: m.Subject, Detail: m.detail})
			if err != nil {
				return err
			}
		}
		if !m.Firing || has || m.detail == "" || m.mute != nil && m.mute(open) {
			continue
		}
		err := s.opt.Store.RaiseIncident(ctx, now, event.Incident{Cause: m.Name.Cause(), Subject: m.Subject, Detail: m.detail})
		if err != nil {
			return err
		}
		s.opt.Log.Warn().Str("signal", string(m.Name)).Str("subject", m.Subject).Float64("value", m.Value).
			Float64("threshold", m.Threshold).Str(event.FieldReason, m.detail).Msg("a signal fires")
	}
	for i := range open {
		key := signalKey{event.SignalName(open[i].Cause), open[i].Subject}
		if !slices.Contains(event.Signals(), key.name) || known[key] {
			continue
		}
		if err := s.opt.Store.EndIncident(ctx, now, open[i].Cause, open[i].Subject); err != nil {
			return err
		}
		delete(s.firing, key)
		s.opt.Log.Info().Str("signal", string(key.name)).Str("subject", key.subject).Msg("a signal no longer fires")
	}
	return nil
}

// flush stores what was learned of the pauses of sources.
func (s *Signals) flush(ctx context.Context, now time.Time, all bool) error {
	if age := now.Sub(s.flushed); !all && age >= 0 && age < rhythmFlush {
		return nil
	}
	var changed []*rhythm
	var out []event.Rhythm
	for _, r := range s.rhythms {
		if r.fresh {
			changed, out = append(changed, r), append(out, r.unsaved())
		}
	}
	if len(out) == 0 {
		return nil
	}
	first, last := daysAt(now)
	if err := s.opt.Store.SaveRhythms(ctx, out, first, last); err != nil {
		return fmt.Errorf("store what was learned: %w", err)
	}
	for _, r := range changed {
		r.saved()
	}
	s.flushed = now
	return nil
}
