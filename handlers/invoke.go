package handlers

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"creel/event"
)

var (
	errInterrupted = errors.New("the server is stopping")
	errRunning     = errors.New("too many handlers did not return in time; restart the server, and make them heed their context")
)

// handlerError is what a Go handler came to. A handler's own error is its text
// alone: what it wraps and how it compares is code of the owner's, which may
// panic, block or never end.
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
func (rs *Rules) invoke(ctx context.Context, r *rule, s *subject, o operation) ([]event.Effect, error) {
	if ctx.Err() != nil {
		return nil, endOf(ctx)
	}
	select {
	case r.running <- struct{}{}:
	default:
		return nil, &handlerError{err: errRunning}
	}
	e := Event{Event: s.work.Event, rule: r.name, businessKey: o.key, doc: s.document()}
	done := make(chan result, 1)
	go func() {
		defer func() { <-r.running }()
		rs.guarded(ctx, r, e, done)
	}()
	select {
	case out := <-done:
		return rs.outcome(r, o, out)
	case <-ctx.Done():
	}
	select {
	case out := <-done: // it came back in the same moment
		return rs.outcome(r, o, out)
	default:
		return nil, endOf(ctx)
	}
}

// guarded calls the handler and turns a panic into an error. It answers even
// where the handler ends its goroutine.
func (rs *Rules) guarded(ctx context.Context, r *rule, e Event, done chan<- result) {
	var out result
	returned := false
	defer func() {
		if !returned {
			out = result{err: &handlerError{err: rs.caught(r, e.Key, recover())}}
		}
		done <- out
	}()
	effects, err := r.goFunc(ctx, e)
	out = result{effects: effects, err: said(err)}
	returned = true
}

// said reads the error of a handler, where the handler runs: its methods may do
// what the handler may do.
func said(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	return &handlerError{err: errors.New(clip(text[:min(len(text), 2*maxReason)], maxReason)), permanent: isPermanent(err)}
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

func (rs *Rules) outcome(r *rule, o operation, out result) ([]event.Effect, error) {
	if out.err != nil {
		return nil, out.err
	}
	if len(out.effects) > maxEffects {
		return nil, fmt.Errorf("returns %d effects, %d is the limit: they are stored in one transaction, which others wait for", len(out.effects), maxEffects)
	}
	effects := make([]event.Effect, 0, len(out.effects))
	for i, effect := range out.effects {
		checked, err := rs.checked(r, o, effect)
		if err != nil {
			return nil, fmt.Errorf("effect %d: %w", i+1, err)
		}
		effects = append(effects, checked)
	}
	return effects, together(effects)
}
