package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"creel/admin"
	"creel/event"
	"creel/receiver"
	"creel/store"
)

// stalled is how long a loop may be away before the server says that it is
// not ready. Loops come round at least every half minute.
const stalled = 2 * time.Minute

var errStopping = errors.New("the server is stopping")

// Checks are the conditions under which the server is ready: the store takes
// writes and both loops come round.
func (a *App) Checks() []admin.Check {
	checks := []admin.Check{
		{Name: "store", Err: a.store.Healthy()},
		{Name: "worker", Err: awake(a.worker.Idle())},
		{Name: "dispatcher", Err: awake(a.dispatcher.Idle())},
	}
	if a.stopping.Load() {
		checks = append(checks, admin.Check{Name: "running", Err: errStopping})
	}
	return checks
}

func awake(idle time.Duration) error {
	if idle > stalled {
		return fmt.Errorf("it has not come round for %s", idle.Round(time.Second))
	}
	return nil
}

// Status is what the server knows about itself.
type Status struct {
	Version      string                    `json:"version"`
	Started      time.Time                 `json:"started_at"`
	Listen       string                    `json:"listen"`
	AdminListen  string                    `json:"admin_listen"`
	Ready        admin.Readiness           `json:"ready"`
	Receipts     []receiver.Counts         `json:"receipts"`
	Destinations []event.DestinationHealth `json:"destinations"`
	Incidents    []event.OpenIncident      `json:"incidents"`
	Signals      []event.Signal            `json:"signals"`
	DeadAlerts   []event.Delivery          `json:"dead_alerts"` // that could not be sent, of open incidents
	Stranded     []string                  `json:"stranded"`    // destinations that are gone, with deliveries that wait
	InDoubt      int                       `json:"in_doubt"`    // deliveries that wait for a decision, as far as 500
}

// Status implements admin.Operations.
func (a *App) Status(ctx context.Context) (any, error) {
	destinations, err := a.store.Destinations(ctx)
	if err != nil {
		return nil, err
	}
	incidents, err := a.store.Incidents(ctx, true)
	if err != nil {
		return nil, err
	}
	doubts, err := a.store.Deliveries(ctx, store.DeliveryFilter{State: event.DeliveryInDoubt}, event.Page{Limit: 500})
	if err != nil {
		return nil, err
	}
	waiting, err := a.store.WaitingDestinations(ctx)
	if err != nil {
		return nil, err
	}
	deadAlerts, err := a.store.DeadAlerts(ctx)
	if err != nil {
		return nil, err
	}
	known := a.snapshot.Load().Config.DestinationNames()
	stranded := slices.DeleteFunc(waiting, func(name string) bool { return slices.Contains(known, name) })
	return Status{Stranded: stranded, InDoubt: len(doubts), Version: a.opt.Version, Started: a.started, Listen: a.Listen, AdminListen: a.AdminListen,
		Ready: admin.Report(a.Checks()), Receipts: a.receiver.Counts(), Destinations: destinations, Incidents: incidents,
		Signals: a.Signals(), DeadAlerts: deadAlerts}, nil
}

// tend ends the app when the store can not be trusted any more, and tells
// the supervisor that all is well for as long as it is.
func (a *App) tend() {
	ctx, cancel := context.WithCancel(context.Background())
	a.stack.push(func(context.Context) error { cancel(); return nil })
	interval := watchdogInterval(a.opt.Env)
	if interval == 0 {
		interval = stalled
	}
	go func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case err := <-a.store.Fatal():
				a.fail(err)
				return
			case <-ticker.C:
				// A full disk or a locked database is not mended by a restart; a
				// loop that hangs is.
				if awake(a.worker.Idle()) == nil && awake(a.dispatcher.Idle()) == nil {
					notify(a.opt.Env, "WATCHDOG=1")
				}
			}
		}
	}()
}

// source finds a source of the configuration in force.
func (a *App) source(name string) (receiver.Source, bool) {
	found, ok := a.snapshot.Load().Sources[name]
	return found, ok
}
