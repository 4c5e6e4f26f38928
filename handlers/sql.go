package handlers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"creel/config"
	"creel/event"
)

// statements makes event.SQL.
type statements struct {
	texts  []string
	params []field
}

func (c *compiler) sql(at string, q *config.SQL) maker {
	if q == nil {
		return nil
	}
	if len(q.Statements) == 0 {
		c.fault(config.Join(at, "statements"), "is missing", `such as statements = "UPDATE app_order SET paid = 1 WHERE id = :id"`)
	}
	for i, text := range q.Statements {
		if strings.TrimSpace(text) == "" {
			c.fault(list(config.Join(at, "statements"), i, len(q.Statements)), "is empty", "")
		}
	}
	return &statements{texts: slices.Clone(q.Statements), params: c.fields(config.Join(at, "params"), q.Params)}
}

func (*statements) word() string { return "sql" }

func (q *statements) make(_ context.Context, s *subject, o operation) ([]event.Effect, error) {
	params, err := s.fields(q.params)
	if err != nil {
		return nil, fmt.Errorf("params: %w", err)
	}
	return []event.Effect{event.SQL{Key: o.key, Rule: o.rule, Statements: q.texts, Params: params}}, nil
}
