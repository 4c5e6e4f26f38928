package admin

import (
	"testing"

	"creel/event"
)

// An action is shown with all that narrowed it, in the words of a query.
func TestSubject(t *testing.T) {
	t.Parallel()
	key := event.Key{Source: "shop", ID: "a"}
	six := make([]event.Key, 6)
	for i := range six {
		six[i] = key
	}
	for want, a := range map[string]event.Action{
		"everything":                       {Kind: event.ActionReplay},
		"state:dead failure:2":             {Kind: event.ActionReplay, Selector: event.Selector{State: event.Dead, Failure: 2}},
		"kind:event body.order:7 evt_":     {Kind: event.ActionReplay, Selector: event.Selector{Kind: event.FailedEvent, Word: "evt_", Index: []event.IndexMatch{{Field: "body.order", Value: "7"}}}},
		"shop//a":                          {Kind: event.ActionReplay, Selector: event.Selector{Keys: six[:1]}},
		"shop//a, shop//a destination:app": {Kind: event.ActionReplay, Selector: event.Selector{Keys: six[:2], Destination: "app"}},
		"shop//a and 5 others":             {Kind: event.ActionReplay, Selector: event.Selector{Keys: six}},
		"app":                              {Kind: event.ActionDiscard, Target: "app", Selector: event.Selector{Destination: "app"}},
		"app state:dead failure:2":         {Kind: event.ActionDiscard, Target: "app", Selector: event.Selector{State: event.Dead, Failure: 2}},
		"store":                            {Kind: event.ActionPause, Target: "store"},
		"shop//A 1":                        {Kind: event.ActionLaneSkip, Target: "shop//A 1", Selector: event.Selector{Keys: six}},
	} {
		if got := Subject(a); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
