package page

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible makes a text of bytes that deceives nobody: what has no shape, turns
// the direction of writing, or is no UTF-8 is written as its code. odd says how
// much of that there was.
func visible(text []byte) (shown, odd string) {
	var b strings.Builder
	strange := writeVisible(&b, text)
	switch {
	case strange == 1:
		odd = "One character of it can not be seen: its code stands in ‹›. The download has the bytes as they are"
	case strange > 1:
		odd = count(strange) + " characters of it can not be seen: their codes stand in ‹›. The download has the bytes as they are"
	}
	return b.String(), odd
}

// hides tells whether a field that holds a text, and has to hold it exactly, does
// not show all of it: what visible writes as a code, or blanks at an edge.
func hides(text string) bool {
	shown, odd := visible([]byte(text))
	return odd != "" || strings.TrimSpace(shown) != shown
}

// writeVisible writes a text as visible shows it and counts what it wrote as
// codes.
func writeVisible(b *strings.Builder, text []byte) (strange int) {
	before, marks := rune(0), 0
	for i := 0; i < len(text); {
		r, width := utf8.DecodeRune(text[i:])
		if marks++; !unicode.Is(unicode.M, r) {
			marks = 0
		}
		switch {
		case r == utf8.RuneError && width == 1:
			fmt.Fprintf(b, "‹%02x›", text[i])
			strange++
		case r == '\n' || r == '\t' || r == '\r' && i+1 < len(text) && text[i+1] == '\n' || marks <= maxMarks && seen(r, before):
			b.WriteRune(r)
		default:
			fmt.Fprintf(b, "‹U+%04X›", r)
			strange++
		}
		before = r
		i += width
	}
	return strange
}

// maxMarks is how many marks one letter may carry: more of them would reach
// into the lines around it.
const maxMarks = 4

// seen tells whether a character has a shape of its own. Joiners have one
// between letters that join, and so nowhere behind ASCII.
func seen(r, before rune) bool {
	switch r {
	case '\u00a0', '\u202f', '\u3000': // spaces of some languages
		return true
	case '\u200c', '\u200d':
		return before >= utf8.RuneSelf && before != '\u200c' && before != '\u200d'
	case '\u034f', '\u115f', '\u1160', '\u17b4', '\u17b5', '\u2800', '\u3164', '\uffa0': // letters and marks without a shape
		return false
	}
	return unicode.IsPrint(r)
}

// plainly writes a finished page so that no text of it deceives, whoever wrote
// it: an id, an error, a name. What stands in a tag is left alone: the values
// of forms come back as they were. Our templates have none of it themselves.
func plainly(page []byte) []byte {
	if !deceives(page) {
		return page
	}
	var b strings.Builder
	b.Grow(len(page) + len(page)/8)
	for len(page) > 0 {
		end := bytes.IndexByte(page, '<')
		if end < 0 {
			end = len(page)
		}
		writeVisible(&b, page[:end])
		page = page[end:]
		end = bytes.IndexByte(page, '>') + 1 // in a value it is escaped
		if end == 0 {
			end = len(page)
		}
		b.Write(page[:end])
		page = page[end:]
	}
	return []byte(b.String())
}

// deceives tells whether anything on a page may have to be written otherwise.
func deceives(page []byte) bool {
	for i := 0; i < len(page); {
		c := page[i]
		if c < utf8.RuneSelf {
			if c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
				return true
			}
			i++
			continue
		}
		r, width := utf8.DecodeRune(page[i:])
		if r == utf8.RuneError && width == 1 || unicode.Is(unicode.M, r) || !seen(r, 0) {
			return true
		}
		i += width
	}
	return false
}

// whole cuts a character that is not all there off the end of the head of a
// text.
func whole(head []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(head); n++ {
		if c := head[len(head)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(head[len(head)-n:]) {
				return head[:len(head)-n]
			}
			break
		}
	}
	return head
}
