package jobs

import (
	"math"
	"time"

	"creel/event"
)

const (
	// visit is how long a pause between two receipts has to be to count as one:
	// shorter ones belong to the same visit, or a busy hour would hide that the
	// nights are quiet, and a burst after an outage that the days are.
	visit = 15 * time.Minute
	// rhythmDays is how far back pauses are looked at.
	rhythmDays = 14
	// leastHeard is from how many receipts on something is usual.
	leastHeard = 20
	// usualShare is the percentile of the pauses that is the usual one.
	usualShare = 0.99
	// leastUsual bounds the usual pause from below.
	leastUsual = time.Hour
	// rhythmStep is the factor from one length of the scale to the next.
	rhythmStep   = 1.02
	longestPause = 60 * 24 * time.Hour
)

// rhythm is what is learned of the pauses of one source.
type rhythm struct {
	event.Rhythm
	days  map[int64]map[int]int64 // day → length → how often
	dirty map[int64]map[int]bool
	fresh bool // it is not in the store as it is
}

func newRhythm(r event.Rhythm) *rhythm {
	out := &rhythm{Rhythm: r, days: map[int64]map[int]int64{}, dirty: map[int64]map[int]bool{}}
	for _, p := range r.Pauses {
		out.day(p.Day)[p.Length] = p.N
	}
	out.Pauses = nil
	return out
}

func (r *rhythm) day(at int64) map[int]int64 {
	if r.days[at] == nil {
		r.days[at] = map[int]int64{}
	}
	return r.days[at]
}

// heard learns that the last receipt came at a time, and how many came since
// the last one that is known. What was longer than twice the usual counts as
// that: one outage does not make the next one usual, and a sender that has
// become slower is learned nevertheless.
func (r *rhythm) heard(at time.Time, n int64) {
	if at.Before(r.Last) { // a clock that was set back
		r.Last, r.fresh = at, true
		return
	}
	length := 0
	if pause := at.Sub(r.Last); !r.Last.IsZero() && pause >= visit {
		if usual, known := r.usual(at); known {
			pause = min(pause, 2*usual)
		}
		length, n = lengthOf(pause), n-1
		r.add(dayOf(at), length, 1)
	}
	if n > 0 {
		r.add(dayOf(at), 0, n)
	}
	r.Last, r.fresh = at, true
}

func (r *rhythm) add(day int64, length int, n int64) {
	r.day(day)[length] += n
	if r.dirty[day] == nil {
		r.dirty[day] = map[int]bool{}
	}
	r.dirty[day][length] = true
}

// usual is the usual pause at a time; false where too little was heard within
// the days that count.
func (r *rhythm) usual(now time.Time) (time.Duration, bool) {
	first, last := daysAt(now)
	lengths, heard, pauses := map[int]int64{}, int64(0), int64(0)
	longest := 0
	for day, counts := range r.days {
		if day < first || day > last {
			delete(r.days, day)
			continue
		}
		for length, n := range counts {
			heard += n
			if length > 0 {
				lengths[length] += n
				pauses += n
				longest = max(longest, length)
			}
		}
	}
	if heard < leastHeard {
		return 0, false
	}
	// The smallest length that so many of the pauses do not pass.
	within, left := 0, int64(math.Ceil(usualShare*float64(pauses)))
	for length := 1; length <= longest && left > 0; length++ {
		within, left = length, left-lengths[length]
	}
	return max(pauseOf(within), leastUsual), true
}

// unsaved is what the store does not have.
func (r *rhythm) unsaved() event.Rhythm {
	out := r.Rhythm
	for day, lengths := range r.dirty {
		for length := range lengths {
			if n := r.days[day][length]; n > 0 {
				out.Pauses = append(out.Pauses, event.Pause{Day: day, Length: length, N: n})
			}
		}
	}
	return out
}

func (r *rhythm) saved() { r.dirty, r.fresh = map[int64]map[int]bool{}, false }

func dayOf(at time.Time) int64 { return at.Unix() / (24 * 60 * 60) }

// daysAt are the first and the last day that count at a time.
func daysAt(now time.Time) (first, last int64) { return dayOf(now) - rhythmDays + 1, dayOf(now) }

// lengthOf is the place of a pause in the scale, from 1 on; pauseOf the longest
// pause of a place.
func lengthOf(pause time.Duration) int {
	pause = min(max(pause, visit), longestPause)
	return 1 + int(math.Floor(math.Log(float64(pause)/float64(visit))/math.Log(rhythmStep)))
}

func pauseOf(length int) time.Duration {
	if length <= 0 {
		return 0
	}
	return time.Duration(float64(visit) * math.Pow(rhythmStep, float64(length))).Truncate(time.Second)
}
