package handlers

import (
	"context"
	"strings"
	"testing"

	"creel/config"
	"creel/event"
)

func TestGateO9CompileReportsEveryProblemAtOnce(t *testing.T) {
	t.Parallel()
	cfg := configuration(
		config.Rule{Name: "", Forward: forward("app")},
		config.Rule{Name: "twice", Forward: forward("ap")},
		config.Rule{Name: "twice", Forward: forward("app", "nowhere")},
		config.Rule{Name: "nothing"},
		config.Rule{Name: "glob", Match: config.Match{Types: []string{"ok", ""}}, Forward: forward("app")},
		config.Rule{Name: "source", Match: config.Match{Source: []string{"gem"}}, Forward: forward("app")},
		config.Rule{Name: "when", When: "bdy.x == 1", Forward: forward("app")},
		config.Rule{Name: "key", Key: "{sourc}", Forward: forward("app")},
		config.Rule{Name: "constant", Key: "always", Forward: forward("app")},
		config.Rule{Name: "path", Key: "{body..x}", Forward: forward("app")},
		config.Rule{Name: "go", Go: "unheard"},
		config.Rule{Name: "empty", Forward: forward()},
	)
	cfg.Sources[1].Forward = config.StringList{"audt"}
	cfg.Sources[1].Accounts = map[string]string{"acct.1": ""}
	_, problems := Compile(cfg, Options{})
	for path, want := range map[string]string{
		"rule[0].name":                "is missing",
		"rule[1].forward.to":          `there is no destination "ap" (did you mean app?)`,
		"rule[2].name":                `"twice" is the name of rule[1] already`,
		"rule[2].forward.to[1]":       `there is no destination "nowhere" (known: app, audit)`,
		"rule[3]":                     "does nothing",
		"rule[4].match.types[1]":      "is empty",
		"rule[5].match.source":        `there is no source "gem" (did you mean gen?)`,
		"rule[6].when":                "is no condition: line 1, column 1: unknown name bdy",
		"rule[7].key":                 "{sourc} is no name here",
		"rule[8].key":                 "is the same for every event",
		"rule[9].key":                 "empty step",
		"rule[10].go":                 `"unheard" is not registered`,
		"rule[11].forward.to":         "is missing",
		"source[1].forward":           `there is no destination "audt" (did you mean audit?)`,
		`source[1].accounts."acct.1"`: "names no tenant",
	} {
		found := false
		for _, p := range problems {
			found = found || (p.Path == path && strings.Contains(p.String(), want) && !p.Warning)
		}
		if !found {
			t.Errorf("no problem %q at %s in\n%v", want, path, problems)
		}
	}
	if len(problems) != 15 {
		t.Errorf("%d problems:\n%v", len(problems), problems)
	}
}

func TestASourceForwardAndARuleShareNoName(t *testing.T) {
	t.Parallel()
	cfg := configuration(config.Rule{Name: "forward gen", Forward: forward("app")})
	cfg.Sources[0].Forward = config.StringList{"audit"}
	_, problems := Compile(cfg, Options{})
	if len(problems) != 1 || problems[0].Path != "source[0].forward" {
		t.Errorf("problems %v", problems)
	}
}

func TestRegistryRefusesWhatCanNotBeCalled(t *testing.T) {
	t.Parallel()
	f := func(context.Context, Event) ([]event.Effect, error) { return nil, nil }
	r := NewRegistry()
	if err := r.Register("a", f); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]Func{"a": f, "": f, "b": nil} {
		if err := r.Register(name, f); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
	if names := r.Names(); len(names) != 1 || names[0] != "a" {
		t.Errorf("names %v", names)
	}
}
