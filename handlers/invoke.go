package handlers

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"

	"creel/event"
	"creel/path"
)

var (
	errInterrupted = errors.New("the server is stopping")
	errRunning     = errors.New("too many handlers did not return in time; restart the server, and make them heed their context")
)

// handlerError is what a Go handler came to.
type handlerError struct {
	err       error
	permanent bool
}

func (e *handlerError) Error() string { return e.err.Error() }
func (e *handlerError) Unwrap() error { return e.err }

type result struct {
	effects []event.Effect
	err     error
}

// invoke calls the Go handler of a rule in a goroutine of its own, with a
// document of its own, so that one that does not return holds up nobody.
func (rs *Rules) invoke(ctx context.Context, r *rule, work event.Work, key string) ([]event.Effect, error) {
	if ctx.Err() != nil {
		return nil, endOf(ctx)
	}
	select {
	case rs.running <- struct{}{}:
	default:
		return nil, &handlerError{err: errRunning}
	}
	e := Event{Event: work.Event, rule: r.name, businessKey: key, doc: path.NewDocument(work.Payload)}
	done := make(chan result, 1)
	go func() {
		defer func() { <-rs.running }()
		done <- rs.guarded(ctx, r, e)
	}()
	select {
	case out := <-done:
		return rs.outcome(r, key, out)
	case <-ctx.Done():
	}
	select {
	case out := <-done: // it came back in the same moment
		return rs.outcome(r, key, out)
	default:
		return nil, endOf(ctx)
	}
}

// guarded calls the handler and turns a panic into an error.
func (rs *Rules) guarded(ctx context.Context, r *rule, e Event) (out result) {
	returned := false
	defer func() {
		if returned {
			return
		}
		out = result{err: rs.caught(r, e.Key, recover())}
	}()
	effects, err := r.goFunc(ctx, e)
	returned = true
	return result{effects: effects, err: err}
}

// caught reports a panic, nil being a goroutine that was ended, and makes the
// error of it: its text alone, the stack is for the log.
func (rs *Rules) caught(r *rule, key event.Key, value any) error {
	text := "the handler ended its goroutine"
	if value != nil {
		text = "panic: " + clip(fmt.Sprint(value), maxReason)
	}
	if rs.panicked != nil {
		rs.panicked(Panic{Rule: r.name, Event: key, Text: text, Stack: debug.Stack()})
	}
	return errors.New(text)
}

func endOf(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, errTimeout) {
		return errTimeout
	}
	return errInterrupted
}

func (rs *Rules) outcome(r *rule, key string, out result) ([]event.Effect, error) {
	if out.err != nil {
		return nil, &handlerError{err: out.err, permanent: isPermanent(out.err)}
	}
	effects := make([]event.Effect, 0, len(out.effects))
	for i, effect := range out.effects {
		checked, err := rs.checked(r, key, effect)
		if err != nil {
			return nil, fmt.Errorf("effect %d: %w", i+1, err)
		}
		effects = append(effects, checked)
	}
	return effects, nil
}

// checked makes sure that the store can apply what a handler returned.
func (rs *Rules) checked(r *rule, key string, effect event.Effect) (event.Effect, error) {
	switch f := effect.(type) {
	case nil:
		return nil, errors.New("is nil")
	case event.Forward:
		if !rs.destinations[f.Destination] {
			return nil, fmt.Errorf("there is no destination %s", strconv.QuoteToGraphic(clip(f.Destination, 100)))
		}
		if f.Key == "" {
			f.Key = key
		}
		f.Rule, f.Claimed = r.name, false
		return f, nil
	}
	return nil, fmt.Errorf("is of a kind that is not known: %T", effect)
}
