package jobs

import (
	"creel/event"
)

// Reserve promises a place to a delivery that is about to be born claimed. It
// refuses where the delivery would have to wait in the store: the destination
// is unknown or not open, has neither a place nor room ahead of its places nor
// rate left, or others are due before it.
func (d *Dispatcher) Reserve(name string) bool {
	now := d.opt.Clock()
	d.mu.Lock()
	defer d.mu.Unlock()
	to := d.destinations[name]
	switch {
	case to == nil || d.stopping || d.stale || !to.isOpen():
		return false
	case to.look || !to.due.IsZero() && !to.due.After(now):
		return false
	case to.wants(to.limit(to.most, now), now) < 1:
		return false
	}
	to.reserved++
	if to.limiter != nil {
		to.limiter.AllowN(now, 1)
	}
	return true
}

// Unreserve gives a place back, and its token of the rate: what was not born,
// because it was applied already, must not keep others.
func (d *Dispatcher) Unreserve(name string) {
	now := d.opt.Clock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if to := d.destinations[name]; to != nil && to.reserved > 0 {
		to.reserved--
		if to.limiter != nil {
			to.limiter.AllowN(now, -1)
		}
	}
	d.signal()
}

// Hand takes deliveries that were born claimed in places of Reserve. They
// start as soon as a place is free, unless their destination closed meanwhile:
// then they go back unspent.
func (d *Dispatcher) Hand(shipments []event.Shipment) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range shipments {
		to := d.destinations[s.Destination]
		if to != nil && to.reserved > 0 {
			to.reserved--
		}
		if to == nil || d.stopping || !to.isOpen() {
			d.giveBack(to, s)
			continue
		}
		to.push(s)
		if next, ok := d.nextReserved(to); ok {
			go d.carry(to, next)
		}
	}
}

// nextReserved is nextFor for a delivery whose token of the rate was taken
// when its place was reserved, with mu held.
func (d *Dispatcher) nextReserved(to *destination) (departure, bool) {
	if to.limiter == nil {
		return d.nextFor(to)
	}
	// With a rate nothing is reserved beyond the places.
	to.flying++
	d.flying++
	return departure{to.pop(), to.Carrier}, true
}
