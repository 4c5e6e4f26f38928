package deliver

import (
	"fmt"
	"mime"
	"net/url"
	"strings"

	"creel/config"
)

// The types of a body of the owner's, where its configuration names none.
const (
	typeJSON = "application/json"
	typeText = "text/plain; charset=utf-8"
	typeForm = "application/x-www-form-urlencoded"
)

// mostDraft bounds what templates make of one shipment, in bytes: a place may
// be named many times.
const mostDraft = 16 << 20

var errDraft = fmt.Errorf("the body is over %d bytes", mostDraft)

// draft is a body of the owner's: data, in which the places of a shipment are
// filled in, each escaped as its form asks for.
type draft struct {
	kind   string // its Content-Type
	render func(out []byte, p *places) ([]byte, error)
}

// draft compiles the body that a destination wants. nil is the event's own.
func (c *compiler) draft(cfg *config.RequestBody) *draft {
	if cfg == nil {
		return nil
	}
	made := &draft{kind: cfg.Type}
	switch {
	case cfg.JSON != nil:
		made.kind, made.render = orElse(cfg.Type, typeJSON), c.json("body.json", cfg.JSON)
	case cfg.Text != "":
		made.kind, made.render = orElse(cfg.Type, typeText), c.text("body.text", cfg.Text)
		if isJSON(made.kind) {
			c.warn("body.text", "what stands at a place is not escaped: a quote in it would break the JSON", `write json = { … } instead of text`)
		}
	case cfg.Form != nil:
		made.kind, made.render = orElse(cfg.Type, typeForm), c.form("body.form", cfg.Form)
	default:
		c.fault("body", "says nothing", `write json = { text = "{body.id}" }, text or form`)
	}
	if media, _, err := mime.ParseMediaType(made.kind); made.render != nil && (err != nil || !strings.Contains(media, "/") || !isFieldValue(made.kind)) {
		c.fault("body.type", "is no media type", `write it as "application/json"`)
	}
	return made
}

func (c *compiler) text(key, text string) func([]byte, *places) ([]byte, error) {
	words := c.wording(key, text)
	return func(out []byte, p *places) ([]byte, error) {
		text, err := words.render(p)
		return append(out, text...), under(key, err)
	}
}

// form compiles the fields of a form, in the order of their names.
func (c *compiler) form(key string, fields map[string]string) func([]byte, *places) ([]byte, error) {
	type field struct {
		at, name string
		value    wording
	}
	var all []field
	for _, name := range sorted(fields) {
		at := config.Join(key, name)
		all = append(all, field{at, url.QueryEscape(name), c.wording(at, fields[name])})
	}
	return func(out []byte, p *places) ([]byte, error) {
		for i, f := range all {
			text, err := f.value.render(p)
			if err != nil {
				return nil, under(f.at, err)
			}
			if i > 0 {
				out = append(out, '&')
			}
			out = append(append(out, f.name...), '=')
			if out = append(out, url.QueryEscape(text)...); len(out) > mostDraft {
				return nil, errDraft
			}
		}
		return out, nil
	}
}

// of makes the body for a shipment.
func (r *draft) of(p *places) ([]byte, error) {
	out, err := r.render(nil, p)
	if err == nil && len(out) > mostDraft {
		err = errDraft
	}
	return out, err
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// isJSON tells whether a media type is one of JSON: application/json and what
// ends in +json.
func isJSON(kind string) bool {
	media, _, _ := strings.Cut(strings.ToLower(kind), ";")
	media = strings.TrimSpace(media)
	return strings.HasSuffix(media, "/json") || strings.HasSuffix(media, "+json")
}
