package source

import (
	"fmt"
	"strings"
)

// piece is literal text or a place.
type piece struct {
	literal string
	place   place
}

func (p piece) isLiteral() bool { return p.place.kind == 0 }

// template is text with places in it.
type template struct {
	text   string
	pieces []piece
}

// single tells whether the template is one place alone.
func (t template) single() bool { return len(t.pieces) == 1 && !t.pieces[0].isLiteral() }

// choice is a list of alternatives: the first that is there counts.
type choice []template

// placeParser reads what stands between the braces.
type placeParser func(text string) (place, error)

// parseTemplate reads text with {places}; {{ and }} are braces. Text without
// braces is a place by itself where bare is set, else literal text.
func parseTemplate(text string, bare bool, parse placeParser) (template, error) {
	t := template{text: text}
	if bare && !strings.ContainsAny(text, "{}") {
		p, err := parse(text)
		t.pieces = []piece{{place: p}}
		return t, err
	}
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			t.pieces = append(t.pieces, piece{literal: literal.String()})
			literal.Reset()
		}
	}
	for rest := text; rest != ""; {
		i := strings.IndexAny(rest, "{}")
		if i < 0 {
			literal.WriteString(rest)
			break
		}
		literal.WriteString(rest[:i])
		brace := rest[i]
		rest = rest[i+1:]
		if rest != "" && rest[0] == brace {
			literal.WriteByte(brace)
			rest = rest[1:]
			continue
		}
		inside, after, closed := strings.Cut(rest, "}")
		if brace == '}' || !closed {
			return t, fmt.Errorf("%q has a brace without its partner; {{ and }} are plain braces", text)
		}
		p, err := parse(inside)
		if err != nil {
			return t, err
		}
		flush()
		t.pieces = append(t.pieces, piece{place: p})
		rest = after
	}
	flush()
	return t, nil
}

// has tells whether a template has the word in it.
func (t template) has(word string) bool {
	for _, p := range t.pieces {
		if p.place.kind == inWord && p.place.name == word {
			return true
		}
	}
	return false
}

// reads tells whether a template reads the very place.
func (t template) reads(other place) bool {
	for _, p := range t.pieces {
		if p.place.kind == other.kind && p.place.text == other.text {
			return true
		}
	}
	return false
}
