package source

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"

	"creel/event"
	"creel/path"
)

// Request is what came in, as it came.
type Request struct {
	Method string
	Query  string // raw, without the question mark
	Header http.Header
	Body   []byte
}

// errRepeated says that a header that is used came twice: which one counts
// would be a guess.
var errRepeated = errors.New("the header came twice")

// view is one request while it is read. It belongs to one call.
type view struct {
	src    *Source
	req    *Request
	body   []byte         // inflated: what the paths read
	signed []byte         // what {body} means in the signed content
	doc    *path.Document // the event: the whole body, the form's JSON, one element
	raw    []byte         // the text of that event, where it is known
	form   bool           // body paths find nothing: the fields are the event
	url    string
	labels []label
	claims *path.Document
	words  map[string]string
	given  string // an id that its owner brings
}

// label is one labelled element of a signature header.
type label struct{ name, value string }

// found is what stands at a place.
type found struct {
	text string
	kind path.Kind
	ok   bool
}

func textFound(text string) found { return found{text: text, kind: path.String, ok: true} }

// look reads a place. JSON null counts as nothing.
func (v *view) look(p place) (found, error) {
	switch p.kind {
	case fixed:
		return textFound(p.name), nil
	case inHeader:
		return v.header(p.name)
	case inLabel:
		return v.label(p.name)
	case inWord:
		return v.word(p.name)
	case inDigest:
		return v.digest(p.digest)
	case inClaim:
		if v.claims == nil {
			return found{}, nil
		}
		return get(v.claims, p.path)
	case inRequest:
		if v.form && p.isBody() {
			return found{}, nil
		}
		return get(v.doc, p.path)
	}
	return found{}, nil
}

func get(doc *path.Document, p path.Path) (found, error) {
	value, ok, err := doc.Get(p)
	if err != nil || !ok || value.Kind == path.Null {
		return found{}, err
	}
	return found{text: value.Text(), kind: value.Kind, ok: true}, nil
}

func (v *view) header(name string) (found, error) {
	lines := v.req.Header[name]
	switch len(lines) {
	case 0:
		return found{}, nil
	case 1:
		return textFound(strings.Trim(lines[0], " \t")), nil
	}
	return found{}, errRepeated
}

func (v *view) label(name string) (found, error) {
	var hit found
	for _, l := range v.labels {
		if l.name != name {
			continue
		}
		if hit.ok {
			return found{}, errRepeated
		}
		hit = textFound(l.value)
	}
	return hit, nil
}

func (v *view) word(name string) (found, error) {
	switch name {
	case "body":
		return textFound(string(v.signed)), nil
	case "url":
		return textFound(v.url), nil
	case "path":
		return textFound(pathOf(v.url)), nil
	case "method":
		return textFound(v.req.Method), nil
	case "form_sorted":
		return textFound(formSorted(v.body)), nil
	case "receipt":
		return textFound(receiptID()), nil
	case "body-sha256":
		return textFound(event.HashID(v.raw)), nil
	}
	text, ok := v.words[name]
	return found{text: text, kind: path.String, ok: ok}, nil
}

func (v *view) setWord(name, text string) {
	if v.words == nil {
		v.words = make(map[string]string, 8)
	}
	v.words[name] = text
}

// first is the text of the first alternative that is there. Objects and
// arrays are no text: they are passed over, or an error where strict is set.
func (v *view) first(c choice, strict, escape bool) (string, bool, error) {
	for _, t := range c {
		text, ok, err := v.render(t, strict, escape && !t.single())
		if ok || err != nil {
			return text, ok, err
		}
	}
	return "", false, nil
}

// errNotText says that an object or array stands where a text is wanted.
var errNotText = errors.New("an object or array stands where the text should be")

// render is the text of a template; false where a place of it is empty.
func (v *view) render(t template, strict, escape bool) (string, bool, error) {
	var b strings.Builder
	for _, p := range t.pieces {
		if p.isLiteral() {
			b.WriteString(p.literal)
			continue
		}
		at, err := v.look(p.place)
		if err != nil {
			return "", false, placed(p.place, err)
		}
		if at.kind == path.Object || at.kind == path.Array {
			if strict {
				return "", false, placed(p.place, errNotText)
			}
			return "", false, nil
		}
		if at.text == "" && !p.place.optional {
			return "", false, nil
		}
		if escape {
			at.text = event.EscapePart(at.text)
		}
		b.WriteString(at.text)
	}
	return b.String(), b.Len() > 0, nil
}

func placed(p place, err error) error {
	var known *path.PlaceError
	if errors.As(err, &known) {
		return err
	}
	return &path.PlaceError{Place: p.text, Err: err}
}

// receiptID makes one receipt differ from every other.
func receiptID() string {
	var id [16]byte
	rand.Read(id[:])
	return "receipt:" + hex.EncodeToString(id[:])
}

// formSorted joins the fields of a form, sorted by name, each name followed by
// its value; a name that comes several times gives each of its values once, in
// order (as Twilio's own libraries do; twilio/twilio-node, lib/webhooks).
func formSorted(body []byte) string {
	values := map[string][]string{}
	size := 0
	path.Fields(string(body), func(name, value string) bool {
		values[name] = append(values[name], value)
		size += len(name) + len(value)
		return true
	})
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	b.Grow(size)
	for _, name := range names {
		slices.Sort(values[name])
		for _, value := range slices.Compact(values[name]) {
			b.WriteString(name)
			b.WriteString(value)
		}
	}
	return b.String()
}
