package page

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"creel/event"
)

// Place is a value of an event at a place of its body that its source lists in
// its index: by it events are found.
type Place struct {
	event.IndexValue
	Steps []string // to it, below the body: names of members and indexes of elements
}

// piece is a part of a shown body; Query finds the events that have the same
// value there, and is empty where it is no such value.
type piece struct {
	Text  string
	Query string
}

// pieces cuts an indented head at the values by which events are found. Together
// they say what the head says, byte for byte.
func pieces(text []byte, source string, places []Place) []piece {
	var all []piece
	add := func(part []byte, query string) {
		if len(part) > 0 {
			shown, _ := visible(part)
			all = append(all, piece{shown, query})
		}
	}
	done := 0
	walker := walker{text: text}
	for start, end := range walker.values {
		at := slices.IndexFunc(places, func(p Place) bool { return walker.at(p.Steps) && says(text[start:end], p.Value) })
		if at < 0 {
			continue
		}
		if query := findQuery(source, places[at].IndexValue); query != "" {
			add(text[done:start], "")
			add(text[start:end], query)
			done = end
		}
	}
	add(text[done:], "")
	return all
}

// findQuery is the query for events of a source with a value; "" where none can
// say it.
func findQuery(source string, value event.IndexValue) string {
	text := event.Selector{Source: source, Index: []event.IndexMatch{value}}.Query()
	read, err := event.ParseQuery(text, time.Time{})
	if err != nil || read.Source != source || !slices.Equal(read.Index, []event.IndexMatch{value}) {
		return ""
	}
	return text
}

// says tells whether a JSON text is a value.
func says(raw []byte, value string) bool {
	if raw[0] != '"' {
		return string(raw) == value
	}
	var text string
	return json.Unmarshal(raw, &text) == nil && text == value
}

// level is an object or an array that is open.
type level struct {
	object bool
	name   []byte // of the member that is read, as it is written
	named  bool   // its value comes next
	index  int    // of the element that is read
}

// walker walks the values of a JSON text, or of the head of one.
type walker struct {
	text []byte
	open []level
}

// values yields where each text, number and word begins and ends, in order. One
// that may be cut off at the end is left out.
func (w *walker) values(yield func(start, end int) bool) {
	for i := 0; i < len(w.text); {
		end := i + 1
		switch c := w.text[i]; c {
		case '{', '[':
			w.open = append(w.open, level{object: c == '{'})
		case '}', ']':
			w.open = w.open[:max(len(w.open)-1, 0)]
		case ',':
			if top := w.top(); top != nil {
				top.index++
				top.named = false
			}
		case ':', ' ', '\t', '\r', '\n':
		default:
			if end = w.scalar(i); end == len(w.text) {
				return
			}
			if top := w.top(); top != nil && top.object && !top.named {
				top.name, top.named = w.text[i:end], true
			} else if !yield(i, end) {
				return
			}
		}
		i = end
	}
}

func (w *walker) top() *level {
	if len(w.open) == 0 {
		return nil
	}
	return &w.open[len(w.open)-1]
}

// scalar is behind the text, number or word that begins at i.
func (w *walker) scalar(i int) int {
	if w.text[i] == '"' {
		return min(stringEnd(w.text, i), len(w.text))
	}
	for i++; i < len(w.text); i++ {
		switch w.text[i] {
		case ',', ':', '{', '}', '[', ']', '"', ' ', '\t', '\r', '\n':
			return i
		}
	}
	return i
}

// at tells whether the value that was yielded last stands at a place.
func (w *walker) at(steps []string) bool {
	if len(steps) != len(w.open) {
		return false
	}
	for i := range w.open {
		one := &w.open[i]
		if !one.object && steps[i] != strconv.Itoa(one.index) || one.object && !says(one.name, steps[i]) {
			return false
		}
	}
	return true
}
