package jobs

import (
	"context"
	"fmt"
	"time"

	"creel/event"
)

// watch looks at how the destinations do whose attempts have ended.
func (d *Dispatcher) watch(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, to := range d.destinations {
		rest := to.due.IsZero() && !to.look && len(to.queue) == 0 && to.flying+to.reserved == 0 && len(d.ended) == 0
		if change := to.health.watch(now, rest, d.tally); change != nil {
			d.changed(to, *change)
		}
	}
}

// giveUp makes dead letters of what has waited longer than its destination
// allows, whatever it waited for. It looks again when the oldest that waits now
// may have waited too long, and now and then, because some come back to wait
// that are older: it may be late by a sixteenth.
func (d *Dispatcher) giveUp(ctx context.Context, now time.Time) error {
	for _, to := range d.sorted() {
		d.mu.Lock()
		after, due := to.GiveUpAfter, !to.giveUp.After(now)
		d.mu.Unlock()
		if after <= 0 || !due {
			continue
		}
		oldest, waits, err := d.opt.Outbox.OldestDelivery(ctx, to.name)
		if err == nil && waits && !now.Before(oldest.Add(after)) {
			if err = d.giveUpOn(ctx, now, to, after); err == nil {
				oldest, waits, err = d.opt.Outbox.OldestDelivery(ctx, to.name)
			}
		}
		if err != nil {
			return fmt.Errorf("giving up on deliveries: %w", err)
		}
		again := now.Add(max(after/16, time.Second))
		if waits && oldest.Add(after).Before(again) {
			again = latest(oldest.Add(after), now.Add(time.Millisecond))
		}
		d.mu.Lock()
		to.giveUp = again
		d.mu.Unlock()
	}
	return nil
}

func (d *Dispatcher) giveUpOn(ctx context.Context, now time.Time, to *destination, after time.Duration) error {
	reason := fmt.Sprintf("it waited longer than give_up_after = %s", after)
	n, err := d.opt.Outbox.GiveUp(ctx, now, to.name, now.Add(-after), reason)
	d.tally.Count(event.TallyDeadDeliveries, to.name, n)
	if n > 0 {
		d.mu.Lock()
		to.look = true
		d.mu.Unlock()
		d.opt.Log.Error().Str(event.FieldDestination, to.name).Int(event.FieldCount, n).Str(event.FieldReason, reason).
			Str(event.FieldHint, "creel replay --destination "+to.name+" --state dead, once it answers").Msg("deliveries were given up")
	}
	return err
}
