package source

import (
	"strings"
)

// What a signature header may cost.
const (
	maxCandidates = 16 // signatures that are tried; more are not looked at
	maxElements   = 64 // elements of a list that are looked at
)

// signatures says where the signatures of a request stand and how they are
// written.
type signatures struct {
	places []place
	any    bool // all places count, not only the first that is there
	repeat bool // the header may come several times
	list   string
	pair   string
	take   string
	bare   bool
	fold   bool // the label is an authentication scheme: letter case is ignored
	enc    encoding
}

// candidate is one signature that a request carries.
type candidate struct {
	text string
	raw  []byte
}

// read gives the signatures of a request and keeps the labelled elements
// beside them.
func (s *signatures) read(v *view) ([]candidate, *refusal) {
	texts, why := s.texts(v)
	if why != nil {
		return nil, why
	}
	var out []candidate
	v.labels = v.labels[:0]
	elements := 0
	for _, text := range texts {
		for _, element := range s.elements(text) {
			if elements++; elements > maxElements {
				break
			}
			if one, ok := s.candidate(v, element); ok && len(out) < maxCandidates {
				out = append(out, candidate{text: one})
			}
		}
	}
	if len(out) == 0 {
		return nil, refuse(MalformedSignature, s.wanted())
	}
	readable := out[:0]
	for _, c := range out {
		if raw, ok := s.enc.decode(c.text); ok {
			readable = append(readable, candidate{text: c.text, raw: raw})
		}
	}
	if len(readable) == 0 {
		return nil, refuse(MalformedSignature, "no signature is written as "+string(s.enc))
	}
	return readable, nil
}

func (s *signatures) wanted() string {
	if s.take == "" {
		return "the signature is empty"
	}
	return "no element is labelled " + s.take
}

// texts are the values of the signature's places.
func (s *signatures) texts(v *view) ([]string, *refusal) {
	var out []string
	for _, p := range s.places {
		lines, err := s.lines(v, p)
		if err != nil {
			return nil, refuse(MalformedSignature, p.text+": "+err.Error())
		}
		out = append(out, lines...)
		if len(lines) > 0 && !s.any {
			break
		}
	}
	for _, text := range out {
		if strings.Trim(text, " \t") != "" {
			return out, nil
		}
	}
	return nil, refuse(MissingSignature, "nothing stands at "+s.where())
}

func (s *signatures) lines(v *view, p place) ([]string, error) {
	switch p.kind {
	case inHeaders:
		var out []string
		for _, name := range p.names {
			if lines := v.req.Header[name]; len(lines) > 1 && !s.repeat {
				return nil, errRepeated
			} else {
				out = append(out, lines...)
			}
		}
		return out, nil
	case inHeader:
		lines := v.req.Header[p.name]
		if len(lines) > 1 && !s.repeat {
			return nil, errRepeated
		}
		return lines, nil
	}
	at, err := v.look(p)
	if err != nil || !at.ok {
		return nil, err
	}
	return []string{at.text}, nil
}

func (s *signatures) where() string {
	names := make([]string, len(s.places))
	for i, p := range s.places {
		names[i] = p.text
	}
	return strings.Join(names, ", ")
}

// elements cuts a list. Senders join with more than the separator (Supabase
// writes ", "), so that spaces and commas around an element mean nothing.
func (s *signatures) elements(text string) []string {
	if s.list == "" {
		return []string{strings.Trim(text, " \t")}
	}
	var out []string
	for rest, more := text, true; more && len(out) <= maxElements; {
		var element string
		element, rest, more = strings.Cut(rest, s.list)
		if element = strings.Trim(element, " \t,"); element != "" {
			out = append(out, element)
		}
	}
	return out
}

// candidate reads one element; false says that it carries no signature that
// counts.
func (s *signatures) candidate(v *view, element string) (string, bool) {
	if s.pair == "" {
		return element, element != ""
	}
	name, value, ok := strings.Cut(element, s.pair)
	name, value = strings.Trim(name, " \t"), strings.Trim(value, " \t")
	if ok {
		v.labels = append(v.labels, label{name: name, value: value})
	}
	switch {
	case ok && (name == s.take || s.fold && strings.EqualFold(name, s.take)):
		return value, value != ""
	case s.bare:
		return element, element != ""
	}
	return "", false
}
