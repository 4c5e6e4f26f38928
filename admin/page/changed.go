package page

import (
	"errors"
	"strconv"
	"strings"

	"creel/event"
)

const (
	// sameObject is how many events of one object are looked at.
	sameObject = 11
	// changedAround is how many equal lines stand around those that differ.
	changedAround = 3
	// changedMost is how many lines of a difference a page shows.
	changedMost = 1500
)

// changes is how the body of an event differs from that of the event before.
type changes struct {
	Before  event.Event
	Lines   []changedLine
	Added   int
	Removed int
	Heads   bool   // only the heads of both were compared
	More    bool   // not all that differs is shown
	Problem string // why they were not compared
}

// changedLine is a line of one body or of both, or how many are left out.
type changedLine struct {
	edit
	Left int
}

// Is tells what a line is, by its sign.
func (l changedLine) Is(sign string) bool { return string(l.Sign) == sign }

// earlier finds the event of the same object that came one step before another:
// by its version where both have one that sorts, else by its receipt. same are
// the newest of that object. It is nil where there is none whose body is kept.
func (q *request) earlier(e *event.Event, same []event.Event) (*event.Event, error) {
	if len(same) == sameObject {
		older, err := q.data().Events(q.ctx, Ask{Selector: event.Selector{Source: e.Key.Source, Object: e.Object},
			Cursor: strconv.FormatInt(e.Seq, 10), Limit: sameObject})
		if err != nil {
			return nil, err
		}
		same = append(same[:len(same):len(same)], older.List...)
	}
	var found *event.Event
	for i := range same {
		one := &same[i]
		if one.Seq != e.Seq && one.Key.Account == e.Key.Account && one.Object == e.Object && comesBefore(one, e) && (found == nil || comesBefore(found, one)) {
			found = one
		}
	}
	if found == nil {
		return nil, nil
	}
	kept, err := q.data().Kept(q.ctx, found.Seq)
	if errors.Is(err, event.ErrNotFound) || err == nil && !kept {
		return nil, nil
	}
	return found, err
}

func comesBefore(a, b *event.Event) bool {
	left, ok := event.Rank(a.Version)
	right, both := event.Rank(b.Version)
	if ok && both && left != right {
		return left < right
	}
	return a.Seq < b.Seq
}

// changed compares the body of an event with that of the one before, each
// indented where it is JSON: blanks between values are no difference.
func (q *request) changed(body []byte, before event.Event) (*changes, error) {
	c := &changes{Before: before}
	old, _, err := q.data().Body(q.ctx, before.Key)
	if err != nil {
		return nil, err
	}
	was, is := showBody(old, true), showBody(body, true)
	c.Heads = was.Cut || is.Cut
	edits, ok := difference(strings.Split(was.Text, "\n"), strings.Split(is.Text, "\n"))
	if !ok {
		c.Problem = "These two bodies have too little in common to be compared line by line: look at both."
		return c, nil
	}
	if c.Heads {
		edits = asFar(edits)
	}
	for _, one := range edits {
		switch one.Sign {
		case '+':
			c.Added++
		case '-':
			c.Removed++
		}
	}
	c.Lines, c.More = around(edits)
	return c, nil
}

// asFar leaves out what differs behind the last line that two heads have in
// common: they are cut off at different places.
func asFar(edits []edit) []edit {
	for i := len(edits) - 1; i >= 0; i-- {
		if edits[i].Sign == ' ' {
			return edits[:i+1]
		}
	}
	return edits
}

// around keeps the lines that differ and some around them; the others are
// counted.
func around(edits []edit) (lines []changedLine, more bool) {
	near := make([]bool, len(edits))
	for i, one := range edits {
		if one.Sign == ' ' {
			continue
		}
		for n := max(i-changedAround, 0); n < min(i+changedAround+1, len(edits)); n++ {
			near[n] = true
		}
	}
	for i := range near { // no line is left out alone
		near[i] = near[i] || (i == 0 || near[i-1]) && (i+1 == len(near) || near[i+1])
	}
	left := 0
	for i, one := range edits {
		if !near[i] {
			left++
			continue
		}
		if len(lines) >= changedMost {
			return lines, true
		}
		if left > 0 {
			lines = append(lines, changedLine{Left: left})
			left = 0
		}
		lines = append(lines, changedLine{edit: one})
	}
	if left > 0 && len(lines) > 0 {
		lines = append(lines, changedLine{Left: left})
	}
	return lines, false
}
