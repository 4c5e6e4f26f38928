package app

import (
	"context"
	"errors"
)

// stack undoes what was started, the last first.
type stack struct {
	undo []func(context.Context) error
}

func (s *stack) push(undo func(context.Context) error) { s.undo = append(s.undo, undo) }

func (s *stack) unwind(ctx context.Context) error {
	var errs []error
	for i := len(s.undo) - 1; i >= 0; i-- {
		errs = append(errs, s.undo[i](ctx))
	}
	s.undo = nil
	return errors.Join(errs...)
}
