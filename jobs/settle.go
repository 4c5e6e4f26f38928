package jobs

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"creel/event"
)

// settle submits the finishes. When the store can not answer, they stay: the
// same finishes go in again, and the claim makes a second application
// impossible.
func (w *Worker) settle(ctx context.Context, now time.Time, claim int) ([]event.Work, error) {
	finished, claimed, err := w.opt.Inbox.Settle(context.WithoutCancel(ctx), now, w.finishes, claim)
	if err != nil {
		w.failures++
		if w.failures == 1 {
			w.opt.Log.Error().Err(err).Int(event.FieldCount, len(w.finishes)).
				Str(event.FieldHint, "the worker tries again; see the store's own log lines").
				Msg("work could not be settled")
		}
		return nil, err
	}
	w.failures = 0
	written := w.opt.Clock()
	tasks, finishes := w.tasks, w.finishes
	w.tasks, w.finishes = nil, nil
	for i := range finished {
		w.counts.settled(&tasks[i].work, &finishes[i], finished[i].Err, written)
		w.after(&tasks[i], &finishes[i], &finished[i], now)
	}
	return claimed, nil
}

// after hands over the deliveries of a settled event, and gives back the
// dispatcher's places that were not needed.
func (w *Worker) after(t *task, finish *event.Finish, finished *event.Finished, now time.Time) {
	work := &t.work
	unused := map[string]int{}
	for _, effect := range finish.Effects {
		if forward, ok := effect.(event.Forward); ok && forward.Claimed {
			unused[forward.Destination]++
		}
	}
	for i := range finished.Shipments {
		shipment := &finished.Shipments[i]
		shipment.Of(work)
		unused[shipment.Destination]--
	}
	for destination, n := range unused {
		for range n {
			w.opt.Shipper.Unreserve(destination)
		}
	}
	if len(finished.Shipments) > 0 {
		w.opt.Shipper.Hand(finished.Shipments)
	}
	w.settled(t, finish, finished.Err, now)
}

// settled logs how an event ended. What can not be applied now is tried again
// as a failure of the event, so that it ends in the dead letters instead of
// staying claimed.
func (w *Worker) settled(t *task, finish *event.Finish, err error, now time.Time) {
	work := &t.work
	if work.Alone {
		w.slow.alone = nil
	}
	w.slow.settled(t)
	switch {
	case errors.Is(err, event.ErrClaimLost):
		w.line(w.opt.Log.Info(), work).Msg("somebody else settled this event")
	case err != nil && finish.Release:
		w.line(w.opt.Log.Warn(), work).Err(err).Msg("an event could not be given back")
	case errors.Is(err, event.ErrMismatch), errors.Is(err, event.ErrRefused):
		w.died(work, said(err)) // the store has written it
	case errors.Is(err, event.ErrTie) && !t.tied:
		w.tie(t)
	case errors.Is(err, event.ErrNotYet), errors.Is(err, event.ErrTie):
		later := w.failed(work, err.Error(), waiting(finish.Verdicts, err), now)
		t.said = said(err)
		if later.Incident != nil {
			later.Incident.Detail = t.said
		}
		w.amend(t, later)
	case err != nil:
		w.line(w.opt.Log.Error(), work).Err(err).Msg("the store refused the effects of an event")
		w.amend(t, w.failed(work, err.Error(), nil, now))
	case finish.State == event.Dead:
		w.died(work, cmp.Or(t.said, finish.Error))
	case finish.State == event.Pending && !finish.Release:
		w.opt.Tally.Count(event.TallyRetries, work.Key.Source, 1)
		w.line(w.opt.Log.Info(), work).Str(event.FieldReason, cmp.Or(t.said, finish.Error)).
			Time("next_at", finish.NextAt).Msg("event will be tried again")
	default:
		w.line(w.opt.Log.Debug(), work).Str(event.FieldState, string(finish.State)).Msg("event settled")
	}
}

// said is an error of the store for logs and alerts: what it is about and where
// the values are. They stay with the event, because they may be what the
// sender wrote.
func said(err error) string {
	for _, kind := range []error{event.ErrMismatch, event.ErrRefused, event.ErrSlow, event.ErrNotYet, event.ErrOvertaken, event.ErrTie} {
		if errors.Is(err, kind) {
			return kind.Error() + "; creel events shows the values"
		}
	}
	return err.Error()
}

func (w *Worker) died(work *event.Work, reason string) {
	w.opt.Tally.Count(event.TallyDeadEvents, work.Key.Source, 1)
	w.line(w.opt.Log.Error(), work).Str(event.FieldReason, reason).
		Str(event.FieldHint, "repair the cause, then: creel replay "+work.Key.String()).Msg("event is dead")
}

// amend adds a second finish for a claim that still holds.
func (w *Worker) amend(t *task, finish event.Finish) {
	if t.work.Alone {
		w.slow.alone, w.slow.begun = t, true
	}
	w.add(*t, finish)
}

// tie has the object of an event fetched under the same claim.
func (w *Worker) tie(t *task) {
	if w.stopping {
		w.amend(t, w.giveBack(&t.work))
		return
	}
	t.tied, t.first = true, false
	w.slow.again(*t)
}

// waiting are the verdicts of rules that would have been applied and have to
// wait.
func waiting(verdicts []event.Verdict, err error) []event.Verdict {
	out := slices.Clone(verdicts)
	for i := range out {
		if out[i].Decision == event.Applied {
			out[i].Decision, out[i].Reason = event.Later, err.Error()
		}
	}
	return out
}

func (w *Worker) line(line *zerolog.Event, work *event.Work) *zerolog.Event {
	if !line.Enabled() {
		return line
	}
	return line.Str(event.FieldEvent, work.Key.String()).Str(event.FieldType, work.Type).
		Int(event.FieldRun, work.Run).Int(event.FieldAttempt, work.Attempts)
}

// release settles what was decided and gives the rest back with the attempt
// unspent.
func (w *Worker) release() {
	w.stopping = true
	w.stopSlow()
	w.mu.Lock()
	rest := w.handed
	w.handed = nil
	w.mu.Unlock()
	for _, work := range rest {
		w.waived(task{work: work, held: true})
	}
	for range 2 { // the first turn may leave refused finishes
		if len(w.finishes) > 0 {
			_, _ = w.settle(context.Background(), w.opt.Clock(), 0) // settle logs; the next start repairs
		}
	}
}
