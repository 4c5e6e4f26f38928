package path

import (
	"fmt"
	"strings"

	"creel/event"
)

// partOf finds the JSON text that an event's Part names: "" is the whole body,
// a body path an element of it, a form path the text of that field. The steps
// of a chain are joined by "|", which reads the text of what stands before it
// as JSON: "form.payload|body.0" is the first element of the array inside a
// form field.
func partOf(payload event.Payload) ([]byte, error) {
	data := trimMark(payload.Body)
	if payload.Part == "" {
		return data, nil
	}
	rest, more := payload.Part, true
	for more {
		var link string
		link, rest, more = cutByte(rest, '|')
		p, err := Parse(link)
		if err != nil {
			return nil, fmt.Errorf("part of the request: %w", err)
		}
		inner, err := linkOf(payload, data, p, more)
		if err != nil {
			return nil, err
		}
		data = inner
	}
	return data, nil
}

// linkOf follows one link of a part; unwrap says that its text is read on.
func linkOf(payload event.Payload, data []byte, p Path, unwrap bool) ([]byte, error) {
	if p.root != Body {
		d := NewDocument(payload)
		value, ok, err := d.Get(p)
		if err == nil && !ok {
			err = at(p.text, ErrMissing)
		}
		return trimMark([]byte(value.Text())), err
	}
	f := finder{scanner: scanner{data: data}, path: p, hasty: true}
	if err := f.find(p.steps); err != nil {
		return nil, placed(p.text, err)
	}
	if !f.found {
		return nil, at(p.text, ErrMissing)
	}
	if unwrap && f.value.Kind == String {
		return trimMark([]byte(f.value.Text())), nil
	}
	return f.value.Raw, nil
}

// joinPart names a place below a part as a part of the request.
func joinPart(part, below string) string {
	if part == "" {
		return below
	}
	last := part
	if i := lastLink(part); i >= 0 {
		last = part[i+1:]
	}
	if strings.HasPrefix(last, "form.") || strings.HasPrefix(last, "query.") || strings.HasPrefix(last, "header.") {
		return part + "|" + below
	}
	return part + strings.TrimPrefix(below, "body")
}

func lastLink(part string) int {
	last := -1
	for i := 0; i < len(part); i++ {
		switch part[i] {
		case '\\':
			i++
		case '|':
			last = i
		}
	}
	return last
}
