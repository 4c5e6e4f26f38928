package jobs

import (
	"math"
	"time"
)

// The names of the retry policies that need no configuration.
const (
	PolicyDefault = "default"
	PolicyQuick   = "quick"
	PolicyPatient = "patient"
)

// jitterShare is the most that jitter adds to a slot.
const jitterShare = 0.1

// maxAttempts bounds what a policy of the owner's may ask for.
const maxAttempts = 1000

// Policy is a retry policy as data: attempt n+1 comes Delays[n-1] after the
// end of attempt n, and after Attempts of them the work is dead.
type Policy struct {
	Name     string
	Delays   []time.Duration
	Attempts int // len(Delays) + 1
	// Retry4xx is the policy's word on HTTP answers that are otherwise
	// permanent; a destination may say it differently.
	Retry4xx bool
}

// BuiltInPolicies are the policies that every configuration has. A fresh map
// each time: nobody can change them for others.
func BuiltInPolicies() map[string]Policy {
	return map[string]Policy{
		PolicyDefault: policyOf(PolicyDefault, false, 5*time.Second, 25*time.Second,
			2*time.Minute, 10*time.Minute, time.Hour),
		PolicyQuick: policyOf(PolicyQuick, true, growing(time.Second, 2, 1024*time.Second, 10)...),
		PolicyPatient: policyOf(PolicyPatient, false, time.Minute, 5*time.Minute,
			30*time.Minute, 2*time.Hour, 10*time.Hour, 24*time.Hour),
	}
}

func policyOf(name string, retry4xx bool, delays ...time.Duration) Policy {
	return Policy{Name: name, Delays: delays, Attempts: len(delays) + 1, Retry4xx: retry4xx}
}

// growing is the list min(first × factor^n, most) for n = 0 … retries-1.
func growing(first time.Duration, factor float64, most time.Duration, retries int) []time.Duration {
	delays := make([]time.Duration, retries)
	for n := range delays {
		delay := float64(first) * math.Pow(factor, float64(n))
		delays[n] = most
		if delay < float64(most) {
			delays[n] = time.Duration(delay)
		}
	}
	return delays
}

// Next is when the attempt after attempt (1, 2, …) may start: the policy's
// delay, or what the other side asked for if that is longer, after the end of
// this one, and up to a tenth more. jitter is between 0 and 1; it spreads what
// failed together and never shortens a slot.
func (p Policy) Next(attempt int, end time.Time, asked time.Duration, jitter float64) time.Time {
	wait := max(p.delay(attempt), asked)
	extra := time.Duration(float64(wait) * jitterShare * min(max(jitter, 0), 1))
	return ceilMilli(end.Add(wait + extra))
}

// delay is the slot after attempt; past the end of the list it is the last one.
func (p Policy) delay(attempt int) time.Duration {
	if len(p.Delays) == 0 {
		return 0
	}
	return p.Delays[min(max(attempt, 1), len(p.Delays))-1]
}

// Longest is the longest wait that Next can set, jitter included, where the
// other side asks for asked at most. Work that is due later than that was
// scheduled by a clock that has been set back since.
func (p Policy) Longest(asked time.Duration) time.Duration {
	longest := asked
	for _, delay := range p.Delays {
		longest = max(longest, delay)
	}
	return longest + time.Duration(float64(longest)*jitterShare) + time.Millisecond
}

// Whole is how long the policy goes on from the end of the first attempt to the
// start of the last, jitter included and the attempts themselves not.
func (p Policy) Whole() time.Duration {
	var whole time.Duration
	for _, delay := range p.Delays {
		whole += delay
	}
	return whole + time.Duration(float64(whole)*jitterShare)
}

// ceilMilli rounds up to the millisecond, because the store keeps no less and
// rounding down would shorten a slot.
func ceilMilli(at time.Time) time.Time {
	whole := at.Truncate(time.Millisecond)
	if whole.Before(at) {
		return whole.Add(time.Millisecond)
	}
	return whole
}
