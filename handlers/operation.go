package handlers

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"creel/config"
	"creel/event"
	"creel/path"
)

// operation is what the effects of one rule for one event have in common.
type operation struct {
	key      string
	rule     string
	lane     string
	laneSkip bool
	fetched  bool
}

// maker makes the effects of one table of a rule.
type maker interface {
	// word is the table's name: it stands before the errors.
	word() string
	make(ctx context.Context, s *subject, o operation) ([]event.Effect, error)
}

// field is a named template.
type field struct {
	name string
	text *path.Template
}

// fields renders named templates in the order of their names.
func (s *subject) fields(of []field) ([]event.Field, error) {
	var out []event.Field
	for _, f := range of {
		text, err := s.render(f.text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		out = append(out, event.Field{Name: f.name, Value: text})
	}
	return out, nil
}

// render is the text of a template, "" of none.
func (s *subject) render(t *path.Template) (string, error) {
	if t == nil {
		return "", nil
	}
	return t.Execute(s.doc, s.name)
}

// template reads a template that may be anything; nil where it is wrong.
func (c *compiler) template(at, text string) *path.Template {
	t, err := path.ParseTemplate(text, path.EventNames()...)
	if err != nil {
		c.fault(at, err.Error(), "such as {body.customer.name}")
		return nil
	}
	return t
}

// needed reads a template that must say something.
func (c *compiler) needed(at, text, hint string) *path.Template {
	if text == "" {
		c.fault(at, "is missing", hint)
		return nil
	}
	return c.template(at, text)
}

func (c *compiler) fields(at string, of map[string]string) []field {
	var out []field
	for _, name := range slices.Sorted(maps.Keys(of)) {
		out = append(out, field{name, c.template(config.Join(at, name), of[name])})
	}
	return out
}

// varies tells whether a template can differ from event to event.
func varies(t *path.Template) bool {
	return t != nil && slices.ContainsFunc(t.Pieces(), func(p path.Piece) bool { return p.Literal == "" })
}
