package page

import (
	"bytes"
	"encoding/json"
	"strings"
)

const (
	// bodyHead is how much of a body a page shows, in bytes; the rest is
	// downloaded. A browser stays quick with it.
	bodyHead = 64 << 10
	// prettyDepth is the deepest level that is still indented further.
	prettyDepth = 24
	// prettyMost bounds what indenting makes of a head, in bytes.
	prettyMost = 4 * bodyHead
)

// shownBody is a body as a page shows it.
type shownBody struct {
	Text   string
	Size   int
	Cut    bool
	Pretty bool   // Text is indented
	JSON   bool   // it can be
	Odd    string // what is not shown as it is
}

// showBody shows the head of a body. Where it is JSON and that is wanted it is
// indented: numbers, the order of names and names that stand twice are the
// sender's own, because no byte but white space between values is touched.
func showBody(body []byte, pretty bool) shownBody {
	s := shownBody{Size: len(body), Cut: len(body) > bodyHead, JSON: looksLikeJSON(body)}
	head := headOf(body)
	s.Pretty = pretty && s.JSON
	if s.Pretty {
		head = indent(head)
	}
	s.Text, s.Odd = visible(head)
	return s
}

// headOf is as much of a body as a page shows.
func headOf(body []byte) []byte {
	if len(body) <= bodyHead {
		return body
	}
	return whole(body[:bodyHead])
}

// showHead shows the first bytes of a body in a list.
func showHead(head []byte) string {
	head = whole(head)
	if trimmed := bytes.TrimLeft(head, " \t\r\n"); len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		head = indent(head)
	}
	text, _ := visible(head)
	return text
}

// snippetSize is how much of a body stands in a row, in characters.
const snippetSize = 90

// snippet is the very beginning of a body in one line.
func snippet(head []byte) string {
	text, _ := visible(whole(head[:min(len(head), 4*snippetSize)]))
	line := []rune(strings.Join(strings.Fields(text), " "))
	if len(line) > snippetSize {
		return string(line[:snippetSize]) + "…"
	}
	return string(line)
}

// looksLikeJSON tells whether a body is JSON. Of a large one the start tells.
func looksLikeJSON(body []byte) bool {
	trimmed := bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")), " \t\r\n")
	if len(trimmed) == 0 || trimmed[0] != '{' && trimmed[0] != '[' {
		return false
	}
	return len(body) > bodyHead || json.Valid(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
}

// indenter writes JSON with line breaks. It does not mind where the text ends.
type indenter struct {
	b     bytes.Buffer
	depth int
}

func (n *indenter) line() {
	n.b.WriteByte('\n')
	for range min(n.depth, prettyDepth) {
		n.b.WriteString("  ")
	}
}

// indent breaks the lines of a JSON text, or of the head of one. What stands in
// quotes is left alone, and so is every byte but white space outside of them.
func indent(text []byte) []byte {
	n := &indenter{}
	for i := 0; i < len(text) && n.b.Len() < prettyMost; i++ {
		switch c := text[i]; c {
		case '"':
			end := stringEnd(text, i)
			n.b.Write(text[i:end])
			i = end - 1
		case '{', '[':
			n.b.WriteByte(c)
			if next := skipBlank(text, i+1); next < len(text) && (text[next] == '}' || text[next] == ']') {
				n.b.WriteByte(text[next])
				i = next
				continue
			}
			n.depth++
			n.line()
		case '}', ']':
			n.depth--
			n.line()
			n.b.WriteByte(c)
		case ',':
			n.b.WriteByte(c)
			n.line()
		case ':':
			n.b.WriteString(": ")
		case ' ', '\t', '\r', '\n':
		default:
			n.b.WriteByte(c)
		}
	}
	return n.b.Bytes()
}

// stringEnd is behind the string that begins at i.
func stringEnd(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

func skipBlank(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n') {
		i++
	}
	return i
}
