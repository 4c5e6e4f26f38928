package page

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"creel/event"
)

// step is a line of an event's timeline.
type step struct {
	At   time.Time
	What string
	Tone string // good, bad, warn or calm
	Note string // an error, a reason
}

// Timeline is what became of an event, in the order in which it happened.
func (v eventView) Timeline() []step {
	var all []step
	add := func(at time.Time, toneOf, what, note string) {
		if !at.IsZero() {
			all = append(all, step{at, what, toneOf, note})
		}
	}
	add(v.ReceivedAt, "good", "received and verified", "")
	if v.Duplicates > 0 {
		add(v.DuplicateAt, "calm", fmt.Sprintf("came again, %s in all: nothing was done twice", times(v.Duplicates)), "")
	}
	for _, c := range v.Conflicts {
		add(c.FirstAt, "warn", "came with another body: the first one stays", "")
	}
	for _, d := range v.Verdicts {
		what := string(d.Decision)
		if d.Rule != "" {
			what = d.Rule + ": " + what
		}
		if d.Run > 1 {
			what += fmt.Sprintf(" (run %d)", d.Run)
		}
		add(d.At, tone(d.Decision), what, d.Reason)
	}
	for i := range v.Deliveries {
		d := &v.Deliveries[i]
		for _, a := range d.Attempts {
			add(a.Start, tone(a.Outcome), fmt.Sprintf("%s, attempt %d: %s", d.Destination, a.Number, a.Outcome), a.Error)
		}
	}
	for _, a := range v.Actions {
		add(a.At, "calm", string(a.Kind)+" by "+a.Actor, a.Reason)
	}
	if v.State == event.Dead {
		add(v.FinishedAt, "bad", "dead", v.Event.Error)
	}
	slices.SortStableFunc(all, func(a, b step) int { return cmp.Compare(a.At.UnixMilli(), b.At.UnixMilli()) })
	return all
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
