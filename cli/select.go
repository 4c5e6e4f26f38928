package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"creel/event"
)

// selection is the flags that name events, the same for every command.
type selection struct {
	source, account, kind, state, object, destination, text, since, until, query string
}

func (s *selection) flags(cmd *cobra.Command) {
	textVar(cmd, &s.source, "source", "source name")
	textVar(cmd, &s.account, "account", "the sender's account")
	textVar(cmd, &s.kind, "type", "event type, * matches anything (invoice.*)")
	textVar(cmd, &s.state, "state", "state: "+joinStates()+"; dead also selects events with a dead delivery")
	completes(cmd, "state", words(event.States()))
	textVar(cmd, &s.object, "object", "the object that the event is about")
	textVar(cmd, &s.destination, "destination", "events with a delivery to this destination")
	textVar(cmd, &s.text, "error", "part of the error text")
	textVar(cmd, &s.since, "since", "received at or after: 2026-11-01, 2026-11-01T10:00:00Z, or 24h ago as 24h")
	textVar(cmd, &s.until, "until", "received before, in the same forms")
	textVar(cmd, &s.query, "query", `what the page's search takes: 'source:stripe type:invoice.* error:"connect refused" since:24h in_1Qx'`)
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
	selector, err := event.ParseQuery(s.query, now)
	if err != nil {
		return selector, usage("creel events --query 'source:stripe state:dead'", "--query: %w", err)
	}
	if len(keys) > 0 && len(selector.Keys) > 0 {
		return selector, usage("one of them", "the query names a key, and so do the arguments")
	}
	for _, text := range keys {
		key, err := event.ParseKey(text)
		if err != nil {
			return selector, usage("creel events", "%w", err)
		}
		selector.Keys = append(selector.Keys, key)
	}
	state, err := parseState(s.state)
	if err != nil {
		return selector, err
	}
	since, err := parseTime("--since", s.since, now)
	if err != nil {
		return selector, err
	}
	until, err := parseTime("--until", s.until, now)
	if err != nil {
		return selector, err
	}
	err = errors.Join(
		take(&selector.Source, s.source, "source"), take(&selector.Account, s.account, "account"),
		take(&selector.Type, s.kind, "type"), take(&selector.Object, s.object, "object"),
		take(&selector.Destination, s.destination, "destination"), take(&selector.Error, s.text, "error"),
		take(&selector.State, state, "state"), take(&selector.Since, since, "since"), take(&selector.Until, until, "until"))
	if err != nil {
		return selector, usage("one of them", "%w", err)
	}
	if s.since != "" { // again, with how long ago it was said to be
		err = selector.SetSince(s.since, now)
	}
	if s.until != "" && err == nil {
		err = selector.SetUntil(s.until, now)
	}
	if err != nil {
		return selector, err
	}
	if !selector.Since.IsZero() && !selector.Until.IsZero() && !selector.Until.After(selector.Since) {
		return selector, usage("a later --until, or an earlier --since", "--until is not after --since: nothing can have been received between")
	}
	return selector, nil
}

// take puts a flag into a selector. What the query says too would be one of two
// selections, and which of them is not for us to choose.
func take[T comparable](into *T, given T, name string) error {
	var none T
	if given == none {
		return nil
	}
	if *into != none {
		return fmt.Errorf("--%s and the query both name %s", name, article(name))
	}
	*into = given
	return nil
}

func article(noun string) string {
	if strings.ContainsAny(noun[:1], "aeiou") {
		return "an " + noun
	}
	return "a " + noun
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
	if at, err := event.ParseMoment(text, now); err == nil {
		return at, nil
	}
	return time.Time{}, usage(fmt.Sprintf("%s 2026-11-01, %s 2026-11-01T10:00:00Z, %s 24h or %s 7d", flag, flag, flag, flag),
		"%s %q is not a time", flag, text)
}
