package handlers

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"creel/config"
	"creel/event"
)

func TestOverlap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"", "", true}, {"", "*", true}, {"", "?", false}, {"*", "*", true}, {"a", "a", true}, {"a", "b", false}, {"a", "?", true},
		{"invoice.*", "invoice.paid", true}, {"invoice.*", "charge.*", false}, {"*.paid", "invoice.*", true}, {"a*b", "b*a", false},
		{"a*", "*b", true}, {"a?c", "abc", true}, {"a?c", "ac", false}, {"a*c", "ac", true}, {"?*", "", false}, {"**", "a", true},
		{"a*b*c", "a??c", true}, {"*x*", "*y*", true}, {"ab*", "a?c*", true}, {"ab", "a*b*c", false},
	} {
		if overlap(c.a, c.b) != c.want || overlap(c.b, c.a) != c.want {
			t.Errorf("%q and %q: want %t", c.a, c.b, c.want)
		}
	}
}

// Two globs overlap exactly where some text fits both: every short text is
// tried.
func TestOverlapIsWhatMatchGlobSays(t *testing.T) {
	t.Parallel()
	var texts []string
	for n := range 7 {
		for i := range 1 << n {
			text := ""
			for bit := range n {
				text += string("ab"[i>>bit&1])
			}
			texts = append(texts, text)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		glob := rapid.StringOfN(rapid.RuneFrom([]rune("ab?*")), 0, 3, -1)
		a, b := glob.Draw(t, "a"), glob.Draw(t, "b")
		want := false
		for _, text := range texts {
			want = want || event.MatchGlob(a, text) && event.MatchGlob(b, text)
		}
		if overlap(a, b) != want {
			t.Fatalf("%q and %q: want %t", a, b, want)
		}
	})
}

func TestLaneIsKnownBeforeTheEventIsStored(t *testing.T) {
	t.Parallel()
	cfg := configuration(
		config.Rule{Name: "unordered", Forward: forward("audit")},
		config.Rule{Name: "ordered", Match: config.Match{Types: []string{"invoice.*"}}, When: "false", OrderBy: "{body.id}", OnDead: "skip", Forward: forward("app")},
	)
	cfg.Sources[0].Accounts = map[string]string{"acct/1": "t"}
	rules := compiled(t, cfg, Options{})
	w := work(`{"id":"a/b"}`)
	w.Key.Account = "acct/1"
	if lane, skip := rules.Lane(w.Event, w.Payload); lane != "gen/acct%2F1/a%2Fb" || !skip {
		t.Errorf("%q %t", lane, skip)
	}
	if d := rules.Decide(t.Context(), w); d.State != event.Done || d.Effects[0].(event.Forward).Lane != "" {
		t.Errorf("a rule without order: %+v", d)
	}
	for _, body := range []string{`{}`, `{"id":""}`, `{"id":1,"id":2}`, `nothing`} {
		if lane, skip := rules.Lane(w.Event, event.Payload{Body: []byte(body)}); lane != "" || skip {
			t.Errorf("%s: %q %t", body, lane, skip)
		}
	}
	w.Type = "charge"
	if lane, skip := rules.Lane(w.Event, w.Payload); lane != "" || skip {
		t.Errorf("of a type that no ordered rule takes: %q %t", lane, skip)
	}
	if !rules.Ordered("gen") || !compiled(t, configuration(config.Rule{Name: "r", Match: config.Match{Source: []string{"g?n"}}, OrderBy: "{object}", Forward: forward("app")}), Options{}).Ordered("gen") {
		t.Error("gen has an order")
	}
	if compiled(t, configuration(config.Rule{Name: "r", Match: config.Match{Source: []string{"gh"}}, OrderBy: "{object}", Forward: forward("app")}), Options{}).Ordered("gen") {
		t.Error("gen has no order")
	}
}

func TestLongLanesAreFolded(t *testing.T) {
	t.Parallel()
	rules := compiled(t, configuration(config.Rule{Name: "r", OrderBy: "{body.id}", Forward: forward("app")}), Options{})
	w := work(`{"id":"` + strings.Repeat("a", 300) + `"}`)
	lane, _ := rules.Lane(w.Event, w.Payload)
	if len(lane) > event.MaxKey || lane == "" {
		t.Errorf("%d bytes: %s", len(lane), lane)
	}
	if d := rules.Decide(t.Context(), w); d.Effects[0].(event.Forward).Lane != lane {
		t.Errorf("%+v", d)
	}
}

func TestDeliveriesKeepTheLane(t *testing.T) {
	t.Parallel()
	d := decided(t, config.Rule{OrderBy: "{object}", OnDead: "skip", Forward: forward("app"), Email: &config.Email{To: []string{"a@example.com"}, Subject: "s", Text: "t"}}, `{}`)
	mail, _ := d.Effects[0].(event.Email)
	sent, _ := d.Effects[1].(event.Forward)
	if mail.Lane != "gen//in_1" || sent.Lane != "gen//in_1" || !mail.LaneSkip || !sent.LaneSkip {
		t.Errorf("%+v", d)
	}
	dead(t, decided(t, config.Rule{OrderBy: "{body.id}"}, `{}`), "rule: order_by: body.id: nothing stands there")
	dead(t, decided(t, config.Rule{OrderBy: "{body.id?}"}, `{}`), "rule: order_by: is empty for this event")
}

func TestOneEventHasOneLane(t *testing.T) {
	t.Parallel()
	rule := func(name, orderBy, onDead string, source, types []string) config.Rule {
		return config.Rule{Name: name, OrderBy: orderBy, OnDead: onDead, Match: config.Match{Source: source, Types: types}, Forward: forward("app")}
	}
	for _, c := range []struct {
		a, b config.Rule
		path string // "" is no fault
	}{
		{rule("a", "{object}", "", nil, nil), rule("b", "{object}", "", nil, nil), ""},
		{rule("a", "{object}", "", nil, nil), rule("b", "{object}", "block", nil, nil), ""},
		{rule("a", "{object}", "", nil, nil), rule("b", "", "", nil, nil), ""},
		{rule("a", "{object}", "", nil, nil), rule("b", "{body.id}", "", nil, nil), "rule[1].order_by"},
		{rule("a", "{object}", "", nil, nil), rule("b", "{object}", "skip", nil, nil), "rule[1].on_dead"},
		{rule("a", "{object}", "", []string{"gen"}, nil), rule("b", "{body.id}", "", []string{"gh"}, nil), ""},
		{rule("a", "{object}", "", []string{"gen"}, nil), rule("b", "{body.id}", "", []string{"g*"}, nil), "rule[1].order_by"},
		{rule("a", "{object}", "", nil, []string{"a.*"}), rule("b", "{body.id}", "", nil, []string{"b.*", "c"}), ""},
		{rule("a", "{object}", "", nil, []string{"a.*"}), rule("b", "{body.id}", "", nil, []string{"b.*", "*.c"}), "rule[1].order_by"},
	} {
		_, problems := Compile(configuration(c.a, c.b), Options{})
		if c.path == "" {
			if err := problems.Err(); err != nil {
				t.Errorf("%+v, %+v: %v", c.a, c.b, err)
			}
			continue
		}
		told(t, problems, c.path, "which can match the same event")
	}
}

func TestOrderIsChecked(t *testing.T) {
	t.Parallel()
	told(t, problemsOf(config.Rule{OnDead: "skip", Forward: forward("app")}), "rule[0].on_dead", "goes with order_by")
	told(t, problemsOf(config.Rule{OrderBy: "{object}", OnDead: "stop", Forward: forward("app")}), "rule[0].on_dead", "one of: block, skip")
	told(t, problemsOf(config.Rule{OrderBy: "all", Forward: forward("app")}), "rule[0].order_by", "is the same for every event")
}

// Beside a fetch the lane has to be the object's.
func TestFetchWantsTheLaneOfItsObject(t *testing.T) {
	t.Parallel()
	for order, warned := range map[string]bool{"": false, "{object}": false, "{id}": true} {
		problems := problemsOf(config.Rule{OrderBy: order, Fetch: &config.Fetch{URL: "https://api.example.com/{object}"}, Forward: forward("app")})
		told := false
		for _, p := range problems {
			told = told || p.Warning && p.Path == "rule[0].order_by"
		}
		if told != warned {
			t.Errorf("order_by %q: %v", order, problems)
		}
	}
}
