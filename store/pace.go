package store

import (
	"math"
	"time"
)

// paceStep is how long a paced action gathers what it may release: the smaller,
// the more transactions.
const paceStep = 100 * time.Millisecond

// pace says how many events an action may release at a moment: no more than its
// rate within any time, but for what it may release within one step. What it
// did not use while it was kept up is lost, so that it never makes up for a
// pause by a rush.
type pace struct {
	rate   float64 // events a second
	clock  func() time.Time
	last   time.Time
	credit float64 // events that may go; below 0 they went ahead of their time
}

// newPace makes the pace of an action; nil is none. It begins with nothing to
// release, also after a restart.
func newPace(rate float64, clock func() time.Time) *pace {
	if rate <= 0 {
		return nil
	}
	return &pace{rate: rate, clock: clock, last: clock()}
}

// take gives leave to release n of up to most events, or tells how long to wait
// before it is asked again.
func (p *pace) take(most int) (n int, wait time.Duration) {
	if p == nil {
		return most, 0
	}
	now := p.clock()
	step := max(1, math.Floor(p.rate*paceStep.Seconds()))
	p.credit = min(step, p.credit+p.rate*max(0, now.Sub(p.last).Seconds()))
	p.last = now
	if wanted := min(step, float64(most)); p.credit < wanted {
		seconds := (wanted - p.credit) / p.rate
		return 0, time.Duration(min(seconds, maxWait.Seconds())*float64(time.Second)) + time.Millisecond
	}
	n = min(most, int(p.credit))
	p.credit -= float64(n)
	return n, 0
}

// maxWait bounds one wait, so that no rate is too small for a duration.
const maxWait = time.Hour

// spend takes leave for events that went without asking.
func (p *pace) spend(n int) {
	if p != nil {
		p.credit -= float64(n)
	}
}
