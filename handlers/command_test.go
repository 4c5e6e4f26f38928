package handlers

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"creel/config"
	"creel/event"
)

// outside is a configuration with a destination of each kind.
func outside(rules ...config.Rule) *config.Config {
	cfg := configuration(rules...)
	cfg.Destinations["print"] = config.Destination{Command: []string{"/bin/true"}}
	cfg.Destinations["archive"] = config.Destination{Folder: "/srv/archive"}
	return cfg
}

func outsideDecided(t testing.TB, r config.Rule, w event.Work) Decision {
	t.Helper()
	r.Name = "rule"
	return compiled(t, outside(r), Options{}).Decide(t.Context(), w)
}

func TestRunIsOneEffectForEachCommand(t *testing.T) {
	t.Parallel()
	d := outsideDecided(t, config.Rule{Run: &config.Run{To: []string{"print"}, Fields: map[string]string{
		"order": "{body.id}", "Note": "{body.note}", "none": "{body.none?}",
	}}}, work(`{"id":9007199254740993,"note":"$(rm -rf /)"}`))
	want := []event.Effect{event.Run{Key: "gen//evt_1/rule", Rule: "rule", Destination: "print", Fields: []event.Field{
		{Name: "Note", Value: "$(rm -rf /)"}, {Name: "none"}, {Name: "order", Value: "9007199254740993"},
	}}}
	if d.State != event.Done || !reflect.DeepEqual(d.Effects, want) {
		t.Errorf("%+v", d)
	}
	dead(t, outsideDecided(t, config.Rule{Run: &config.Run{To: []string{"print"}, Fields: map[string]string{"a": "{body.b}"}}}, work(`{}`)),
		"run: fields: a: body.b: nothing stands there")
}

func TestFileIsOneEffectForEachFolder(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"evt_1":              "gen/evt_1.json",
		"a/../../etc/passwd": "gen/a%2F..%2F..%2Fetc%2Fpasswd.json",
		"a%2Fb":              "gen/a%252Fb.json",
		"nul\x00\n\u2028":    "gen/nul%00%0A%E2%80%A8.json",
		"\xff":               "gen/%FF.json",
		"ü \uFFFD":           "gen/ü \uFFFD.json",
	} {
		w := work(`{}`)
		w.Key.ID = id
		d := outsideDecided(t, config.Rule{File: &config.WriteFile{To: []string{"archive"}, Path: "{source}/{id}.json"}}, w)
		effect := event.File{Key: w.Key.String() + "/rule", Rule: "rule", Destination: "archive", Path: want}
		if d.State != event.Done || !reflect.DeepEqual(d.Effects, []event.Effect{effect}) {
			t.Errorf("%q: %+v", id, d)
		}
	}
}

// A value that is a whole part of the path leads nowhere either.
func TestAValueIsNoFolder(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{"..": "%2E./body", ".": "%2E/body", ".creel-x": "%2Ecreel-x/body", "...": ".../body"} {
		w := work(`{}`)
		w.Key.ID = id
		d := outsideDecided(t, config.Rule{File: &config.WriteFile{To: []string{"archive"}, Path: "{id}/body"}}, w)
		if len(d.Effects) != 1 || d.Effects[0].(event.File).Path != want {
			t.Errorf("%q: %+v", id, d)
		}
	}
	w := work(`{"long":"` + strings.Repeat("x", 256) + `","empty":""}`)
	rule := func(path string) config.Rule {
		return config.Rule{File: &config.WriteFile{To: []string{"archive"}, Path: path}}
	}
	dead(t, outsideDecided(t, rule("{body.long}"), w), "file: path: a part of it has more than 255 bytes")
	dead(t, outsideDecided(t, rule("a/{body.empty?}/b"), w), "file: path: a part of it is empty")
	dead(t, outsideDecided(t, rule("a/{body.empty}"), w), "file: path: body.empty: nothing stands there")
}

func TestEffectsGoToTheirKindOfDestination(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]config.Rule{
		`rule[0].forward.to: "print" has a command, and this wants one with a url (write [rule.run] with to = "print" to run it)`:   {Forward: forward("print")},
		`rule[0].forward.to: "archive" has a folder, and this wants one with a url (write [rule.file] with to = "archive" and path`: {Forward: forward("archive")},
		`rule[0].run.to: "app" has a url, and this wants one with a command (write [rule.forward] with to = "app"`:                  {Run: &config.Run{To: []string{"app"}}},
		`rule[0].file.to: "app" has a url, and this wants one with a folder`:                                                        {File: &config.WriteFile{To: []string{"app"}, Path: "{id}"}},
		`rule[0].run.to: is missing (name a destination with a command)`:                                                            {Run: &config.Run{}},
		`rule[0].run.to: there is no destination "prnt" (did you mean print?)`:                                                      {Run: &config.Run{To: []string{"prnt"}}},
		`rule[0].run.fields.a-b: can not stand in the name of a variable`:                                                           {Run: &config.Run{To: []string{"print"}, Fields: map[string]string{"a-b": "x"}}},
		`rule[0].file.path: is missing`:            {File: &config.WriteFile{To: []string{"archive"}}},
		`rule[0].file.path: a part of it is empty`: {File: &config.WriteFile{To: []string{"archive"}, Path: "/{id}"}},
		`rule[0].file.path: a part of it is ".."`:  {File: &config.WriteFile{To: []string{"archive"}, Path: "../{id}"}},
		`rule[0].file.path: is the same for every`: {File: &config.WriteFile{To: []string{"archive"}, Path: "events.json"}},
	} {
		r.Name = "rule"
		_, problems := Compile(outside(r), Options{})
		if len(problems.Faults()) != 1 || !strings.Contains(problems.Error(), want) {
			t.Errorf("want %q, got\n%v", want, problems)
		}
	}
}

func TestHandlersReturnRunsAndFiles(t *testing.T) {
	t.Parallel()
	decide := func(effect func(Event) event.Effect) Decision {
		registry := NewRegistry()
		if err := registry.Register("go", func(_ context.Context, e Event) ([]event.Effect, error) { return []event.Effect{effect(e)}, nil }); err != nil {
			t.Fatal(err)
		}
		cfg := outside(config.Rule{Name: "rule", Go: "go"})
		cfg.Worker.Timeout = config.Duration(time.Minute)
		return compiled(t, cfg, Options{Registry: registry}).Decide(t.Context(), work(`{}`))
	}
	for _, effect := range []func(Event) event.Effect{
		func(e Event) event.Effect { return e.Run("print", map[string]string{"b": "2", "a": "1"}) },
		func(e Event) event.Effect { return e.File("archive", "a/b.json") },
	} {
		if d := decide(effect); d.State != event.Done || len(d.Effects) != 1 || d.Effects[0].BusinessKey() != "gen//evt_1/rule" {
			t.Errorf("%+v", d)
		}
	}
	for want, effect := range map[string]event.Effect{
		`"app" has a url, and this wants one with a command`: event.Run{Destination: "app"},
		`"print" has a command, and this wants one with a`:   event.File{Destination: "print", Path: "x"},
		"path: a part of it is":                              event.File{Destination: "archive", Path: "../x"},
		"has two fields for CREEL_FIELD_A":                   event.Run{Destination: "print", Fields: []event.Field{{Name: "a"}, {Name: "A"}}},
		"has a field whose name is that of no variable":      event.Run{Destination: "print", Fields: []event.Field{{Name: "a=b"}}},
		"there is no destination":                            event.File{Destination: "other", Path: "x"},
	} {
		dead(t, decide(func(Event) event.Effect { return effect }), want)
	}
}
