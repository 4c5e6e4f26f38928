package jobs

import (
	"fmt"
	"runtime/debug"
	"time"

	"creel/deliver"
	"creel/event"
	"creel/path"
)

// startAll starts what waits at every destination.
func (d *Dispatcher) startAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, to := range d.destinations {
		d.start(to)
	}
}

// start begins attempts while there are places and deliveries, with mu held.
func (d *Dispatcher) start(to *destination) {
	for {
		next, ok := d.nextFor(to)
		if !ok {
			return
		}
		go d.carry(to, next)
	}
}

// departure is a delivery that goes out, with whoever carried for its
// destination in that moment: a reload may send another for those after it.
type departure struct {
	event.Shipment
	carrier Carrier
}

// nextFor takes the next delivery that may go out, and its place, with mu held.
func (d *Dispatcher) nextFor(to *destination) (departure, bool) {
	if len(to.queue) == 0 || d.stopping {
		return departure{}, false
	}
	now := d.opt.Clock()
	if !to.queue[0].Probe && to.free(to.limit(to.most, now), now) < 1 {
		return departure{}, false
	}
	to.flight.start(now)
	d.flying++
	return departure{to.pop(), to.Carrier}, true
}

// carry makes one attempt after another while its place has work: the next
// delivery does not wait for the end of the last one to be written.
func (d *Dispatcher) carry(to *destination, next departure) {
	for ok := true; ok; {
		result := d.attempt(next.carrier, next.Shipment)
		d.mu.Lock()
		d.end(to, next.Shipment, result)
		to.flying--
		d.flying--
		next, ok = d.nextFor(to)
		d.mu.Unlock()
		d.signal()
	}
}

// attempt makes one attempt. A panic is our own bug; it must not take the
// other deliveries with it, so it ends this one in the dead letters.
func (d *Dispatcher) attempt(by Carrier, s event.Shipment) (result deliver.Result) {
	start := d.opt.Clock()
	defer func() {
		if cause := recover(); cause != nil {
			d.line(d.opt.Log.Error(), &s).Interface(event.FieldReason, cause).
				Bytes("stack", debug.Stack()).Msg("an attempt panicked")
			result = deliver.Result{Attempt: event.Attempt{Delivery: s.ID, Run: s.Run, Number: s.Tries, Spent: true,
				Start: start, Outcome: event.Permanent, Error: "the attempt panicked; see the log"}}
		}
	}()
	return d.discreet(&s, by.Attempt(d.air, s, start))
}

// discreet takes out of what is kept of an attempt what the source of its event
// hides: an answer may repeat what it was sent.
func (d *Dispatcher) discreet(s *event.Shipment, result deliver.Result) deliver.Result {
	if d.opt.Hidden == nil || result.Attempt.Error == "" && result.Attempt.Answer == "" {
		return result
	}
	if texts := d.opt.Hidden(s.Event.Source, s.Payload); len(texts) > 0 {
		result.Attempt.Error, result.Attempt.Answer = path.TakeOut(result.Attempt.Error, texts), path.TakeOut(result.Attempt.Answer, texts)
	}
	return result
}

// end judges a result, with mu held.
func (d *Dispatcher) end(to *destination, s event.Shipment, result deliver.Result) {
	if d.air.Err() != nil && !result.Wrote && !result.Answered() && result.Attempt.Outcome == event.Transient {
		d.giveBack(to, s) // the stop interrupted it, not the destination
		return
	}
	if ahead := endOf(result).Round(0).Sub(d.opt.Clock().Round(0)); ahead > clockSlack {
		// The clock was set back meanwhile: what comes after goes by what it says.
		result.Attempt.Start = moved(result.Attempt.Start, -ahead)
	}
	if d.air.Err() == nil {
		to.count(result, d.tally)
		if change := to.note(&s, result); change != nil {
			d.changed(to, *change)
		}
	}
	finish := d.judge(to, &s, result)
	s.Payload = event.Payload{} // a body is not needed to write the end
	d.ended = append(d.ended, ended{to: to, shipment: s, finish: finish})
}

// changed follows a change of health: it is to be saved, and what waits for a
// place goes back.
func (d *Dispatcher) changed(to *destination, change saving) {
	d.saves = append(d.saves, change)
	line := d.opt.Log.Info()
	switch {
	case change.trouble != nil && (!to.isOpen() || change.trouble.Cause == event.CauseDestinationFailing):
		line = d.opt.Log.Error().Str(event.FieldCause, string(change.trouble.Cause)).
			Str(event.FieldHint, "repair the destination; creel resume "+to.Route.Name+" enables it at once")
	case change.over == nil && !to.isOpen():
		line = d.opt.Log.Debug()
	}
	line = line.Str(event.FieldDestination, to.Route.Name).Str(event.FieldState, string(change.health.State)).
		Str(event.FieldReason, change.health.Reason)
	if !change.health.ProbeAt.IsZero() {
		line = line.Time("probe_at", change.health.ProbeAt)
	}
	line.Msg("destination changed")
	if to.isOpen() {
		to.look = true
		return
	}
	d.giveBackQueue(to)
}

// giveBackQueue gives back, unspent, what was claimed and has not started,
// with mu held.
func (d *Dispatcher) giveBackQueue(to *destination) {
	for len(to.queue) > 0 {
		d.giveBack(to, to.pop())
	}
	to.queue = nil
}

// giveBack releases one claim unspent, with mu held. The delivery keeps its
// place in the order.
func (d *Dispatcher) giveBack(to *destination, s event.Shipment) {
	if to != nil && s.Probe {
		to.probing = false
	}
	s.Payload = event.Payload{}
	d.ended = append(d.ended, ended{to: to, shipment: s, finish: event.DeliveryFinish{
		ID: s.ID, Claim: s.Claim, Alert: s.Alert, State: event.DeliveryReady, NextAt: d.placeOf(&s), Release: true}})
	d.signal()
}

// placeOf is the time that keeps a delivery's place in the order. It was due
// when it was claimed, so it is now, whatever the clock says since.
func (d *Dispatcher) placeOf(s *event.Shipment) time.Time {
	at, now := s.NextAt, d.opt.Clock()
	if at.IsZero() {
		at = s.CreatedAt
	}
	if at.After(now) {
		return now
	}
	return at
}

// judge says what becomes of a delivery after an attempt, with mu held and
// the health already counted.
func (d *Dispatcher) judge(to *destination, s *event.Shipment, result deliver.Result) event.DeliveryFinish {
	finish := event.DeliveryFinish{ID: s.ID, Claim: s.Claim, Alert: s.Alert, Attempt: result.Attempt}
	outcome := result.Attempt.Outcome
	if outcome == event.Unknown && !to.InDoubt(s.Doubts+1) {
		outcome = event.Transient
	}
	switch outcome {
	case event.OK:
		finish.State = event.DeliverySent
	case event.Unknown:
		finish.State = event.DeliveryInDoubt
	case event.Transient:
		return d.later(to, s, result, finish)
	case event.Permanent:
		if s.Probe && result.Answered() && !result.Gone && to.State == event.DestinationDisabled {
			// It refuses everybody, which says nothing about this one.
			return d.later(to, s, result, finish)
		}
		return dead(s, finish, !result.Gone)
	default:
		return dead(s, finish, !result.Gone)
	}
	finish.Attempt.Spent = true
	return finish
}

// later puts a delivery back for its next attempt, while it has one.
func (d *Dispatcher) later(to *destination, s *event.Shipment, result deliver.Result, finish event.DeliveryFinish) event.DeliveryFinish {
	finish.State = event.DeliveryReady
	end := endOf(result)
	switch {
	case s.Probe:
		// It asked a question and spent nothing: it stays first in the order.
		finish.Attempt.Spent = false
		finish.NextAt = d.placeOf(s)
	case s.Attempts < to.Policy.Attempts:
		finish.NextAt = to.Policy.Next(s.Attempts, end, result.RetryAfter, d.opt.Jitter())
	case !to.isOpen() && !result.Answered():
		// The outage took its last attempt: it waits for the end of the outage
		// like the others, and gets one more.
		finish.NextAt = ceilMilli(end)
	default:
		return dead(s, finish, true)
	}
	return finish
}

func dead(s *event.Shipment, finish event.DeliveryFinish, alert bool) event.DeliveryFinish {
	finish.State = event.DeliveryDead
	finish.Attempt.Spent = true
	if alert && s.Alert == 0 { // that an alert could not be sent is not told by another
		finish.Incident = &event.Incident{Cause: event.CauseDeadDelivery, Subject: s.Destination,
			Detail: fmt.Sprintf("attempt %d of %s failed: %s; repair the cause, then: creel replay %s",
				s.Tries, s.Key, finish.Attempt.Error, s.Event)}
	}
	return finish
}
