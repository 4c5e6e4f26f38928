package jobs

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"creel/event"
	"creel/handlers"
)

// What the store says of an effect has values in it that a sender wrote. The
// event keeps them; logs and alerts say where they are.
func TestGateO8TheWorkerQuotesNothing(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t, func(_ context.Context, e handlers.Event) ([]event.Effect, error) {
		record := event.Record{Key: "k", Rule: e.Rule(), Of: "order", Fields: []event.Field{{Name: "id", Value: "canary-" + e.Key.ID}}}
		if e.Key.ID != "later" {
			return []event.Effect{record}, nil
		}
		return []event.Effect{event.SetState{Key: "m", Rule: e.Rule(), Object: "canary-object", To: "paid", From: []string{"canary-state"}}}, nil
	})
	w.accept("a")
	w.step()
	w.accept("b", "later")
	for range 6 {
		w.step()
		w.clock.Advance(2 * time.Hour)
	}
	for id, attempts := range map[string]int{"b": 1, "later": 6} {
		if found := w.expect(id, event.Dead, attempts); !strings.Contains(found.Error, "canary") {
			t.Errorf("the error of %s has no value: %q", id, found.Error)
		}
	}
	for _, i := range w.incidents(2) {
		if strings.Contains(i.Detail, "canary") {
			t.Errorf("an incident quotes a value: %q", i.Detail)
		}
	}
	if strings.Contains(w.logs.String(), "canary") || !strings.Contains(w.logs.String(), event.ErrNotYet.Error()) {
		t.Errorf("the log says\n%s", w.logs.String())
	}
}

// Statements that took too long wait for nothing that has to come first.
func TestWhatTookTooLongIsSaidSo(t *testing.T) {
	t.Parallel()
	for kind, words := range map[error]string{event.ErrSlow: "the statements were interrupted", event.ErrNotYet: "what has to come first"} {
		if text := said(fmt.Errorf("canary: %w", kind)); !strings.HasPrefix(text, words) || strings.Contains(text, "canary") {
			t.Errorf("%q, want %q", text, words)
		}
	}
}
