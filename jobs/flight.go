package jobs

import (
	"math"
	"time"

	"golang.org/x/time/rate"

	"creel/event"
)

const (
	// mostAhead is how many deliveries are claimed before there is a place for
	// them, so that a place that becomes free is filled without waiting for a
	// commit, and claims and finishes share their transactions.
	mostAhead = 128
	// aheadBytes is the size of the bodies among them from which on no more
	// are claimed. The store bounds what one claim adds.
	aheadBytes = 4 << 20
	// burstTime is how much of a rate may start at once.
	burstTime = 50 * time.Millisecond
)

// flight is what is on its way to one destination: its places, its rate, and
// the deliveries that were claimed and wait for a place.
type flight struct {
	most     int // places
	ahead    int // claimed beyond the places; 0 where a send in doubt must not be guessed
	limiter  *rate.Limiter
	flying   int // attempts that run
	reserved int // places promised to the worker
	queue    []event.Shipment
	bytes    int // bodies in the queue
}

func newFlight(most int, perSecond float64, asks bool) flight {
	f := flight{}
	f.configure(most, perSecond, asks)
	return f
}

// configure sets the limits; what flies goes on.
func (f *flight) configure(most int, perSecond float64, asks bool) {
	f.most, f.ahead = max(most, 1), mostAhead
	if asks {
		// After a crash nobody can tell a delivery that waited here from one
		// that was being sent.
		f.ahead = 0
	}
	switch {
	case perSecond <= 0:
		f.limiter = nil
	case f.limiter == nil || f.limiter.Limit() != rate.Limit(perSecond):
		burst := max(1, int(perSecond*burstTime.Seconds()))
		f.limiter = rate.NewLimiter(rate.Limit(perSecond), burst)
	}
}

// free is how many attempts could start at now under limit.
func (f *flight) free(limit int, now time.Time) int {
	return min(limit-f.flying-f.reserved, f.tokens(now))
}

func (f *flight) tokens(now time.Time) int {
	if f.limiter == nil {
		return math.MaxInt32
	}
	return int(f.limiter.TokensAt(now))
}

// nextToken is when the rate lets the next attempt start.
func (f *flight) nextToken(now time.Time) time.Time {
	if f.limiter == nil || f.tokens(now) > 0 {
		return now
	}
	missing := 1 - f.limiter.TokensAt(now)
	return now.Add(time.Duration(missing / float64(f.limiter.Limit()) * float64(time.Second))).Add(time.Millisecond)
}

// wants is how many deliveries to claim at now: those that could start, and
// some ahead of them. A rate needs nothing ahead: it is slower than a commit.
func (f *flight) wants(limit int, now time.Time) int {
	room := limit - f.flying - f.reserved
	if f.limiter != nil {
		return max(min(room, f.tokens(now))-len(f.queue), 0)
	}
	if f.bytes < aheadBytes {
		room += f.ahead
	}
	return max(room-len(f.queue), 0)
}

// start takes one place for an attempt at now, with its token of the rate.
func (f *flight) start(now time.Time) {
	f.flying++
	if f.limiter != nil {
		f.limiter.AllowN(now, 1)
	}
}

// push puts a delivery at the end of the queue.
func (f *flight) push(s event.Shipment) {
	f.queue = append(f.queue, s)
	f.bytes += len(s.Payload.Body)
}

// pop takes the first of the queue.
func (f *flight) pop() event.Shipment {
	s := f.queue[0]
	f.queue[0] = event.Shipment{} // the body is no longer ours to keep
	f.queue = f.queue[1:]
	f.bytes -= len(s.Payload.Body)
	return s
}
