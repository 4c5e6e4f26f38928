package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"creel/config"
	"creel/event"
)

// returning is the decision about an event whose handler returns these effects.
func returning(t *testing.T, make func(Event) []event.Effect) Decision {
	t.Helper()
	registry := NewRegistry()
	if err := registry.Register("mine", func(_ context.Context, e Event) ([]event.Effect, error) { return make(e), nil }); err != nil {
		t.Fatal(err)
	}
	cfg := configuration(config.Rule{Name: "go", Go: "mine", Key: "k/{body.id}"})
	cfg.Destinations["tool"] = config.Destination{Command: []string{"true"}}
	return compiled(t, cfg, Options{Registry: registry}).Decide(t.Context(), work(`{"id":1}`))
}

func TestNoEffectOfAHandlerIsLostBehindAnotherOfItsKey(t *testing.T) {
	t.Parallel()
	for want, make := range map[string]func(Event) []event.Effect{
		"effect 2: is a second grant under the key \"k/1\"": func(e Event) []event.Effect {
			return []event.Effect{e.Grant("u", "credits", 10), e.Grant("u", "credits", 10)}
		},
		"effect 2: is a second sql under": func(e Event) []event.Effect {
			return []event.Effect{e.SQL("DELETE FROM app_a", nil), e.SQL("DELETE FROM app_b", nil)}
		},
		"effect 3: is a second email under": func(e Event) []event.Effect {
			return []event.Effect{e.Email("a@example.com", "s", "one"), e.Email("b@example.com", "s", "one"), e.Email("a@example.com", "s", "two")}
		},
		"effect 2: is a second run under": func(e Event) []event.Effect {
			return []event.Effect{e.Run("tool", map[string]string{"n": "1"}), e.Run("tool", map[string]string{"n": "2"})}
		},
	} {
		if d := returning(t, make); d.State != event.Dead || !strings.Contains(d.Error, want) {
			t.Errorf("%s: %+v", want, d)
		}
	}
	d := returning(t, func(e Event) []event.Effect {
		own := e.Grant("u", "credits", 10)
		own.Key = "another"
		return []event.Effect{e.Grant("u", "credits", 10), own, e.Forward("app"), e.Forward("app"), e.Record("a", nil), e.Record("b", nil),
			e.Email("a@example.com", "s", "one"), e.Email("a@example.com", "s", "one"), e.Run("tool", nil), e.Run("tool", nil)}
	})
	if d.State != event.Done || len(d.Effects) != 10 {
		t.Errorf("what is not lost: %+v", d)
	}
}

func TestWhatAHandlerReturnsIsBounded(t *testing.T) {
	t.Parallel()
	many := func(n int) func(Event) []event.Effect {
		return func(e Event) (effects []event.Effect) {
			for i := range n {
				record := e.Record("row", nil)
				record.Key = fmt.Sprint(i)
				effects = append(effects, record)
			}
			return effects
		}
	}
	if d := returning(t, many(maxEffects)); d.State != event.Done {
		t.Errorf("%d effects: %s", maxEffects, d.Error)
	}
	if d := returning(t, many(maxEffects+1)); d.State != event.Dead || !strings.Contains(d.Error, "returns 10001 effects") {
		t.Errorf("one more: %+v", d.Error)
	}
	half := strings.Repeat("x", maxReturned/2)
	for name, effects := range map[string]func(Event) []event.Effect{
		"fields": func(e Event) []event.Effect {
			return []event.Effect{e.Record("a", map[string]string{"a": half, "b": half})}
		},
		"state": func(e Event) []event.Effect { return []event.Effect{e.State("a", half+half, "1")} },
		"mail":  func(e Event) []event.Effect { return []event.Effect{e.Email("a@example.com", half, half+"x")} },
		"params": func(e Event) []event.Effect {
			return []event.Effect{e.SQL("DELETE FROM app_a", map[string]string{"a": half, "b": half})}
		},
		"statements": func(e Event) []event.Effect { return []event.Effect{event.SQL{Statements: []string{half, half}}} },
		"run": func(e Event) []event.Effect {
			return []event.Effect{e.Run("tool", map[string]string{"a": half, "b": half})}
		},
		"keys": func(e Event) []event.Effect {
			return []event.Effect{event.Forward{Key: half + half, Destination: "app"}, e.Forward("app")}
		},
		"holder": func(e Event) []event.Effect { return []event.Effect{e.Grant(half, half+"x", 1)} },
	} {
		if d := returning(t, effects); d.State != event.Dead || !strings.Contains(d.Error, "more than 16777216 bytes") {
			t.Errorf("%s: %s %.300s", name, d.State, d.Error)
		}
	}
}

type (
	panicsToSay struct{}
	exitsToSay  struct{}
	blocksToSay struct{ until chan struct{} }
	wrapsItself struct{ n *int }
	saysTooMuch struct{}
)

func (panicsToSay) Error() string     { panic("nothing to say") }
func (exitsToSay) Error() string      { runtime.Goexit(); return "" }
func (b blocksToSay) Error() string   { <-b.until; return "" }
func (wrapsItself) Error() string     { return "again" }
func (w wrapsItself) Unwrap() []error { return []error{w, w} }
func (saysTooMuch) Error() string     { return strings.Repeat("x", 1<<20) }

// The methods of an error are as much a handler's as the handler is.
func TestGateA8WhatAnErrorDoesHurtsOnlyItsEvent(t *testing.T) {
	t.Parallel()
	until := make(chan struct{})
	t.Cleanup(func() { close(until) })
	for want, err := range map[string]error{
		"panic: nothing to say":          panicsToSay{},
		"ended its goroutine":            exitsToSay{},
		"longer than the worker's":       blocksToSay{until},
		"go: again":                      wrapsItself{},
		"xxx…":                           saysTooMuch{},
		"panic: runtime error: invalid ": (*noError)(nil),
	} {
		rules := calling(t, time.Second, nil, func(context.Context, Event) ([]event.Effect, error) { return nil, err })
		ended := make(chan Decision, 1)
		go func() { ended <- rules.Decide(context.Background(), work(`{"id":1}`)) }()
		select {
		case d := <-ended:
			if d.State != event.Pending || !strings.Contains(d.Error, want) || len(d.Error) > 2*maxReason {
				t.Errorf("%T: %s %.300s", err, d.State, d.Error)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("%T: no decision", err)
		}
	}
	deep := errors.Join(errors.New("one"), fmt.Errorf("two: %w", fmt.Errorf("three: %w", Permanent(errors.New("four")))))
	rules := calling(t, time.Minute, nil, func(context.Context, Event) ([]event.Effect, error) { return nil, deep })
	if d := rules.Decide(t.Context(), work(`{}`)); d.State != event.Dead {
		t.Errorf("a permanent error somewhere inside: %+v", d)
	}
}

type noError struct{ text string }

func (e *noError) Error() string { return e.text }

// scribbler writes over what it reads.
type scribbler struct{}

func (*scribbler) UnmarshalJSON(text []byte) error {
	clear(text)
	return nil
}

func TestAHandlerCanNotChangeWhatOthersSee(t *testing.T) {
	t.Parallel()
	const body = `{"id":1,"of":{"a":"b"}}`
	from, statements, floor := []string{"paid"}, []string{"DELETE FROM app_a"}, int64(3)
	rules := calling(t, time.Minute, nil, func(_ context.Context, e Event) ([]event.Effect, error) {
		own, err := e.Body()
		if err != nil {
			return nil, err
		}
		clear(own)
		var raw json.RawMessage
		if err := errors.Join(e.Decode(&raw), e.Decode(new(scribbler))); err != nil {
			return nil, err
		}
		clear(raw)
		step := e.State("o", "shipped", "")
		step.From = from
		grant := e.Grant("u", "credits", 1)
		grant.Floor = &floor
		return []event.Effect{step, event.SQL{Statements: statements}, grant}, nil
	})
	w := work(body)
	d := rules.Decide(t.Context(), w)
	if string(w.Body) != body {
		t.Errorf("the body became %q", w.Body)
	}
	from[0], statements[0], floor = "changed", "changed", 4 // a handler that kept what it returned
	if d.State != event.Done || d.Effects[0].(event.SetState).From[0] != "paid" || d.Effects[1].(event.SQL).Statements[0] != "DELETE FROM app_a" ||
		*d.Effects[2].(event.Grant).Floor != 3 {
		t.Errorf("%+v", d)
	}
}
