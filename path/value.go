package path

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Kind is the kind of a value.
type Kind uint8

// The kinds of values. What stands in a header, a query or a form is a String.
const (
	Null Kind = iota + 1
	Bool
	Number
	String
	Array
	Object
)

// String names the kind.
func (k Kind) String() string {
	switch k {
	case Null:
		return "null"
	case Bool:
		return "bool"
	case Number:
		return "number"
	case String:
		return "string"
	case Array:
		return "array"
	case Object:
		return "object"
	}
	return ""
}

// Value is what stands at a place.
type Value struct {
	Kind Kind
	// Raw is the value as it was written: JSON text (a string with its
	// quotes), or the undecoded text of a header or field. It shares the
	// request's memory.
	Raw []byte

	text    string
	decoded bool // text is set
}

// Text is the exact text of the value: a string decoded, a number with every
// digit as it was written, true or false, "" for null, an array or object as
// its JSON was written. Bytes that are not UTF-8 stay as they are, and a lone
// surrogate \ud800 becomes the three bytes that it would have in UTF-8, so
// that different texts stay different.
func (v Value) Text() string {
	switch {
	case v.decoded:
		return v.text
	case v.Kind == String:
		return unquote(v.Raw)
	case v.Kind == Null:
		return ""
	}
	return string(v.Raw)
}

func kindOf(first byte) Kind {
	switch first {
	case '{':
		return Object
	case '[':
		return Array
	case '"':
		return String
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	}
	return Number
}

func plainText(raw, text string) Value {
	return Value{Kind: String, Raw: []byte(raw), text: text, decoded: true}
}

// unquote decodes a string that the scanner has checked, quotes included.
func unquote(quoted []byte) string {
	inner := quoted[1 : len(quoted)-1]
	first := indexSlash(inner)
	if first < 0 {
		return string(inner)
	}
	var b strings.Builder
	b.Grow(len(inner))
	b.Write(inner[:first])
	for i := first; i < len(inner); {
		if inner[i] != '\\' {
			b.WriteByte(inner[i])
			i++
			continue
		}
		if inner[i+1] != 'u' {
			b.WriteByte(simpleEscape(inner[i+1]))
			i += 2
			continue
		}
		r, size := unicodeEscape(inner[i:])
		writeRune(&b, r)
		i += size
	}
	return b.String()
}

func indexSlash(data []byte) int {
	for i, c := range data {
		if c == '\\' {
			return i
		}
	}
	return -1
}

func simpleEscape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c // quote, backslash, slash
}

// unicodeEscape reads \uXXXX, or two of them where they are a pair.
func unicodeEscape(data []byte) (rune, int) {
	r, _ := hex4(data[2:])
	if !utf16.IsSurrogate(r) || len(data) < 12 || data[6] != '\\' || data[7] != 'u' {
		return r, 6
	}
	low, ok := hex4(data[8:])
	if !ok {
		return r, 6
	}
	if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
		return pair, 12
	}
	return r, 6
}

// writeRune writes a rune in UTF-8, and a lone surrogate in the same pattern.
func writeRune(b *strings.Builder, r rune) {
	if utf16.IsSurrogate(r) {
		b.WriteByte(0xE0 | byte(r>>12))
		b.WriteByte(0x80 | byte(r>>6)&0x3F)
		b.WriteByte(0x80 | byte(r)&0x3F)
		return
	}
	b.WriteRune(r)
}

func hex4(data []byte) (rune, bool) {
	if len(data) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range data[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// sameName compares a written member name with a plain one.
func sameName(quoted []byte, name string) bool {
	inner := quoted[1 : len(quoted)-1]
	if len(inner) < len(name) {
		return false // an escape is never shorter than what it stands for
	}
	if indexSlash(inner) < 0 {
		return string(inner) == name
	}
	return unquote(quoted) == name
}
