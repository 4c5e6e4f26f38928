package handlers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

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

// Decode reads the body as JSON into a Go value, as encoding/json does. What the
// value keeps of it is its own.
func (e Event) Decode(into any) error {
	body, err := e.Body()
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

// Record is the effect that keeps one row of a kind with these fields, under
// the event's business key. What it returns may be changed before it is used.
func (e Event) Record(kind string, fields map[string]string) event.Record {
	return event.Record{Key: e.businessKey, Rule: e.rule, Of: kind, Fields: fieldsFrom(fields)}
}

// Grant is the effect that adds an amount, in the smallest unit, to a balance.
func (e Event) Grant(to, unit string, amount int64) event.Grant {
	return event.Grant{Key: e.businessKey, Rule: e.rule, To: to, Unit: unit, Amount: amount}
}

// Reverse is the effect that takes back all of the grant with this business
// key.
func (e Event) Reverse(key string) event.Grant {
	return event.Grant{Key: e.businessKey, Rule: e.rule, Reverse: key}
}

// State is the effect that keeps the state of an object of the event's source
// and account, unless a newer version is known. For a compare-and-set leave
// the version empty and fill in From.
func (e Event) State(object, to, version string) event.SetState {
	prefix := event.EscapePart(e.Key.Source) + "/" + event.EscapePart(e.Key.Account) + "/"
	return event.SetState{Key: e.businessKey, Rule: e.rule, Object: prefix + event.EscapePart(object), To: to, Version: version}
}

// SQL is the effect that runs one statement of the owner's.
func (e Event) SQL(statement string, params map[string]string) event.SQL {
	return event.SQL{Key: e.businessKey, Rule: e.rule, Statements: []string{statement}, Params: fieldsFrom(params)}
}

// Email is the effect that sends a mail to one address.
func (e Event) Email(to, subject, text string) event.Email {
	return event.Email{Key: e.businessKey, Rule: e.rule, To: to, Subject: subject, Text: text}
}

// Run is the effect that runs the command of a destination with the event and
// these fields.
func (e Event) Run(destination string, fields map[string]string) event.Run {
	return event.Run{Key: e.businessKey, Rule: e.rule, Destination: destination, Fields: fieldsFrom(fields)}
}

// File is the effect that writes the event's body into the folder of a
// destination, at a path that may not lead out of it. Put what comes from the
// event through event.EscapePart.
func (e Event) File(destination, path string) event.File {
	return event.File{Key: e.businessKey, Rule: e.rule, Destination: destination, Path: path}
}

func fieldsFrom(texts map[string]string) []event.Field {
	var out []event.Field
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		out = append(out, event.Field{Name: name, Value: texts[name]})
	}
	return out
}

// Forward is the effect that delivers the event to a destination, under the
// event's business key.
func (e Event) Forward(destination string) event.Effect {
	return event.Forward{Key: e.businessKey, Rule: e.rule, Destination: destination}
}
