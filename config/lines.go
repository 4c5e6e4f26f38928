package config

import (
	"strconv"
	"strings"
)

// maxNesting bounds tables, arrays and dotted keys inside one another. The
// parser recurses on them, so this is asked before it runs.
const maxNesting = 32

// lines knows on which line each key path of a TOML text stands. The parser
// tells no lines for what it accepted, so a light scanner counts them.
type lines map[string]int

// scanLines indexes a text. It takes any text, also what is no TOML: the
// parser judges that. deep is the line where the nesting passes maxNesting,
// or 0.
func scanLines(text string) (index lines, deep int) {
	s := &scanner{text: text, line: 1, index: lines{}, tables: map[string]int{}}
	for s.pos < len(s.text) && s.deep == 0 {
		s.blanks()
		switch {
		case s.peek() == '[':
			s.header()
		case s.pos < len(s.text):
			s.assignment(s.table)
		}
		s.restOfLine()
	}
	return s.index, s.deep
}

// of returns the line of a path, or of the nearest table around it.
func (l lines) of(path string) int {
	for path != "" {
		if line, ok := l[path]; ok {
			return line
		}
		path = parent(path)
	}
	return 0
}

// parent cuts the last key or element off a path.
func parent(path string) string {
	if strings.HasSuffix(path, `"`) {
		if cut := strings.LastIndex(path, `."`); cut >= 0 {
			return path[:cut]
		}
		return ""
	}
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

type scanner struct {
	text   string
	pos    int
	line   int
	depth  int
	deep   int
	table  string         // path of the table that keys belong to now
	tables map[string]int // how many elements each array of tables has
	index  lines
}

func (s *scanner) peek() byte {
	if s.pos < len(s.text) {
		return s.text[s.pos]
	}
	return 0
}

// next steps over one byte and counts lines.
func (s *scanner) next() {
	if s.peek() == '\n' {
		s.line++
	}
	s.pos++
}

func (s *scanner) skip(set string) {
	for s.pos < len(s.text) && strings.IndexByte(set, s.text[s.pos]) >= 0 {
		s.next()
	}
}

// blanks steps over everything between two statements or elements.
func (s *scanner) blanks() {
	for {
		s.skip(" \t\r\n")
		if s.peek() != '#' {
			return
		}
		s.toLineEnd()
	}
}

func (s *scanner) toLineEnd() {
	for s.pos < len(s.text) && s.text[s.pos] != '\n' {
		s.pos++
	}
}

func (s *scanner) restOfLine() {
	s.toLineEnd()
	if s.pos < len(s.text) {
		s.next()
	}
}

// mark notes the line of a path: the first one counts.
func (s *scanner) mark(path string) {
	if _, ok := s.index[path]; !ok {
		s.index[path] = s.line
	}
}

// enter goes one level down, or notes where the text is too deep.
func (s *scanner) enter(levels int) bool {
	s.depth += levels
	if s.depth > maxNesting && s.deep == 0 {
		s.deep = s.line
	}
	return s.deep == 0
}

// header reads [a.b] and [[a.b]].
func (s *scanner) header() {
	s.next()
	list := s.peek() == '['
	if list {
		s.next()
	}
	keys := s.keys()
	if !s.enter(len(keys)) {
		return
	}
	s.depth = 0
	path := ""
	for i, key := range keys {
		path = Join(path, key)
		n, isList := s.tables[path]
		switch {
		case i == len(keys)-1 && list:
			s.mark(path)
			s.tables[path] = n + 1
			path = Item(path, n)
		case isList && i < len(keys)-1:
			path = Item(path, n-1)
		}
		s.mark(path)
	}
	s.table = path
}

// keys reads a dotted key: a."b c".d
func (s *scanner) keys() []string {
	var out []string
	for len(out) <= maxNesting {
		s.skip(" \t")
		switch c := s.peek(); c {
		case '"', '\'':
			out = append(out, s.quoted(c))
		default:
			from := s.pos
			for s.pos < len(s.text) && strings.IndexByte(" \t\r\n.=]#,{}[\"'", s.text[s.pos]) < 0 {
				s.pos++
			}
			out = append(out, s.text[from:s.pos])
		}
		s.skip(" \t")
		if s.peek() != '.' {
			break
		}
		s.next()
	}
	return out
}

// assignment reads key = value inside a table.
func (s *scanner) assignment(table string) {
	keys := s.keys()
	if !s.enter(len(keys)) {
		return
	}
	path := table
	for _, key := range keys {
		path = Join(path, key)
		s.mark(path)
	}
	if s.peek() == '=' {
		s.next()
		s.skip(" \t")
		s.value(path)
	}
	s.depth -= len(keys)
}

func (s *scanner) value(path string) {
	switch c := s.peek(); c {
	case '"', '\'':
		if triple := strings.Repeat(string(c), 3); strings.HasPrefix(s.text[s.pos:], triple) {
			s.multiline(triple)
			return
		}
		s.quoted(c)
	case '[':
		s.elements(path)
	case '{':
		s.inlineTable(path)
	default:
		for s.pos < len(s.text) && strings.IndexByte(",]}#\r\n", s.text[s.pos]) < 0 {
			s.pos++
		}
	}
}

// elements reads an array, which may stand on several lines.
func (s *scanner) elements(path string) {
	s.next()
	if !s.enter(1) {
		return
	}
	for i := 0; s.pos < len(s.text) && s.deep == 0; i++ {
		s.blanks()
		if s.peek() == ']' {
			break
		}
		s.mark(Item(path, i))
		from := s.pos
		s.value(Item(path, i))
		s.separator(from)
	}
	s.next()
	s.depth--
}

func (s *scanner) inlineTable(path string) {
	s.next()
	if !s.enter(1) {
		return
	}
	for s.pos < len(s.text) && s.deep == 0 {
		s.blanks()
		if s.peek() == '}' {
			break
		}
		from := s.pos
		s.assignment(path)
		s.separator(from)
	}
	s.next()
	s.depth--
}

// separator steps over the comma behind an element. On what is no TOML it
// steps over a byte all the same, so that every loop ends.
func (s *scanner) separator(from int) {
	s.blanks()
	if s.peek() == ',' || s.pos == from {
		s.next()
	}
}

// quoted reads a text on one line and returns what it says.
func (s *scanner) quoted(quote byte) string {
	from := s.pos
	s.pos++
	for s.pos < len(s.text) && s.text[s.pos] != quote && s.text[s.pos] != '\n' {
		if quote == '"' && s.text[s.pos] == '\\' && s.pos+1 < len(s.text) && s.text[s.pos+1] != '\n' {
			s.pos++
		}
		s.pos++
	}
	if s.peek() != quote {
		return s.text[from:s.pos]
	}
	s.pos++
	inner := s.text[from+1 : s.pos-1]
	if plain, err := strconv.Unquote(s.text[from:s.pos]); quote == '"' && err == nil {
		return plain
	}
	return inner
}

// multiline steps over a text in triple quotes.
func (s *scanner) multiline(triple string) {
	s.pos += len(triple)
	for s.pos < len(s.text) {
		if strings.HasPrefix(s.text[s.pos:], triple) {
			s.pos += len(triple)
			for s.peek() == triple[0] { // up to two quotes may belong to the text
				s.pos++
			}
			return
		}
		if triple[0] == '"' && s.peek() == '\\' {
			s.next()
		}
		s.next()
	}
}
