package app

import (
	"errors"
	"fmt"
	"time"

	"creel/event"
	"creel/jobs"
)

// Signals is what was measured last, the five first signals first.
func (a *App) Signals() []event.Signal { return a.signals.List() }

// buildSignals makes what notices trouble and what tells of it.
func (a *App) buildSignals() {
	a.signals = jobs.NewSignals(jobs.SignalOptions{Store: a.store, Tally: a.tally, Free: a.store.FreeBytes,
		WAL: func() int64 { return a.store.Gauges().WALBytes }, Clock: a.opt.Clock, Log: a.opt.Log, Watch: a.watch})
	a.heartbeat = jobs.NewHeartbeat(a.alert, a.opt.Log)
	a.tellAs(a.snapshot.Load())
}

// tellAs brings thresholds and recipients into force.
func (a *App) tellAs(s *Snapshot) {
	a.signals.Configure(s.Config)
	a.heartbeat.Configure(s.Config.Alerts.Heartbeat, time.Duration(s.Config.Alerts.HeartbeatEvery))
	if len(s.Config.Alerts.To) == 0 {
		a.store.SetTeller(nil)
		return
	}
	a.store.SetTeller(newAlerts(s.Config).tell)
}

// alert is nil while trouble would be noticed and could be told.
func (a *App) alert() error {
	err := errors.Join(a.store.Healthy(), a.signals.Evaluated(), awake(a.worker.Idle()), awake(a.dispatcher.Idle()))
	if err != nil {
		return fmt.Errorf("trouble would not be told: %w", err)
	}
	return nil
}
