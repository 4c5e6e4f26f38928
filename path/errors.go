package path

import (
	"errors"
	"fmt"
)

// The errors of reading a request. None of them quotes what it read.
var (
	// ErrUnparsable says that the body is not JSON.
	ErrUnparsable = errors.New("the body is not valid JSON")
	// ErrTooDeep says that the body is nested deeper than MaxDepth.
	ErrTooDeep = fmt.Errorf("the body is nested deeper than %d levels", MaxDepth)
	// ErrDuplicateMember says that a member or field that is used stands there
	// twice; parsers disagree about which of the two counts.
	ErrDuplicateMember = errors.New("the member is written twice")
	// ErrMissing says that nothing stands at a place that must not be empty.
	ErrMissing = errors.New("nothing stands there")
)

// PlaceError is an error at one place of a request.
type PlaceError struct {
	Place string // in the path language
	Err   error
}

// Error implements error.
func (e *PlaceError) Error() string { return e.Place + ": " + e.Err.Error() }

// Unwrap gives the sentinel.
func (e *PlaceError) Unwrap() error { return e.Err }

// at names the place of an error; nil stays nil.
func at(place string, err error) error {
	if err == nil {
		return nil
	}
	return &PlaceError{Place: place, Err: err}
}
