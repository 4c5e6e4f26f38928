package jobs

import (
	"context"
	"fmt"
	"time"

	"creel/config"
	"creel/event"
)

const (
	// leastEvents is how many events of an hour say something about duplicates.
	leastEvents = 20
	// timesUsual is how many times the usual number of failed signatures counts
	// as more than usual, and usualOver the time over which that is learned.
	timesUsual = 5
	usualOver  = 24 * time.Hour
	// restartGrace is how long a source has after a start to be heard, before it
	// counts as silent: the server was not there to hear it.
	restartGrace = time.Hour
	// outageLeast is how long writes have to fail to be worth an alert, and
	// outageShown for how long it stays open afterwards.
	outageLeast = time.Minute
	outageShown = 10 * time.Minute
	// mostDead is up to where dead letters are counted exactly.
	mostDead = 1000
)

// measure looks at everything once.
func (s *Signals) measure(ctx context.Context, now time.Time) ([]measured, error) {
	cfg := s.config.Load()
	stored, err := s.opt.Store.Destinations(ctx)
	if err != nil {
		return nil, err
	}
	health := map[string]event.DestinationHealth{}
	for _, d := range stored {
		health[d.Name] = d
	}
	list, err := s.oldest(ctx, cfg, health, now)
	if err != nil {
		return nil, err
	}
	gaps, err := s.gaps(ctx, cfg)
	if err != nil {
		return nil, err
	}
	var failures []measured
	for i := range cfg.Sources {
		source := &cfg.Sources[i]
		limits := cfg.SignalsOf(source)
		dead, err := s.dead(ctx, source.Name, event.TallyDeadEvents, limits.DeadLetters, now)
		if err != nil {
			return nil, err
		}
		list = append(list, dead)
		failures = append(failures, s.rejects(source.Name, limits.Rejects, now), s.failures(source.Name, limits.Failures, now))
	}
	for _, name := range cfg.DestinationNames() {
		dead, err := s.dead(ctx, name, event.TallyDeadDeliveries, cfg.Signals.DeadLetters, now)
		if err != nil {
			return nil, err
		}
		list = append(list, dead)
		failures = append(failures, s.success(name, health[name].MeasuredFrom, now))
	}
	for i := range cfg.Sources {
		list = append(list, s.duplicates(cfg.Sources[i].Name, float64(cfg.SignalsOf(&cfg.Sources[i]).Duplicates), now))
	}
	for i := range cfg.Sources {
		list = append(list, s.silence(&cfg.Sources[i], now))
	}
	list = append(append(list, gaps...), failures...)
	return append(list, s.guesses(cfg.Signals.Guesses, now), s.disk(cfg.Signals), s.wal(cfg.Signals), s.broken.signal(now)), nil
}

func signal(name event.SignalName, subject string, value, threshold float64, unit string) measured {
	m := measured{Signal: event.Signal{Name: name, Subject: subject, Value: value, Threshold: threshold, Unit: unit}}
	m.starts, m.ends = value >= threshold, value < threshold
	return m
}

// move is the oldest delivery to a destination, and when it became another.
type move struct{ oldest, at time.Time }

// oldest measures how long work is past due: it could be taken and is not. What
// waits for its slot, for a destination that is down, or since before the server
// was there, is not.
func (s *Signals) oldest(ctx context.Context, cfg *config.Config, health map[string]event.DestinationHealth, now time.Time) ([]measured, error) {
	limit := time.Duration(cfg.Signals.Oldest)
	due, some, err := s.opt.Store.NextEvent(ctx)
	if err != nil {
		return nil, err
	}
	events := pastDue("", due, some, s.began, limit, now)
	events.detail = fmt.Sprintf("the oldest event is past due since %s: the worker stalls or can not keep up. creel health tells whether it comes round, creel events --state pending what waits.", sinceOf(now, events.Value))
	list := []measured{events}
	for _, name := range cfg.DestinationNames() {
		h := health[name]
		if h.State != "" && h.State != event.DestinationEnabled {
			delete(s.moves, name)
			continue
		}
		due, some, err := s.opt.Store.NextDelivery(ctx, name)
		if err != nil {
			return nil, err
		}
		m := pastDue(name, due, some, s.moved(name, due, some, later(h.Since, s.began), now), limit, now)
		m.detail = fmt.Sprintf("the oldest delivery to %s is past due since %s: it takes less than comes, or the dispatcher stalls. creel deliveries --destination %s --state ready lists them; max_in_flight and rate of the destination bound it.", name, sinceOf(now, m.Value), name)
		m.mute = func(open []event.OpenIncident) bool { return standing(open, event.FamilyDestination, name) }
		list = append(list, m)
	}
	return list, nil
}

// moved is from when a delivery counts as past due: not before the destination
// was there. What gathered while it was away may take its time as long as it
// goes on.
func (s *Signals) moved(name string, due time.Time, some bool, since, now time.Time) time.Time {
	last, known := s.moves[name]
	if !some || !known || !last.oldest.Equal(due) {
		last = move{due, now}
		s.moves[name] = last
	}
	if some && due.Before(since) && last.at.After(since) {
		return last.at
	}
	return since
}

func pastDue(subject string, due time.Time, some bool, since time.Time, limit time.Duration, now time.Time) measured {
	value := time.Duration(0)
	if some {
		value = max(now.Sub(later(due, since)), 0)
	}
	return signal(event.SignalOldest, subject, value.Seconds(), limit.Seconds(), "seconds")
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// dead counts the dead letters of an hour that are dead still: what was replayed
// or discarded since is none.
func (s *Signals) dead(ctx context.Context, subject string, kind event.TallyKind, limit int, now time.Time) (measured, error) {
	unit, next, failure := "events", "--source "+subject, event.FailedEvent
	if kind == event.TallyDeadDeliveries {
		unit, next, failure = "deliveries", "--destination "+subject, event.FailedDelivery
	}
	n := s.opt.Tally.Hour(kind, subject, now)
	if n > 0 {
		left, err := s.opt.Store.DeadSince(ctx, failure, subject, now.Add(-time.Hour), mostDead)
		if err != nil {
			return measured{}, err
		}
		if left < mostDead {
			n = min(n, int64(left))
		}
	}
	m := signal(event.SignalDead, subject, float64(n), float64(limit), unit)
	m.ends = n == 0 || 2*m.Value < m.Threshold
	m.detail = fmt.Sprintf("%.0f %s of %s became dead letters within an hour and are dead still. Repair the cause, then: creel replay %s --state dead --dry-run", m.Value, unit, subject, next)
	m.mute = func(open []event.OpenIncident) bool {
		for i := range open {
			o := &open[i]
			family := o.Cause.Family()
			of := family == string(event.CauseDeadEvent) && (o.Subject == subject || now.Sub(o.LastAt) < time.Hour)
			if kind == event.TallyDeadDeliveries {
				of = (family == event.FamilyDestination || family == string(event.CauseDeadDelivery)) && o.Subject == subject
			}
			if of && o.AcknowledgedAt.IsZero() {
				return true
			}
		}
		return false
	}
	return m, nil
}

// duplicates is their share of the events of an hour.
func (s *Signals) duplicates(source string, limit float64, now time.Time) measured {
	again := s.opt.Tally.Hour(event.TallyDuplicates, source, now)
	all := again + s.opt.Tally.Hour(event.TallyNew, source, now) + s.opt.Tally.Hour(event.TallyConflicts, source, now)
	share := 0.0
	if all > 0 {
		share = 100 * float64(again) / float64(all)
	}
	m := signal(event.SignalDuplicates, source, share, limit, "percent")
	m.starts, m.ends = share > limit && all >= leastEvents, 2*share <= limit || all < leastEvents
	if all < leastEvents {
		m.Note = fmt.Sprintf("%d events within an hour; it needs %d", all, leastEvents)
	}
	m.detail = fmt.Sprintf("%d of %d events of %s within an hour were there before: its sender does not get the answers, or gets them too late, or somebody sends them again there. creel stats has the time that answers take: where it is short, look at the proxy before Creel. creel contract shows how long the sender waits, creel duplicates which they were.", again, all, source)
	return m
}

// gaps is what the last reconciliation of each source found missing.
func (s *Signals) gaps(ctx context.Context, cfg *config.Config) ([]measured, error) {
	stored, err := s.opt.Store.Gaps(ctx)
	if err != nil {
		return nil, err
	}
	var list []measured
	for i := range cfg.Sources {
		name := cfg.Sources[i].Name
		m := signal(event.SignalGap, name, 0, 1, "events")
		m.Note = "never reconciled"
		for _, g := range stored {
			if g.Source != name {
				continue
			}
			m = signal(event.SignalGap, name, float64(g.Missing), 1, "events")
			m.Note = "reconciled " + g.At.UTC().Format(time.RFC3339)
			m.detail = fmt.Sprintf("%d events that the provider lists from %s to %s are not in the inbox. creel reconcile %s --import brings them in.",
				g.Missing, g.From.UTC().Format(time.RFC3339), g.Until.UTC().Format(time.RFC3339), name)
		}
		list = append(list, m)
	}
	return list, nil
}

// usualRejects is the hourly number of failed signatures that a source has.
type usualRejects struct {
	n  float64
	at time.Time
}

// rejects counts failed signatures of an hour against what is usual. What fires
// is not learned.
func (s *Signals) rejects(source string, least int, now time.Time) measured {
	n := float64(s.opt.Tally.Hour(event.TallyRejects, source, now))
	usual := s.usual[source]
	limit := max(float64(least), timesUsual*usual.n)
	m := signal(event.SignalRejects, source, n, limit, "requests")
	m.ends = 2*n < limit
	m.detail = fmt.Sprintf("%.0f requests to %s within an hour had no valid signature: its secret is wrong or was rotated, a proxy changes bodies, or somebody else calls the URL. creel verify and the causes in the log tell which.", n, source)
	if passed := now.Sub(usual.at); usual.at.IsZero() || passed < 0 {
		usual.at = now
	} else if !m.starts {
		usual.n += (n - usual.n) * min(float64(passed)/float64(usualOver), 1)
		usual.at = now
	}
	s.usual[source] = usual
	return m
}

// failures counts attempts at events that will be made again.
func (s *Signals) failures(source string, limit int, now time.Time) measured {
	m := signal(event.SignalFailures, source, float64(s.opt.Tally.Hour(event.TallyRetries, source, now)), float64(limit), "attempts")
	m.ends = 2*m.Value < m.Threshold
	m.detail = fmt.Sprintf("%.0f attempts to apply events of %s failed within an hour and are made again. creel events --source %s --state pending shows why.", m.Value, source, source)
	m.mute = func(open []event.OpenIncident) bool { return standing(open, string(event.CauseDeadEvent), source) }
	return m
}

// success is the share of the attempts of an hour that succeeded, of those that
// the dispatcher judges by too, which opens its incident.
func (s *Signals) success(destination string, from, now time.Time) measured {
	hour := hourOf(destination, from, now, s.opt.Tally)
	all, share := hour.total(), 100.0
	if all > 0 {
		share = 100 * float64(hour.sent) / float64(all)
	}
	m := signal(event.SignalSuccess, destination, share, failingUnder, "percent")
	m.starts, m.ends = all >= leastAttempts && share < failingUnder, share >= failingUnder || all < leastAttempts
	if all < leastAttempts {
		m.Note = fmt.Sprintf("%d attempts within an hour; it needs %d", all, leastAttempts)
	}
	return m
}

// guesses counts the wrong passwords and tokens of an hour.
func (s *Signals) guesses(limit int, now time.Time) measured {
	m := signal(event.SignalGuesses, "", float64(s.opt.Tally.Hour(event.TallyGuesses, "", now)), float64(limit), "logins")
	m.ends = 2*m.Value < m.Threshold
	m.detail = fmt.Sprintf("%.0f logins to the page or requests of its API within an hour had a wrong password or token: somebody guesses, or a program still has a token that was revoked. The log has the addresses: \"login with a wrong password\", \"request with a token that does not hold\". Guesses are slowed down; keep the page on 127.0.0.1 or behind a proxy that admits nobody else.", m.Value)
	return m
}

func (s *Signals) disk(limits config.Signals) measured {
	free := s.opt.Free()
	m := signal(event.SignalDisk, "", float64(free), float64(limits.DiskFree), "bytes")
	m.starts, m.ends = free >= 0 && free < int64(limits.DiskFree), 4*free >= 5*int64(limits.DiskFree)
	m.detail = fmt.Sprintf("%s are free on the disk of the database. Under min_free senders get 503: make room, or move it.", sizeOf(free))
	return m
}

func (s *Signals) wal(limits config.Signals) measured {
	size := s.opt.WAL()
	m := signal(event.SignalWAL, "", float64(size), float64(limits.WALSize), "bytes")
	m.starts, m.ends = limits.WALSize > 0 && size > int64(limits.WALSize), 2*size < int64(limits.WALSize)
	m.detail = fmt.Sprintf("the WAL of the database has %s: something reads an old state of it, such as a backup or an open sqlite3. fuser on the file names it.", sizeOf(size))
	return m
}

// blackout is a time in which nothing could be written, and so nothing told.
type blackout struct {
	from, until time.Time
	why         string
}

func (o *blackout) note(err error, now time.Time) {
	switch {
	case err != nil && (o.from.IsZero() || !o.until.IsZero()):
		*o = blackout{from: now, why: err.Error()}
	case err == nil && !o.from.IsZero() && o.until.IsZero():
		o.until = now
	}
}

func (o *blackout) signal(now time.Time) measured {
	value := time.Duration(0)
	over := !o.until.IsZero() && now.Sub(o.until) >= outageShown
	if !o.from.IsZero() && !over {
		value = later(o.until, o.from).Sub(o.from)
		if o.until.IsZero() {
			value = now.Sub(o.from)
		}
	}
	m := signal(event.SignalStore, "", value.Seconds(), outageLeast.Seconds(), "seconds")
	m.detail = fmt.Sprintf("the database could not be written from %s on: %s. Senders got 503 meanwhile and come again. Look at the disk and the log.",
		o.from.UTC().Format(time.RFC3339), o.why)
	return m
}

// standing tells whether an incident of a family and subject is open.
func standing(open []event.OpenIncident, family, subject string) bool {
	for i := range open {
		if open[i].Cause.Family() == family && open[i].Subject == subject {
			return true
		}
	}
	return false
}

// sinceOf is when a span that ends now began: a text stays true while it lasts.
func sinceOf(now time.Time, seconds float64) string {
	return now.Add(-time.Duration(seconds * float64(time.Second))).UTC().Format(time.RFC3339)
}

func sizeOf(n int64) string {
	if n < 10<<20 {
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
