package testkit

import (
	"testing"
	"time"
)

// Poll waits until the condition holds and fails the test when it does not
// within the limit. What names the condition in the failure.
func Poll(t testing.TB, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	if !Await(limit, condition) {
		t.Fatalf("waited %v for: %s", limit, what)
	}
}

// Await waits until the condition holds and tells whether it did within the
// limit. It is for goroutines, which may not end a test.
func Await(limit time.Duration, condition func() bool) bool {
	if condition() {
		return true
	}
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if condition() {
				return true
			}
		case <-deadline.C:
			return condition()
		}
	}
}
