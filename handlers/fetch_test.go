package handlers

import (
	"context"
	"strings"
	"testing"
	"time"

	"creel/config"
	"creel/event"
)

// fetching keeps the state of a subscription whose events have no version.
func fetching(change func(r *config.Rule)) config.Rule {
	f := config.DefaultFetch()
	f.URL, f.Token, f.Into = "https://api.example.com/v1/{object}?at={type}", config.NewSecret("env:API_KEY"), "body.data"
	r := config.Rule{
		Name: "fetching", When: "body.data.live", Fetch: &f,
		State: &config.SetState{To: "{body.data.status}", Version: "{body.data.at}"},
	}
	if change != nil {
		change(&r)
	}
	return r
}

const thin = `{"id":1.50, "data" : {"live":true} ,"n":9007199254740993}`

func TestAFetchIsAskedForWhereThereIsNoVersion(t *testing.T) {
	t.Parallel()
	rules := compiled(t, configuration(fetching(nil)), Options{})
	w := work(thin)
	w.Object, w.Type = "sub/1?x", "a&b=c+d"
	d := rules.Decide(t.Context(), w)
	if d.State != event.Pending || len(d.Fetch) != 1 || len(d.Effects)+len(d.Verdicts) != 0 || d.Interrupted {
		t.Fatalf("%+v", d)
	}
	request := d.Fetch[0]
	if request.Rule != "fetching" || request.URL != "https://api.example.com/v1/sub%2F1%3Fx?at=a%26b%3Dc%2Bd" || request.Timeout != 5*time.Second || request.Token.IsZero() {
		t.Errorf("%+v", request)
	}
	d = rules.DecideFetched(t.Context(), w, map[string][]byte{"fetching": []byte(` {"live":true,"status":"active","at":7}`)})
	want := event.SetState{Key: "gen//evt_1/fetching", Rule: "fetching", Object: "gen//sub%2F1?x", To: "active", Version: "7", Fetched: true}
	if d.State != event.Done || len(d.Effects) != 1 || !sameState(d.Effects[0], want) || len(d.Fetch) != 0 {
		t.Errorf("%+v", d)
	}
	d = rules.DecideFetched(t.Context(), w, map[string][]byte{"fetching": []byte(`{"live":true,"status":"active"}`)})
	want.Version = ""
	if d.State != event.Done || !sameState(d.Effects[0], want) {
		t.Errorf("without a version: %+v", d)
	}
	d = rules.DecideFetched(t.Context(), w, map[string][]byte{"fetching": []byte(`{"live":false}`)})
	if d.State != event.Ignored || d.Verdicts[0].Decision != event.Skipped {
		t.Errorf("the condition of the current object: %+v", d)
	}
}

func sameState(got event.Effect, want event.SetState) bool {
	s, ok := got.(event.SetState)
	return ok && s.Key == want.Key && s.Object == want.Object && s.To == want.To && s.Version == want.Version &&
		s.Fetched == want.Fetched && s.Fetchable == want.Fetchable
}

func TestAFetchIsAskedForOnlyWhereItIsNeeded(t *testing.T) {
	t.Parallel()
	const versioned = `{"data":{"live":true,"status":"s","at":7}}`
	always := func(r *config.Rule) { r.Fetch.Always = true }
	for name, c := range map[string]struct {
		change func(*config.Rule)
		body   string
		tied   bool
		want   bool
	}{
		"no version":                       {nil, thin, false, true},
		"no version that orders anything":  {nil, `{"data":{"live":true,"at":"new"}}`, false, true},
		"a version":                        {nil, versioned, false, false},
		"a version, tied":                  {nil, versioned, true, true},
		"a version, tied, no state":        {func(r *config.Rule) { r.State, r.Forward, r.Fetch.Into = nil, forward("app"), "body" }, versioned, true, false},
		"a version, always":                {always, versioned, false, true},
		"its condition does not hold":      {nil, `{"data":{"live":false}}`, false, false},
		"its condition does not, always":   {always, `{"data":{"live":false}}`, false, true},
		"its condition can not be read":    {nil, `{"data":{}}`, false, true},
		"another type":                     {func(r *config.Rule) { r.Match.Types = []string{"x"} }, thin, false, false},
		"the version is that of the event": {func(r *config.Rule) { r.State.Version = "" }, thin, false, false},
		"the version is written twice":     {nil, `{"data":{"live":true,"at":1,"at":2}}`, false, false},
	} {
		rules := compiled(t, configuration(fetching(c.change)), Options{})
		d := rules.Decide(t.Context(), work(c.body))
		if c.tied {
			d = rules.DecideTied(t.Context(), work(c.body))
		}
		if (len(d.Fetch) == 1) != c.want {
			t.Errorf("%s: %+v", name, d)
		}
		for _, effect := range d.Effects {
			if s, ok := effect.(event.SetState); ok && (!s.Fetchable || s.Fetched) {
				t.Errorf("%s: %+v", name, s)
			}
		}
	}
}

// Only the rule that asked sees the object, and nothing else of the body
// changes.
func TestWhatWasFetchedStandsInTheBodyOfItsRule(t *testing.T) {
	t.Parallel()
	var seen string
	registry := NewRegistry()
	if err := registry.Register("see", func(_ context.Context, e Event) ([]event.Effect, error) {
		body, err := e.Body()
		seen = string(body)
		return nil, err
	}); err != nil {
		t.Fatal(err)
	}
	rules := compiled(t, configuration(
		fetching(func(r *config.Rule) { r.Go = "see" }),
		config.Rule{Name: "other", Record: &config.Record{Kind: "k", Fields: map[string]string{"data": "{body.data}"}}},
	), Options{Registry: registry})
	w := work(thin)
	d := rules.DecideFetched(t.Context(), w, map[string][]byte{"fetching": []byte(`{"live":true,"status":"x"}`)})
	if seen != `{"id":1.50, "data" : {"live":true,"status":"x"} ,"n":9007199254740993}` {
		t.Errorf("the handler saw %s", seen)
	}
	if d.State != event.Done || d.Effects[1].(event.Record).Fields[0].Value != `{"live":true}` || string(w.Body) != thin {
		t.Errorf("%+v", d)
	}
}

func TestTheWholeBodyMayBeFetched(t *testing.T) {
	t.Parallel()
	r := fetching(func(r *config.Rule) {
		r.When, r.Fetch.Into, r.State.To, r.Fetch.Always = "", "body", "{body.status}-{form.id}-{header.x-foo}", true
	})
	r.State.Version, r.Fetch.URL = "", "https://api.example.com/{form.id}"
	rules := compiled(t, configuration(r), Options{})
	w := work(`id=tr_1`)
	d := rules.Decide(t.Context(), w)
	if len(d.Fetch) != 1 || d.Fetch[0].URL != "https://api.example.com/tr_1" {
		t.Fatalf("%+v", d)
	}
	d = rules.DecideFetched(t.Context(), w, map[string][]byte{"fetching": []byte("\xef\xbb\xbf" + `{"status":"paid"}`)})
	if d.State != event.Done || d.Effects[0].(event.SetState).To != "paid-tr_1-Bar" {
		t.Errorf("%+v", d)
	}
}

func TestAnswersThatAreNoObjectAreTriedAgain(t *testing.T) {
	t.Parallel()
	rules := compiled(t, configuration(fetching(nil)), Options{})
	for _, answer := range []string{"", "<html>", `{"a":`, "{} {}", strings.Repeat("[", 1000)} {
		d := rules.DecideFetched(t.Context(), work(thin), map[string][]byte{"fetching": []byte(answer)})
		if d.State != event.Pending || !strings.Contains(d.Error, "fetching: fetch: the answer is no object") || len(d.Fetch) != 0 {
			t.Errorf("%.20q: %+v", answer, d)
		}
	}
	d := rules.DecideFetched(t.Context(), work(`{"other":1}`), map[string][]byte{"fetching": []byte("{}")})
	dead(t, d, "fetching: fetch: into: body.data: nothing stands there")
}

func TestTheEventDoesNotDecideWhoIsAsked(t *testing.T) {
	t.Parallel()
	for _, object := range []string{"..", ".", "", "a\nb"} {
		r := fetching(func(r *config.Rule) { r.Fetch.URL, r.OrderBy = "https://api.example.com/v1/{body.x}/plan", "{id}" })
		w := work(`{"data":{"live":true},"x":"` + strings.ReplaceAll(object, "\n", `\n`) + `"}`)
		d := compiled(t, configuration(r), Options{}).Decide(t.Context(), w)
		if object == "a\nb" {
			if len(d.Fetch) != 1 || d.Fetch[0].URL != "https://api.example.com/v1/a%0Ab/plan" {
				t.Errorf("%+v", d)
			}
			continue
		}
		dead(t, d, "fetching: fetch: url: ")
	}
	for _, url := range []string{
		"{body.url}", "https://{body.host}/x", "https://api.example.com{body.path}", "https://api.example.com:{body.port}/x", "//api.example.com/{object}",
		"ftp://api.example.com/{object}", "https:///{object}", "https://user:pass@api.example.com/{object}", "https://api example.com/{object}",
	} {
		told(t, problemsOf(fetching(func(r *config.Rule) { r.Fetch.URL = url })), "rule[0].fetch.url", "does not begin with an address")
	}
	told(t, problemsOf(fetching(func(r *config.Rule) { r.Fetch.URL = "" })), "rule[0].fetch.url", "is missing")
	told(t, problemsOf(fetching(func(r *config.Rule) { r.Fetch.URL = "https://api.example.com/all" })), "rule[0].fetch.url", "is the same for every event")
	for _, into := range []string{"header.x", "data", "body.x?", "body..x"} {
		told(t, problemsOf(fetching(func(r *config.Rule) { r.Fetch.Into = into })), "rule[0].fetch.into", "")
	}
}

func TestAFetchKeepsTheOrderOfItsObject(t *testing.T) {
	t.Parallel()
	rules := compiled(t, configuration(fetching(nil)), Options{})
	w := work(thin)
	if lane, skip := rules.Lane(w.Event, w.Payload); lane != "gen//in_1" || skip {
		t.Errorf("%q %t", lane, skip)
	}
	w.Object = ""
	dead(t, rules.DecideFetched(t.Context(), w, map[string][]byte{"fetching": []byte(`{"live":true,"status":"a"}`)}), "fetching: order_by: object: nothing stands there")
}

func TestSlowTellsWhoMayWait(t *testing.T) {
	t.Parallel()
	registry := NewRegistry()
	if err := registry.Register("mine", func(context.Context, Event) ([]event.Effect, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	rules := compiled(t, configuration(
		fetching(func(r *config.Rule) { r.Match.Types = []string{"fetched"} }),
		config.Rule{Name: "go", Match: config.Match{Types: []string{"went"}}, Go: "mine"},
		config.Rule{Name: "fast", Forward: forward("app")},
	), Options{Registry: registry})
	for kind, want := range map[string]bool{"fetched": true, "went": true, "other": false} {
		if rules.Slow(&event.Event{Key: event.Key{Source: "gen", ID: "1"}, Type: kind}) != want {
			t.Errorf("%s: not %t", kind, want)
		}
	}
}

func TestInlineIsForRulesThatNeedNothingElse(t *testing.T) {
	t.Parallel()
	local := config.Rule{Name: "local", Record: &config.Record{Kind: "k"}, Grant: &config.Grant{To: "a", Unit: "u", Amount: "1"},
		State: &config.SetState{To: "x"}, Forward: forward("app"), Email: &config.Email{To: []string{"a@example.com"}, Subject: "s", Text: "t"}}
	sql := config.Rule{Name: "statements", SQL: &config.SQL{Statements: []string{"x"}}}
	registry := NewRegistry()
	if err := registry.Register("mine", func(context.Context, Event) ([]event.Effect, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	for table, rule := range map[string]config.Rule{"": local, "fetch": fetching(nil), "sql": sql, "go": {Name: "go", Go: "mine"}} {
		cfg := configuration(local, rule)
		if table == "" {
			cfg = configuration(local)
		}
		cfg.Sources[0].Process = "inline"
		rules, problems := Compile(cfg, Options{Registry: registry})
		offender, ok := rules.Inline("gen")
		if ok != (table == "") || !ok && offender != rule.Name {
			t.Errorf("%q: %q %t", table, offender, ok)
		}
		if table == "" {
			if err := problems.Err(); err != nil {
				t.Error(err)
			}
			continue
		}
		told(t, problems, "source[0].process", `can not be "inline": the rule "`+rule.Name+`" has `+table)
		rule.Match.Source = []string{"gh"}
		cfg.Rules[1] = rule
		if _, problems := Compile(cfg, Options{Registry: registry}); problems.Err() != nil {
			t.Errorf("a rule of another source: %v", problems)
		}
	}
}
