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
	// ErrRefused says that what is stored does not allow an effect, and no later
	// attempt changes that.
	ErrRefused = errors.New("the effect was refused")
	// ErrSlow is the ErrNotYet of statements of the owner's that took too long.
	ErrSlow error = slowError{}
	// ErrNotYet says that what is stored does not allow an effect now: what has
	// to come first may still come.
	ErrNotYet = errors.New("what has to come first is not there")
	// ErrTie says that two events have one version, and that the object's owner
	// can be asked which state holds. Nothing was done: the claim still holds.
	ErrTie = errors.New("two events have the same version")
	// ErrOvertaken is the ErrTie of a state that was fetched while something else
	// changed it: nobody knows whether the answer is from before or after that.
	ErrOvertaken error = overtakenError{}
	// ErrUnavailable says that the store can not answer for the write now;
	// the sender should come again.
	ErrUnavailable = errors.New("the store is not available")
	// ErrBusy says that the writer's queue is full.
	ErrBusy = errors.New("too much is waiting to be stored")
	// ErrOtherRequest says that something else was asked for under the same key
	// of a request.
	ErrOtherRequest = errors.New("another request had that key")
	// ErrNotFound says that nothing has that key or id.
	ErrNotFound = errors.New("not found")
)

// slowError has words of its own: nothing has to come first.
type slowError struct{}

func (slowError) Error() string { return "the statements were interrupted" }

func (slowError) Unwrap() error { return ErrNotYet }

// overtakenError has words of its own: there may be no version.
type overtakenError struct{}

func (overtakenError) Error() string { return "the object changed while its owner was asked" }

func (overtakenError) Unwrap() error { return ErrTie }
