package jobs

import (
	"fmt"
	"slices"
	"time"

	"creel/deliver"
	"creel/event"
)

// When a destination is held, and how it is found again.
const (
	holdSilent   = 3 // attempts in a row without any HTTP answer
	holdFailures = 5 // transient failures in a row …
	holdEvents   = 3 // … over at least so many events

	firstProbe    = 5 * time.Second
	longestProbe  = 5 * time.Minute
	disabledProbe = 15 * time.Minute
	// gentle is how long a destination gets half of its in-flight limit after
	// it came back by itself, which the reason of its state tells. One that its
	// owner resumed gets all of it.
	gentle   = time.Minute
	cameBack = "it answers again"
	// mostOvertaken bounds the deliveries that are remembered as overtaken.
	mostOvertaken = 16
)

// health is what is known about a destination: the state that the store keeps,
// and the counts that lead to the next one. The counts do not outlive a
// restart; a destination that is still down is held again after three attempts.
type health struct {
	event.DestinationHealth
	measure
	silent   int       // attempts in a row without any HTTP answer
	failed   int       // transient failures in a row
	first    time.Time // when the first of them began
	alives   int       // answers in a row that prove that it is there
	failedAt time.Time // when the last transient failure ended
	refused  string    // the last answer that refused a delivery for good
	events   []int64   // the first holdEvents different events among them
	probing  bool      // a probe is in the air

	// Deliveries that were sent and not answered: since the last sign of life,
	// and those that failed so while another one was answered. The silence of
	// the latter may be their own: a body on which the receiver breaks.
	unanswered, overtaken []int64
}

// saving is a change of health on its way into the store.
type saving struct {
	health  event.DestinationHealth
	trouble *event.Incident // what is wrong now
	over    *event.Incident // nothing is, any more
}

// adopt takes over what the store says. The last success may be newer than
// that: it is saved with a change only.
func (h *health) adopt(stored event.DestinationHealth, tally *Tally) {
	if stored.State == "" {
		stored.State = event.DestinationEnabled
	}
	if stored.State != h.State {
		h.forget()
	}
	stored.LastSuccess = latest(h.LastSuccess, stored.LastSuccess, tally.Last(event.TallySent, stored.Name))
	h.DestinationHealth = stored
	h.lastFailure = latest(h.lastFailure, tally.Last(event.TallyFailed, stored.Name))
}

func (h *health) forget() {
	h.first = time.Time{}
	h.silent, h.failed, h.events, h.unanswered = 0, 0, nil, nil
}

// open tells whether deliveries go out.
func (h *health) isOpen() bool { return h.State == event.DestinationEnabled }

// isProbed tells whether probes ask for it: not after it said itself that it
// wants no more.
func (h *health) isProbed() bool {
	return h.State == event.DestinationHeld || h.State == event.DestinationDisabled && !h.ProbeAt.IsZero()
}

// probeAt is when a probe may go out, while one may at all.
func (h *health) probeAt() (time.Time, bool) {
	return h.ProbeAt, h.isProbed() && !h.probing && !h.ProbeAt.IsZero()
}

// follow moves the times of the state, because the clock was set. What was over
// before a step ahead did not last any longer because of it; a probe is due.
func (h *health) follow(step Steps) {
	if step.Back != 0 {
		h.DestinationHealth = shifted(h.DestinationHealth, -step.Back)
		h.lastFailure, h.first, h.failedAt = moved(h.lastFailure, -step.Back), moved(h.first, -step.Back), moved(h.failedAt, -step.Back)
	}
	if step.Ahead != 0 {
		h.Since, h.lastFailure = moved(h.Since, step.Ahead), moved(h.lastFailure, step.Ahead)
	}
}

// shifted is the health of a destination by a clock that was set back, as the
// store has it too.
func shifted(d event.DestinationHealth, by time.Duration) event.DestinationHealth {
	d.Since, d.ProbeAt, d.MeasuredFrom = moved(d.Since, by), moved(d.ProbeAt, by), moved(d.MeasuredFrom, by)
	return d
}

// limit is the in-flight limit that holds at now.
func (h *health) limit(most int, now time.Time) int {
	if h.Reason == cameBack && now.Before(h.Since.Add(gentle)) {
		return (most + 1) / 2
	}
	return most
}

// note follows the end of an attempt and says what has to be saved, if anything
// has. It is called in the order in which the attempts ended.
func (h *health) note(s *event.Shipment, result deliver.Result) *saving {
	end, outcome := endOf(result), result.Attempt.Outcome
	if s.Probe {
		h.probing = false
	}
	if outcome == event.OK {
		h.LastSuccess = end
	}
	alive := result.Alive || outcome == event.OK || outcome == event.Permanent && result.Answered()
	switch {
	case result.Gone:
		return h.gone(end, result.Attempt.Error)
	case outcome == event.Permanent && !result.Answered():
		return nil // it never left: nothing is known about the destination
	case h.State == event.DestinationDisabled && !(s.Probe && outcome == event.OK):
		return h.failure(s, result, end) // any answer but a success is what it was disabled for
	case alive:
		if outcome == event.Permanent {
			h.refused = result.Attempt.Error
		}
		h.overtake(s.ID)
		return h.alive(end)
	case result.Attempt.Start.Before(h.Since) && !s.Probe:
		return nil // it was in the air before the state changed
	case h.isOwnFault(s, result):
		return nil
	}
	return h.failure(s, result, end)
}

// overtake notes that a delivery was answered, after others were not.
func (h *health) overtake(id int64) {
	h.overtaken = append(h.overtaken, h.unanswered...)
	h.overtaken = slices.DeleteFunc(h.overtaken, func(other int64) bool { return other == id })
	h.overtaken = h.overtaken[max(len(h.overtaken)-mostOvertaken, 0):]
	h.unanswered = nil
}

// isOwnFault tells whether a failure says nothing about the destination: the
// request arrived and broke off, as before, while another delivery was answered
// in between and none has failed since. It spends its attempts like an event
// that alone gets 5xx; an outage is seen by any other delivery, or by the
// connection that is refused.
func (h *health) isOwnFault(s *event.Shipment, result deliver.Result) bool {
	if result.Answered() || !result.Wrote {
		return false
	}
	if h.isOpen() && h.failed == 0 && slices.Contains(h.overtaken, s.ID) {
		return true
	}
	if len(h.unanswered) < mostOvertaken && !slices.Contains(h.unanswered, s.ID) && !slices.Contains(h.overtaken, s.ID) {
		h.unanswered = append(h.unanswered, s.ID)
	}
	return false
}

// alive follows an answer that proves that the destination is there. The
// incident stays open until it is known to last.
func (h *health) alive(end time.Time) *saving {
	h.forget()
	h.alives++
	if !h.isProbed() {
		return nil
	}
	h.alives = 1
	detail := fmt.Sprintf("it was %s (%s) and answers again since %s", h.State, h.Reason, end.UTC().Format(time.RFC3339))
	h.State, h.Since, h.Reason = event.DestinationEnabled, end, cameBack
	h.ProbeAt, h.ProbeDelay = time.Time{}, 0
	h.back = score{}
	if !h.isTroubled() {
		return &saving{health: h.DestinationHealth}
	}
	change := h.turn(h.Trouble, detail)
	change.trouble.DownUntil = end
	return change
}

// down turns to a cause that lets nothing through, since the first failure in a
// row.
func (h *health) down(cause event.Cause, end time.Time, detail string) *saving {
	change := h.turn(cause, detail)
	if change.trouble.DownFrom = h.first; h.first.IsZero() {
		change.trouble.DownFrom = end
	}
	return change
}

// gone disables the destination until its owner resumes it: it said itself
// that it wants no more, so it is not probed either.
func (h *health) gone(end time.Time, reason string) *saving {
	defer h.forget()
	if h.State == event.DestinationDisabled && h.ProbeAt.IsZero() || h.State == event.DestinationPaused {
		return nil
	}
	h.State, h.Since, h.Reason = event.DestinationDisabled, end, fmt.Sprintf("%s; %s", reason, h.lastSuccess())
	h.ProbeAt, h.ProbeDelay = time.Time{}, 0
	return h.down(event.CauseDestinationGone, end,
		fmt.Sprintf("%s; it is disabled, and what waits for it stays: creel resume %s sends again", h.Reason, h.Name))
}

// failure counts a transient or unknown failure: it may begin a hold, or tell
// that a probe found nobody.
func (h *health) failure(s *event.Shipment, result deliver.Result, end time.Time) *saving {
	if h.failed == 0 {
		h.first = result.Attempt.Start
	}
	h.alives, h.failedAt = 0, end
	h.failed++
	h.silent++
	if result.Answered() {
		h.silent = 0
	}
	if len(h.events) < holdEvents && !slices.Contains(h.events, s.EventSeq) {
		h.events = append(h.events, s.EventSeq)
	}
	switch {
	case h.isOpen() && (h.silent >= holdSilent || h.failed >= holdFailures && len(h.events) >= holdEvents):
		return h.hold(result, end)
	case !s.Probe || !h.isProbed():
		return nil
	case h.State == event.DestinationDisabled:
		h.probeAfter(disabledProbe, result, end)
	case end.Sub(h.Since) >= disableAfter:
		return h.disable(end, fmt.Sprintf("no attempt succeeded for %s: %s", end.Sub(h.Since).Round(time.Minute), result.Attempt.Error), result)
	default:
		h.Reason = result.Attempt.Error
		h.probeAfter(min(max(2*h.ProbeDelay, firstProbe), longestProbe), result, end)
	}
	return &saving{health: h.DestinationHealth}
}

func (h *health) hold(result deliver.Result, end time.Time) *saving {
	h.State, h.Since, h.Reason = event.DestinationHeld, end, result.Attempt.Error
	h.probeAfter(firstProbe, result, end)
	return h.down(event.CauseDestinationDown, end, fmt.Sprintf("%s; %s; its deliveries wait and spend no attempts, and probes will find it again",
		h.Reason, h.lastSuccess()))
}

// disable stops a destination that has failed for an hour. Only a success of a
// probe, or its owner, enables it again.
func (h *health) disable(now time.Time, reason string, result deliver.Result) *saving {
	defer h.forget()
	h.State, h.Since, h.Reason = event.DestinationDisabled, now, fmt.Sprintf("%s; %s", reason, h.lastSuccess())
	h.probeAfter(disabledProbe, result, now)
	return h.down(event.CauseDestinationDisabled, now, fmt.Sprintf("%s; it is disabled: its deliveries wait, one asks every %s, and the first success enables it, as creel resume %s does",
		h.Reason, disabledProbe, h.Name))
}

func (h *health) lastSuccess() string {
	if h.LastSuccess.IsZero() {
		return "no success is known"
	}
	return "last success: " + h.LastSuccess.UTC().Format(time.RFC3339)
}

// turn says what the trouble is now.
func (h *health) turn(cause event.Cause, detail string) *saving {
	h.Trouble = cause
	return &saving{health: h.DestinationHealth, trouble: &event.Incident{Cause: cause, Subject: h.Name, Detail: detail}}
}

// probeAfter sets the next probe, never earlier than the destination asked.
func (h *health) probeAfter(delay time.Duration, result deliver.Result, end time.Time) {
	h.ProbeDelay = delay
	h.ProbeAt = ceilMilli(end.Add(max(delay, result.RetryAfter)))
}

// endOf is when an attempt ended.
func endOf(result deliver.Result) time.Time {
	return result.Attempt.Start.Add(result.Attempt.Duration)
}
