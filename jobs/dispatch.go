package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"creel/event"
)

// Step does what is due at now: it keeps what changed about destinations,
// writes what ended and claims what can go out in one transaction, and starts
// attempts. It does not wait for them. It returns when it wants to be called
// again; zero says that only a wake-up can bring work.
func (d *Dispatcher) Step(ctx context.Context, now time.Time) (time.Time, error) {
	next, err := d.step(context.WithoutCancel(ctx), now)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		d.failures = 0
		return next, nil
	}
	d.failures++
	if d.failures == 1 {
		d.opt.Log.Error().Err(err).Int(event.FieldCount, len(d.ended)).
			Str(event.FieldHint, "the dispatcher tries again; see the store's own log lines").
			Msg("deliveries could not be settled")
	}
	return now, err
}

func (d *Dispatcher) step(ctx context.Context, now time.Time) (time.Time, error) {
	if err := d.noticeClock(ctx); err != nil {
		return now, err
	}
	if err := d.save(ctx, now); err != nil {
		return now, err
	}
	if err := d.refresh(ctx); err != nil {
		return now, err
	}
	d.noticeDue(d.drainReady())
	if err := d.giveUp(ctx, now); err != nil {
		return now, err
	}
	if err := d.read(ctx); err != nil {
		return now, err
	}
	if err := d.ship(ctx, now); err != nil {
		return now, err
	}
	d.watch(now)
	d.noticeDue(d.drainReady()) // the end of one may have let the next of its lane go
	return d.next(now), nil
}

// noticeClock moves what was planned by a clock that has been set since: the
// times of the destinations, and the attempts that are not written yet.
func (d *Dispatcher) noticeClock(ctx context.Context) error {
	steps, err := d.opt.Watch.Look(ctx)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	step := steps.since(&d.steps)
	if step == (Steps{}) {
		return nil
	}
	for _, to := range d.destinations {
		to.look, to.giveUp = true, time.Time{}
		to.health.follow(step)
	}
	if step.Back == 0 {
		return nil
	}
	for i := range d.saves {
		d.saves[i].health = shifted(d.saves[i].health, -step.Back)
	}
	now := d.opt.Clock()
	for i := range d.ended {
		finish := &d.ended[i].finish
		end := finish.Attempt.Start.Round(0).Add(finish.Attempt.Duration)
		// What ended since the step is by the new time already.
		if end.After(now.Add(clockSlack)) || finish.Release && finish.NextAt.After(now) {
			finish.Attempt.Start, finish.NextAt = moved(finish.Attempt.Start, -step.Back), moved(finish.NextAt, -step.Back)
		}
	}
	return nil
}

// save writes changes of health, oldest first, before the finishes that
// belong to them: a crash between leaves a held destination whose deliveries
// are still claimed, which the next start gives back.
func (d *Dispatcher) save(ctx context.Context, now time.Time) error {
	for {
		d.mu.Lock()
		if len(d.saves) == 0 {
			d.mu.Unlock()
			return nil
		}
		change := d.saves[0]
		d.mu.Unlock()
		err := d.opt.Outbox.SaveDestination(ctx, now, change.health, change.trouble, change.over)
		paused := errors.Is(err, event.ErrClaimLost) // by its owner, whose word counts
		if err != nil && !paused {
			return fmt.Errorf("saving destination %s: %w", change.health.Name, err)
		}
		d.mu.Lock()
		d.saves = d.saves[1:]
		d.stale = d.stale || paused
		d.mu.Unlock()
	}
}

// refresh reads the destinations where somebody else changed them.
func (d *Dispatcher) refresh(ctx context.Context) error {
	d.mu.Lock()
	stale := d.stale
	d.stale = false
	d.mu.Unlock()
	if !stale {
		return nil
	}
	stored, err := d.opt.Outbox.Destinations(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.stale = true
		return fmt.Errorf("reading destinations: %w", err)
	}
	if len(d.saves) > 0 {
		d.stale = true // what we know is newer: it is saved first
		return nil
	}
	byName := make(map[string]event.DestinationHealth, len(stored))
	for _, health := range stored {
		byName[health.Name] = health
	}
	for name, to := range d.destinations {
		health, known := byName[name]
		if !known {
			health = to.DestinationHealth
		}
		d.adopt(to, health)
	}
	return nil
}

func (d *Dispatcher) adopt(to *destination, health event.DestinationHealth) {
	before := to.State
	to.health.adopt(health, d.tally)
	to.look = true
	if !to.isOpen() {
		d.giveBackQueue(to)
	}
	if before != to.State {
		d.opt.Log.Info().Str(event.FieldDestination, to.Route.Name).Str(event.FieldState, string(to.State)).
			Str(event.FieldReason, to.Reason).Msg("destination changed")
	}
}

// drainReady takes a wake-up that came while a step was about to run.
func (d *Dispatcher) drainReady() bool {
	select {
	case <-d.opt.Outbox.DeliveriesReady():
		return true
	default:
		return false
	}
}

func (d *Dispatcher) noticeDue(woken bool) {
	if woken {
		d.lookAgain()
	}
}

// read asks the store for the earliest ready delivery of each destination that
// may have one. It only reads: an idle server writes nothing.
func (d *Dispatcher) read(ctx context.Context) error {
	for _, to := range d.sorted() {
		d.mu.Lock()
		look := to.look
		to.look = false
		d.mu.Unlock()
		if !look {
			continue
		}
		due, ok, err := d.opt.Outbox.NextDelivery(ctx, to.name)
		if !ok {
			due = time.Time{}
		}
		d.mu.Lock()
		if err == nil {
			to.due = due
		}
		to.look = to.look || err != nil
		d.mu.Unlock()
		if err != nil {
			return fmt.Errorf("looking for deliveries of %s: %w", to.name, err)
		}
	}
	return nil
}

func (d *Dispatcher) sorted() []*destination {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.SortedFunc(maps.Values(d.destinations), func(a, b *destination) int {
		return cmp.Compare(a.name, b.name)
	})
}

// next is when a step has something to do again.
func (d *Dispatcher) next(now time.Time) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	var next time.Time
	sooner := func(at time.Time) {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	if len(d.ended) > 0 || len(d.saves) > 0 || d.stale {
		return now
	}
	for _, to := range d.destinations {
		if to.look {
			return now
		}
		if at, ok := d.wantsAt(to, now); ok {
			sooner(at)
		}
		if to.isOpen() && to.isTroubled() { // the hour moves on
			sooner(now.Truncate(time.Minute).Add(time.Minute))
		}
		if to.GiveUpAfter > 0 {
			sooner(latest(to.giveUp, now))
		}
	}
	return next
}

// wantsAt is when a destination can do more than it does, while no attempt
// ends and nothing new comes.
func (d *Dispatcher) wantsAt(to *destination, now time.Time) (time.Time, bool) {
	if at, waits := to.probeAt(); waits && !to.due.IsZero() {
		return latest(at, to.due, to.nextToken(now)), true
	}
	waiting := len(to.queue) > 0
	if !to.isOpen() || !waiting && to.due.IsZero() {
		return time.Time{}, false
	}
	at := to.due
	if waiting {
		at = now
	}
	if to.flying+to.reserved < to.limit(to.most, now) {
		return latest(at, to.nextToken(now)), true
	}
	if end := to.Since.Add(gentle); to.limit(to.most, now) < to.most && end.After(now) {
		return latest(at, end), true
	}
	return time.Time{}, false // the end of an attempt wakes us
}

func latest(times ...time.Time) time.Time {
	return slices.MaxFunc(times, time.Time.Compare)
}
