package page

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"creel/event"
)

// Beside the dead letters of a destination that is held or disabled stands a
// button that makes its deliveries go out at once, and leads back.
func TestDeadLettersResumeTheirDestination(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		destination string
		state       event.DestinationState
		shown       bool
	}{
		"held":         {"app", event.DestinationHeld, true},
		"disabled":     {"app", event.DestinationDisabled, true},
		"enabled":      {"app", event.DestinationEnabled, false},
		"paused":       {"app", event.DestinationPaused, false},
		"not known":    {"app", "", false},
		"gone from it": {"old", event.DestinationHeld, false},
	} {
		s := newStand(t, "")
		s.groups = []event.Failure{{ID: 7, Kind: event.FailedDelivery, Source: "shop", Destination: c.destination, Text: "refused", Dead: 2}}
		s.letters = []Letter{{Event: event.Event{Seq: 1, Key: event.Key{Source: "shop", ID: "a"}}}}
		s.health = map[string]event.DestinationHealth{c.destination: {Name: c.destination, State: c.state}}
		b := s.browser(t)
		b.login(t)
		for _, path := range []string{"/?source=shop", "/?failure=7"} {
			if _, text := b.get(t, path); strings.Contains(text, "Resume app now") != (c.shown && (path == "/?source=shop" || c.destination == "app")) {
				t.Errorf("%s, %s: shown %v", name, path, !c.shown)
			}
		}
		if !c.shown {
			continue
		}
		form := url.Values{"token": {b.token(t)}, "name": {c.destination}, "do": {"resume"}, "back": {"/?source=shop"}}
		for said, refuses := range map[string]bool{"app is resumed: its deliveries go out again": false, "app was resumed already": true} {
			s.refuses = refuses
			res, _ := b.do(t, http.MethodPost, "/switch", form)
			if at := res.Header.Get("Location"); at != "/?source=shop" {
				t.Errorf("%s: leads to %q", name, at)
			}
			if _, text := b.get(t, "/?source=shop"); !strings.Contains(text, said) {
				t.Errorf("%s: does not say %q", name, said)
			}
		}
		want := event.Action{Kind: event.ActionResume, Actor: "page:ana", Target: "app"}
		if len(s.acted) != 2 || s.acted[0].Kind != want.Kind || s.acted[0].Target != want.Target || s.acted[0].Actor != want.Actor {
			t.Errorf("%s: %+v", name, s.acted)
		}
	}
}
