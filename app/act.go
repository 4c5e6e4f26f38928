package app

import (
	"context"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"creel/config"
	"creel/event"
	"creel/store"
)

// act does an action on the store: the one way for the page, the API and the
// command line.
func act(ctx context.Context, s *store.Store, cfg *config.Config, action event.Action) (event.Action, error) {
	bulk := action.Kind == event.ActionReplay || action.Kind == event.ActionDiscard
	if bulk && action.Selector.Everything() && !action.Selector.All {
		return action, refusal{fmt.Errorf("%s of every event has to be asked for as such", action.Kind)}
	}
	switch action.Kind {
	case event.ActionReplay:
		return s.Replay(ctx, action.At, action)
	case event.ActionDiscard:
		return s.Discard(ctx, action.At, action)
	case event.ActionPause, event.ActionResume:
		if _, ok := cfg.Destinations[action.Target]; !ok {
			return action, refusal{fmt.Errorf("the configuration in force has no destination %q", action.Target)}
		}
		if action.Kind == event.ActionPause {
			return s.Pause(ctx, action.At, action)
		}
		return s.Resume(ctx, action.At, action)
	case event.ActionWasSent, event.ActionSendAgain, event.ActionGiveUp:
		return s.Decide(ctx, action.At, action)
	}
	return action, refusal{fmt.Errorf("%q is not an action", action.Kind)}
}

// ActAlone does an action on the database itself, where no server runs. It
// holds the lock of the database meanwhile, so that none can start.
func ActAlone(ctx context.Context, cfg *config.Config, action event.Action) (event.Action, error) {
	s, err := store.Open(ctx, store.Options{Path: cfg.Database, Log: zerolog.Nop(), Clock: time.Now})
	if err != nil {
		return action, err
	}
	done, err := act(ctx, s, cfg, action)
	if closeErr := s.Close(); err == nil {
		err = closeErr
	}
	return done, err
}
