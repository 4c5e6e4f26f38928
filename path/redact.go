package path

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"

	"creel/event"
)

const (
	// Redacted stands for a value that is not shown or not kept.
	Redacted = "[redacted]"
	// RedactedWhole stands for a body that can not be read, so that nobody knows
	// where in it the values are.
	RedactedWhole = "[redacted: the body can not be read]"
	// leastTelling is the shortest value, in bytes, that is looked for in other
	// texts: a shorter one stands in every text by chance.
	leastTelling = 4
)

// Redaction is a list of places whose values are not to be seen. It is
// immutable and safe for concurrent use. A nil one changes nothing.
//
// A place is meant more widely than where a value is read: a member that is
// written twice is redacted twice, a list on the way counts for each of its
// elements, a * for every member or element, and every line of a header and
// every field of a name are meant.
type Redaction struct {
	body                  [][]step
	headers, query, forms []string
}

// ParseRedaction reads places: paths without a question mark, in which * is
// every member or element. The error is of the place that it names.
func ParseRedaction(places []string) (*Redaction, error) {
	r := &Redaction{}
	for _, text := range places {
		p, err := parse(text, true)
		if err == nil && p.optional {
			err = fmt.Errorf("%q ends in a question mark: %w", text, ErrBadPath)
		}
		if err != nil {
			return nil, err
		}
		switch p.root {
		case Body:
			r.body = append(r.body, p.steps)
		case Header:
			r.headers = append(r.headers, p.name)
		case Query:
			r.query = append(r.query, p.name)
		case Form:
			r.forms = append(r.forms, p.name)
		}
	}
	return r, nil
}

// Payload is a request without the values, every other byte as it came. What
// body means is what the payload's part says, and the same of the other events
// of the request. A body that can not be read is not there at all.
func (r *Redaction) Payload(payload event.Payload) event.Payload {
	if r == nil {
		return payload
	}
	return (&redacting{Redaction: r}).payload(payload)
}

// Texts are the values of a request that are not to be seen, decoded, so that
// they can be taken out of what quotes them: all that are long enough to tell.
func (r *Redaction) Texts(payload event.Payload) []string {
	if r == nil {
		return nil
	}
	work := &redacting{Redaction: r, collect: true}
	work.payload(payload)
	return work.texts
}

// redacting is one look at a request.
type redacting struct {
	*Redaction
	collect bool
	texts   []string
}

func (r *redacting) payload(payload event.Payload) event.Payload {
	payload.Header = r.header(payload.Header)
	payload.Query = r.fields(payload.Query, r.query)
	if len(payload.Body) == 0 || len(r.body)+len(r.forms) == 0 {
		return payload
	}
	inForm := strings.HasPrefix(payload.Part, Form.String()+".")
	plain := IsJSON(payload.Body)
	form := !plain && (inForm || len(r.body) == 0 || isForm(&payload))
	if len(r.body) > 0 && (!form || inForm) {
		inner, err := r.inPart(payload.Body, links(payload.Part))
		if err != nil {
			payload.Body = []byte(RedactedWhole)
			return payload
		}
		payload.Body = inner
	}
	if form {
		payload.Body = []byte(r.fields(string(payload.Body), r.forms))
	}
	return payload
}

// IsJSON tells whether a body is JSON that can be read.
func IsJSON(body []byte) bool { return NewDocument(event.Payload{Body: body}).Check() == nil }

// isForm tells whether a body that is no JSON is an urlencoded form: its sender
// says so, and it does not begin like JSON that breaks off.
func isForm(payload *event.Payload) bool {
	kind, _ := headerValue(payload.Header, "content-type")
	body := bytes.TrimLeft(trimMark(payload.Body), " \t\r\n")
	return strings.HasPrefix(strings.ToLower(kind.Text()), "application/x-www-form-urlencoded") &&
		len(body) > 0 && body[0] != '{' && body[0] != '[' && body[0] != '"'
}

// hide gives what stands for a value, and keeps the texts in it.
func (r *redacting) hide(raw []byte) ([]byte, error) {
	if r.collect {
		s := scanner{data: raw}
		for s.peek() != 0 { // every scalar in it, and every name
			switch s.data[s.pos] {
			case '{', '}', '[', ']', ',', ':':
				s.pos++
				continue
			}
			start := s.pos
			if err := s.skipScalar(s.data[s.pos]); err != nil {
				return nil, err
			}
			r.keep(Value{Kind: kindOf(raw[start]), Raw: raw[start:s.pos]}.Text())
		}
	}
	return []byte(`"` + Redacted + `"`), nil
}

func (r *redacting) keep(text string) {
	if r.collect && len(text) >= leastTelling {
		r.texts = append(r.texts, text)
	}
}

// links are the links of a part, outermost first.
func links(part string) (all []string) {
	for more := part != ""; more; {
		var link string
		link, part, more = cutByte(part, '|')
		all = append(all, link)
	}
	return all
}

// inPart redacts the JSON text that the links lead to inside of data, wherever
// an event of the request stands.
func (r *redacting) inPart(data []byte, rest []string) ([]byte, error) {
	if len(rest) == 0 {
		return replace(data, r.body, r.hide)
	}
	link, err := parse(rest[0], true)
	if err != nil {
		return nil, err
	}
	if link.root == Form {
		return eachField(string(data), link.name, func(text string) (string, error) {
			inner, err := r.inPart([]byte(text), rest[1:])
			return string(inner), err
		})
	}
	if link.root != Body { // the event does not stand in the body
		return data, nil
	}
	way := anywhere(link.steps)
	if len(rest) == 1 {
		places := make([][]step, len(r.body))
		for i, steps := range r.body {
			places[i] = append(way[:len(way):len(way)], steps...)
		}
		return replace(data, places, r.hide)
	}
	return replace(data, [][]step{way}, func(raw []byte) ([]byte, error) {
		if raw[0] != '"' {
			return r.inPart(raw, rest[1:])
		}
		inner, err := r.inPart([]byte(unquote(raw)), rest[1:])
		return quote(inner), err
	})
}

// anywhere is a way on which every index is any.
func anywhere(steps []step) []step {
	way := make([]step, len(steps))
	for i, s := range steps {
		if way[i] = s; s.index >= 0 {
			way[i] = step{any: true, index: -1}
		}
	}
	return way
}

// replace writes JSON text with other text at every place.
func replace(data []byte, places [][]step, with func(raw []byte) ([]byte, error)) ([]byte, error) {
	m := marker{scanner: scanner{data: data, pos: len(data) - len(trimMark(data))}}
	if err := m.walk(places); err != nil {
		return nil, err
	}
	if err := m.end(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	last := 0
	for _, s := range m.spans {
		text, err := with(m.data[s.from:s.to])
		if err != nil {
			return nil, err
		}
		out.Write(m.data[last:s.from])
		out.Write(text)
		last = s.to
	}
	if last == 0 {
		return data, nil
	}
	out.Write(m.data[last:])
	return out.Bytes(), nil
}

// span is where a value stands in a text.
type span struct{ from, to int }

// marker finds the spans of all places in one pass. Its recursion is bounded by
// the depth that a body may have.
type marker struct {
	scanner
	spans []span
}

// walk marks what the steps lead to below the value at pos, and moves past it.
func (m *marker) walk(active [][]step) error {
	c := m.peek()
	for _, steps := range active {
		if len(steps) == 0 {
			start := m.pos
			err := m.skip()
			m.spans = append(m.spans, span{start, m.pos})
			return err
		}
	}
	if len(active) == 0 || c != '{' && c != '[' {
		return m.skip()
	}
	if err := m.enter(); err != nil {
		return err
	}
	closing := c + 2 // } is two behind {, and ] behind [
	for i := 0; ; i++ {
		more, err := m.more(closing, i == 0)
		if !more || err != nil {
			return err
		}
		var below [][]step
		if c == '{' {
			name, err := m.member()
			if err != nil {
				return err
			}
			below = ofMember(active, name)
		} else {
			below = ofElement(active, i)
		}
		if err := m.walk(below); err != nil {
			return err
		}
	}
}

func ofMember(active [][]step, name []byte) (below [][]step) {
	for _, steps := range active {
		if steps[0].any || sameName(name, steps[0].name) {
			below = append(below, steps[1:])
		}
	}
	return below
}

func ofElement(active [][]step, i int) (below [][]step) {
	for _, steps := range active {
		switch {
		case steps[0].any || steps[0].index == i:
			below = append(below, steps[1:])
		case steps[0].index < 0:
			below = append(below, steps)
		}
	}
	return below
}

// header redacts header lines.
func (r *redacting) header(lines string) string {
	if len(r.headers) == 0 {
		return lines
	}
	var out strings.Builder
	for line := range strings.Lines(lines) {
		name, value, ok := strings.Cut(line, ":")
		if ok && r.hidesHeader(name) {
			r.keep(strings.Trim(value, " \t\r\n"))
			line = name + ": " + Redacted + strings.Repeat("\n", strings.Count(line, "\n"))
		}
		out.WriteString(line)
	}
	return out.String()
}

func (r *Redaction) hidesHeader(name string) bool {
	for _, hidden := range r.headers {
		if strings.EqualFold(strings.TrimSpace(name), hidden) {
			return true
		}
	}
	return false
}

// fields redacts fields of an urlencoded text.
func (r *redacting) fields(encoded string, names []string) string {
	for _, name := range names {
		inner, _ := eachField(encoded, name, func(text string) (string, error) { // it never fails
			r.keep(text)
			return Redacted, nil
		})
		encoded = string(inner)
	}
	return encoded
}

// eachField writes an urlencoded text with other values for the fields of a name.
func eachField(encoded, wanted string, with func(text string) (string, error)) ([]byte, error) {
	pairs := strings.Split(encoded, "&")
	for i, pair := range pairs {
		name, raw, _ := strings.Cut(pair, "=")
		if pair == "" || decodeField(strings.TrimPrefix(name, string(byteOrderMark))) != wanted {
			continue
		}
		text, err := with(decodeField(raw))
		if err != nil {
			return nil, err
		}
		pairs[i] = name + "=" + url.QueryEscape(text)
	}
	return []byte(strings.Join(pairs, "&")), nil
}

// quote writes a text as a JSON string; unquote reads it back.
func quote(text []byte) []byte {
	out := make([]byte, 0, len(text)+2)
	out = append(out, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < ' ':
			out = fmt.Appendf(out, `\u%04x`, c)
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}

// Shape is a part with a * for every index: parts of one shape are redacted
// together.
func Shape(part string) string {
	all := links(part)
	for i, text := range all {
		link, err := parse(text, true)
		if err != nil || link.root != Body {
			continue
		}
		shape := Body.String()
		for _, s := range anywhere(link.steps) {
			if s.any {
				shape += ".*"
			} else {
				shape += "." + Escape(s.name)
			}
		}
		all[i] = shape
	}
	return strings.Join(all, "|")
}
