package path

import (
	"bytes"

	"creel/event"
)

// Document reads places of one request. It finds out what body means (see
// event.Payload.Part) once, when it is first asked for. It is not safe for
// concurrent use; the payload must not change while it is used.
type Document struct {
	payload event.Payload
	json    []byte // what body means
	err     error  // why there is no json
	ready   bool   // json and err are set
	checked bool   // json was read to its end once
	broken  error  // what is wrong with json, once checked
	members []member
}

// NewDocument makes a document of a payload. Nothing is read yet.
func NewDocument(payload event.Payload) *Document {
	return &Document{payload: payload}
}

// Payload is the request that the document reads.
func (d *Document) Payload() event.Payload { return d.payload }

// Get reads the value at a place; false says that nothing stands there. The
// errors are ErrUnparsable, ErrTooDeep and ErrDuplicateMember, with the place.
// A body path reads the whole body, so that what it finds does not depend on
// where a broken body breaks.
func (d *Document) Get(p Path) (Value, bool, error) {
	switch p.root {
	case Header:
		value, ok := headerValue(d.payload.Header, p.name)
		return value, ok, nil
	case Query:
		return fieldValue(d.payload.Query, p)
	case Form:
		return fieldValue(string(trimMark(d.payload.Body)), p)
	case Body:
		return d.getBody(p)
	}
	return Value{}, false, ErrBadPath
}

func (d *Document) getBody(p Path) (Value, bool, error) {
	if err := d.Check(); err != nil {
		return Value{}, false, placed(p.text, err)
	}
	if d.members != nil && len(p.steps) > 0 {
		return d.getMember(p)
	}
	f := finder{scanner: scanner{data: d.json}, path: p}
	if err := f.find(p.steps); err != nil {
		return Value{}, false, placed(p.text, err)
	}
	return f.value, f.found, nil
}

// getMember follows a path from the index.
func (d *Document) getMember(p Path) (Value, bool, error) {
	f := finder{path: p}
	for i, m := range d.members {
		if !sameName(m.name, p.steps[0].name) {
			continue
		}
		for _, other := range d.members[i+1:] {
			if sameName(other.name, p.steps[0].name) {
				return Value{}, false, at(p.before(len(p.steps)-1), ErrDuplicateMember)
			}
		}
		f.scanner = scanner{data: m.value, depth: 1}
		if err := f.find(p.steps[1:]); err != nil {
			return Value{}, false, placed(p.text, err)
		}
		break
	}
	return f.value, f.found, nil
}

// Check reads the whole body once: nil says that it is JSON within MaxDepth.
// Members written twice are no error here, only where they are used.
func (d *Document) Check() error {
	data, err := d.body()
	if err != nil {
		return err
	}
	if d.checked {
		return d.broken
	}
	s := scanner{data: data}
	if s.peek() == '{' {
		d.members, err = s.members()
	} else {
		err = s.skip()
	}
	if err == nil {
		err = s.end()
	}
	if err != nil {
		d.members = nil
	}
	d.checked, d.broken = true, err
	return err
}

// Body is the text that body paths walk: the part of the request that the
// event is, without a byte order mark in front.
func (d *Document) Body() ([]byte, error) { return d.body() }

func (d *Document) body() ([]byte, error) {
	if !d.ready {
		d.json, d.err = partOf(d.payload)
		d.ready = true
	}
	return d.json, d.err
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// trimMark leaves out the byte order mark that some senders write.
func trimMark(data []byte) []byte { return bytes.TrimPrefix(data, byteOrderMark) }

// placed names the place of an error that names none yet.
func placed(place string, err error) error {
	if _, ok := err.(*PlaceError); ok {
		return err
	}
	return at(place, err)
}
