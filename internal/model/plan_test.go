package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"creel/config"
	"creel/event"
	"creel/handlers"
)

// plan is the body of an event: what its rules do. So what they decide depends
// on the event alone.
type plan struct {
	N     int       `json:"n"` // tells bodies apart
	Steps [2][]step `json:"steps"`
	Fail  string    `json:"fail,omitempty"`
	Tries int       `json:"tries,omitempty"` // attempts of a run that fail
	Since int       `json:"since,omitempty"` // the first run that fails
	Runs  int       `json:"runs,omitempty"`  // and the last
}

// The ways in which a rule fails.
const (
	failing   = "error"
	panicking = "panic"
	hopeless  = "permanent"
)

// step is one effect.
type step struct {
	Kind    string         `json:"kind"`
	Key     string         `json:"key,omitempty"`
	To      string         `json:"to"`
	Text    string         `json:"text,omitempty"`
	Amount  int64          `json:"amount,omitempty"`
	Floor   *int64         `json:"floor,omitempty"`
	Reverse string         `json:"reverse,omitempty"`
	Version string         `json:"version,omitempty"`
	From    []string       `json:"from,omitempty"`
	Refuse  event.OnRefuse `json:"refuse,omitempty"`
}

func (s step) effect() event.Effect {
	fields := []event.Field{{Name: "text", Value: s.Text}}
	switch s.Kind {
	case "record":
		return event.Record{Key: s.Key, Of: s.To, Fields: fields}
	case "grant":
		return event.Grant{Key: s.Key, To: s.To, Unit: "credit", Amount: s.Amount}
	case "reverse":
		return event.Grant{Key: s.Key, Amount: s.Amount, Reverse: s.Reverse, Floor: s.Floor}
	case "state":
		return event.SetState{Key: s.Key, Object: s.To, To: s.Text, Version: s.Version, Fields: fields}
	case "change":
		return event.SetState{Key: s.Key, Object: s.To, To: s.Text, From: s.From, OnRefuse: s.Refuse}
	case "email":
		return event.Email{Key: s.Key, To: s.To, Subject: "news", Text: s.Text}
	}
	return event.Forward{Key: s.Key, Destination: s.To}
}

var errPlanned = errors.New("it was planned to fail")

// fails tells whether an attempt fails, and whether for good.
func (p *plan) fails(run, attempt int) (fails, forGood bool) {
	if run < p.Since || run > p.Runs || p.Fail == "" {
		return false, false
	}
	return p.Fail == hopeless || attempt <= p.Tries, p.Fail == hopeless
}

// doubled tells whether one of the rules returns two grants under one key, of
// which the second would be lost: no attempt gets further than that.
func (p *plan) doubled(of event.Key, place int) bool {
	seen := map[string]bool{}
	for _, s := range p.Steps[place] {
		if s.Kind != "grant" && s.Kind != "reverse" {
			continue
		}
		key := s.Key
		if key == "" {
			key = fmt.Sprintf("%s/%s%d", of, of.Source, place+1)
		}
		if seen[key] {
			return true
		}
		seen[key] = true
	}
	return false
}

// handle is the Go handler of every rule; the digit in its name is the place
// of its steps.
func handle(_ context.Context, e handlers.Event) ([]event.Effect, error) {
	var p plan
	if err := e.Decode(&p); err != nil {
		return nil, handlers.Permanent(err)
	}
	place := 0
	if strings.HasSuffix(e.Rule(), "2") {
		place = 1
	}
	if fails, forGood := p.fails(e.Event.Run, e.Attempts); fails && place == 0 {
		switch {
		case forGood:
			return nil, handlers.Permanent(errPlanned)
		case p.Fail == panicking:
			panic(errPlanned)
		}
		return nil, errPlanned
	}
	var effects []event.Effect
	for _, s := range p.Steps[place] {
		effects = append(effects, s.effect())
	}
	return effects, nil
}

// The sources differ in the order that their events keep.
const (
	free     = "free"
	laned    = "lane" // a dead one holds up those behind it
	skipping = "skip" // or not
)

// rules compiles two rules for each source.
func rules() (*handlers.Rules, error) {
	registry := handlers.NewRegistry()
	if err := registry.Register("plan", handle); err != nil {
		return nil, err
	}
	cfg := config.Default()
	for _, name := range []string{app, desk} {
		to := config.DefaultDestination()
		to.URL = "https://" + name + ".example.com"
		cfg.Destinations[name] = to
	}
	for _, name := range []string{free, laned, skipping} {
		source := config.DefaultSource()
		source.Name = name
		cfg.Sources = append(cfg.Sources, source)
		for n := 1; n <= 2; n++ {
			rule := config.Rule{Name: fmt.Sprintf("%s%d", name, n), Match: config.Match{Source: config.StringList{name}, Types: []string{known}}, Go: "plan"}
			if name != free {
				rule.OrderBy = "{object}"
			}
			if name == skipping {
				rule.OnDead = "skip"
			}
			cfg.Rules = append(cfg.Rules, rule)
		}
	}
	compiled, problems := handlers.Compile(cfg, handlers.Options{Registry: registry})
	return compiled, problems.Err()
}

// known and unknown are types of events: the rules take the first alone.
const known, unknown = "known", "unknown"

// drawPlan makes a plan. Keys are few, so that events meet in them, and what a
// key means follows from the key, so that most of those that meet agree.
func drawPlan(t *rapid.T, n int) plan {
	p := plan{N: n}
	for i := range p.Steps {
		for range rapid.IntRange(0, 2).Draw(t, "steps") {
			p.Steps[i] = append(p.Steps[i], drawStep(t, n))
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "fails") == 0 {
		p.Fail = rapid.SampledFrom([]string{failing, panicking, hopeless}).Draw(t, "how")
		p.Tries = rapid.IntRange(1, 5).Draw(t, "tries")
		p.Since = rapid.IntRange(1, 2).Draw(t, "since")
		p.Runs = rapid.IntRange(p.Since, 3).Draw(t, "runs")
	}
	return p
}

// drawKey gives no key, one of a few, a long one, or one that names an effect
// of another event, which may not be there yet.
func drawKey(t *rapid.T, n int) string {
	switch n := rapid.IntRange(0, 9).Draw(t, "key"); {
	case n < 4:
		return ""
	case n < 8:
		return fmt.Sprintf("op%d", n)
	case n == 8:
		return strings.Repeat("long", event.MaxKey/4+1)
	}
	return drawOther(t, n)
}

func drawOther(t *rapid.T, n int) string {
	source := rapid.SampledFrom([]string{free, laned, skipping}).Draw(t, "source")
	return fmt.Sprintf("%s//e%d/%s%d", source, max(0, n+rapid.IntRange(-6, 1).Draw(t, "other")), source, rapid.IntRange(1, 2).Draw(t, "rule"))
}

func drawStep(t *rapid.T, n int) step {
	s := step{Kind: rapid.SampledFrom([]string{"record", "grant", "reverse", "state", "state", "change", "change", "email", "forward", "forward", "forward"}).Draw(t, "kind")}
	s.Key = drawKey(t, n)
	odd := rapid.IntRange(0, 7).Draw(t, "odd") == 0 // it means by its key what no other does
	pick := func(from ...string) string {
		if odd {
			return rapid.SampledFrom(from).Draw(t, "value")
		}
		return from[len(s.Key)%len(from)]
	}
	switch s.Kind {
	case "record":
		s.To, s.Text = pick("order", "alert"), pick("plain", "other", "third")
	case "grant":
		s.To, s.Amount = pick("ann", "bob"), 100
		if odd {
			s.Amount = rapid.Int64Range(1, 300).Draw(t, "amount")
		}
	case "reverse":
		s.Reverse = drawOther(t, n)
		if rapid.Bool().Draw(t, "named") {
			s.Reverse = fmt.Sprintf("op%d", rapid.IntRange(4, 7).Draw(t, "reverse"))
		}
		if odd {
			floor := rapid.Int64Range(0, 200).Draw(t, "floor")
			s.Amount, s.Floor = rapid.Int64Range(0, 150).Draw(t, "amount"), &floor
		}
	case "state":
		s.To, s.Text = drawObject(t), rapid.SampledFrom([]string{"new", "paid", "sent"}).Draw(t, "state")
		s.Version = fmt.Sprint(rapid.IntRange(8, 13).Draw(t, "version"))
	case "change":
		s.To, s.Text, s.From = drawObject(t), pick("paid", "sent"), []string{"", pick("new", "paid")}
		if s.Key != "" { // one key is about one object
			s.To = "o1"
		}
		s.Refuse = rapid.SampledFrom([]event.OnRefuse{event.RefuseLater, event.RefuseStale, event.RefuseDead}).Draw(t, "refuse")
	case "email":
		s.To, s.Text = pick("ann@example.com", "bob@example.com"), "hello"
	case "forward":
		s.To = rapid.SampledFrom([]string{app, desk}).Draw(t, "to")
	}
	return s
}

func drawObject(t *rapid.T) string {
	return rapid.SampledFrom([]string{"o1", "o2", "o3"}).Draw(t, "object")
}

// write is the body of a request with several plans, and the part of each.
func write(plans []plan) (body []byte, parts []string, err error) {
	if len(plans) == 1 {
		body, err = json.Marshal(plans[0])
		return body, []string{""}, err
	}
	for i := range plans {
		parts = append(parts, fmt.Sprintf("body.%d", i))
	}
	body, err = json.Marshal(plans)
	return body, parts, err
}
