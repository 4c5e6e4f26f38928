package path

import "strconv"

// Decode turns the body into Go values for expressions; see Value.Decode.
func (d *Document) Decode() (any, error) {
	value, ok, err := d.Get(Path{text: "body", root: Body})
	if err != nil || !ok {
		return nil, err
	}
	return value.Decode()
}

// Decode turns a value into Go values: an object into map[string]any, an array
// into []any, a whole number into int64 or, where it does not fit, into the
// string of its digits, another number into float64 (into its text where it
// does not fit), the rest into string, bool and nil. A member that is written
// twice anywhere in it is ErrDuplicateMember.
func (v Value) Decode() (any, error) {
	if v.decoded {
		return v.text, nil
	}
	s := scanner{data: v.Raw}
	out, err := s.decode()
	if err != nil {
		return nil, err
	}
	return out, s.end()
}

// decode reads the value at pos. Its recursion is bounded by MaxDepth.
func (s *scanner) decode() (any, error) {
	switch c := s.peek(); c {
	case '{':
		return s.decodeObject()
	case '[':
		return s.decodeArray()
	default:
		start := s.pos
		if err := s.skipScalar(c); err != nil {
			return nil, err
		}
		return scalar(kindOf(c), s.data[start:s.pos]), nil
	}
}

func (s *scanner) decodeObject() (any, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	members := make(map[string]any)
	for first := true; ; first = false {
		more, err := s.more('}', first)
		if !more || err != nil {
			return members, err
		}
		quoted, err := s.member()
		if err != nil {
			return nil, err
		}
		name := unquote(quoted)
		if _, twice := members[name]; twice {
			return nil, ErrDuplicateMember
		}
		if members[name], err = s.decode(); err != nil {
			return nil, err
		}
	}
}

func (s *scanner) decodeArray() (any, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	elements := []any{}
	for {
		more, err := s.more(']', len(elements) == 0)
		if !more || err != nil {
			return elements, err
		}
		element, err := s.decode()
		if err != nil {
			return nil, err
		}
		elements = append(elements, element)
	}
}

func scalar(kind Kind, raw []byte) any {
	switch kind {
	case String:
		return unquote(raw)
	case Bool:
		return raw[0] == 't'
	case Null:
		return nil
	}
	return number(string(raw))
}

func number(text string) any {
	whole := true
	for i := range len(text) {
		if c := text[i]; c == '.' || c == 'e' || c == 'E' {
			whole = false
		}
	}
	if whole {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
		return text
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		return f
	}
	return text
}
