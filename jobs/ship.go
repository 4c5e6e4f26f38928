package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"creel/event"
)

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
	if e.finish.State == event.DeliveryDead && e.shipment.Alert == 0 {
		d.tally.Count(event.TallyDeadDeliveries, e.shipment.Destination, 1)
	}
	if e.to != nil {
		e.to.counts.written(&e.shipment, &e.finish)
	}
	if e.to != nil && e.finish.State == event.DeliveryReady && (e.to.due.IsZero() || e.finish.NextAt.Before(e.to.due)) {
		e.to.due = e.finish.NextAt
	}
	d.report(e)
}
