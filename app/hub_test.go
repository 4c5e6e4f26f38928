package app

import (
	"context"
	"errors"
	"testing"

	"creel/admin"
	"creel/event"
)

// A listener that is too slow is told how much it missed; nobody waits for it.
func TestHubDoesNotWait(t *testing.T) {
	t.Parallel()
	h := newHub()
	if h.heard() {
		t.Error("somebody listens to a new hub")
	}
	h.tell(tick{seq: 1}) // to nobody
	l, leave, err := h.listen()
	if err != nil || !h.heard() {
		t.Fatalf("listen: %v", err)
	}
	for range hubRoom + 7 {
		h.tell(tick{seq: 2})
	}
	ctx, cancel := context.WithCancel(context.Background())
	got := l.next(ctx, 3)
	if len(got) != 4 || got[0].seq != 2 || got[3].What != admin.LeftOut || got[3].Count != 7 {
		t.Errorf("told %+v", got)
	}
	if got = l.next(ctx, hubRoom); len(got) != hubRoom-3 {
		t.Errorf("%d more", len(got))
	}
	cancel()
	if got = l.next(ctx, 3); got != nil {
		t.Errorf("after the end of its listener: %+v", got)
	}
	leave()
	if h.heard() {
		t.Error("somebody listens though all have left")
	}
}

// Who follows is bounded, and let go at the stop.
func TestHubListeners(t *testing.T) {
	t.Parallel()
	h := newHub()
	var all []*listener
	for range maxListeners {
		l, _, err := h.listen()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	if _, _, err := h.listen(); !errors.Is(err, event.ErrBusy) {
		t.Errorf("one more: %v", err)
	}
	h.close()
	for _, l := range all {
		if got := l.next(context.Background(), 1); got != nil {
			t.Errorf("after the stop: %+v", got)
		}
	}
}
