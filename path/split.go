package path

import (
	"strconv"

	"creel/event"
)

// Split is the place of the array whose elements are the events of a request:
// body, body.items, or with a * for every element of an array on the way,
// body.entry.*.changes.*. Where the place does not end in * and an array
// stands there, its elements are meant; anything else there is one element.
type Split struct{ path Path }

// ParseSplit reads the place of a split, a body path.
func ParseSplit(text string) (Split, error) {
	p, err := parse(text, true)
	if err == nil && (p.root != Body || p.optional) {
		err = at(text, ErrBadPath)
	}
	return Split{path: p}, err
}

// String writes the split as it was parsed.
func (s Split) String() string { return s.path.text }

// IsZero tells whether there is a split at all.
func (s Split) IsZero() bool { return s.path.IsZero() }

// Element is one event of a request.
type Element struct {
	Part string // the event.Payload.Part of the element
	Raw  []byte // its JSON text, as it was written
	Kind Kind
}

// Each lists the elements of a split in their order. missed counts the
// branches on which nothing stands at the place, so that no part of a request
// is passed over unseen: an empty array is no element and nothing missed, a
// body without the array is one missed. The errors are those of Get.
func (d *Document) Each(split Split) (elements []Element, missed int, err error) {
	data, err := d.body()
	if err != nil {
		return nil, 0, at(split.path.text, err)
	}
	e := eacher{scanner: scanner{data: data}, part: d.payload.Part, path: split.path}
	if err := e.each(split.path.steps, "body"); err != nil {
		return nil, 0, placed(split.path.text, err)
	}
	if err := e.end(); err != nil {
		return nil, 0, at(split.path.text, err)
	}
	return e.elements, e.missed, nil
}

// Of makes the document of one element without reading the rest of the request
// again.
func (d *Document) Of(e Element) *Document {
	payload := d.payload
	payload.Part = e.Part
	return &Document{payload: payload, json: e.Raw, ready: true}
}

// PayloadOf is the payload of one element of a payload.
func PayloadOf(payload event.Payload, e Element) event.Payload {
	payload.Part = e.Part
	return payload
}

// eacher collects the elements of a split in one pass.
type eacher struct {
	scanner
	part     string
	path     Path
	elements []Element
	missed   int
}

func (e *eacher) each(steps []step, place string) error {
	c := e.peek()
	if len(steps) == 0 {
		last := e.path.steps
		if c == '[' && (len(last) == 0 || !last[len(last)-1].any) {
			return e.array(nil, -1, place)
		}
		return e.take(c, place)
	}
	switch {
	case c == '{' && !steps[0].any:
		return e.object(steps, place)
	case c == '[' && steps[0].any:
		return e.array(steps[1:], -1, place)
	case c == '[' && steps[0].index >= 0:
		return e.array(steps[1:], steps[0].index, place)
	}
	e.missed++
	return e.skip()
}

func (e *eacher) take(c byte, place string) error {
	start := e.pos
	if err := e.skip(); err != nil {
		return err
	}
	e.elements = append(e.elements, Element{
		Part: joinPart(e.part, place), Raw: e.data[start:e.pos:e.pos], Kind: kindOf(c)})
	return nil
}

// array goes on with each element of an array, or with one (only >= 0). nil
// steps take the elements themselves.
func (e *eacher) array(steps []step, only int, place string) error {
	if err := e.enter(); err != nil {
		return err
	}
	for i := 0; ; i++ {
		more, err := e.more(']', i == 0)
		if err != nil {
			return err
		}
		if !more {
			if only >= i {
				e.missed++
			}
			return nil
		}
		here := place + "." + strconv.Itoa(i)
		switch {
		case only >= 0 && i != only:
			err = e.skip()
		case steps == nil:
			err = e.take(e.peek(), here)
		default:
			err = e.each(steps, here)
		}
		if err != nil {
			return err
		}
	}
}

func (e *eacher) object(steps []step, place string) error {
	if err := e.enter(); err != nil {
		return err
	}
	here := place + "." + Escape(steps[0].name)
	seen := false
	for first := true; ; first = false {
		more, err := e.more('}', first)
		if err != nil {
			return err
		}
		if !more {
			if !seen {
				e.missed++
			}
			return nil
		}
		name, err := e.member()
		if err != nil {
			return err
		}
		if !sameName(name, steps[0].name) {
			if err := e.skip(); err != nil {
				return err
			}
			continue
		}
		if seen {
			return at(here, ErrDuplicateMember)
		}
		seen = true
		if err := e.each(steps[1:], here); err != nil {
			return err
		}
	}
}
