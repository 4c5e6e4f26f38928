package main

import (
	"slices"
	"sync"
	"time"
)

// result is what one load came to. Times are milliseconds.
type result struct {
	Name        string         `json:"name,omitempty"`
	Connections int            `json:"connections"`
	Rate        float64        `json:"rate,omitempty"` // intended events a second; 0 in the closed loop
	Seconds     float64        `json:"seconds"`
	Events      int            `json:"events"` // acknowledged
	PerSecond   float64        `json:"per_second"`
	P50         float64        `json:"p50_ms"`
	P90         float64        `json:"p90_ms"`
	P99         float64        `json:"p99_ms"`
	P999        float64        `json:"p999_ms"`
	Max         float64        `json:"max_ms"`
	Statuses    map[int]int    `json:"statuses"`
	Errors      map[string]int `json:"errors,omitempty"`
}

// tally collects what the connections of one load saw. Each connection keeps
// its own and adds it at the end.
type tally struct {
	mu       sync.Mutex
	times    []time.Duration
	statuses map[int]int
	errors   map[string]int
	// late is the time of the last acknowledgement.
	late time.Time
}

func newTally() *tally { return &tally{statuses: map[int]int{}, errors: map[string]int{}} }

func (t *tally) add(status int, took time.Duration, at time.Time) {
	t.statuses[status]++
	if status/100 == 2 {
		t.times = append(t.times, took)
		t.late = at
	}
}

func (t *tally) fail(err error) { t.errors[err.Error()]++ }

func (t *tally) merge(other *tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.times = append(t.times, other.times...)
	for status, n := range other.statuses {
		t.statuses[status] += n
	}
	for text, n := range other.errors {
		t.errors[text] += n
	}
	if other.late.After(t.late) {
		t.late = other.late
	}
}

// result closes the books; took is the time in which the events were sent.
func (t *tally) result(connections int, rate float64, took time.Duration) result {
	slices.Sort(t.times)
	r := result{
		Connections: connections, Rate: rate, Seconds: took.Seconds(), Events: len(t.times),
		P50: at(t.times, 0.5), P90: at(t.times, 0.9), P99: at(t.times, 0.99), P999: at(t.times, 0.999), Max: at(t.times, 1),
		Statuses: t.statuses, Errors: t.errors,
	}
	if took > 0 {
		r.PerSecond = float64(r.Events) / took.Seconds()
	}
	return r
}

// at is the value in milliseconds below which the share of the sorted times
// lies.
func at(sorted []time.Duration, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	i := min(int(share*float64(len(sorted))), len(sorted)-1)
	return float64(sorted[i]) / float64(time.Millisecond)
}

// median of some figures; 0 where there are none.
func median(figures []float64) float64 {
	if len(figures) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(figures))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
