package handlers

import (
	"bytes"
	"encoding/json"
	"fmt"

	"creel/event"
	"creel/path"
)

// Event is what a Go handler gets. It belongs to the handler: it must not be
// used after the handler has returned, nor by several goroutines at once.
type Event struct {
	event.Event
	rule        string
	businessKey string
	doc         *path.Document
}

// Rule is the name of the rule that called the handler.
func (e Event) Rule() string { return e.rule }

// BusinessKey names the operation: the rule's key for this event. Effects that
// name no key of their own get it.
func (e Event) BusinessKey() string { return e.businessKey }

// Body is a copy of the event's bytes: the request's body or the part of it
// that this event is.
func (e Event) Body() ([]byte, error) {
	body, err := e.doc.Body()
	return bytes.Clone(body), err
}

// Decode reads the body as JSON into a Go value, as encoding/json does.
func (e Event) Decode(into any) error {
	body, err := e.doc.Body()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("decode the body: %w", err)
	}
	return nil
}

// Text is the exact text at a place of the path language, such as
// body.data.object.id or header.x-foo. The error wraps path.ErrMissing where
// nothing stands there and the place does not end in a question mark.
func (e Event) Text(place string) (string, error) {
	p, err := path.Parse(place)
	if err != nil {
		return "", err
	}
	value, ok, err := e.doc.Get(p)
	if err != nil {
		return "", err
	}
	if (!ok || value.Kind == path.Null) && !p.Optional() {
		return "", &path.PlaceError{Place: place, Err: path.ErrMissing}
	}
	return value.Text(), nil
}

// Forward is the effect that delivers the event to a destination, under the
// event's business key.
func (e Event) Forward(destination string) event.Effect {
	return event.Forward{Key: e.businessKey, Rule: e.rule, Destination: destination}
}
