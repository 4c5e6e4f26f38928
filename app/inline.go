package app

import (
	"context"

	"creel/config"
	"creel/event"
	"creel/handlers"
)

// inline decides about an event before it is stored, where its source asks for
// that: the store then completes it in the transaction that stores it. What
// can not be completed at once goes the way of all others, where it is tried
// again, told and kept; the sender is acknowledged all the same.
func inline(ctx context.Context, rules *handlers.Rules, work event.Work) *event.Finish {
	decision := rules.Decide(ctx, work)
	if decision.State != event.Done && decision.State != event.Ignored {
		return nil
	}
	return &event.Finish{State: decision.State, Error: decision.Error, Verdicts: decision.Verdicts, Effects: decision.Effects}
}

// inlineSources are the sources whose events are completed when they are
// stored.
func inlineSources(cfg *config.Config) map[string]bool {
	names := map[string]bool{}
	for _, s := range cfg.Sources {
		if s.Process == "inline" {
			names[s.Name] = true
		}
	}
	return names
}
