package handlers

import (
	"strings"
	"testing"

	"creel/config"
)

func TestTwoRulesOfOneKeyAreTold(t *testing.T) {
	t.Parallel()
	grant := func(name string) config.Rule {
		return config.Rule{Name: name, Key: "{body.id}", Grant: &config.Grant{To: "a", Unit: "u", Amount: "1"}}
	}
	with := func(r config.Rule, change func(*config.Rule)) config.Rule {
		change(&r)
		return r
	}
	mail := func(to string) func(*config.Rule) {
		return func(r *config.Rule) {
			r.Grant, r.Email = nil, &config.Email{To: config.StringList{"owner@example.com", to}, Subject: "s", Text: r.Name}
		}
	}
	statement := func(r *config.Rule) {
		r.Grant, r.SQL = nil, &config.SQL{Statements: config.StringList{"DELETE FROM app_" + r.Name}}
	}
	when := func(r *config.Rule) { r.When = "body.a > 1" }
	for name, c := range map[string]struct {
		second config.Rule
		first  func(*config.Rule)
		want   string // "" is no warning
	}{
		"grants":         {second: grant("two"), want: "two grant effects"},
		"sql":            {second: with(grant("two"), statement), first: statement, want: "two sql effects"},
		"mail to one":    {second: with(grant("two"), mail("b@example.com")), first: mail("a@example.com"), want: "two email effects"},
		"one has a when": {second: with(grant("two"), when), want: "two grant effects"},
		"both have one":  {second: with(grant("two"), when), first: when},
		"other keys":     {second: with(grant("two"), func(r *config.Rule) { r.Key = "{body.id}/two" })},
		"no key":         {second: with(grant("two"), func(r *config.Rule) { r.Key = "" })},
		"other kinds":    {second: with(grant("two"), statement)},
		"other events":   {second: with(grant("two"), func(r *config.Rule) { r.Match.Types = []string{"b"} }), first: func(r *config.Rule) { r.Match.Types = []string{"a"} }},
		"other receivers": {second: with(grant("two"), func(r *config.Rule) {
			r.Grant, r.Email = nil, &config.Email{To: config.StringList{"b@example.com"}, Subject: "s", Text: "t"}
		}), first: mail("a@example.com")},
	} {
		one := grant("one")
		if c.first != nil {
			c.first(&one)
		}
		_, problems := Compile(configuration(one, c.second), Options{})
		if err := problems.Err(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := ""
		for _, p := range problems {
			if p.Path == "rule[1].key" && p.Warning {
				got += p.Message
			}
		}
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
