package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"creel/event"
)

// maxQuoted is how much of a value an error shows, in bytes.
const maxQuoted = 120

// writeFields writes fields as a JSON object of texts in the order of their
// names: equal fields are equal texts. Of two with one name the later stays.
func writeFields(fields []event.Field) string {
	if len(fields) == 0 {
		return "{}"
	}
	inOrder := func(a, b event.Field) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(fields, inOrder) {
		fields = slices.Clone(fields)
		slices.SortStableFunc(fields, inOrder)
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range fields {
		if i+1 < len(fields) && fields[i+1].Name == f.Name {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		writeText(&b, f.Name)
		b.WriteByte(':')
		writeText(&b, f.Value)
	}
	b.WriteByte('}')
	return b.String()
}

// writeText writes a JSON text; bytes that are not UTF-8 become U+FFFD.
func writeText(b *bytes.Buffer, text string) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a buffer takes everything, and a string can be written
	b.Truncate(b.Len() - 1)
}

// readFields reads what writeFields wrote. What a person changed to something
// else in the file is shown as one field without a name.
func readFields(text string) []event.Field {
	var values map[string]string
	if err := json.Unmarshal([]byte(text), &values); err != nil {
		return []event.Field{{Value: text}}
	}
	fields := make([]event.Field, 0, len(values))
	for name, value := range values {
		fields = append(fields, event.Field{Name: name, Value: value})
	}
	slices.SortFunc(fields, func(a, b event.Field) int { return strings.Compare(a.Name, b.Name) })
	return fields
}

// unlike compares stored fields with those that an effect asks for, and names
// the first that differs with both values; "" where none does.
func unlike(stored, wanted string) (have, want string) {
	if stored == wanted {
		return "", ""
	}
	left, right := readFields(stored), readFields(wanted)
	for len(left) > 0 || len(right) > 0 {
		switch {
		case len(right) == 0 || len(left) > 0 && left[0].Name < right[0].Name:
			return fmt.Sprintf("%s = %s", left[0].Name, quoted(left[0].Value)), "no " + left[0].Name
		case len(left) == 0 || right[0].Name < left[0].Name:
			return "no " + right[0].Name, fmt.Sprintf("%s = %s", right[0].Name, quoted(right[0].Value))
		case left[0].Value != right[0].Value:
			return fmt.Sprintf("%s = %s", left[0].Name, quoted(left[0].Value)), fmt.Sprintf("%s = %s", right[0].Name, quoted(right[0].Value))
		}
		left, right = left[1:], right[1:]
	}
	return "", ""
}

// quoted is a value as an error shows it.
func quoted(text string) string {
	if len(text) <= maxQuoted {
		return fmt.Sprintf("%q", text)
	}
	end := maxQuoted
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%q…", text[:end])
}
