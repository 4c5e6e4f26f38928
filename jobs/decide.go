package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"creel/deliver"
	"creel/event"
	"creel/handlers"
)

// unreadable is when an event comes again that could not be decided because the
// store could not be read.
const unreadable = time.Second

// decide runs the rules on one event and turns what they say into its finish.
func (w *Worker) decide(ctx context.Context, t *task, now time.Time) event.Finish {
	policy := w.opt.Policy()
	work := &t.work
	if work.Attempts > policy.Attempts {
		// Only an attempt that ended with the process leaves the count above
		// the policy's: every other one was settled.
		finish := w.dead(work, fmt.Sprintf("the process stopped during attempt %d of %d", policy.Attempts, policy.Attempts), nil, now)
		finish.Release = true
		return finish
	}
	rules := w.opt.Rules()
	asked := int64(0)
	if rules.Slow(&work.Event) { // it may ask for an object
		var err error
		if asked, err = w.opt.Inbox.NextTransition(context.WithoutCancel(ctx)); err != nil {
			later := w.giveBack(work) // trouble of the store, which its own log tells: not the event's
			later.NextAt = ceilMilli(w.opt.Clock().Add(unreadable))
			return later
		}
	}
	var decision handlers.Decision
	if t.tied {
		decision = rules.DecideTied(ctx, *work)
	} else {
		decision = rules.Decide(ctx, *work)
	}
	if len(decision.Fetch) > 0 {
		var failure *event.Finish
		if decision, failure = w.fetch(ctx, rules, work, decision, now); failure != nil {
			return *failure
		}
	}
	switch decision.State {
	case event.Pending:
		if ctx.Err() != nil {
			return w.giveBack(work) // the stop interrupted it, not the event
		}
		return w.failed(work, decision.Error, decision.Verdicts, now)
	case event.Dead:
		return w.dead(work, decision.Error, decision.Verdicts, now)
	}
	effects := decision.Effects
	for i, effect := range effects {
		switch e := effect.(type) {
		case event.Forward:
			e.Claimed = w.opt.Shipper.Reserve(e.Destination)
			effects[i] = e
		case event.SetState:
			if e.Fetched {
				e.Asked = asked
				effects[i] = e
			}
		}
	}
	return event.Finish{Seq: work.Seq, Key: work.Key, Claim: work.Claim, Run: work.Run, State: decision.State,
		Error: decision.Error, Verdicts: decision.Verdicts, Effects: effects}
}

// errAsksAgain is our own bug: rules that ask for what they were given.
var errAsksAgain = errors.New("the rule asks again for the object that it got")

// fetch asks for what the rules have to see, until they can decide. The event
// stays claimed meanwhile, and with it the place at the head of its lane: so
// nothing else of its object is fetched or applied before this is settled.
func (w *Worker) fetch(ctx context.Context, rules Rules, work *event.Work, decision handlers.Decision, now time.Time) (handlers.Decision, *event.Finish) {
	timed := ctx
	if limit := w.opt.Timeout(); limit > 0 {
		var cancel context.CancelFunc
		timed, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	answers := map[string][]byte{}
	for len(decision.Fetch) > 0 {
		for _, request := range decision.Fetch {
			answer, err := []byte(nil), errAsksAgain
			if _, answered := answers[request.Rule]; !answered {
				answer, err = rules.Fetch(timed, request)
			}
			if err != nil {
				finish := w.unfetched(ctx, work, request.Rule, err, now)
				return decision, &finish
			}
			answers[request.Rule] = answer
		}
		decision = rules.DecideFetched(ctx, *work, answers)
	}
	return decision, nil
}

// unfetched is the finish of an event whose object could not be had.
func (w *Worker) unfetched(ctx context.Context, work *event.Work, rule string, err error, now time.Time) event.Finish {
	if ctx.Err() != nil {
		return w.giveBack(work)
	}
	reason := fmt.Sprintf("fetch: %v", err)
	verdict := event.Verdict{Seq: work.Seq, Run: work.Run, Rule: rule, Decision: event.Failed, Reason: reason, At: now}
	var failure *deliver.FetchError
	if !errors.As(err, &failure) || failure.Permanent {
		return w.dead(work, rule+": "+reason, []event.Verdict{verdict}, now)
	}
	finish := w.failedUntil(work, rule+": "+reason, nil, now, failure.RetryAfter)
	if finish.State == event.Pending {
		verdict.Decision = event.Later
	}
	finish.Verdicts = []event.Verdict{verdict}
	return finish
}

// failed is the finish of an attempt that may succeed later: on the schedule
// while there are attempts left, else dead.
func (w *Worker) failed(work *event.Work, reason string, verdicts []event.Verdict, now time.Time) event.Finish {
	return w.failedUntil(work, reason, verdicts, now, 0)
}

// failedUntil is failed where the other side asked to be left alone for a time.
func (w *Worker) failedUntil(work *event.Work, reason string, verdicts []event.Verdict, now time.Time, asked time.Duration) event.Finish {
	policy := w.opt.Policy()
	if work.Attempts >= policy.Attempts {
		return w.dead(work, reason, verdicts, now)
	}
	end := w.opt.Clock() // before now, where the clock was set back meanwhile
	return event.Finish{Seq: work.Seq, Key: work.Key, Claim: work.Claim, Run: work.Run, State: event.Pending,
		Error: reason, NextAt: policy.Next(work.Attempts, end, asked, w.opt.Jitter()), Verdicts: verdicts}
}

func (w *Worker) dead(work *event.Work, reason string, verdicts []event.Verdict, now time.Time) event.Finish {
	if len(verdicts) == 0 {
		verdicts = []event.Verdict{{Seq: work.Seq, Run: work.Run, Decision: event.Failed, Reason: reason, At: now}}
	}
	return event.Finish{Seq: work.Seq, Key: work.Key, Claim: work.Claim, Run: work.Run, State: event.Dead,
		Error: reason, Verdicts: verdicts,
		Incident: &event.Incident{Cause: event.CauseDeadEvent, Subject: work.Key.Source, Detail: reason}}
}

// giveBack is the finish of an event that was not tried. It keeps its place in
// the order; it was due, so it is now, whatever the clock says since.
func (w *Worker) giveBack(work *event.Work) event.Finish {
	at := work.ReceivedAt
	if now := w.opt.Clock(); at.After(now) {
		at = now
	}
	return event.Finish{Seq: work.Seq, Key: work.Key, Claim: work.Claim, Run: work.Run, State: event.Pending,
		NextAt: at, Release: true}
}
