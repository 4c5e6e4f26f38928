package deliver

import (
	"errors"
	"fmt"
	"strings"

	"creel/event"
	"creel/path"
)

// errNoPart says that a stored request does not hold the event it should.
var errNoPart = errors.New("nothing stands there in the stored request")

// isElement tells whether an event is one of several inside a JSON body, so
// that not the whole body is its delivery. An event that stands in a form
// field travels as the form that it came in.
func isElement(part string) bool {
	return strings.HasPrefix(part, path.Body.String()+".")
}

// partOf is the body of a delivery, byte for byte as it came.
func partOf(payload event.Payload) ([]byte, error) {
	if !isElement(payload.Part) {
		return payload.Body, nil
	}
	place, err := path.Parse(payload.Part)
	if err != nil {
		return nil, fmt.Errorf("finding the event in its request: %w", err)
	}
	whole := payload
	whole.Part = ""
	value, found, err := path.NewDocument(whole).Get(place)
	if err != nil {
		return nil, fmt.Errorf("finding the event in its request: %w", err)
	}
	if !found {
		return nil, fmt.Errorf("finding the event in its request: %s: %w", payload.Part, errNoPart)
	}
	return value.Raw, nil
}
