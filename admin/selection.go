package admin

import (
	"cmp"
	"fmt"
	"strings"

	"creel/event"
)

// shownKeys is how many keys of a selection are written out.
const shownKeys = 5

// Selection is a selection as it is typed: its keys, or the query that means
// it; "" is everything.
func Selection(s event.Selector) string {
	keys := make([]string, len(s.Keys))
	for i, key := range s.Keys {
		keys[i] = key.String()
	}
	text := strings.Join(keys, ", ")
	if len(keys) > shownKeys {
		text = fmt.Sprintf("%s and %d others", keys[0], len(keys)-1)
	}
	s.Keys = nil
	return strings.TrimSpace(text + " " + s.Query())
}

// Subject is what an action was about: what it names, what it selected, or both.
func Subject(a event.Action) string {
	if a.Target == "" {
		return cmp.Or(Selection(a.Selector), "everything")
	}
	if a.Kind != event.ActionDiscard && a.Kind != event.ActionReplay {
		return a.Target
	}
	if a.Selector.Destination == a.Target {
		a.Selector.Destination = ""
	}
	return strings.TrimSpace(a.Target + " " + Selection(a.Selector))
}
