package app

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"time"

	"creel/admin"
	"creel/event"
	"creel/receiver"
	"creel/source"
)

// The labels of what the configuration does not name: all of it together. No
// name of the configuration has parentheses.
const (
	unknownSource      = "(unknown)" // requests that name no source
	removedDestination = "(removed)" // deliveries to destinations that are gone
)

// Metrics implements admin.Operations: what the server counts, from memory,
// from indexes of the database by one step each, and from the file system.
// Only what the configuration in force names has series.
func (a *App) Metrics(ctx context.Context, to *admin.Exposition) {
	now, snapshot := a.opt.Clock(), a.snapshot.Load()
	to.Count(admin.MetricBuild, 1, a.opt.Version, runtime.Version())
	for _, check := range a.Checks() {
		to.Flag(admin.MetricReady, check.Err == nil, check.Name)
	}
	to.Value(admin.MetricLoopIdle, a.worker.Idle().Seconds(), "worker")
	to.Value(admin.MetricLoopIdle, a.dispatcher.Idle().Seconds(), "dispatcher")
	a.measureSources(to, snapshot)
	a.measureWorker(ctx, to, now)
	a.measureDestinations(ctx, to, now)
	a.measureCensus(to, snapshot, now)
	a.measureSignals(to)
	a.measureGaps(ctx, to, snapshot)
	a.measureStore(to)
	to.Process(a.started)
}

// measureSources tells of the requests to each source.
func (a *App) measureSources(to *admin.Exposition, snapshot *Snapshot) {
	counts := map[string]receiver.Counts{}
	for _, c := range a.receiver.Counts() {
		counts[c.Source] = c
	}
	ofSource, ofStranger := receiver.OtherResults()
	for _, s := range snapshot.Config.Sources {
		c, heard := counts[s.Name]
		to.Count(admin.MetricReceipts, c.Receipts(), s.Name)
		for _, result := range receiver.EventResults() {
			to.Count(admin.MetricEvents, c.Events[result], s.Name, result)
		}
		for _, cause := range source.Causes() {
			to.Count(admin.MetricRejects, c.Rejects[string(cause)], s.Name, string(cause))
		}
		for _, result := range ofSource {
			to.Count(admin.MetricAnswers, c.Results[result.Name], s.Name, result.Name, result.Class)
		}
		to.Time(admin.MetricLastReceipt, a.lastReceipt(&c, s.Name), s.Name)
		if heard {
			to.Histogram(admin.MetricAcknowledgment, c.Latency, s.Name)
		}
	}
	for _, result := range ofStranger {
		to.Count(admin.MetricAnswers, counts[""].Results[result.Name], unknownSource, result.Name, result.Class)
	}
	to.Count(admin.MetricBodies, a.receiver.Memory())
}

// measureWorker tells of the events that were processed.
func (a *App) measureWorker(ctx context.Context, to *admin.Exposition, now time.Time) {
	c := a.worker.Counts()
	to.Count(admin.MetricProcessed, c.Done, "done")
	to.Count(admin.MetricProcessed, c.Ignored, "ignored")
	to.Count(admin.MetricProcessed, c.Dead, "dead")
	to.Count(admin.MetricProcessed, c.Later, "retry")
	to.Histogram(admin.MetricProcessing, c.Latency)
	if due, some, err := a.store.NextEvent(ctx); err == nil {
		to.Value(admin.MetricEventOverdue, overdue(due, some, now))
	}
}

// measureDestinations tells of the deliveries to each destination.
func (a *App) measureDestinations(ctx context.Context, to *admin.Exposition, now time.Time) {
	for _, c := range a.dispatcher.Counts() {
		for _, state := range []event.DeliveryState{event.DeliverySent, event.DeliveryDead, event.DeliveryInDoubt} {
			to.Count(admin.MetricDeliveries, c.Ends[state], c.Name, string(state))
			to.Count(admin.MetricAlerts, c.Alerts[state], c.Name, string(state))
		}
		for _, outcome := range event.Outcomes() {
			to.Count(admin.MetricAttempts, c.First[outcome], c.Name, "first", string(outcome))
			to.Count(admin.MetricAttempts, c.Again[outcome], c.Name, "again", string(outcome))
		}
		to.Histogram(admin.MetricAttemptTime, c.Attempts, c.Name)
		to.Histogram(admin.MetricDeliveryLatency, c.Latency, c.Name)
		for _, state := range event.DestinationStates() {
			to.Flag(admin.MetricDestination, c.State == state, c.Name, string(state))
		}
		to.Count(admin.MetricOutbox, int64(c.Sending), c.Name, string(event.DeliverySending))
		if due, some, err := a.store.NextDelivery(ctx, c.Name); err == nil {
			to.Value(admin.MetricDeliveryOverdue, overdue(due, some, now), c.Name)
		}
	}
}

// measureCensus tells how much is open and dead, once it was counted.
func (a *App) measureCensus(to *admin.Exposition, snapshot *Snapshot, now time.Time) {
	c := a.census.counts(now)
	if c.at.IsZero() {
		return
	}
	to.Time(admin.MetricCensus, c.at)
	for _, state := range []event.State{event.Pending, event.Claimed, event.Dead} {
		to.Count(admin.MetricInbox, c.Events[state], string(state))
	}
	counted := []event.DeliveryState{event.DeliveryReady, event.DeliveryWaiting, event.DeliveryInDoubt, event.DeliveryDead}
	removed := map[event.DeliveryState]int64{}
	for name, of := range c.Deliveries {
		if !snapshot.routed(name) {
			for state, n := range of {
				removed[state] += n
			}
		}
	}
	for _, state := range counted {
		for _, route := range snapshot.Routes {
			to.Count(admin.MetricOutbox, c.Deliveries[route.Name][state], route.Name, string(state))
		}
		to.Count(admin.MetricOutbox, removed[state], removedDestination, string(state))
	}
	for _, cause := range slices.Sorted(maps.Keys(c.Incidents)) {
		to.Count(admin.MetricIncidents, c.Incidents[cause], string(cause))
	}
}

// lastReceipt is when a source was last heard: to the millisecond since the
// start, to the minute before.
func (a *App) lastReceipt(c *receiver.Counts, name string) time.Time {
	if !c.Last.IsZero() {
		return c.Last
	}
	return a.tally.Last(event.TallyReceipts, name)
}

// measureSignals tells what the signals measured last.
func (a *App) measureSignals(to *admin.Exposition) {
	for _, s := range a.Signals() {
		to.Flag(admin.MetricSignal, s.Firing, string(s.Name), s.Subject)
		to.Value(admin.MetricSignalValue, s.Value, string(s.Name), s.Subject)
		if s.Threshold != 0 {
			to.Value(admin.MetricSignalThreshold, s.Threshold, string(s.Name), s.Subject)
		}
	}
}

// measureGaps tells what reconciliation last found.
func (a *App) measureGaps(ctx context.Context, to *admin.Exposition, snapshot *Snapshot) {
	gaps, err := a.store.Gaps(ctx)
	if err != nil {
		return
	}
	for _, gap := range gaps {
		if snapshot.Sources[gap.Source] != nil {
			to.Count(admin.MetricGap, int64(gap.Missing), gap.Source)
			to.Time(admin.MetricGapAt, gap.At, gap.Source)
		}
	}
}

// measureStore tells of the database.
func (a *App) measureStore(to *admin.Exposition) {
	if sizes, err := a.store.Sizes(); err == nil {
		to.Count(admin.MetricDatabase, sizes.Database)
		to.Count(admin.MetricWAL, sizes.WAL)
		to.Count(admin.MetricFree, sizes.Free)
	}
	g := a.store.Gauges()
	to.Value(admin.MetricBatches, float64(g.Batches))
	to.Value(admin.MetricUnits, float64(g.Units))
	to.Value(admin.MetricReruns, float64(g.Reruns))
	to.Value(admin.MetricTroubles, float64(g.Troubles))
	to.Count(admin.MetricQueue, int64(g.QueuedIntake), "intake")
	to.Count(admin.MetricQueue, int64(g.QueuedWork), "work")
	to.Histogram(admin.MetricCommit, g.CommitTime)
	to.Value(admin.MetricCheckpoints, float64(g.Checkpoints-g.CheckpointsPartial-g.CheckpointErrors), "complete")
	to.Value(admin.MetricCheckpoints, float64(g.CheckpointsPartial), "partial")
	to.Value(admin.MetricCheckpoints, float64(g.CheckpointErrors), "failed")
	to.Histogram(admin.MetricCheckpointDuration, g.CheckpointTime)
}

// overdue is how long something is past due, in seconds.
func overdue(due time.Time, some bool, now time.Time) float64 {
	if !some {
		return 0
	}
	return max(now.Sub(due).Seconds(), 0)
}

// routed tells whether the configuration has a destination of that name.
func (s *Snapshot) routed(name string) bool {
	for i := range s.Routes {
		if s.Routes[i].Name == name {
			return true
		}
	}
	return false
}
