package app

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"creel/config"
	"creel/event"
	"creel/jobs"
	"creel/meter"
	"creel/receiver"
	"creel/store"
)

// Statistics are figures about a server, or about a database without one.
type Statistics struct {
	At time.Time `json:"at"`
	// Live says that a running server told them; else they are read from the
	// file, which lacks what is counted in memory alone.
	Live         bool            `json:"live"`
	Started      time.Time       `json:"started_at,omitzero"`
	Signals      []event.Signal  `json:"signals"`             // the five first signals first
	Measured     time.Time       `json:"signals_at,omitzero"` // when they were measured, which a server does every 30 s; zero where it is still to come
	Sources      []SourceFigures `json:"sources"`
	Destinations []RouteFigures  `json:"destinations"`
	Events       EventFigures    `json:"events"`
	Database     DatabaseFigures `json:"database"`
	Incidents    int             `json:"open_incidents"`
	Counted      time.Time       `json:"counted_at,omitzero"` // when what waits was counted; zero where it is not yet

	// What they are made of.
	census store.Census
	tally  jobs.Counter
	due    dueTimes
	health []event.DestinationHealth
}

// dueTimes tell what is due next; *store.Reader is one.
type dueTimes interface {
	NextEvent(ctx context.Context) (time.Time, bool, error)
	NextDelivery(ctx context.Context, destination string) (time.Time, bool, error)
}

// SourceFigures are about one source in the last hour.
type SourceFigures struct {
	Name       string  `json:"source"`
	Receipts   int64   `json:"receipts"` // verified requests
	Events     int64   `json:"events"`   // that were new
	Duplicates int64   `json:"duplicates"`
	Conflicts  int64   `json:"conflicts"`
	Rejects    int64   `json:"rejects"` // requests that failed verification, or were refused before it
	Dead       int64   `json:"dead_events"`
	Retries    int64   `json:"retries"`           // attempts at events that will be made again
	Share      float64 `json:"duplicate_percent"` // of the events that came
	// Last is its last receipt, to the minute where it is from before the start.
	Last time.Time `json:"last_receipt_at,omitzero"`
	// Answered is how long its receipts took, since the start.
	Answered *Quantiles `json:"answered,omitempty"`
}

// RouteFigures are about one destination in the last hour, and its latencies
// since the start.
type RouteFigures struct {
	Name     string                 `json:"destination"`
	State    event.DestinationState `json:"state"`
	Since    time.Time              `json:"since,omitzero"`
	Reason   string                 `json:"reason,omitempty"`
	Attempts int64                  `json:"attempts"`
	Success  float64                `json:"success_percent"` // of the attempts; 100 where there was none
	Dead     int64                  `json:"dead_deliveries"`
	Waiting  int64                  `json:"waiting"` // ready, or behind another in a lane
	Stuck    int64                  `json:"dead"`    // all dead ones
	Doubtful int64                  `json:"in_doubt"`
	Overdue  float64                `json:"overdue_seconds"` // how long the oldest one is past due
	LastSent time.Time              `json:"last_success_at,omitzero"`
	// FirstTry is the share that was sent by the first attempt, since the start.
	FirstTry *float64   `json:"first_try_percent,omitempty"`
	Attempt  *Quantiles `json:"attempt,omitempty"`  // how long attempts took
	Delivery *Quantiles `json:"delivery,omitempty"` // from the receipt to the end of the attempt that was sent
}

// Quantiles sum durations up, in milliseconds.
type Quantiles struct {
	Count int64   `json:"count"`
	P50   float64 `json:"p50_ms"`
	P95   float64 `json:"p95_ms"`
	P99   float64 `json:"p99_ms"`
}

// EventFigures are about all events.
type EventFigures struct {
	Pending int64 `json:"pending"` // claimed ones too
	Dead    int64 `json:"dead"`
	// Overdue is how long the oldest one is past due, in seconds.
	Overdue float64 `json:"overdue_seconds"`
	// Processed is how long events took from the receipt to the commit of what
	// their rules decided, since the start.
	Processed *Quantiles `json:"processed,omitempty"`
}

// DatabaseFigures are sizes in bytes.
type DatabaseFigures struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	WAL   int64  `json:"wal_bytes"`
	Free  int64  `json:"free_bytes,omitempty"` // on its disk
}

// Statistics implements admin.Figures: from memory, and by look-ups.
func (a *App) Statistics(ctx context.Context) (any, error) {
	snapshot, counted := a.snapshot.Load(), a.census.counts(a.opt.Clock())
	s := Statistics{At: a.opt.Clock().UTC(), Live: true, Started: a.started.UTC(), Counted: counted.at,
		census: counted.Census, tally: a.tally, due: a.store.Reader}
	s.Signals, s.Measured = a.signals.Measured()
	s.Measured = s.Measured.UTC()
	var err error
	if s.health, err = a.store.Destinations(ctx); err != nil {
		return nil, err
	}
	if err := s.read(ctx, snapshot.Config); err != nil {
		return nil, err
	}
	s.addCounts(a.receiver.Counts(), a.worker.Counts(), a.dispatcher.Counts())
	if sizes, err := a.store.Sizes(); err == nil {
		s.Database = DatabaseFigures{Path: snapshot.Config.Database, Bytes: sizes.Database, WAL: sizes.WAL, Free: sizes.Free}
	}
	return s, nil
}

// read fills in what the tallies, the census and the due times say.
func (s *Statistics) read(ctx context.Context, cfg *config.Config) error {
	due, some, err := s.due.NextEvent(ctx)
	if err != nil {
		return err
	}
	s.Events = EventFigures{Pending: s.census.Events[event.Pending] + s.census.Events[event.Claimed], Dead: s.census.Events[event.Dead],
		Overdue: overdue(due, some, s.At)}
	for _, n := range s.census.Incidents {
		s.Incidents += int(n)
	}
	s.Sources = []SourceFigures{}
	for i := range cfg.Sources {
		s.Sources = append(s.Sources, s.source(cfg.Sources[i].Name))
	}
	s.Destinations = []RouteFigures{}
	for _, name := range cfg.DestinationNames() {
		route, err := s.route(ctx, name)
		if err != nil {
			return err
		}
		s.Destinations = append(s.Destinations, route)
	}
	return nil
}

func (s *Statistics) source(name string) SourceFigures {
	hour := func(kind event.TallyKind) int64 { return s.tally.Hour(kind, name, s.At) }
	f := SourceFigures{Name: name, Receipts: hour(event.TallyReceipts), Events: hour(event.TallyNew), Duplicates: hour(event.TallyDuplicates),
		Conflicts: hour(event.TallyConflicts), Rejects: hour(event.TallyRejects) + hour(event.TallyUnverified), Dead: hour(event.TallyDeadEvents),
		Retries: hour(event.TallyRetries), Last: s.tally.Last(event.TallyReceipts, name)}
	if all := f.Events + f.Duplicates + f.Conflicts; all > 0 {
		f.Share = percent(f.Duplicates, all)
	}
	return f
}

func (s *Statistics) route(ctx context.Context, name string) (RouteFigures, error) {
	sent, failed := s.tally.Hour(event.TallySent, name, s.At), s.tally.Hour(event.TallyFailed, name, s.At)
	f := RouteFigures{Name: name, State: event.DestinationEnabled, Attempts: sent + failed, Success: 100,
		Dead: s.tally.Hour(event.TallyDeadDeliveries, name, s.At)}
	if f.Attempts > 0 {
		f.Success = percent(sent, f.Attempts)
	}
	of := s.census.Deliveries[name]
	f.Waiting = of[event.DeliveryReady] + of[event.DeliveryWaiting]
	f.Stuck, f.Doubtful = of[event.DeliveryDead], of[event.DeliveryInDoubt]
	if i := slices.IndexFunc(s.health, func(h event.DestinationHealth) bool { return h.Name == name }); i >= 0 {
		h := s.health[i]
		f.State, f.Since, f.Reason, f.LastSent = h.State, h.Since, h.Reason, h.LastSuccess
	}
	if last := s.tally.Last(event.TallySent, name); last.After(f.LastSent) {
		f.LastSent = last
	}
	due, some, err := s.due.NextDelivery(ctx, name)
	f.Overdue = overdue(due, some, s.At)
	return f, err
}

// addCounts adds what a server counts in memory.
func (s *Statistics) addCounts(sources []receiver.Counts, events jobs.EventCounts, routes []jobs.RouteCounts) {
	for i := range s.Sources {
		f := &s.Sources[i]
		if at := slices.IndexFunc(sources, func(c receiver.Counts) bool { return c.Source == f.Name }); at >= 0 {
			f.Answered = quantiles(sources[at].Latency)
			if last := sources[at].Last; last.After(f.Last) {
				f.Last = last.UTC()
			}
		}
	}
	s.Events.Processed = quantiles(events.Latency)
	for i := range s.Destinations {
		f := &s.Destinations[i]
		at := slices.IndexFunc(routes, func(c jobs.RouteCounts) bool { return c.Name == f.Name })
		if at < 0 {
			continue
		}
		c := routes[at]
		f.State, f.Attempt, f.Delivery = c.State, quantiles(c.Attempts), quantiles(c.Latency)
		first := int64(0)
		for _, n := range c.First {
			first += n
		}
		if first > 0 {
			share := percent(c.First[event.OK], first)
			f.FirstTry = &share
		}
	}
}

func percent(part, whole int64) float64 { return 100 * float64(part) / float64(whole) }

func quantiles(r meter.Reading) *Quantiles {
	if r.Count == 0 {
		return nil
	}
	ms := func(q float64) float64 { return float64(r.Quantile(q).Microseconds()) / 1000 }
	return &Quantiles{Count: r.Count, P50: ms(0.5), P95: ms(0.95), P99: ms(0.99)}
}

// ReadStatistics reads what the file of a database tells, beside a running
// server or without one. The signals are measured as the server would, once
// and without opening or ending an incident.
func ReadStatistics(ctx context.Context, reader *store.Reader, cfg *config.Config, clock func() time.Time) (Statistics, error) {
	tally := jobs.NewTally(jobs.TallyOptions{Store: onlyRead{reader}, Clock: clock, Log: zerolog.Nop()})
	tally.Configure(sourceNames(cfg), cfg.DestinationNames())
	if err := tally.Restore(ctx); err != nil {
		return Statistics{}, err
	}
	census, err := reader.Census(ctx)
	if err != nil {
		return Statistics{}, err
	}
	s := Statistics{At: clock().UTC(), Counted: clock().UTC(), census: census, tally: tally, due: reader,
		Database: DatabaseFigures{Path: cfg.Database, Bytes: sizeOf(cfg.Database), WAL: sizeOf(cfg.Database + "-wal")}}
	if s.health, err = reader.Destinations(ctx); err != nil {
		return Statistics{}, err
	}
	signals := jobs.NewSignals(jobs.SignalOptions{Store: onlyRead{reader}, Tally: tally, Free: func() int64 { return -1 },
		WAL: func() int64 { return s.Database.WAL }, Clock: clock, Log: zerolog.Nop()})
	signals.Configure(cfg)
	if err := signals.Step(ctx, s.At); err != nil {
		return Statistics{}, err
	}
	s.Signals, s.Measured = signals.Measured()
	return s, s.read(ctx, cfg)
}

func sizeOf(name string) int64 {
	file, err := os.Stat(name)
	if err != nil {
		return 0 // there is no WAL after a clean stop
	}
	return file.Size()
}

// onlyRead is a database to which nothing is written.
type onlyRead struct{ *store.Reader }

func (onlyRead) SaveTallies(context.Context, time.Time, []event.MinuteCount, time.Duration) error {
	return nil
}
func (onlyRead) SaveRhythms(context.Context, []event.Rhythm, int64, int64) error   { return nil }
func (onlyRead) RaiseIncident(context.Context, time.Time, event.Incident) error    { return nil }
func (onlyRead) SayIncident(context.Context, time.Time, event.Incident) error      { return nil }
func (onlyRead) EndIncident(context.Context, time.Time, event.Cause, string) error { return nil }
func (onlyRead) KeepIncidents(context.Context, time.Time) error                    { return nil }
func (onlyRead) Healthy() error                                                    { return nil }
