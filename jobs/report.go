package jobs

import (
	"strconv"

	"github.com/rs/zerolog"

	"creel/event"
)

// report logs what became of a delivery. Failed attempts are no errors of ours:
// only the end of a delivery in the dead letters is.
func (d *Dispatcher) report(e *ended) {
	attempt := &e.finish.Attempt
	switch {
	case e.finish.State == event.DeliveryDead && e.shipment.Alert != 0:
		status(d.line(d.opt.Log.Error(), &e.shipment), attempt).
			Str(event.FieldOutcome, string(attempt.Outcome)).Str(event.FieldReason, attempt.Error).
			Str(event.FieldHint, "nobody was told: see creel health, and repair what the alert was to go to").Msg("an alert could not be sent")
	case e.finish.Release:
		d.line(d.opt.Log.Debug(), &e.shipment).Msg("delivery given back unsent")
	case e.finish.State == event.DeliverySent:
		d.line(d.opt.Log.Debug(), &e.shipment).Int(event.FieldStatus, attempt.Status).
			Int64(event.FieldDuration, attempt.Duration.Milliseconds()).Msg("delivery sent")
	case e.finish.State == event.DeliveryReady:
		status(d.line(d.opt.Log.Info(), &e.shipment), attempt).
			Str(event.FieldOutcome, string(attempt.Outcome)).Str(event.FieldReason, attempt.Error).
			Time("next_at", e.finish.NextAt).Msg("delivery will be tried again")
	case e.finish.State == event.DeliveryInDoubt:
		d.line(d.opt.Log.Warn(), &e.shipment).Str(event.FieldReason, attempt.Error).
			Str(event.FieldHint, "ask the destination whether it arrived, then: creel resolve sent|again|dead "+strconv.FormatInt(e.shipment.ID, 10)).Msg("delivery is in doubt")
	default:
		status(d.line(d.opt.Log.Error(), &e.shipment), attempt).
			Str(event.FieldOutcome, string(attempt.Outcome)).Str(event.FieldReason, attempt.Error).
			Str(event.FieldHint, "repair the cause, then: creel replay "+e.shipment.Event.String()).Msg("delivery is dead")
	}
}

// status adds the HTTP status, where an answer came.
func status(line *zerolog.Event, attempt *event.Attempt) *zerolog.Event {
	if attempt.Status == 0 {
		return line
	}
	return line.Int(event.FieldStatus, attempt.Status)
}

func (d *Dispatcher) line(line *zerolog.Event, s *event.Shipment) *zerolog.Event {
	if !line.Enabled() {
		return line
	}
	if s.Alert != 0 {
		line = line.Int64("incident", s.Alert)
	} else {
		line = line.Str(event.FieldEvent, s.Event.String())
	}
	return line.Str(event.FieldKey, s.Key).Str(event.FieldRule, s.Rule).
		Str(event.FieldDestination, s.Destination).Int64(event.FieldDelivery, s.ID).
		Int(event.FieldRun, s.Run).Int(event.FieldAttempt, s.Tries)
}
