package handlers

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"creel/config"
	"creel/event"
)

// command makes event.Run.
type command struct {
	to     []string
	fields []field
}

func (c *compiler) run(at string, r *config.Run) maker {
	if r == nil {
		return nil
	}
	c.destinations(config.Join(at, "to"), r.To, config.ToCommand)
	fields := config.Join(at, "fields")
	for name := range r.Fields {
		if !fieldName.MatchString(name) {
			c.fault(config.Join(fields, name), "can not stand in the name of a variable", "use letters, digits and underscores, a letter first")
		}
	}
	return &command{to: slices.Clone(r.To), fields: c.fields(fields, r.Fields)}
}

// fieldName is what CREEL_FIELD_ may stand before.
var fieldName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (*command) word() string { return "run" }

func (r *command) make(_ context.Context, s *subject, o operation) ([]event.Effect, error) {
	fields, err := s.fields(r.fields)
	if err != nil {
		return nil, fmt.Errorf("fields: %w", err)
	}
	effects := make([]event.Effect, len(r.to))
	for i, destination := range r.to {
		effects[i] = event.Run{Key: o.key, Rule: o.rule, Destination: destination, Fields: fields, Lane: o.lane, LaneSkip: o.laneSkip}
	}
	return effects, nil
}

// checkedRun makes sure of the fields of a run that a Go handler returned.
func checkedRun(r event.Run) (event.Effect, error) {
	var err error
	if r.Fields, err = sorted(r.Fields); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, f := range r.Fields {
		upper := strings.ToUpper(f.Name)
		switch {
		case !fieldName.MatchString(f.Name):
			return nil, fmt.Errorf("has a field whose name is that of no variable: %s", strconv.QuoteToGraphic(clip(f.Name, 100)))
		case seen[upper]:
			return nil, fmt.Errorf("has two fields for CREEL_FIELD_%s", upper)
		}
		seen[upper] = true
	}
	return r, nil
}
