package api

import (
	"time"

	"creel/admin"
	"creel/admin/page"
	"creel/event"
)

// letterLine is one dead letter: a delivery, or an event that is dead itself.
type letterLine struct {
	Event    admin.EventLine     `json:"event"`
	Delivery *admin.DeliveryLine `json:"delivery,omitempty"` // not there where it is the event that is dead
}

// signalsLine is what was measured last.
type signalsLine struct {
	Items []event.Signal `json:"items"`
	AsOf  time.Time      `json:"as_of,omitzero"` // when; not there before the first time
}

// conflictLine is an event under whose key other bodies came.
type conflictLine struct {
	admin.EventLine
	Conflicts int `json:"conflicts"`
}

// sourceLine is a source of the configuration.
type sourceLine struct {
	Name     string           `json:"name"`
	Provider string           `json:"provider,omitempty"` // not there where the owner described the sender
	Path     string           `json:"path"`               // on the listener for senders
	Forward  []string         `json:"forward"`            // destinations that get all its events
	Last     time.Time        `json:"last_receipt_at,omitzero"`
	Hour     map[string]int64 `json:"last_hour"`          // counts by what was counted
	Minutes  []int64          `json:"receipts_by_minute"` // of the last hour, the oldest first
}

func lineOfSource(s page.Source) sourceLine {
	forward := s.Forward
	if forward == nil {
		forward = []string{}
	}
	return sourceLine{Name: s.Name, Provider: s.Provider, Path: s.Path, Forward: forward, Last: s.Last.UTC(), Hour: s.Hour, Minutes: s.Minutes}
}

// destinationLine is a destination, and how it is doing.
type destinationLine struct {
	event.DestinationHealth
	Since      time.Time        `json:"since,omitzero"` // of its state, where that ever changed
	Configured bool             `json:"configured"`     // false where the configuration has it no more
	Kind       string           `json:"kind,omitempty"`
	Place      string           `json:"place,omitempty"` // where it leads, without anything secret
	Hour       map[string]int64 `json:"last_hour"`
	Minutes    []int64          `json:"attempts_by_minute,omitempty"` // of the last hour, the oldest first
}

func lineOfDestination(d page.Destination) destinationLine {
	return destinationLine{DestinationHealth: d.DestinationHealth, Since: d.Since, Configured: d.Configured, Kind: d.Kind, Place: d.Place,
		Hour: d.Hour, Minutes: d.Minutes}
}

// planLine is what an action would do.
type planLine struct {
	ID      string           `json:"id"`
	Action  event.ActionKind `json:"action"`
	Actor   string           `json:"actor"` // who made the plan
	MadeAt  time.Time        `json:"made_at"`
	Select  event.Selector   `json:"selector"`
	Target  string           `json:"target,omitempty"` // the destination of a discard
	Resend  bool             `json:"resend,omitempty"`
	Rate    float64          `json:"rate,omitempty"`
	Events  int              `json:"events"`  // in the frozen selection
	Looked  int              `json:"looked"`  // how many of them were looked at, one by one
	Would   []wouldLine      `json:"would"`   // what would become of their effects, counted
	Refused []wouldLine      `json:"refused"` // events that would be left alone, counted by reason
	Items   []planItem       `json:"items"`   // the first events
	Carried *event.Action    `json:"carried,omitempty"`
}

// wouldLine is how often something would happen.
type wouldLine struct {
	What  string `json:"what"`
	Count int    `json:"count"`
}

// planItem is what would become of one event.
type planItem struct {
	Event event.Key `json:"event"`
	Would string    `json:"would"`
}

func lineOfPlan(p page.Plan) planLine {
	line := planLine{ID: p.ID, Action: p.Action.Kind, Actor: p.Action.Actor, MadeAt: p.Action.At.UTC(), Select: p.Action.Selector,
		Target: p.Action.Target, Resend: p.Action.Resend, Rate: p.Action.Rate, Events: p.Events, Looked: p.Looked,
		Would: wouldLines(p.Would), Refused: wouldLines(p.Refused), Items: []planItem{}, Carried: p.Carried}
	for _, one := range p.Items {
		line.Items = append(line.Items, planItem{one.Event.Key, one.Text})
	}
	return line
}

func wouldLines(counted []page.Would) []wouldLine {
	lines := make([]wouldLine, len(counted))
	for i, one := range counted {
		lines[i] = wouldLine{one.What, one.Count}
	}
	return lines
}
