package receiver

import (
	"sync/atomic"
	"time"

	"creel/meter"
)

// pace is when a source was last heard, and how long it waited for its
// answers.
type pace struct {
	answers *meter.Histogram
	last    atomic.Int64 // milliseconds since 1970; 0 for never
}

func newPace() pace { return pace{answers: meter.NewHistogram(meter.Short())} }

// acknowledged counts one receipt whose request was complete at began and
// whose answer is written at ended.
func (p *pace) acknowledged(began, ended time.Time) {
	p.answers.Observe(ended.Sub(began))
	p.last.Store(ended.UnixMilli())
}

// lastReceipt is when the latest receipt of a source was acknowledged since the
// start; zero where none was.
func (p *pace) lastReceipt() time.Time {
	at := p.last.Load()
	if at == 0 {
		return time.Time{}
	}
	return time.UnixMilli(at).UTC()
}
