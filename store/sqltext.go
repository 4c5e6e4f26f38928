package store

import (
	"fmt"
	"slices"
	"strings"
)

// sqlPart is one statement of a text of the owner's.
type sqlPart struct {
	text   string   // from its first token to its last, without the semicolon
	line   int      // where it begins, 1 is the first line of the text
	words  []string // its first words in lower case, up to three
	params []string // the names of its :name parameters, each once
	// unnamed is the first parameter that has no :name, such as ? or @name.
	unnamed string
}

// verb is the first word of the statement.
func (p *sqlPart) verb() string {
	if len(p.words) == 0 {
		return ""
	}
	return p.words[0]
}

// textError says where a text can not be taken apart.
type textError struct {
	line int
	text string
}

func (e *textError) Error() string { return e.text }

// splitSQL takes a text apart into its statements, by the same tokens as SQLite
// does (https://www.sqlite.org/lang.html, https://www.sqlite.org/c3ref/complete.html).
// The body of a trigger belongs to its statement.
func splitSQL(text string) ([]sqlPart, error) {
	if zero := strings.IndexByte(text, 0); zero >= 0 {
		return nil, &textError{1 + strings.Count(text[:zero], "\n"), "it holds a zero byte"}
	}
	s := splitter{text: strings.TrimPrefix(text, "\ufeff"), line: 1}
	for {
		t, err := s.next()
		if err != nil {
			return nil, err
		}
		if t.kind == tokenEnd {
			s.close()
			return s.parts, nil
		}
		if t.kind == tokenSemicolon && !s.inTrigger() {
			s.close()
			continue
		}
		s.add(t)
	}
}

type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenWord
	tokenSemicolon
	tokenParam
	tokenOther
)

type token struct {
	kind       tokenKind
	start, end int
	line       int
}

// splitter reads tokens and gathers statements.
type splitter struct {
	text  string
	at    int
	line  int
	parts []sqlPart

	open       bool // a statement has begun
	part       sqlPart
	start, end int
	last       [2]string // its last two tokens: a word in lower case, ";" or ""
}

// inTrigger tells whether a semicolon here stands inside a trigger: its
// statement ends with the one after "; END".
func (s *splitter) inTrigger() bool {
	w := s.part.words
	made := len(w) >= 2 && w[0] == "create" &&
		(w[1] == "trigger" || len(w) == 3 && (w[1] == "temp" || w[1] == "temporary") && w[2] == "trigger")
	return made && s.last != [2]string{";", "end"}
}

func (s *splitter) add(t token) {
	if !s.open {
		s.open, s.start, s.part = true, t.start, sqlPart{line: t.line}
		s.last = [2]string{}
	}
	s.end = t.end
	text := s.text[t.start:t.end]
	said := ""
	switch t.kind {
	case tokenWord:
		said = strings.ToLower(text)
	case tokenSemicolon:
		said = text
	case tokenParam:
		s.param(text)
	}
	// Words that do not follow each other from the start do not tell what the
	// statement is.
	if n := len(s.part.words); n < 3 && !slices.Contains(s.part.words, "") {
		s.part.words = append(s.part.words, said)
	}
	s.last = [2]string{s.last[1], said}
}

func (s *splitter) param(text string) {
	name := text[1:]
	if text[0] != ':' || !plainParam(name) {
		if s.part.unnamed == "" {
			s.part.unnamed = text
		}
		return
	}
	if !slices.Contains(s.part.params, name) {
		s.part.params = append(s.part.params, name)
	}
}

func (s *splitter) close() {
	if s.open {
		s.part.text = s.text[s.start:s.end]
		s.parts = append(s.parts, s.part)
	}
	s.open, s.part = false, sqlPart{}
}

// next reads one token, after the space and the comments before it.
func (s *splitter) next() (token, error) {
	if err := s.space(); err != nil {
		return token{}, err
	}
	t := token{start: s.at, line: s.line}
	if s.at == len(s.text) {
		return t, nil
	}
	switch c := s.text[s.at]; {
	case c == ';':
		t.kind = tokenSemicolon
		s.at++
	case c == '\'' || c == '"' || c == '`':
		t.kind = tokenOther
		if !s.quoted(c) {
			return t, &textError{t.line, fmt.Sprintf("the quote %c is not closed", c)}
		}
	case c == '[':
		t.kind = tokenOther
		if !s.through("]") {
			return t, &textError{t.line, "the bracket [ is not closed"}
		}
	case c == '?' || c == ':' || c == '@' || c == '$' || c == '#':
		t.kind = tokenParam
		s.at++
		s.variable()
		if s.at == t.start+1 && c != '?' { // an operator such as ->, or a fault that SQLite names
			t.kind = tokenOther
		}
	case wordByte(c):
		t.kind = tokenWord
		for s.at < len(s.text) && wordByte(s.text[s.at]) {
			s.at++
		}
	default:
		t.kind = tokenOther
		s.at++
	}
	t.end = s.at
	return t, nil
}

// space passes blanks and comments.
func (s *splitter) space() error {
	for s.at < len(s.text) {
		rest := s.text[s.at:]
		switch {
		case strings.ContainsRune(" \t\r\f\n", rune(rest[0])):
			if rest[0] == '\n' {
				s.line++
			}
			s.at++
		case strings.HasPrefix(rest, "--"):
			if end := strings.IndexByte(rest, '\n'); end >= 0 {
				s.at += end
			} else {
				s.at = len(s.text)
			}
		case strings.HasPrefix(rest, "/*"):
			line := s.line
			s.at += 2
			if !s.through("*/") {
				return &textError{line, "the comment /* is not closed"}
			}
		default:
			return nil
		}
	}
	return nil
}

// quoted passes a quoted text, in which the doubled quote stands for itself.
func (s *splitter) quoted(quote byte) bool {
	s.at++
	for s.through(string(quote)) {
		if s.at == len(s.text) || s.text[s.at] != quote {
			return true
		}
		s.at++
	}
	return false
}

// through passes all up to and with the end, and counts the lines.
func (s *splitter) through(end string) bool {
	n := strings.Index(s.text[s.at:], end)
	if n < 0 {
		return false
	}
	s.line += strings.Count(s.text[s.at:s.at+n], "\n")
	s.at += n + len(end)
	return true
}

// variable passes the name of a parameter, the forms of Tcl included.
func (s *splitter) variable() {
	begin := s.at
	for s.at < len(s.text) {
		rest := s.text[s.at:]
		switch {
		case wordByte(rest[0]):
			s.at++
		case strings.HasPrefix(rest, "::"):
			s.at += 2
		case rest[0] == '(' && s.at > begin && s.text[begin-1] != '?':
			s.at++ // not a name that we take: what follows it does not matter
			return
		default:
			return
		}
	}
}

// wordByte tells whether a byte may stand in a name or a number.
func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$' || c >= 0x80
}

// plainParam tells whether a parameter's name has nothing but letters, digits
// and underscores, and no digit first.
func plainParam(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !wordByte(c) || c == '$' || c >= 0x80 || i == 0 && c >= '0' && c <= '9' {
			return false
		}
	}
	return name != ""
}
