package deliver

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"creel/config"
	"creel/path"
)

// valueMark begins a text that is the JSON value at a place, not its text.
const valueMark = "{="

// jsonWriter writes one value with the places of a shipment filled in.
type jsonWriter = func(out []byte, p *places) ([]byte, error)

// json compiles a value of the configuration into what writes it as JSON: the
// members of a table in the order of their names, so that equal shipments have
// equal bodies.
func (c *compiler) json(key string, value any) jsonWriter {
	switch v := value.(type) {
	case string:
		return c.jsonText(key, v)
	case map[string]any:
		return c.jsonObject(key, v)
	case []any:
		return c.jsonList(key, v)
	case []map[string]any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = v[i]
		}
		return c.jsonList(key, list)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			c.fault(key, "is no number that JSON has", "")
			return nil
		}
	case int64, bool:
	default:
		c.fault(key, "is nothing that JSON has", `write a date in quotes, such as "2026-01-01"`)
		return nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		c.fault(key, err.Error(), "")
	}
	return fixedJSON(text)
}

func fixedJSON(text []byte) jsonWriter {
	return func(out []byte, _ *places) ([]byte, error) { return append(out, text...), nil }
}

func (c *compiler) jsonText(key, text string) jsonWriter {
	if rest, ok := strings.CutPrefix(text, valueMark); ok {
		return c.jsonValue(key, "{"+rest)
	}
	words := c.wording(key, text)
	if text, ok := words.fixed(); ok {
		return fixedJSON(appendJSON(nil, text))
	}
	return func(out []byte, p *places) ([]byte, error) {
		text, err := words.render(p)
		if err != nil {
			return nil, under(key, err)
		}
		if out = appendJSON(out, text); len(out) > mostDraft {
			return nil, errDraft
		}
		return out, nil
	}
}

// jsonValue writes the JSON at a place of the body, byte for byte as it came.
func (c *compiler) jsonValue(key, text string) jsonWriter {
	words := c.wording(key, text)
	if len(words.pieces) != 1 || words.pieces[0].Literal != "" || words.pieces[0].Name != "" || words.pieces[0].Path.Root() != path.Body {
		c.fault(key, "is not one place of the body", `write "{=body.order}", and nothing before or after it`)
		return nil
	}
	piece := words.pieces[0]
	return func(out []byte, p *places) ([]byte, error) {
		value, found, err := p.doc.Get(piece.Path)
		switch {
		case err != nil:
			return nil, under(key, err)
		case found && len(out)+len(value.Raw) > mostDraft:
			return nil, errDraft
		case found:
			return append(out, value.Raw...), nil
		case piece.Optional:
			return append(out, "null"...), nil
		}
		return nil, under(key, &path.PlaceError{Place: piece.Place(), Err: path.ErrMissing})
	}
}

func (c *compiler) jsonObject(key string, table map[string]any) jsonWriter {
	names := sorted(table)
	members := make([]jsonWriter, len(names))
	for i, name := range names {
		members[i] = c.json(config.Join(key, name), table[name])
	}
	return func(out []byte, p *places) (_ []byte, err error) {
		out = append(out, '{')
		for i, name := range names {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(appendJSON(out, name), ':')
			if out, err = members[i](out, p); err != nil {
				return nil, err
			}
		}
		return append(out, '}'), nil
	}
}

func (c *compiler) jsonList(key string, list []any) jsonWriter {
	elements := make([]jsonWriter, len(list))
	for i, value := range list {
		elements[i] = c.json(config.Item(key, i), value)
	}
	return func(out []byte, p *places) (_ []byte, err error) {
		out = append(out, '[')
		for i, element := range elements {
			if i > 0 {
				out = append(out, ',')
			}
			if out, err = element(out, p); err != nil {
				return nil, err
			}
		}
		return append(out, ']'), nil
	}
}

// appendJSON appends a text as a JSON string. It escapes what JSON asks for
// and no more. A lone surrogate, which path gives as the three bytes that it
// would have in UTF-8, is written as the escape that it came as; other bytes
// that are not UTF-8 become the replacement character.
func appendJSON(out []byte, text string) []byte {
	out = append(out, '"')
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch c := text[i]; {
		case c == '"', c == '\\':
			out = append(out, '\\', c)
		case c == '\n':
			out = append(out, `\n`...)
		case c == '\r':
			out = append(out, `\r`...)
		case c == '\t':
			out = append(out, `\t`...)
		case c < ' ', c == 0x7f:
			out = fmt.Appendf(out, `\u%04x`, c)
		case r == utf8.RuneError && size == 1:
			if lone, ok := surrogate(text[i:]); ok {
				out, size = fmt.Appendf(out, `\u%04x`, lone), 3
			} else {
				out = append(out, "\ufffd"...)
			}
		default:
			out = append(out, text[i:i+size]...)
		}
		i += size
	}
	return append(out, '"')
}

// surrogate reads the three bytes of a lone surrogate.
func surrogate(text string) (rune, bool) {
	if len(text) < 3 || text[0] != 0xed || text[1] < 0xa0 || text[1] > 0xbf || text[2]&0xc0 != 0x80 {
		return 0, false
	}
	return 0xd000 | rune(text[1]&0x3f)<<6 | rune(text[2]&0x3f), true
}

func sorted[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }
