package jobs

import (
	"context"
	"strings"
	"testing"
	"time"

	"creel/event"
	"creel/handlers"
)

// shipping is a handler whose effects depend on what is stored.
func shipping(_ context.Context, e handlers.Event) ([]event.Effect, error) {
	switch id, _, _ := strings.Cut(e.Key.ID, "-"); id {
	case "pay":
		return []event.Effect{event.SetState{Key: "pay", Object: "o1", To: "paid", From: []string{""}}}, nil
	case "ship":
		return []event.Effect{event.SetState{Key: "ship", Object: "o1", To: "shipped", From: []string{"paid"}, OnRefuse: event.RefuseLater}}, nil
	case "refused":
		return []event.Effect{
			event.Record{Key: e.Key.ID, Of: "order"},
			event.SetState{Key: "ship", Object: "o2", To: "shipped", From: []string{"paid"}, OnRefuse: event.RefuseDead},
		}, nil
	case "mismatch":
		return []event.Effect{event.Record{Key: "one", Of: "order", Fields: []event.Field{{Name: "by", Value: e.Key.ID}}}}, nil
	}
	return []event.Effect{e.Forward("app")}, nil
}

// What has to come first is waited for on the schedule, without a line at
// error level.
func TestGateA7WhatIsNotYetAllowedIsTriedOnSchedule(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t, shipping)
	w.accept("ship", "beside")
	w.step()
	w.expect("beside", event.Done, 1)
	later := w.expect("ship", event.Pending, 1)
	if !later.NextAt.Equal(w.clock.Now().Add(5*time.Second)) || !strings.Contains(later.Error, "expected") {
		t.Errorf("due %s: %q", later.NextAt, later.Error)
	}
	if v := w.verdict("ship"); v.Decision != event.Later || v.Rule != "test" || v.Reason == "" {
		t.Errorf("%+v", v)
	}
	w.accept("pay")
	w.step()
	w.expect("ship", event.Pending, 1)
	w.clock.Advance(5 * time.Second)
	w.step()
	w.expect("ship", event.Done, 2)
	if v := w.verdict("ship"); v.Decision != event.Applied {
		t.Errorf("%+v", v)
	}
	if lines := w.errorLines(); lines != 0 {
		t.Errorf("%d lines at error level:\n%s", lines, w.logs.String())
	}
}

func TestGateA7WhatIsNeverAllowedIsDeadAfterSixAttempts(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t, shipping)
	w.accept("ship")
	for i := range 6 {
		w.step()
		if i < 5 {
			w.expect("ship", event.Pending, i+1)
		}
		w.clock.Advance(2 * time.Hour)
	}
	if dead := w.expect("ship", event.Dead, 6); !strings.Contains(dead.Error, "expected") {
		t.Errorf("the dead event says %q", dead.Error)
	}
	w.incidents(1)
	if lines := w.errorLines(); lines != 1 {
		t.Errorf("%d lines at error level for one dead event:\n%s", lines, w.logs.String())
	}
}

// What the store refuses for good is dead by the store's own hand: told once,
// with what to do, and not finished a second time.
func TestGateA7WhatTheStoreRefusesIsDeadAtOnce(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"refused", "mismatch-2"} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			w := newWorkshop(t, shipping)
			w.accept("mismatch-1")
			w.step() // first: handlers of one batch come back in any order
			w.accept(id, "beside")
			w.step()
			w.expect("mismatch-1", event.Done, 1)
			w.expect("beside", event.Done, 1)
			dead := w.expect(id, event.Dead, 1)
			logs := w.logs.String()
			if dead.Error == "" || strings.Count(logs, `"event is dead"`) != 1 || !strings.Contains(logs, "creel replay s//"+id) {
				t.Errorf("the dead event says %q:\n%s", dead.Error, logs)
			}
			if w.errorLines() != 1 || strings.Contains(logs, "somebody else") {
				t.Errorf("it was finished again:\n%s", logs)
			}
			w.incidents(1)
		})
	}
}
