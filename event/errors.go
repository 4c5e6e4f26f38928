package event

import "errors"

// The sentinels that rooms tell each other.
var (
	// ErrClaimLost says that somebody else decided: the claim named by a
	// finish is not the current one.
	ErrClaimLost = errors.New("the claim was lost")
	// ErrMismatch says that the operation named by a business key exists and
	// is not what this event would have done.
	ErrMismatch = errors.New("the business key names another operation")
	// ErrUnavailable says that the store can not answer for the write now;
	// the sender should come again.
	ErrUnavailable = errors.New("the store is not available")
	// ErrBusy says that the writer's queue is full.
	ErrBusy = errors.New("too much is waiting to be stored")
	// ErrNotFound says that nothing has that key or id.
	ErrNotFound = errors.New("not found")
)
