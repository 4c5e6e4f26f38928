package jobs

import (
	"context"
	"fmt"
	"time"

	"creel/config"
	"creel/event"
)

// heardAt is how far a source's receipts are learned.
type heardAt struct {
	minute int64
	n      int64 // of that minute
}

// listen learns what came since the last step, from the tallies.
func (s *Signals) listen(ctx context.Context, now time.Time) error {
	if s.rhythms == nil {
		stored, err := s.opt.Store.Rhythms(ctx)
		if err != nil {
			return err
		}
		s.rhythms = map[string]*rhythm{}
		for _, r := range stored {
			s.rhythms[r.Source] = newRhythm(r)
		}
	}
	cfg := s.config.Load()
	for i := range cfg.Sources {
		s.listenTo(cfg.Sources[i].Name, now)
	}
	return nil
}

func (s *Signals) listenTo(source string, now time.Time) {
	r := s.rhythms[source]
	if r == nil {
		r = newRhythm(event.Rhythm{Source: source, Since: now})
		r.fresh = true
		s.rhythms[source] = r
	}
	if r.Last.After(now) { // by a clock that was set back
		r.Last, r.fresh = now, true
	}
	last := s.opt.Tally.Last(event.TallyReceipts, source)
	if last.IsZero() {
		return
	}
	minute := minuteOf(last)
	if last.After(now) { // it was heard before the clock was set back
		s.heard[source] = heardAt{minute, s.opt.Tally.Between(event.TallyReceipts, source, minute, minute)}
		return
	}
	if s.leap > 0 && !last.After(s.leapt) {
		last = last.Add(s.leap)
	}
	seen, known := s.heard[source]
	if !known {
		seen = heardAt{minute: minuteOf(r.Last)}
		if seen.minute == minute {
			seen.n = s.opt.Tally.Between(event.TallyReceipts, source, minute, minute)
		}
	}
	n := s.opt.Tally.Between(event.TallyReceipts, source, seen.minute, minute) - seen.n
	if r.Last.IsZero() {
		n = s.opt.Tally.Between(event.TallyReceipts, source, 0, minute)
	}
	if n > 0 || minute != seen.minute {
		r.heard(last, max(n, 1))
	}
	s.heard[source] = heardAt{minute, s.opt.Tally.Between(event.TallyReceipts, source, minute, minute)}
}

// silence measures how long a source has not been heard. One that never spoke
// is silent only where its owner said how long it may be.
func (s *Signals) silence(source *config.Source, now time.Time) measured {
	r := s.rhythms[source.Name]
	since, limit, note := r.Last, time.Duration(0), ""
	usual, known := r.usual(now)
	switch set := source.Signals.Silence; {
	case set != nil && *set == 0:
		note = "switched off"
	case set != nil:
		limit = time.Duration(*set)
		if since.IsZero() {
			since = r.Since
		}
	case since.IsZero():
		note = "it has not been heard yet"
	case !known:
		note = fmt.Sprintf("its usual pause is not known before %d receipts within %d days", leastHeard, rhythmDays)
	default:
		limit, note = 2*usual, "usual pause "+usual.Round(time.Minute).String()
	}
	value := time.Duration(0)
	if !since.IsZero() {
		value = max(now.Sub(since), 0)
	}
	m := signal(event.SignalSilence, source.Name, value.Seconds(), limit.Seconds(), "seconds")
	m.Note = note
	m.starts = limit > 0 && value >= limit && now.Sub(s.began) >= min(limit, restartGrace)
	m.ends = limit == 0 || value < limit
	m.detail = fmt.Sprintf("nothing has come from %s since %s. Look at its sender's page of endpoints: it may have disabled this one. Then: creel reconcile %s, for what was missed.", source.Name, sinceOf(now, value.Seconds()), source.Name)
	return m
}
