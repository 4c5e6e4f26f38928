package path

import "strings"

// headerValue is the first line of a header, without the space around it. The
// lines after it are not looked at.
func headerValue(lines, name string) (Value, bool) {
	for lines != "" {
		line, rest, _ := strings.Cut(lines, "\n")
		lines = rest
		found, value, ok := strings.Cut(line, ":")
		if ok && strings.EqualFold(found, name) {
			value = strings.Trim(value, " \t\r")
			return plainText(value, value), true
		}
	}
	return Value{}, false
}

// Headers calls yield with each header line's name and value, as they came.
func Headers(lines string, yield func(name, value string) bool) {
	for lines != "" {
		line, rest, _ := strings.Cut(lines, "\n")
		lines = rest
		name, value, ok := strings.Cut(line, ":")
		if ok && !yield(name, strings.Trim(value, " \t\r")) {
			return
		}
	}
}

// fieldValue finds a field of an urlencoded text. A field that is there twice
// is an error, like a member of an object.
func fieldValue(encoded string, p Path) (Value, bool, error) {
	var value Value
	found := false
	for encoded != "" {
		pair, rest, _ := strings.Cut(encoded, "&")
		encoded = rest
		name, raw, _ := strings.Cut(pair, "=")
		if pair == "" || decodeField(name) != p.name {
			continue
		}
		if found {
			return Value{}, false, at(p.text, ErrDuplicateMember)
		}
		value, found = plainText(raw, decodeField(raw)), true
	}
	return value, found, nil
}

// Fields calls yield with each field of an urlencoded text, decoded.
func Fields(encoded string, yield func(name, value string) bool) {
	encoded = strings.TrimPrefix(encoded, string(byteOrderMark))
	for encoded != "" {
		pair, rest, _ := strings.Cut(encoded, "&")
		encoded = rest
		name, raw, _ := strings.Cut(pair, "=")
		if pair != "" && !yield(decodeField(name), decodeField(raw)) {
			return
		}
	}
}

// decodeField decodes + and %XX. As the URL standard says, a percent sign
// that no two hex digits follow stays one.
func decodeField(text string) string {
	if !strings.ContainsAny(text, "+%") {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '+':
			b.WriteByte(' ')
		case '%':
			if i+2 < len(text) {
				high, ok1 := hexDigit(text[i+1])
				low, ok2 := hexDigit(text[i+2])
				if ok1 && ok2 {
					b.WriteByte(high<<4 | low)
					i += 2
					continue
				}
			}
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
