package path

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"creel/event"
)

// ErrBadTemplate says that a text is not a template.
var ErrBadTemplate = errors.New("a template is text with {body.x}, {header.x-foo} or {name} in it, and {{ and }} for braces")

// EventNames are the plain names of an event: what a rule's templates and
// conditions may use beside paths.
func EventNames() []string {
	return []string{"source", "account", "tenant", "id", "type", "object", "version", "event"}
}

// Piece is one part of a template: literal text, a plain name, or a path.
type Piece struct {
	Literal  string
	Name     string
	Path     Path
	Optional bool // {x?}: renders as nothing where nothing stands there
}

// Place is what stands between the braces, "" for literal text.
func (p Piece) Place() string {
	if p.Name != "" {
		return p.Name
	}
	return p.Path.text
}

// Template is text with places in it. It is immutable and safe for concurrent
// use. What stands at a place is put in as it is: braces in it mean nothing.
type Template struct {
	text   string
	pieces []Piece
}

// ParseTemplate reads a template. names are all the plain names that it may
// use; they win over the words of the path language. The errors wrap
// ErrBadTemplate or ErrBadPath and say what to write instead.
func ParseTemplate(text string, names ...string) (*Template, error) {
	t := &Template{text: text}
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			t.pieces = append(t.pieces, Piece{Literal: literal.String()})
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
		if brace == '}' {
			return nil, fmt.Errorf("%q has a } without its {: %w", text, ErrBadTemplate)
		}
		place, after, closed := cutByte(rest, '}')
		if !closed {
			return nil, fmt.Errorf("%q has a { without its }: %w", text, ErrBadTemplate)
		}
		piece, err := parsePiece(place, names)
		if err != nil {
			return nil, err
		}
		flush()
		t.pieces = append(t.pieces, piece)
		rest = after
	}
	flush()
	return t, nil
}

func parsePiece(place string, names []string) (Piece, error) {
	plain, optional := cutOptional(place)
	if slices.Contains(names, plain) {
		return Piece{Name: plain, Optional: optional}, nil
	}
	p, err := Parse(place)
	if err == nil {
		return Piece{Path: p, Optional: optional}, nil
	}
	word, _, _ := cutDot(plain)
	if _, isPath := rootOf(word); isPath {
		return Piece{}, err
	}
	return Piece{}, fmt.Errorf("{%s} is no name here; there are %s, and paths like {body.x}: %w",
		place, strings.Join(names, ", "), ErrBadTemplate)
}

// String writes the template as it was parsed.
func (t *Template) String() string { return t.text }

// Pieces are the template's parts in order.
func (t *Template) Pieces() []Piece { return slices.Clone(t.pieces) }

// Names gives the text of a plain name; false says that there is none.
type Names func(name string) (string, bool)

// Execute renders the template. A place where nothing stands, or null, is
// ErrMissing unless the template marks it as optional.
func (t *Template) Execute(doc *Document, names Names) (string, error) {
	return t.execute(doc, names, false)
}

// ExecuteKey renders the template as a key: "/" and "%" in each value are
// percent-escaped, so that "a/b" + "c" stays different from "a" + "b/c", and
// an empty text in the request counts as nothing, since events would share a
// key by it.
func (t *Template) ExecuteKey(doc *Document, names Names) (string, error) {
	return t.execute(doc, names, true)
}

func (t *Template) execute(doc *Document, names Names, key bool) (string, error) {
	var b strings.Builder
	for _, piece := range t.pieces {
		if piece.Literal != "" {
			b.WriteString(piece.Literal)
			continue
		}
		text, ok, err := piece.Text(doc, names)
		if err != nil {
			return "", err
		}
		if key {
			ok = ok && (text != "" || piece.Name != "")
			text = event.EscapePart(text)
		}
		if !ok && !piece.Optional {
			return "", at(piece.Place(), ErrMissing)
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// Text is what stands at the place of a piece; false says nothing, or null.
func (p Piece) Text(doc *Document, names Names) (string, bool, error) {
	if p.Literal != "" {
		return p.Literal, true, nil
	}
	if p.Name != "" {
		text, ok := names(p.Name)
		return text, ok, nil
	}
	value, ok, err := doc.Get(p.Path)
	if err != nil || !ok || value.Kind == Null {
		return "", false, err
	}
	return value.Text(), true, nil
}
