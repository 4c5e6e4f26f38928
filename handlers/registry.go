package handlers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"creel/event"
)

// Func is a handler written in Go: it gets an event and returns its effects.
// It runs again whenever the event is tried again or replayed, so it must do
// nothing by itself that may not be repeated. A panic or an error counts as an
// attempt and is tried again later, unless the error is Permanent. The context
// ends at the worker's timeout; a handler that does not return by then is left
// behind and its result is ignored.
type Func func(ctx context.Context, e Event) ([]event.Effect, error)

// ErrBadHandler says that a handler can not be registered.
var ErrBadHandler = errors.New("a handler needs a name of its own and a function")

// Registry holds the Go handlers of a custom binary by the name that a rule
// uses. It is filled before the start and not changed afterwards.
type Registry struct{ funcs map[string]Func }

// NewRegistry makes an empty registry.
func NewRegistry() *Registry { return &Registry{funcs: map[string]Func{}} }

// Register adds a handler. The error wraps ErrBadHandler.
func (r *Registry) Register(name string, f Func) error {
	if _, taken := r.funcs[name]; taken || name == "" || f == nil {
		return fmt.Errorf("register %q: %w", name, ErrBadHandler)
	}
	r.funcs[name] = f
	return nil
}

// Names lists the registered names in order.
func (r *Registry) Names() []string {
	if r == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(r.funcs))
}

func (r *Registry) find(name string) (Func, bool) {
	if r == nil {
		return nil, false
	}
	f, ok := r.funcs[name]
	return f, ok
}

// Permanent marks an error that no retry can mend: the event is dead at once.
// nil stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ err error }

func (p *permanentError) Error() string { return p.err.Error() }
func (p *permanentError) Unwrap() error { return p.err }

// mostWrapped bounds how many errors are looked at: one may wrap itself.
const mostWrapped = 1000

func isPermanent(err error) bool {
	left := []error{err}
	for n := 0; len(left) > 0 && n < mostWrapped; n++ {
		err, left = left[0], left[1:]
		switch e := err.(type) {
		case *permanentError:
			return true
		case interface{ Unwrap() error }:
			left = append(left, e.Unwrap())
		case interface{ Unwrap() []error }:
			left = append(left, e.Unwrap()...)
		}
	}
	return false
}
