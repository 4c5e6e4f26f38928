package source

import (
	"errors"
	"fmt"
	"strings"

	"creel/event"
)

// ErrUnreadable says that nothing in a text is an event of the source.
var ErrUnreadable = errors.New("no event of the source")

// Bring finds the events of a request that its owner brings from the sender's
// own list or from a file: read as one that came in, and verified by nobody.
// One element of a source whose requests carry several is taken alone too. An
// event that can not be read is an error, which wraps ErrUnreadable: its owner
// can correct it, other than what a sender has sent.
func (s *Source) Bring(req *Request) (Result, error) { return s.BringAs(req, "") }

// BringAs is Bring for one event whose id its owner knows from elsewhere.
func (s *Source) BringAs(req *Request, id string) (Result, error) {
	r, err := s.bring(req, id)
	if err != nil && !s.scheme.split.IsZero() {
		if whole, ok := enclose(s.scheme.split.String(), req.Body); ok {
			own := *req
			own.Body = whole
			if again, failed := s.bring(&own, id); failed == nil {
				return again, nil
			}
		}
	}
	return r, err
}

func (s *Source) bring(req *Request, id string) (Result, error) {
	v, why := s.open(req)
	if why != nil {
		return Result{}, fmt.Errorf("%w: %s", ErrUnreadable, why.detail)
	}
	v.given = id
	items, skipped := s.events(v)
	for i := range items {
		if items[i].State == event.Dead {
			return Result{}, fmt.Errorf("%w: %s", ErrUnreadable, items[i].Error)
		}
	}
	switch {
	case len(items)+skipped == 0:
		return Result{}, fmt.Errorf("%w: it is empty", ErrUnreadable)
	case id != "" && len(items)+skipped > 1:
		return Result{}, fmt.Errorf("%w: one id for %d events", ErrUnreadable, len(items)+skipped)
	}
	return Result{SecretIndex: -1, Items: items, Skipped: skipped, Body: v.body}, nil
}

// enclose puts one element where a source looks for its elements.
func enclose(split string, element []byte) ([]byte, bool) {
	if strings.ContainsRune(split, '\\') {
		return nil, false // a name with a dot in it
	}
	steps := strings.Split(split, ".")[1:]
	text := string(element)
	for i := len(steps) - 1; i >= 0; i-- {
		switch step := steps[i]; {
		case step == "*":
			text = "[" + text + "]"
		case strings.Trim(step, "0123456789") == "":
			return nil, false
		default:
			text = fmt.Sprintf("{%q:%s}", step, text)
		}
	}
	return []byte(text), len(steps) > 0
}
