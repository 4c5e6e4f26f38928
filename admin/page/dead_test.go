package page

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
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

// A group with one dead letter is replayed at one click, in the run that was
// seen; of more than one a plan comes first.
func TestAGroupOfOneIsReplayedAtOneClick(t *testing.T) {
	t.Parallel()
	s := newStand(t, "")
	for id, dead := range []int{1, 2, 1} { // of the last one another number is known by now
		s.groups = append(s.groups, event.Failure{ID: int64(id + 1), Kind: event.FailedEvent, Source: "shop", Dead: dead})
	}
	s.lone = map[int64]event.Event{1: {Key: event.Key{Source: "shop", ID: `a "b"`}, Run: 3}, 2: {Key: event.Key{Source: "shop", ID: "never"}}}
	b := s.browser(t)
	b.login(t)
	_, text := b.get(t, "/")
	one := "3 " + event.Key{Source: "shop", ID: `a "b"`}.String()
	if n := strings.Count(text, `name="one"`); n != 1 || !strings.Contains(text, `name="one" value="`+html.EscapeString(one)+`"`) {
		t.Errorf("%d groups are replayed at one click:\n%s", n, text)
	}
	if n := strings.Count(text, `value="replay all"`); n != 2 {
		t.Errorf("%d groups have a plan first", n)
	}
	res, _ := b.do(t, http.MethodPost, "/replay", url.Values{"token": {b.token(t)}, "one": {one}, "failure": {"1"}, "back": {"/"}})
	status(t, "replay", res, http.StatusSeeOther)
	if len(s.acted) != 1 || s.acted[0].Kind != event.ActionReplay || s.acted[0].Selector.Run != 3 || s.acted[0].Selector.Keys[0].ID != `a "b"` {
		t.Errorf("%+v", s.acted)
	}
}

// A dead letter says how many newer ones wait behind it, and leads to its lane
// and no other.
func TestADeadLetterSaysWhatItHoldsUp(t *testing.T) {
	t.Parallel()
	s := newStand(t, "")
	const lane = " shop//A 1\r\n&x "
	for _, n := range []int{0, 3, MaxBehind, MaxBehind + 1} {
		s.letters = append(s.letters, Letter{Event: event.Event{Key: event.Key{Source: "shop", ID: "a"}}, Lane: lane, Behind: n})
	}
	s.lanes = []event.ParkedLane{{Lane: lane, Event: event.Key{Source: "shop", ID: "first"}}, {Lane: "other", Event: event.Key{Source: "shop", ID: "second"}}}
	b := s.browser(t)
	b.login(t)
	_, text := b.get(t, "/?view=flat")
	links := regexp.MustCompile(`href="(/lanes[^"]*)">([^<]*)<`).FindAllStringSubmatch(text, -1)
	var said []string
	for _, link := range links {
		if link[2] != "Parked lanes" {
			said = append(said, html.UnescapeString(link[2]))
			_, text = b.get(t, html.UnescapeString(link[1]))
			if !strings.Contains(text, "first") || strings.Contains(text, "second") {
				t.Errorf("%s leads to:\n%s", link[1], text)
			}
		}
	}
	if got := strings.Join(said, ", "); got != "blocks 3 newer, blocks 100 newer, blocks 100+ newer" {
		t.Errorf("it says %q", got)
	}
	if _, text = b.get(t, "/lanes?lane=gone"); !strings.Contains(text, "It is not parked.") {
		t.Error("a lane that is free again is not said to be")
	}
}

// From every list of events and dead letters all that it means is got in one
// piece, from its beginning, and nothing where nothing is.
func TestListsLeadToAllOfThem(t *testing.T) {
	t.Parallel()
	s := newStand(t, "https://example.com/creel/")
	s.letters = []Letter{{Event: event.Event{Key: event.Key{Source: "shop", ID: "a"}}}}
	s.groups = []event.Failure{{ID: 1, Source: "shop", Dead: 2}}
	b := s.browser(t)
	res, _ := b.do(t, http.MethodPost, "/creel/login", url.Values{"name": {"ana"}, "password": {goodPassword}}, "Host", "example.com")
	cookie, _, _ := strings.Cut(res.Header.Get("Set-Cookie"), ";")
	for path, want := range map[string]string{
		"/?q=source:shop":            "/creel/api/v1/dead-letters.jsonl?q=state%3Adead+source%3Ashop",
		"/?view=flat&after=1d1":      "/creel/api/v1/dead-letters.jsonl?q=state%3Adead",
		"/?failure=7":                "/creel/api/v1/dead-letters.jsonl?q=state%3Adead+failure%3A7",
		"/events?after=9&state=dead": "/creel/api/v1/events.jsonl?q=state%3Adead",
		"/events":                    "/creel/api/v1/events.jsonl",
	} {
		_, text := b.get(t, "/creel"+path, "Host", "example.com", "Cookie", cookie)
		if !strings.Contains(html.UnescapeString(text), `href="`+want+`" download`) {
			t.Errorf("%s does not lead to %s", path, want)
		}
	}
	s.letters, s.groups = nil, nil
	if _, text := b.get(t, "/creel/", "Host", "example.com", "Cookie", cookie); strings.Contains(text, "jsonl") {
		t.Error("nothing leads to all of it")
	}
}

// A dead letter shows what its destination answered, in one line that deceives
// nobody, and where a secret may be the reason.
func TestADeadLetterShowsTheAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status         int
		answer         string
		shows, silence []string
	}{
		"an answer":   {422, "{\n \"error\": \"unknown price pr_9\"\n}", []string{`answered: { "error": "unknown price pr_9" }`}, []string{"secret may differ"}},
		"a long one":  {422, strings.Repeat("x", 500), []string{strings.Repeat("x", 119) + "…"}, []string{strings.Repeat("x", 120)}},
		"markup":      {422, "<b>\u202eno</b>", []string{"<b>‹U+202E›no</b>"}, []string{"\u202e"}},
		"no answer":   {0, "", nil, []string{"answered:", "secret may differ"}},
		"not allowed": {401, "who are you", []string{"answered: who are you", "The app's secret may differ from [destination.app] secret."}, nil},
		"forbidden":   {403, "", []string{"The app's secret may differ from [destination.app] secret."}, []string{"answered:"}},
	} {
		s := newStand(t, "")
		s.letters = []Letter{{Event: event.Event{Key: event.Key{Source: "shop", ID: "a"}}, Answer: c.answer,
			Delivery: event.Delivery{ID: 1, Destination: "app", State: event.DeliveryDead, Status: c.status, Error: "it failed"}}}
		b := s.browser(t)
		b.login(t)
		for _, path := range []string{"/?view=flat", "/?failure=7"} {
			_, text := b.get(t, path)
			if strings.Contains(text, "<b>") {
				t.Errorf("%s: %s has its markup", name, path)
			}
			text = html.UnescapeString(text)
			for _, want := range c.shows {
				if !strings.Contains(text, want) {
					t.Errorf("%s: %s does not show %q", name, path, want)
				}
			}
			for _, not := range c.silence {
				if strings.Contains(text, not) {
					t.Errorf("%s: %s shows %q", name, path, not)
				}
			}
		}
	}
}
