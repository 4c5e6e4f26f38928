package source

import (
	"bytes"
	"encoding/json"

	"creel/event"
	"creel/path"
)

// Alike tells whether two requests say the same of an event, however each is
// written: blanks, the order of members and what the sender changes from one
// delivery to the next do not count. It implements event.Likeness.
func (s *Source) Alike(a, b event.Payload) bool {
	left, ok := s.meaning(a)
	if !ok {
		return false
	}
	right, ok := s.meaning(b)
	return ok && sameBytes(left, right)
}

// meaning is the JSON of an event in one way of writing it.
func (s *Source) meaning(payload event.Payload) ([]byte, bool) {
	doc := path.NewDocument(payload)
	for _, p := range s.scheme.volatile {
		if !p.isBody() {
			continue
		}
		if _, there, err := doc.Get(p.path); err != nil || !there {
			continue
		}
		whole, err := doc.Splice(p.path, []byte(`"`+volatileMark+`"`))
		if err != nil {
			return nil, false
		}
		payload.Body, payload.Part = whole, ""
		doc = path.NewDocument(payload)
	}
	raw, err := doc.Body()
	if err != nil {
		return nil, false
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, false
	}
	text, err := json.Marshal(steady(value)) // sorts the members
	return text, err == nil
}

// volatileMark stands for what differs between deliveries.
const volatileMark = "creel: differs between deliveries"

// steady leaves out the members that are marked: what differs may be absent
// from one of two requests.
func steady(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if member == volatileMark {
				delete(v, name)
				continue
			}
			v[name] = steady(member)
		}
	case []any:
		for i := range v {
			v[i] = steady(v[i])
		}
	}
	return value
}
