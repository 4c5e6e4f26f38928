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
	if err := d.save(ctx, now); err != nil {
		return now, err
	}
	if err := d.refresh(ctx); err != nil {
		return now, err
	}
	d.noticeDue(d.drainReady())
	if err := d.read(ctx); err != nil {
		return now, err
	}
	if err := d.ship(ctx, now); err != nil {
		return now, err
	}
	return d.next(now), nil
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
		err := d.opt.Outbox.SaveDestination(ctx, now, change.health, change.open, change.resolve)
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
	to.health.adopt(health)
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
		due, ok, err := d.opt.Outbox.NextDelivery(ctx, to.Route.Name)
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
			return fmt.Errorf("looking for deliveries of %s: %w", to.Route.Name, err)
		}
	}
	return nil
}

func (d *Dispatcher) sorted() []*destination {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.SortedFunc(maps.Values(d.destinations), func(a, b *destination) int {
		return cmp.Compare(a.Route.Name, b.Route.Name)
	})
}

// ship writes the finishes and claims in one transaction. A crash before its
// commit leaves both the ended deliveries and those to be claimed as they
// were; a crash after it leaves claims that the next start takes back. When
// the store can not answer, the finishes stay and go in again: their claims
// make a second application impossible.
func (d *Dispatcher) ship(ctx context.Context, now time.Time) error {
	d.mu.Lock()
	batch := d.ended
	d.ended = nil
	claims := d.claims(now)
	d.mu.Unlock()
	if len(batch) == 0 && len(claims) == 0 {
		d.startAll()
		return nil
	}
	finishes := make([]event.DeliveryFinish, len(batch))
	for i := range batch {
		finishes[i] = batch[i].finish
	}
	results, shipments, err := d.opt.Outbox.Ship(ctx, now, finishes, claims)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.ended = append(batch, d.ended...)
		for _, claim := range claims {
			if to := d.destinations[claim.Destination]; to != nil && claim.Probe {
				to.probing = false
			}
		}
		return fmt.Errorf("shipping: %w", err)
	}
	for i := range batch {
		d.written(&batch[i], resultAt(results, i))
	}
	d.take(claims, shipments)
	for _, to := range d.destinations {
		d.start(to)
	}
	return nil
}

func resultAt(results []error, i int) error {
	if i < len(results) {
		return results[i]
	}
	return nil
}

// claims are the deliveries to ask for at now, with mu held.
func (d *Dispatcher) claims(now time.Time) []event.ShipmentClaim {
	if d.stopping {
		return nil
	}
	var claims []event.ShipmentClaim
	for name, to := range d.destinations {
		if to.due.IsZero() || to.due.After(now) {
			continue
		}
		if at, waits := to.probeAt(); waits && !at.After(now) && to.tokens(now) > 0 {
			to.probing = true
			claims = append(claims, event.ShipmentClaim{Destination: name, Max: 1, Probe: true})
		}
		if n := to.wants(to.limit(to.most, now), now); to.isOpen() && n > 0 {
			claims = append(claims, event.ShipmentClaim{Destination: name, Max: n})
		}
	}
	slices.SortFunc(claims, func(a, b event.ShipmentClaim) int { return cmp.Compare(a.Destination, b.Destination) })
	return claims
}

// take puts claimed deliveries into the queues of their destinations, with mu
// held. Fewer than asked says that no more are due.
func (d *Dispatcher) take(claims []event.ShipmentClaim, shipments []event.Shipment) {
	got, probes := map[string]int{}, map[string]bool{}
	for _, claim := range claims {
		probes[claim.Destination] = claim.Probe
	}
	for _, s := range shipments {
		s.Probe = probes[s.Destination]
		got[s.Destination]++
		to := d.destinations[s.Destination]
		if to == nil || d.stopping || !to.isOpen() && !s.Probe {
			d.giveBack(to, s) // it closed while the claim was written
			continue
		}
		to.push(s)
	}
	for _, claim := range claims {
		to := d.destinations[claim.Destination]
		if to == nil {
			continue
		}
		if got[claim.Destination] < claim.Max {
			to.look = true
		}
		if claim.Probe && got[claim.Destination] == 0 {
			to.probing = false
		}
	}
}

// written follows up a finish that is in the store, with mu held.
func (d *Dispatcher) written(e *ended, err error) {
	switch {
	case errors.Is(err, event.ErrClaimLost):
		d.line(d.opt.Log.Info(), &e.shipment).Msg("somebody else settled this delivery")
		return
	case err != nil:
		d.line(d.opt.Log.Error(), &e.shipment).Err(err).
			Str(event.FieldHint, "it stays claimed until the next start takes it back").Msg("the store refused the end of a delivery")
		return
	}
	if e.to != nil && e.finish.State == event.DeliveryReady && (e.to.due.IsZero() || e.finish.NextAt.Before(e.to.due)) {
		e.to.due = e.finish.NextAt
	}
	d.report(e)
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
