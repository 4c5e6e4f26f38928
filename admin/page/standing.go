package page

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"creel/event"
)

// word is a state in words, with the tone beside it.
type word struct{ Tone, Text string }

// stateOf says how an event is: an event may be done while what it sent is
// dead, and a list that said "done" of it would hide that.
func stateOf(e event.Event, out map[int64]event.Outgoing) []word {
	return stateWith(e, out[e.Seq])
}

func stateWith(e event.Event, out event.Outgoing) []word {
	first := word{tone(e.State), words(e.State)}
	var more []word
	for _, one := range []struct {
		tone   string
		states []event.DeliveryState
		words  string // behind a number
	}{
		{"bad", []event.DeliveryState{event.DeliveryDead}, "delivery dead"},
		{"warn", []event.DeliveryState{event.DeliveryInDoubt}, "in doubt"},
		{"calm", []event.DeliveryState{event.DeliveryWaiting, event.DeliveryReady, event.DeliverySending}, "on its way"},
	} {
		n := 0
		for _, state := range one.states {
			n += out[state]
		}
		if n > 0 {
			more = append(more, word{one.tone, several(n, one.words)})
		}
	}
	if len(more) > 0 && first.Tone == "good" {
		first.Tone = "calm" // its rules are through, and that is not all
	}
	if e.Waits {
		more = append(more, word{"warn", "waits in its lane"})
	}
	return append([]word{first}, more...)
}

// several is a number of things, with what they are in the plural.
func several(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + strings.NewReplacer("delivery", "deliveries", "on its", "on their").Replace(one)
}

// counted are the deliveries of one event by their states.
func counted(list []Attempted) event.Outgoing {
	out := event.Outgoing{}
	for i := range list {
		out[list[i].State]++
	}
	return out
}

// words is a state as people say it.
func words(state any) string { return strings.ReplaceAll(fmt.Sprint(state), "_", " ") }

// hold is why a delivery that is not through waits: for its destination, which
// is down or paused, or in its lane. It is "" where it only waits for its turn.
func hold(d event.Delivery, health map[string]event.DestinationHealth) string {
	switch d.State {
	case event.DeliveryWaiting:
		return "waits for another one of its lane"
	case event.DeliveryReady:
		h := health[d.Destination]
		if h.Reason == d.Error {
			h.Reason = "" // it stands beside it
		}
		return standstill(h)
	}
	return ""
}

// standstill is why nothing goes to a destination, "" while something does.
func standstill(h event.DestinationHealth) string {
	if h.State == "" || h.State == event.DestinationEnabled {
		return ""
	}
	text := fmt.Sprintf("%s is %s since %s", h.Name, words(h.State), clockTime(h.Since))
	if h.Reason != "" {
		text += ": " + h.Reason
	}
	if !h.ProbeAt.IsZero() {
		text += "; next probe " + h.ProbeAt.UTC().Format(time.TimeOnly)
	}
	return text
}

// deadOf narrows the dead letters to those of an incident, as far as its cause
// says whether it is about a source or a destination.
func deadOf(i event.Incident) template.URL {
	name := ""
	switch {
	case i.Cause == event.CauseDeadEvent:
		name = "source"
	case i.Cause == event.CauseDeadDelivery, i.Cause.Family() == event.FamilyDestination:
		name = "destination"
	}
	if name == "" {
		return ""
	}
	return template.URL(query([]string{name, i.Subject}))
}

// outgoing counts the deliveries of lists of events. That it could not is shown
// as an error of the page.
func (q *request) outgoing(lists ...[]event.Event) (map[int64]event.Outgoing, bool) {
	var all []event.Event
	for _, list := range lists {
		all = append(all, list...)
	}
	if len(all) == 0 {
		return nil, true
	}
	out, err := q.data().Outgoing(q.ctx, all)
	if err != nil {
		q.failed(err)
	}
	return out, err == nil
}
