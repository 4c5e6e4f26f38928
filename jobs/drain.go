package jobs

import (
	"context"
	"time"
)

// drainTries is how often a stop offers what ended to a store that fails.
const drainTries = 3

// drain ends the dispatcher: nothing starts, what flies may end within the
// grace, what is still unwritten then is interrupted and given back unspent,
// and what was written follows on_doubt. What can not be stored is taken back
// at the next start.
func (d *Dispatcher) drain() {
	d.mu.Lock()
	d.stopping = true
	for _, to := range d.destinations {
		d.giveBackQueue(to)
	}
	d.mu.Unlock()
	grace := time.NewTimer(d.opt.Grace)
	defer grace.Stop()
	for tries := 0; tries < drainTries && !d.settled(); {
		var again <-chan time.Time
		if next, err := d.Step(context.Background(), d.opt.Clock()); err != nil {
			tries++
			again = time.After(d.pause(next, err))
		} else if d.settled() {
			break
		}
		select {
		case <-d.wake:
		case <-again:
		case <-grace.C:
			d.cancel()
		}
	}
	d.cancel()
}

// settled tells whether nothing flies and nothing waits to be written.
func (d *Dispatcher) settled() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.flying == 0 && len(d.ended) == 0 && len(d.saves) == 0
}
