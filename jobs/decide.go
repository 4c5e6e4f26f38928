package jobs

import (
	"context"
	"fmt"
	"time"

	"creel/event"
)

// decide runs the rules on one event and turns what they say into its finish.
func (w *Worker) decide(ctx context.Context, work event.Work, now time.Time) event.Finish {
	policy := w.opt.Policy()
	if work.Attempts > policy.Attempts {
		// Only an attempt that ended with the process leaves the count above
		// the policy's: every other one was settled.
		finish := w.dead(&work, fmt.Sprintf("the process stopped during attempt %d of %d", policy.Attempts, policy.Attempts), nil, now)
		finish.Release = true
		return finish
	}
	decision := w.opt.Rules().Decide(ctx, work)
	switch decision.State {
	case event.Pending:
		if ctx.Err() != nil {
			return giveBack(work) // the stop interrupted it, not the event
		}
		return w.failed(&work, decision.Error, decision.Verdicts, now)
	case event.Dead:
		return w.dead(&work, decision.Error, decision.Verdicts, now)
	}
	effects := decision.Effects
	for i, effect := range effects {
		if forward, ok := effect.(event.Forward); ok {
			forward.Claimed = w.opt.Shipper.Reserve(forward.Destination)
			effects[i] = forward
		}
	}
	return event.Finish{Seq: work.Seq, Key: work.Key, Claim: work.Claim, Run: work.Run, State: decision.State,
		Error: decision.Error, Verdicts: decision.Verdicts, Effects: effects}
}

// failed is the finish of an attempt that may succeed later: on the schedule
// while there are attempts left, else dead.
func (w *Worker) failed(work *event.Work, reason string, verdicts []event.Verdict, now time.Time) event.Finish {
	policy := w.opt.Policy()
	if work.Attempts >= policy.Attempts {
		return w.dead(work, reason, verdicts, now)
	}
	end := w.opt.Clock()
	if end.Before(now) {
		end = now
	}
	return event.Finish{Seq: work.Seq, Key: work.Key, Claim: work.Claim, Run: work.Run, State: event.Pending,
		Error: reason, NextAt: policy.Next(work.Attempts, end, 0, w.opt.Jitter()), Verdicts: verdicts}
}

func (w *Worker) dead(work *event.Work, reason string, verdicts []event.Verdict, now time.Time) event.Finish {
	if len(verdicts) == 0 {
		verdicts = []event.Verdict{{Seq: work.Seq, Run: work.Run, Decision: event.Failed, Reason: reason, At: now}}
	}
	return event.Finish{Seq: work.Seq, Key: work.Key, Claim: work.Claim, Run: work.Run, State: event.Dead,
		Error: reason, Verdicts: verdicts,
		Incident: &event.Incident{Cause: event.CauseDeadEvent, Subject: work.Key.Source, Detail: reason}}
}

func giveBack(work event.Work) event.Finish {
	return event.Finish{Seq: work.Seq, Key: work.Key, Claim: work.Claim, Run: work.Run, State: event.Pending,
		NextAt: work.ReceivedAt, Release: true}
}
