package handlers

import (
	"context"
	"fmt"

	"creel/config"
	"creel/event"
)

// record makes event.Record.
type record struct {
	kind   string
	fields []field
}

func (c *compiler) record(at string, r *config.Record) maker {
	if r == nil {
		return nil
	}
	if r.Kind == "" {
		c.fault(config.Join(at, "kind"), "is missing", `say what the row is, such as kind = "order"`)
	}
	return &record{kind: r.Kind, fields: c.fields(config.Join(at, "fields"), r.Fields)}
}

func (*record) word() string { return "record" }

func (r *record) make(_ context.Context, s *subject, o operation) ([]event.Effect, error) {
	fields, err := s.fields(r.fields)
	if err != nil {
		return nil, fmt.Errorf("fields: %w", err)
	}
	return []event.Effect{event.Record{Key: o.key, Rule: o.rule, Of: r.kind, Fields: fields}}, nil
}
