package event

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Run asks for one run of a command of the owner's, with the event on its
// standard input. Its identity is the business key and the destination.
type Run struct {
	Key         string // business key, unfolded
	Rule        string
	Destination string
	Fields      []Field // what the command finds in its environment
	// Lane as in Forward.
	Lane     string
	LaneSkip bool
}

// Kind implements Effect.
func (Run) Kind() string { return "run" }

// BusinessKey implements Effect.
func (r Run) BusinessKey() string { return r.Key }

// RuleName implements Effect.
func (r Run) RuleName() string { return r.Rule }

// Message is what a shipment carries of the run: the fields as a JSON object,
// in the order of the names, so that equal runs have equal messages. "" is no
// field.
func (r Run) Message() string {
	if len(r.Fields) == 0 {
		return ""
	}
	fields := make(map[string]string, len(r.Fields))
	for _, f := range r.Fields {
		fields[f.Name] = EnvironmentText(f.Value)
	}
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err) // a map of texts is always JSON
	}
	return string(text)
}

// FieldsOf reads what Run.Message wrote, in the order of the names.
func FieldsOf(message string) ([]Field, error) {
	if message == "" {
		return nil, nil
	}
	var fields map[string]string
	if err := json.Unmarshal([]byte(message), &fields); err != nil {
		return nil, fmt.Errorf("reading the fields of a run: %w", err)
	}
	out := make([]Field, 0, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		out = append(out, Field{Name: name, Value: fields[name]})
	}
	return out, nil
}

// EnvironmentText percent-encodes the bytes that an environment or JSON text
// can not carry: NUL, and what is not UTF-8. All else stays as it is.
func EnvironmentText(text string) string {
	if utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if r == 0 || r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, "%%%02X", text[0])
		} else {
			b.WriteString(text[:size])
		}
		text = text[size:]
	}
	return b.String()
}
