package handlers

import (
	"testing"
	"time"

	"creel/config"
	"creel/event"
)

// configuration is one source "gen", the destinations "app" and "audit", and
// the rules that are given.
func configuration(rules ...config.Rule) *config.Config {
	cfg := config.Default()
	cfg.Sources = []config.Source{{Name: "gen"}, {Name: "gh"}}
	cfg.Destinations = map[string]config.Destination{"app": {}, "audit": {}}
	cfg.Rules = rules
	cfg.Worker.Timeout = config.Duration(time.Minute)
	return cfg
}

func forward(to ...string) *config.Forward { return &config.Forward{To: to} }

func compiled(t testing.TB, cfg *config.Config, o Options) *Rules {
	t.Helper()
	rules, problems := Compile(cfg, o)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return rules
}

func work(body string) event.Work {
	return event.Work{
		Event: event.Event{
			Seq: 7, Run: 2, Type: "invoice.paid", Object: "in_1", Version: "17",
			Key: event.Key{Source: "gen", ID: "evt_1"},
		},
		Payload: event.Payload{
			Body:   []byte(body),
			Header: "Content-Type: application/json\nX-Foo: Bar\n",
			Query:  "hub.mode=subscribe&a=1",
		},
	}
}

// decided runs one rule that forwards to app on a body.
func decided(t testing.TB, r config.Rule, body string) Decision {
	t.Helper()
	if r.Name == "" {
		r.Name = "rule"
	}
	if r.Forward == nil && r.Go == "" {
		r.Forward = forward("app")
	}
	return compiled(t, configuration(r), Options{}).Decide(t.Context(), work(body))
}
