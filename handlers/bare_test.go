package handlers

import (
	"strings"
	"testing"

	"creel/config"
)

// A condition that is a value alone is told at check, and by the dead letter.
func TestABareValueIsNoCondition(t *testing.T) {
	t.Parallel()
	for when, warned := range map[string]bool{
		`body.data.object.amount_paid`:     true,
		`body["data"]`:                     true,
		`body.data?.object`:                true,
		`body.data.object.amount_paid > 0`: false,
		`not body.live`:                    false,
		`body.live == true`:                false,
		`body.live and body.id > 0`:        false,
		`any(body.list, # > 1)`:            false,
		`true`:                             false,
	} {
		cfg := config.Default()
		source := config.DefaultSource()
		source.Name = "gen"
		cfg.Sources = []config.Source{source}
		cfg.Rules = []config.Rule{{Name: "paid", When: when, Record: &config.Record{Kind: "x"}}}
		_, problems := Compile(cfg, Options{})
		found := false
		for _, p := range problems {
			found = found || p.Path == "rule[0].when" && p.Warning && strings.Contains(p.Message, "no comparison") && strings.Contains(p.Hint, when+" > 0")
		}
		if found != warned {
			t.Errorf("%s: %v", when, problems)
		}
	}
	_, err := evaluate(t, `body.data.object.amount_paid`, sample)
	if err == nil || !strings.Contains(err.Error(), "instead of true or false: compare it") {
		t.Errorf("the dead letter says %v", err)
	}
}

func TestNamesThatAreNearlyRight(t *testing.T) {
	t.Parallel()
	for when, want := range map[string]string{
		`headers["x"] == "a"`: "did you mean header?",
		`bodies.x == 1`:       "did you mean body?",
		`typ == "a"`:          "did you mean type?",
	} {
		_, problem := compileCondition(when)
		if problem == nil || !strings.HasPrefix(problem.Hint, want) {
			t.Errorf("%s: %+v", when, problem)
		}
	}
}
