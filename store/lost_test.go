package store

import (
	"context"
	"errors"
	"testing"

	"creel/event"
)

var errAnswerLost = errors.New("the disk answered too late")

// A COMMIT may fail though its last frame is on disk. The sender is told to
// come again, the place in the worker's memory is given back, and the event
// is not left in the hands of nobody.
func TestGateA4ACommitThatCountedAsFailedIsTakenBackWithoutARestart(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	ctx := context.Background()
	sc.SetHandoff(&memory{places: 8})
	a := sc.newAcceptance(sc.receipt(`{}`, item("a", `{}`)))
	answered := make(chan struct{})
	if err := sc.submit(intake, &unit{run: a.run, rows: 1, done: func(error) {
		a.done(unavailable("commit", errAnswerLost))
		close(answered)
	}}); err != nil {
		t.Fatal(err)
	}
	<-answered
	if !errors.Is(a.err, event.ErrUnavailable) {
		t.Fatalf("the sender was told %v", a.err)
	}
	found, err := sc.Find(ctx, key("a"))
	if err != nil || found.State != event.Claimed {
		t.Fatalf("the event is %s, %v; the test needs it claimed", found.State, err)
	}
	sc.regain()
	if found, err = sc.Find(ctx, found.Key); err != nil || found.State != event.Pending || found.Attempts != 0 {
		t.Errorf("the event is %s after %d attempts, %v; want it pending, unspent", found.State, found.Attempts, err)
	}
	if works := sc.claim(8); len(works) != 1 {
		t.Errorf("a claim finds %d events, want the one", len(works))
	}
}
