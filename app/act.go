package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"creel/config"
	"creel/event"
	"creel/store"
)

// act does an action on the store: the one way for the page, the API and the
// command line.
func act(ctx context.Context, s *store.Store, cfg *config.Config, action event.Action) (event.Action, error) {
	if err := sound(action); err != nil {
		return action, err
	}
	bulk := action.Kind == event.ActionReplay || action.Kind == event.ActionDiscard
	stranded := action.Kind == event.ActionDiscard && action.Target != ""
	if bulk && action.Selector.Everything() && !action.Selector.All && !stranded {
		return action, refusal{fmt.Errorf("%s of every event has to be asked for as such", action.Kind)}
	}
	switch action.Kind {
	case event.ActionReplay:
		return s.Replay(ctx, action.At, action)
	case event.ActionDiscard:
		if stranded && slices.Contains(cfg.DestinationNames(), action.Target) {
			return action, refusal{fmt.Errorf("the configuration in force has the destination %q: what waits for it is sent, or can be paused; only its dead deliveries can be discarded, by their events", action.Target)}
		}
		return s.Discard(ctx, action.At, action)
	case event.ActionLaneSkip:
		if len(action.Selector.Keys) == 0 {
			return action, refusal{fmt.Errorf("%s needs the keys of the events to pass", action.Kind)}
		}
		return s.SkipLane(ctx, action.At, action)
	case event.ActionPause, event.ActionResume:
		if !slices.Contains(cfg.DestinationNames(), action.Target) {
			return action, refusal{fmt.Errorf("the configuration in force has no destination %q", action.Target)}
		}
		if action.Kind == event.ActionPause {
			return s.Pause(ctx, action.At, action)
		}
		return s.Resume(ctx, action.At, action)
	case event.ActionAck:
		return s.Acknowledge(ctx, action.At, action)
	case event.ActionWasSent, event.ActionSendAgain, event.ActionGiveUp:
		return s.Decide(ctx, action.At, action)
	}
	return action, refusal{fmt.Errorf("%q is not an action", action.Kind)}
}

// AwaitAction waits for the end of an action that goes on, or of ctx.
func (a *App) AwaitAction(ctx context.Context, action int64) (event.Action, error) {
	return a.store.AwaitAction(ctx, action)
}

// sound refuses what no action may ask for: a pace or a resend that means nothing,
// a reason that is a book.
func sound(action event.Action) error {
	switch {
	case len(action.Reason) > event.MaxReason:
		return refusal{fmt.Errorf("a reason has at most %d bytes", event.MaxReason)}
	case (action.Resend || action.Rate != 0) && action.Kind != event.ActionReplay:
		return refusal{fmt.Errorf("resend and rate are of a replay, and this is a %s", action.Kind)}
	case action.Rate != 0 && !(action.Rate >= minRate && action.Rate <= maxRate):
		return refusal{fmt.Errorf("a rate is a number of events in a second, from %g to %.0f", minRate, maxRate)}
	}
	return nil
}

const (
	// minRate is one event within a quarter of an hour: a replay that is slower
	// would not be over within anybody's memory.
	minRate = 0.001
	// maxRate is more than any machine releases in a second.
	maxRate = 1e9
)

// ActAlone does an action on the database itself, where no server runs. It
// holds the lock of the database meanwhile, so that none can start. One that has
// a pace is begun, and goes on with the next start: that is when there is
// somebody who works off what it releases.
func ActAlone(ctx context.Context, cfg *config.Config, action event.Action) (event.Action, error) {
	s, err := store.Open(ctx, store.Options{Path: cfg.Database, Log: zerolog.Nop(), Clock: time.Now})
	if err != nil {
		return action, err
	}
	if len(cfg.Alerts.To) > 0 { // what it tells goes out with the next start
		s.SetTeller(newAlerts(cfg).tell)
	}
	done, err := actAlone(ctx, s, cfg, action)
	if closeErr := s.Close(); err == nil {
		err = closeErr
	}
	return done, err
}

func actAlone(ctx context.Context, s *store.Store, cfg *config.Config, action event.Action) (event.Action, error) {
	if action.Kind == event.ActionReplay || action.Kind == event.ActionDiscard {
		// What a kill cut short is joined by who asks for it again.
		if _, err := s.ResumeActions(ctx); err != nil {
			return action, err
		}
	}
	return act(ctx, s, cfg, action)
}
