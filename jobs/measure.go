package jobs

import (
	"fmt"
	"time"

	"creel/deliver"
	"creel/event"
)

// When a destination is failing, and when that is over.
const (
	leastAttempts = 20 // in the last hour, for its share to mean anything
	failingUnder  = 95 // percent that succeed: its owner is told
	disableUnder  = 50 // percent, for an hour without a break: it is disabled
	disableAfter  = time.Hour
	quarter       = tallyMinutes / 4
	// steadyRun is how many successes in a row end an outage, and after quiet
	// without a failure any trouble.
	steadyRun = 20
	quiet     = 10 * time.Minute
)

// score is what attempts came to.
type score struct{ sent, failed int64 }

func (s score) total() int64 { return s.sent + s.failed }

// under tells whether less than percent of the attempts succeeded.
func (s score) under(percent int64) bool { return 100*s.sent < percent*s.total() }

// measure is how the attempts at a destination go. The hour is the tally's and
// outlives a restart; the rest begins anew.
type measure struct {
	worse       bool      // an attempt failed since the last look
	run         int       // successes in a row
	back        score     // since the destination came back
	lastFailure time.Time // to the minute where it is from before the start
	lastError   string
}

// count adds an attempt. One that says nothing about the destination counts for
// nothing: it never left, or is about its own delivery alone.
func (h *health) count(result deliver.Result, tally *Tally) {
	outcome := result.Attempt.Outcome
	switch {
	case outcome == event.OK:
		h.run++
		h.back.sent++
		tally.Count(event.TallySent, h.Name, 1)
	case result.Alive, outcome == event.Permanent && !result.Answered():
		return
	default:
		h.run = 0
		h.back.failed++
		h.worse = true
		h.lastFailure, h.lastError = endOf(result), result.Attempt.Error
		tally.Count(event.TallyFailed, h.Name, 1)
	}
}

// isTroubled tells whether an incident about more than dead letters is open.
func (h *health) isTroubled() bool { return h.Trouble.Level() > event.CauseDeadDelivery.Level() }

// isOutage tells whether the open incident began with a hold.
func (h *health) isOutage() bool {
	return h.Trouble == event.CauseDestinationDown || h.Trouble == event.CauseDestinationDisabled
}

// between is the score of the minutes from first to last, less those that
// belong to trouble that is over.
func (h *health) between(first, last int64, tally *Tally) score {
	return scoreOf(h.Name, h.MeasuredFrom, first, last, tally)
}

func (h *health) hour(now time.Time, tally *Tally) score {
	return hourOf(h.Name, h.MeasuredFrom, now, tally)
}

// hourOf is the score of a destination by which it is judged, for whoever knows
// from when on it counts.
func hourOf(destination string, from, now time.Time, tally Counter) score {
	return scoreOf(destination, from, minuteOf(now)-tallyMinutes+1, minuteOf(now), tally)
}

func scoreOf(destination string, from time.Time, first, last int64, tally Counter) score {
	if !from.IsZero() {
		first = max(first, minuteOf(from)+1)
	}
	return score{tally.Between(event.TallySent, destination, first, last), tally.Between(event.TallyFailed, destination, first, last)}
}

// watch looks at how the attempts of a destination that is open go, and says
// what has to be saved, if anything has. rest says that nothing waits for it.
func (h *health) watch(now time.Time, rest bool, tally *Tally) *saving {
	worse := h.worse
	h.worse = false
	switch {
	case !h.isOpen():
		return nil
	case !h.isTroubled():
		// A success makes an hour no worse: where it is the one that is enough to
		// judge by, the next failure tells.
		if hour := h.hour(now, tally); worse && hour.total() >= leastAttempts && hour.under(failingUnder) {
			return h.fails(hour)
		}
	case h.isCalm(now, rest, tally):
		return h.clear(now)
	case h.run == 0 && h.lastError != "" && h.isSustained(now, tally):
		hour := h.hour(now, tally)
		return h.disable(now, fmt.Sprintf("under %d %% for an hour: %d of %d attempts succeeded, the last failure was: %s",
			disableUnder, hour.sent, hour.total(), h.lastError), deliver.Result{})
	case h.isOutage() && h.back.total() >= leastAttempts && h.back.under(failingUnder):
		return h.fails(h.back)
	}
	return nil
}

func (h *health) fails(s score) *saving {
	detail := fmt.Sprintf("%d of %d attempts succeeded, under %d %%", s.sent, s.total(), failingUnder)
	if h.lastError != "" {
		detail += "; the last failure was: " + h.lastError
	}
	return h.turn(event.CauseDestinationFailing, fmt.Sprintf("%s; %s: creel deliveries --destination %s shows them", detail, h.lastSuccess(), h.Name))
}

// isCalm tells whether trouble is over. An outage is when the destination goes
// on to succeed, or has taken all that waited. A share that was too low is when
// the hour's is good again, or nothing has failed for a while: a good moment
// among failures is not the end of them.
func (h *health) isCalm(now time.Time, rest bool, tally *Tally) bool {
	hour := h.hour(now, tally)
	switch {
	case hour.failed == 0 && now.Sub(h.Since) >= time.Hour && now.Sub(h.lastFailure) >= time.Hour:
		return true
	case h.isOutage():
		// Any answer proves that it is there; what it refuses is dead, and told.
		lasts := !h.failedAt.After(h.Since) && !now.Before(h.Since.Add(gentle))
		return h.alives >= steadyRun || h.alives > 0 && (rest || lasts)
	case hour.total() >= leastAttempts && !hour.under(failingUnder):
		return true
	}
	return h.run >= steadyRun && now.Sub(h.lastFailure) >= quiet
}

// isSustained tells whether less than half of the attempts succeeded for a whole
// hour: in each quarter of it that had any, and so in all; in the first one from
// its first minute on, so that it did not begin later.
func (h *health) isSustained(now time.Time, tally *Tally) bool {
	last := minuteOf(now)
	first := last - tallyMinutes + 1
	for at := first; at < first+quarter; at++ {
		if !h.between(first, at, tally).under(disableUnder) { // nor is none
			return false
		}
	}
	for at := first; at <= last; at += quarter {
		if s := h.between(at, at+quarter-1, tally); s.total() > 0 && !s.under(disableUnder) {
			return false
		}
	}
	return h.hour(now, tally).total() >= leastAttempts
}

// clear ends the incident. What was counted up to now opens no other.
func (h *health) clear(now time.Time) *saving {
	detail := "nothing has failed for an hour"
	switch {
	case h.run > 0:
		detail = fmt.Sprintf("its attempts succeed, %d in a row", h.run)
	case h.isOutage() && h.alives > 0:
		detail = "it answers, and refuses what it gets: " + h.refused
	}
	h.Trouble, h.MeasuredFrom = "", now
	return &saving{health: h.DestinationHealth, over: &event.Incident{Cause: event.CauseDestinationDown, Subject: h.Name, Detail: detail}}
}
