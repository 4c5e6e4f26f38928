package handlers

import (
	"context"
	"slices"

	"creel/config"
	"creel/event"
)

// forwarding makes event.Forward.
type forwarding struct{ to []string }

func (c *compiler) forward(at string, f *config.Forward) maker {
	if f == nil {
		return nil
	}
	c.destinations(config.Join(at, "to"), f.To, config.ToURL)
	return &forwarding{to: slices.Clone(f.To)}
}

func (*forwarding) word() string { return "forward" }

func (f *forwarding) make(_ context.Context, _ *subject, o operation) ([]event.Effect, error) {
	effects := make([]event.Effect, len(f.to))
	for i, destination := range f.to {
		effects[i] = event.Forward{Key: o.key, Rule: o.rule, Destination: destination, Lane: o.lane, LaneSkip: o.laneSkip}
	}
	return effects, nil
}
