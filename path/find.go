package path

// finder follows one path through JSON text. Its recursion is bounded by the
// steps of the path, never by the text.
type finder struct {
	scanner
	// hasty stops at the first hit. Otherwise the text is read and checked to
	// its end, and a member on the path that is written twice is an error.
	hasty bool
	value Value
	found bool
	path  Path // names the place of an error
}

// find fills in value and found for the steps below the value at pos, and
// moves past that value.
func (f *finder) find(steps []step) error {
	c := f.peek()
	if len(steps) == 0 {
		start := f.pos
		if err := f.skip(); err != nil {
			return err
		}
		f.value, f.found = Value{Kind: kindOf(c), Raw: f.data[start:f.pos:f.pos]}, true
		return nil
	}
	switch {
	case c == '{':
		return f.inObject(steps)
	case c == '[' && steps[0].index >= 0:
		return f.inArray(steps)
	}
	return f.skip()
}

func (f *finder) inObject(steps []step) error {
	if err := f.enter(); err != nil {
		return err
	}
	seen := false
	for first := true; ; first = false {
		more, err := f.more('}', first)
		if !more || err != nil {
			return err
		}
		name, err := f.member()
		if err != nil {
			return err
		}
		if !sameName(name, steps[0].name) {
			if err := f.skip(); err != nil {
				return err
			}
			continue
		}
		if seen {
			return at(f.path.before(len(steps)-1), ErrDuplicateMember)
		}
		seen = true
		if err := f.find(steps[1:]); err != nil || (f.hasty && f.found) {
			return err
		}
	}
}

func (f *finder) inArray(steps []step) error {
	if err := f.enter(); err != nil {
		return err
	}
	for i := 0; ; i++ {
		more, err := f.more(']', i == 0)
		if !more || err != nil {
			return err
		}
		if i != steps[0].index {
			err = f.skip()
		} else {
			err = f.find(steps[1:])
		}
		if err != nil || (f.hasty && f.found) {
			return err
		}
	}
}

// before writes the path without its last n steps.
func (p Path) before(n int) string {
	if n == 0 {
		return p.text
	}
	text := "body"
	for _, s := range p.steps[:len(p.steps)-n] {
		text += "." + Escape(s.name)
	}
	return text
}
