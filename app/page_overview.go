package app

import (
	"context"
	"maps"
	"slices"

	"creel/admin/page"
	"creel/config"
	"creel/event"
	"creel/store"
)

// chartMinutes is how many minutes the charts of an hour show.
const chartMinutes = 60

// minutes are counts of the last hour by the minute, the oldest first, of kinds
// added up.
func (d pageData) minutes(subject string, kinds ...event.TallyKind) []int64 {
	now := d.app.opt.Clock().Unix() / 60
	counts := make([]int64, chartMinutes)
	for i := range counts {
		at := now - chartMinutes + 1 + int64(i)
		for _, kind := range kinds {
			counts[i] += d.app.tally.Between(kind, subject, at, at)
		}
	}
	return counts
}

func (d pageData) hour(subject string, kinds []event.TallyKind) map[string]int64 {
	now := d.app.opt.Clock()
	counts := make(map[string]int64, len(kinds))
	for _, kind := range kinds {
		counts[string(kind)] = d.app.tally.Hour(kind, subject, now)
	}
	if refused, of := counts[string(event.TallyUnverified)]; of { // one figure says how many came to nothing
		counts[string(event.TallyRejects)] += refused
	}
	return counts
}

// Sources implements page.Data.
func (d pageData) Sources(ctx context.Context) ([]page.Source, error) {
	snapshot := d.app.snapshot.Load()
	kinds, _, _ := event.TallyKinds()
	list := make([]page.Source, 0, len(snapshot.Config.Sources))
	for i := range snapshot.Config.Sources {
		cfg := &snapshot.Config.Sources[i]
		one := page.Source{Name: cfg.Name, Provider: cfg.Provider, Path: "/in/" + cfg.Name, Forward: cfg.Forward,
			Last: d.app.tally.Last(event.TallyReceipts, cfg.Name), Hour: d.hour(cfg.Name, kinds),
			Minutes: d.minutes(cfg.Name, event.TallyReceipts)}
		if one.Last.IsZero() { // not counted since this server first started
			last, _, err := d.app.store.LastOf(ctx, cfg.Name)
			if err != nil {
				return nil, err
			}
			one.Last = last
		}
		if compiled := snapshot.Sources[cfg.Name]; compiled != nil {
			if contract, ok := compiled.Contract(); ok {
				one.Facts = contract.Facts()
			}
		}
		list = append(list, one)
	}
	return list, nil
}

// Health implements page.Data.
func (d pageData) Health(ctx context.Context) (map[string]event.DestinationHealth, error) {
	list, err := d.app.store.Destinations(ctx)
	known := make(map[string]event.DestinationHealth, len(list))
	for _, h := range list {
		known[h.Name] = h
	}
	return known, err
}

// Destinations implements page.Data: those of the configuration, and those that
// are gone from it and still have a row.
func (d pageData) Destinations(ctx context.Context) ([]page.Destination, error) {
	known, err := d.Health(ctx)
	if err != nil {
		return nil, err
	}
	cfg := d.app.snapshot.Load().Config
	_, kinds, _ := event.TallyKinds()
	var list []page.Destination
	for _, name := range cfg.DestinationNames() {
		h, ok := known[name]
		if !ok {
			h = event.DestinationHealth{Name: name, State: event.DestinationEnabled}
		}
		delete(known, name)
		if last := d.app.tally.Last(event.TallySent, name); last.After(h.LastSuccess) {
			h.LastSuccess = last // health is stored when it changes, and not with every success
		}
		list = append(list, page.Destination{DestinationHealth: h, Configured: true, Kind: kindOf(cfg, name), Place: d.place(name),
			Hour: d.hour(name, kinds), Minutes: d.minutes(name, event.TallySent, event.TallyFailed)})
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		list = append(list, page.Destination{DestinationHealth: known[name], Hour: map[string]int64{}})
	}
	return list, nil
}

func kindOf(cfg *config.Config, name string) string {
	if name == event.Mail {
		return "mail"
	}
	own := cfg.Destinations[name]
	return string(own.Kind())
}

// place is where a destination leads, as its carrier shows it: without what is
// secret.
func (d pageData) place(name string) string {
	for _, route := range d.app.snapshot.Load().Routes {
		if route.Name == name {
			if shown, ok := route.Carrier.(interface{ String() string }); ok {
				return shown.String()
			}
		}
	}
	return ""
}

// Server implements page.Data.
func (d pageData) Server(ctx context.Context) (page.Server, error) {
	a := d.app
	census, err := a.store.Census(ctx)
	if err != nil {
		return page.Server{}, err
	}
	waiting, err := a.store.WaitingDestinations(ctx)
	if err != nil {
		return page.Server{}, err
	}
	known := a.snapshot.Load().Config.DestinationNames()
	return page.Server{
		Version: a.opt.Version, Started: a.started, Database: a.opt.Config.Database, WAL: a.store.Gauges().WALBytes,
		Free: a.store.FreeBytes(), Checks: a.Checks(), Events: census.Events, Outbox: outbox(census),
		Stranded: slices.DeleteFunc(waiting, func(name string) bool { return slices.Contains(known, name) }),
	}, nil
}

// outbox adds the destinations of a census up.
func outbox(c store.Census) map[event.DeliveryState]int64 {
	sum := map[event.DeliveryState]int64{}
	for _, of := range c.Deliveries {
		for state, n := range of {
			sum[state] += n
		}
	}
	return sum
}
