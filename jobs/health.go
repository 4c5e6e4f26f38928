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
	silent  int     // attempts in a row without any HTTP answer
	failed  int     // transient failures in a row
	events  []int64 // the first holdEvents different events among them
	probing bool    // a probe is in the air
	alerted bool    // an incident about this outage may be open

	// Deliveries that were sent and not answered: since the last sign of life,
	// and those that failed so while another one was answered. The silence of
	// the latter may be their own: a body on which the receiver breaks.
	unanswered, overtaken []int64
}

// saving is a change of health on its way into the store.
type saving struct {
	health        event.DestinationHealth
	open, resolve *event.Incident
}

// adopt takes over what the store says.
func (h *health) adopt(stored event.DestinationHealth) {
	if stored.State == "" {
		stored.State = event.DestinationEnabled
	}
	changed := stored.State != h.State
	h.DestinationHealth = stored
	if changed {
		h.forget()
	}
	h.alerted = h.alerted || stored.State == event.DestinationHeld || stored.State == event.DestinationDisabled
}

func (h *health) forget() { h.silent, h.failed, h.events, h.unanswered = 0, 0, nil, nil }

// open tells whether deliveries go out.
func (h *health) isOpen() bool { return h.State == event.DestinationEnabled }

// probeAt is when a probe may go out, while one may at all.
func (h *health) probeAt() (time.Time, bool) {
	waits := h.State == event.DestinationHeld || h.State == event.DestinationDisabled
	return h.ProbeAt, waits && !h.probing && !h.ProbeAt.IsZero()
}

// shift moves the times of the state, because the clock was moved.
func (h *health) shift(by time.Duration) {
	for _, at := range []*time.Time{&h.Since, &h.ProbeAt} {
		if !at.IsZero() {
			*at = at.Add(by)
		}
	}
}

// limit is the in-flight limit that holds at now.
func (h *health) limit(most int, now time.Time) int {
	if h.Reason == cameBack && now.Before(h.Since.Add(gentle)) {
		return (most + 1) / 2
	}
	return most
}

// note counts the end of an attempt and says what has to be saved, if anything
// has. It is called in the order in which the attempts ended.
func (h *health) note(s *event.Shipment, result deliver.Result) *saving {
	end := endOf(result)
	if s.Probe {
		h.probing = false
	}
	alive := result.Attempt.Outcome == event.OK || result.Attempt.Outcome == event.Permanent && result.Answered()
	switch {
	case result.Gone:
		return h.gone(end, result.Attempt.Error)
	case alive:
		h.overtake(s.ID)
		return h.alive(end, result.Attempt.Outcome == event.OK)
	case result.Attempt.Outcome == event.Permanent:
		return nil // it never left: nothing is known about the destination
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

// alive counts an answer that proves that the destination is there.
func (h *health) alive(end time.Time, success bool) *saving {
	h.forget()
	if success {
		h.LastSuccess = end
	}
	waits := h.State == event.DestinationHeld || h.State == event.DestinationDisabled && !h.ProbeAt.IsZero()
	if !waits && !(h.alerted && h.isOpen()) {
		return nil
	}
	detail := "the destination answers again"
	if waits {
		detail += " after " + end.Sub(h.Since).Round(time.Second).String()
		h.State, h.Since, h.Reason = event.DestinationEnabled, end, cameBack
		h.ProbeAt, h.ProbeDelay = time.Time{}, 0
	}
	h.alerted = false
	return &saving{health: h.DestinationHealth, resolve: &event.Incident{Cause: event.CauseDestinationDown,
		Subject: h.Name, Detail: detail}}
}

// gone disables the destination until its owner resumes it: it said itself
// that it wants no more, so it is not probed either.
func (h *health) gone(end time.Time, reason string) *saving {
	h.forget()
	if h.State == event.DestinationDisabled && h.ProbeAt.IsZero() || h.State == event.DestinationPaused {
		return nil
	}
	h.State, h.Since, h.Reason = event.DestinationDisabled, end, reason
	h.ProbeAt, h.ProbeDelay = time.Time{}, 0
	return &saving{health: h.DestinationHealth, open: &event.Incident{Cause: event.CauseDestinationGone,
		Subject: h.Name, Detail: fmt.Sprintf("%s; it is disabled, and what waits for it stays: creel resume %s sends again", reason, h.Name)}}
}

// failure counts a transient or unknown failure: it may begin a hold, or tell
// that a probe found nobody.
func (h *health) failure(s *event.Shipment, result deliver.Result, end time.Time) *saving {
	h.failed++
	h.silent++
	if result.Answered() {
		h.silent = 0
	}
	if len(h.events) < holdEvents && !slices.Contains(h.events, s.EventSeq) {
		h.events = append(h.events, s.EventSeq)
	}
	switch h.State {
	case event.DestinationEnabled:
		if h.silent >= holdSilent || h.failed >= holdFailures && len(h.events) >= holdEvents {
			return h.hold(result, end)
		}
		return nil
	case event.DestinationHeld, event.DestinationDisabled:
		if !s.Probe {
			return nil
		}
		delay := min(max(2*h.ProbeDelay, firstProbe), longestProbe)
		if h.State == event.DestinationDisabled {
			delay = disabledProbe
		}
		h.Reason = result.Attempt.Error
		h.probeAfter(delay, result, end)
		return &saving{health: h.DestinationHealth}
	}
	return nil
}

func (h *health) hold(result deliver.Result, end time.Time) *saving {
	h.State, h.Since, h.Reason = event.DestinationHeld, end, result.Attempt.Error
	h.probeAfter(firstProbe, result, end)
	h.alerted = true
	last := "never since it is known"
	if !h.LastSuccess.IsZero() {
		last = h.LastSuccess.UTC().Format(time.RFC3339)
	}
	return &saving{health: h.DestinationHealth, open: &event.Incident{Cause: event.CauseDestinationDown, Subject: h.Name,
		Detail: fmt.Sprintf("%s; last success: %s; its deliveries wait and spend no attempts, and probes will find it again", h.Reason, last)}}
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
