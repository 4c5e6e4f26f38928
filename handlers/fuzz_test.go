package handlers

import (
	"context"
	"net/mail"
	"net/url"
	"strings"
	"testing"

	"creel/config"
	"creel/event"
)

// FuzzRule decides about any event under any rule: every effect kind, in which
// text of the event stands everywhere where it may.
func FuzzRule(f *testing.F) {
	f.Add("r", "invoice.*", "{source}/{body.id}", `{"id":"' OR 1=1; --"}`, "body.n", `{}`)
	f.Add("a/b", "*", "{id}{body.x?}", `{"x":"{{body.id}}","n":1e3,"to":"a@example.com"}`, "body.n * body.n", `{"n":1}`)
	f.Add("r", "*", "{body.id}", `{"id":"..","to":"\"a,b\"@x.example","n":9223372036854775807,"v":"2026-01-01T00:00:00Z"}`, "sum(body.list)", `[`)
	f.Add("", "?", "}", "", "", "")
	f.Fuzz(func(t *testing.T, name, glob, key, body, amount, answer string) {
		fetch := config.DefaultFetch()
		fetch.URL = "https://api.example.com/{body.id}?to={body.to}"
		cfg := configuration(config.Rule{
			Name: name, Match: config.Match{Types: []string{glob}}, Key: key, OrderBy: "{body.id}", Forward: forward("app"), Fetch: &fetch,
			Record: &config.Record{Kind: "k", Fields: map[string]string{"all": "{body}"}},
			Grant:  &config.Grant{To: "{body.to}", Unit: "u", Amount: config.Expression(amount)},
			State:  &config.SetState{To: "{body.id}", Version: "{body.v}"},
			SQL:    &config.SQL{Statements: []string{"x"}, Params: map[string]string{"id": "{body.id}"}},
			Email:  &config.Email{To: []string{"{body.to}"}, Subject: "{body.id}", HTML: "<p>{body.id}</p>"},
		})
		rules, problems := Compile(cfg, Options{})
		if problems.Err() != nil {
			return
		}
		w := work(body)
		lane, _ := rules.Lane(w.Event, w.Payload)
		d := rules.Decide(context.Background(), w)
		for _, request := range d.Fetch {
			if u, err := url.Parse(request.URL); err != nil || u.Host != "api.example.com" || strings.Count(u.EscapedPath(), "/") != 1 || u.Fragment != "" {
				t.Fatalf("asks %q: %v", request.URL, err)
			}
		}
		if len(d.Fetch) > 0 {
			d = rules.DecideFetched(context.Background(), w, map[string][]byte{name: []byte(answer)})
		}
		switch d.State {
		case event.Done:
			for _, effect := range d.Effects {
				wellFormed(t, effect, lane)
			}
			if len(d.Effects) != 6 {
				t.Fatalf("done with %v", d.Effects)
			}
		case event.Ignored, event.Dead, event.Pending:
			if len(d.Effects) != 0 || d.Error == "" || len(d.Fetch) != 0 {
				t.Fatalf("%s with %v, %q", d.State, d.Effects, d.Error)
			}
		default:
			t.Fatalf("state %s", d.State)
		}
	})
}

// wellFormed demands of an effect what the store and the senders rely on.
func wellFormed(t *testing.T, effect event.Effect, lane string) {
	if effect.BusinessKey() == "" || effect.RuleName() == "" {
		t.Fatalf("%+v", effect)
	}
	ok := true
	switch e := effect.(type) {
	case event.Grant:
		ok = e.Amount > 0 && e.Amount <= event.MaxAmount && e.To != ""
	case event.SetState:
		_, ranked := event.Rank(e.Version)
		ok = e.Object != "" && e.To != "" && (ranked || e.Version == "" && e.Fetched)
	case event.Email:
		address, err := mail.ParseAddress(e.To)
		ok = err == nil && address.Address == e.To && !strings.ContainsAny(e.Subject+e.To, "\r\n\x00") && strings.Count(e.HTML, "<") == 2
	case event.Forward:
		ok = e.Lane == lane && lane != "" && len(lane) <= event.MaxKey
	}
	if !ok {
		t.Fatalf("%+v", effect)
	}
}
