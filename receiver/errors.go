package receiver

import (
	"context"
	"errors"

	"creel/event"
)

// resultOfBody turns the reason why a body did not arrive into a result.
func resultOfBody(err error) result {
	switch {
	case errors.Is(err, errTooLarge):
		return resultTooLarge
	case errors.Is(err, errOverBudget):
		return resultOverBudget
	case errors.Is(err, errTooSlow):
		return resultTooSlow
	default:
		return resultTruncated
	}
}

// resultOfInbox turns what the inbox said into a result: each of them is 503.
func resultOfInbox(err error) result {
	switch {
	case errors.Is(err, event.ErrBusy):
		return resultBusy
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return resultTimeout
	default:
		return resultUnavailable
	}
}
