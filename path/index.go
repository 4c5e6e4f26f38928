package path

// maxIndex bounds the memory of an index. A body whose object has more members
// is scanned again for each path.
const maxIndex = 64

// member is where a member of the body's object stands.
type member struct {
	name  []byte // with its quotes
	value []byte
}

// members reads the object at pos to its end and lists its members; nil where
// they are more than maxIndex.
func (s *scanner) members() ([]member, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	index := make([]member, 0, 16)
	for first := true; ; first = false {
		more, err := s.more('}', first)
		if !more || err != nil {
			return index, err
		}
		name, err := s.member()
		if err != nil {
			return nil, err
		}
		s.peek()
		start := s.pos
		if err := s.skip(); err != nil {
			return nil, err
		}
		switch {
		case len(index) == maxIndex:
			index = nil
		case first || index != nil:
			index = append(index, member{name: name, value: s.data[start:s.pos:s.pos]})
		}
	}
}
