package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"creel/event"
)

// selection is the flags that name events, the same for every command.
type selection struct {
	source, account, kind, state, object, destination, text, since, until string
}

func (s *selection) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.source, "source", "", "source name")
	flags.StringVar(&s.account, "account", "", "the sender's account")
	flags.StringVar(&s.kind, "type", "", "event type, * matches anything (invoice.*)")
	flags.StringVar(&s.state, "state", "", "state: "+joinStates()+"; dead also selects events with a dead delivery")
	flags.StringVar(&s.object, "object", "", "the object that the event is about")
	flags.StringVar(&s.destination, "destination", "", "events with a delivery to this destination")
	flags.StringVar(&s.text, "error", "", "part of the error text")
	flags.StringVar(&s.since, "since", "", "received at or after: 2026-11-01, 2026-11-01T10:00:00Z, or 24h ago as 24h")
	flags.StringVar(&s.until, "until", "", "received before, in the same forms")
}

// limitFlag bounds a list; 0 is no bound.
func limitFlag(cmd *cobra.Command, limit *uint) {
	cmd.Flags().UintVar(limit, "limit", 50, "how many at most; 0 lists all")
}

func joinStates() string {
	var names []string
	for _, state := range event.States() {
		names = append(names, string(state))
	}
	return strings.Join(names, ", ")
}

func (s *selection) given() bool { return *s != selection{} }

// selector reads the flags and the keys that stand as arguments.
func (s *selection) selector(now time.Time, keys []string) (event.Selector, error) {
	selector := event.Selector{Source: s.source, Account: s.account, Type: s.kind, Object: s.object,
		Destination: s.destination, Error: s.text}
	for _, text := range keys {
		key, err := event.ParseKey(text)
		if err != nil {
			return selector, usage("creel events", "%w", err)
		}
		selector.Keys = append(selector.Keys, key)
	}
	var err error
	if selector.State, err = parseState(s.state); err != nil {
		return selector, err
	}
	if selector.Since, err = parseTime("--since", s.since, now); err != nil {
		return selector, err
	}
	if selector.Until, err = parseTime("--until", s.until, now); err != nil {
		return selector, err
	}
	return selector, nil
}

func parseState(text string) (event.State, error) {
	if text == "" {
		return "", nil
	}
	for _, state := range event.States() {
		if string(state) == text {
			return state, nil
		}
	}
	return "", usage("one of "+joinStates(), "--state %q is not a state of an event", text)
}

// parseTime reads a date, a time, or how long ago.
func parseTime(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago).UTC(), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04", time.DateTime, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, usage(fmt.Sprintf("%s 2026-11-01, %s 2026-11-01T10:00:00Z or %s 24h", flag, flag, flag),
		"%s %q is not a time", flag, text)
}
