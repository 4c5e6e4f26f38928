package page

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"creel/event"
)

var tags = regexp.MustCompile(`<[^>]*>`)

// textOf is what a page says.
func textOf(page string) string {
	return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(page, " "))), " ")
}

// An event whose rules are through is not simply done while what it sent is dead,
// in doubt, or on its way.
func TestListsSayWhatBecameOfTheDeliveries(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		state event.State
		out   event.Outgoing
		want  []word
	}{
		"done":              {event.Done, nil, []word{{"good", "done"}}},
		"sent":              {event.Done, event.Outgoing{event.DeliverySent: 3}, []word{{"good", "done"}}},
		"dead":              {event.Done, event.Outgoing{event.DeliverySent: 1, event.DeliveryDead: 1}, []word{{"calm", "done"}, {"bad", "1 delivery dead"}}},
		"several dead":      {event.Done, event.Outgoing{event.DeliveryDead: 1200}, []word{{"calm", "done"}, {"bad", "1,200 deliveries dead"}}},
		"in doubt":          {event.Done, event.Outgoing{event.DeliveryInDoubt: 1}, []word{{"calm", "done"}, {"warn", "1 in doubt"}}},
		"on its way":        {event.Done, event.Outgoing{event.DeliveryReady: 1}, []word{{"calm", "done"}, {"calm", "1 on its way"}}},
		"on their way":      {event.Done, event.Outgoing{event.DeliveryWaiting: 1, event.DeliverySending: 1}, []word{{"calm", "done"}, {"calm", "2 on their way"}}},
		"given up":          {event.Done, event.Outgoing{event.DeliveryDiscarded: 1}, []word{{"good", "done"}}},
		"a dead event":      {event.Dead, event.Outgoing{event.DeliveryDead: 1}, []word{{"bad", "dead"}, {"bad", "1 delivery dead"}}},
		"pending once more": {event.Pending, event.Outgoing{event.DeliveryDead: 1}, []word{{"calm", "pending"}, {"bad", "1 delivery dead"}}},
	} {
		got := stateWith(event.Event{State: c.state}, c.out)
		if len(got) != len(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
	}
	s := newStand(t, "")
	e := event.Event{Seq: 7, Key: event.Key{Source: "shop", ID: "a"}, State: event.Done, Object: "o", ReceivedAt: began}
	s.event = Detail{Work: event.Work{Event: e}, Deliveries: []Attempted{{Delivery: event.Delivery{State: event.DeliveryDead, Destination: "app"}}}}
	s.outgoing = map[int64]event.Outgoing{7: {event.DeliveryDead: 1}}
	b := s.browser(t)
	b.login(t)
	for path, times := range map[string]int{"/events": 1, "/event?key=shop/a": 2, "/duplicates": 1, "/conflicts": 1, "/objects?object=o": 1} {
		res, text := b.get(t, path)
		status(t, path, res, http.StatusOK)
		if n := strings.Count(textOf(text), "done 1 delivery dead"); n != times {
			t.Errorf("%s says it %d times: %s", path, n, textOf(text))
		}
	}
}

// A delivery that waits says what for: for its destination, and why that stands
// still, or in its lane.
func TestDeliveriesSayWhyTheyWait(t *testing.T) {
	t.Parallel()
	s := newStand(t, "")
	at := began.Add(-time.Hour)
	s.health = map[string]event.DestinationHealth{
		"crm":  {Name: "crm", State: event.DestinationHeld, Since: at, Reason: "connection refused", ProbeAt: began},
		"app":  {Name: "app", State: event.DestinationEnabled, Since: at, Reason: "it answers again"},
		"mail": {Name: "mail", State: event.DestinationPaused, Since: at},
	}
	s.deliveries = []event.Delivery{
		{ID: 1, Destination: "crm", State: event.DeliveryReady},
		{ID: 2, Destination: "crm", State: event.DeliveryReady, Error: "connection refused"},
		{ID: 3, Destination: "app", State: event.DeliveryReady},
		{ID: 4, Destination: "mail", State: event.DeliveryReady},
		{ID: 5, Destination: "app", State: event.DeliveryWaiting},
		{ID: 6, Destination: "crm", State: event.DeliveryDead},
	}
	b := s.browser(t)
	b.login(t)
	_, text := b.get(t, "/deliveries")
	for number, want := range map[string]string{
		"1": "ready crm is held since 2026-01-02 02:04:05: connection refused; next probe 03:04:05",
		"2": "ready connection refused crm is held since 2026-01-02 02:04:05; next probe 03:04:05",
		"3": "ready",
		"4": "ready mail is paused since 2026-01-02 02:04:05",
		"5": "waiting waits for another one of its lane",
		"6": "dead",
	} {
		row := text[strings.Index(text, `data-label="Number">`+number+"<"):]
		cell := row[strings.Index(row, `data-label="State">`)+len(`data-label="State">`):]
		if got := textOf(cell[:strings.Index(cell, "</td>")]); got != want {
			t.Errorf("delivery %s: %q, want %q", number, got, want)
		}
	}
	s.groups = []event.Failure{{ID: 1, Kind: event.FailedDelivery, Source: "shop", Destination: "crm", Text: "HTTP 500", Dead: 3}}
	if _, text := b.get(t, "/"); !strings.Contains(textOf(text), "HTTP 500 crm is held since") {
		t.Error("a group of dead letters does not say that its destination is down")
	}
}
