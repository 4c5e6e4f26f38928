package path

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrBadPath says that a text is not a path of the language.
var ErrBadPath = errors.New("a path is body.a.0.b, header.x-foo, query.x or form.x")

// maxSteps bounds what a path costs to follow.
const maxSteps = 64

// Root says which part of a request a path walks.
type Root uint8

// The roots of the language.
const (
	Body Root = iota + 1
	Header
	Query
	Form
)

// String is the word for the root in the language.
func (r Root) String() string {
	switch r {
	case Body:
		return "body"
	case Header:
		return "header"
	case Query:
		return "query"
	case Form:
		return "form"
	}
	return ""
}

func rootOf(word string) (Root, bool) {
	for _, root := range []Root{Body, Header, Query, Form} {
		if word == root.String() {
			return root, true
		}
	}
	return 0, false
}

// step is one move down: a member's name, which is also an element's index
// where it is written in digits.
type step struct {
	name  string
	index int  // -1 where the name is no index
	any   bool // * of a split: every element
}

// Path is a parsed path. The zero value is no path; paths are immutable and
// safe for concurrent use.
type Path struct {
	text     string // as written, without the question mark
	root     Root
	name     string // of the header or field
	steps    []step // below body
	optional bool
}

// Parse reads a path. The error wraps ErrBadPath and names what is wrong.
func Parse(text string) (Path, error) {
	return parse(text, false)
}

func parse(text string, wildcards bool) (Path, error) {
	plain, optional := cutOptional(text)
	word, rest, below := cutDot(plain)
	root, ok := rootOf(word)
	if !ok {
		if near := RootNear(word); near != "" {
			return Path{}, fmt.Errorf("%q does not start with body, header, query or form (did you mean %s?): %w", text, near, ErrBadPath)
		}
		return Path{}, fmt.Errorf("%q does not start with body, header, query or form: %w", text, ErrBadPath)
	}
	p := Path{text: plain, root: root, optional: optional}
	if root != Body {
		if rest == "" {
			return Path{}, fmt.Errorf("%q names no %s: %w", text, root, ErrBadPath)
		}
		p.name = unescape(rest)
		return p, nil
	}
	for below {
		var written string
		written, rest, below = cutDot(rest)
		if written == "" {
			return Path{}, fmt.Errorf("%q has an empty step: %w", text, ErrBadPath)
		}
		p.steps = append(p.steps, parseStep(written, wildcards))
	}
	if len(p.steps) > maxSteps {
		return Path{}, fmt.Errorf("%q has more than %d steps: %w", text, maxSteps, ErrBadPath)
	}
	return p, nil
}

// RootNear is the word with which a path begins that another word is meant
// for, such as header for headers; "" where it looks like none.
func RootNear(word string) string {
	const begins = 3 // letters that all of them differ in
	if len(word) < begins {
		return ""
	}
	for _, root := range []Root{Body, Header, Query, Form} {
		if strings.EqualFold(word[:begins], root.String()[:begins]) {
			return root.String()
		}
	}
	return ""
}

func parseStep(written string, wildcards bool) step {
	if wildcards && written == "*" {
		return step{any: true, index: -1}
	}
	name := unescape(written)
	return step{name: name, index: indexOf(name)}
}

// indexOf reads an array index written as JSON writes a whole number.
func indexOf(name string) int {
	if len(name) > 9 || (len(name) > 1 && name[0] == '0') {
		return -1
	}
	for i := range len(name) {
		if name[i] < '0' || name[i] > '9' {
			return -1
		}
	}
	index, err := strconv.Atoi(name)
	if err != nil {
		return -1
	}
	return index
}

// IsZero tells whether there is a path at all.
func (p Path) IsZero() bool { return p.root == 0 }

// Root says which part of a request the path walks.
func (p Path) Root() Root { return p.root }

// Name is the header or field that the path names; "" for body paths.
func (p Path) Name() string { return p.name }

// Optional tells whether the place may be empty.
func (p Path) Optional() bool { return p.optional }

// Steps are the plain names of the steps of a body path, those that are indexes
// among them.
func (p Path) Steps() []string {
	names := make([]string, len(p.steps))
	for i, one := range p.steps {
		names[i] = one.name
	}
	return names
}

// String writes the path as it was parsed.
func (p Path) String() string {
	if p.optional {
		return p.text + "?"
	}
	return p.text
}

// Join builds a body path from the plain names of its steps, escaping what the
// language needs escaped.
func Join(steps ...string) (Path, error) {
	var b strings.Builder
	b.WriteString("body")
	for _, name := range steps {
		b.WriteByte('.')
		b.WriteString(Escape(name))
	}
	return Parse(b.String())
}

var escaper = strings.NewReplacer(`\`, `\\`, `.`, `\.`, `?`, `\?`, `*`, `\*`, `|`, `\|`, `{`, `\{`, `}`, `\}`)

// Escape writes a member's name as a step of a path.
func Escape(name string) string { return escaper.Replace(name) }

// cutDot splits a path at its first dot that is not escaped.
func cutDot(text string) (before, after string, found bool) { return cutByte(text, '.') }

func cutByte(text string, sep byte) (before, after string, found bool) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case sep:
			return text[:i], text[i+1:], true
		}
	}
	return text, "", false
}

// cutOptional takes the question mark off the end, unless it is escaped.
func cutOptional(text string) (string, bool) {
	plain, ok := strings.CutSuffix(text, "?")
	if !ok {
		return text, false
	}
	slashes := len(plain) - len(strings.TrimRight(plain, `\`))
	if slashes%2 == 1 {
		return text, false
	}
	return plain, true
}

func unescape(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
