package handlers

import (
	"strings"
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
	cfg.SMTP.Host, cfg.SMTP.From = "127.0.0.1:25", "creel@example.com"
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
	if r.Forward == nil && r.Record == nil && r.Grant == nil && r.State == nil && r.SQL == nil && r.Email == nil && r.Run == nil && r.File == nil && r.Go == "" {
		r.Forward = forward("app")
	}
	return compiled(t, configuration(r), Options{}).Decide(t.Context(), work(body))
}

// problemsOf compiles one rule.
func problemsOf(r config.Rule) config.Problems {
	if r.Name == "" {
		r.Name = "rule"
	}
	_, problems := Compile(configuration(r), Options{})
	return problems
}

// told tells whether there is exactly one fault, at that path below the rule,
// with that text.
func told(t testing.TB, problems config.Problems, path, want string) {
	t.Helper()
	faults := problems.Faults()
	if len(faults) != 1 || faults[0].Path != path || !strings.Contains(faults[0].String(), want) {
		t.Errorf("want %q at %s, got:\n%v", want, path, faults)
	}
}

// dead tells whether a decision is a permanent failure with that text.
func dead(t testing.TB, d Decision, want string) {
	t.Helper()
	if d.State != event.Dead || !strings.Contains(d.Error, want) || len(d.Effects) != 0 {
		t.Errorf("want %q, got %+v", want, d)
	}
}
