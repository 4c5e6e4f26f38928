package handlers

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"creel/config"
	"creel/event"
	"creel/path"
)

// The conditions of docs/rules.md compile and hold as they say.
func TestTheConditionsOfTheDocumentationHold(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Functions() {
		if !strings.Contains(string(page), name) {
			t.Errorf("docs/rules.md does not name the function %s", name)
		}
	}
	_, block, _ := strings.Cut(string(page), "```\n(body?.order")
	block, _, _ = strings.Cut("(body?.order"+block, "```")
	bodies := []string{
		`{"order":{"total":150,"paid":true},"livemode":true,"items":[{"sku":"A1"}]}`,
		`{"livemode":false,"items":[]}`,
	}
	for line := range strings.Lines(block) {
		text, _, _ := strings.Cut(strings.TrimRight(line, "\n"), "  ")
		condition, problem := compileCondition(text)
		if problem != nil {
			t.Errorf("%s: %s", text, problem.Message)
			continue
		}
		for i, body := range bodies {
			work := event.Work{Event: event.Event{Key: event.Key{Source: "s", ID: "1"}, Type: []string{"invoice.paid", "other"}[i]},
				Payload: event.Payload{Body: []byte(body), Header: []string{"X-Kind: b2b\n", "X-Kind: b2c\n"}[i]}}
			s := &subject{work: work, doc: path.NewDocument(work.Payload)}
			held, err := condition.holds(t.Context(), s)
			if err != nil || held != (i == 0) {
				t.Errorf("%s on body %d: %t, %v", text, i, held, err)
			}
		}
	}
}

// Every configuration in docs/rules.md means something, and says so for an
// event of the kind that it speaks of.
func TestTheRulesOfTheDocumentationApply(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```toml\n")[1:]
	if len(blocks) < 9 {
		t.Fatalf("%d blocks", len(blocks))
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		cfg := config.Default()
		if problems := config.DecodeStrict([]byte(block), cfg); len(problems) > 0 {
			t.Errorf("%s\n%v", block, problems)
			continue
		}
		cfg.Sources = []config.Source{{Name: "shop"}, {Name: "stripe"}}
		cfg.SMTP.Host = "127.0.0.1:25"
		cfg.Destinations = map[string]config.Destination{"app": {}, "ledger": {},
			"print-label": {Command: []string{"/bin/true"}}, "archive": {Folder: "archive"}}
		rules, problems := Compile(cfg, Options{})
		if len(problems) > 0 {
			t.Errorf("%s\n%v", block, problems)
			continue
		}
		for _, r := range cfg.Rules {
			source, _, _ := strings.Cut(r.Match.Source[0], "*")
			work := event.Work{
				Event: event.Event{Key: event.Key{Source: source, ID: "1"}, Type: strings.ReplaceAll(r.Match.Types[0], "*", "x"), Object: "o", Version: "7"},
				Payload: event.Payload{Body: []byte(`{"order":{"id":5,"total":200,"customer":"c","email":"c@example.com","name":"C"},
					"data":{"object":{"status":"active","plan":{"id":"p"}}}}`)},
			}
			if d := rules.Decide(t.Context(), work); d.State != event.Done || len(d.Effects) == 0 {
				t.Errorf("%s: %+v", r.Name, d)
			}
		}
	}
}

// The example that ships with all that is in it switched on compiles too.
func TestTheRulesOfTheExampleMeanSomething(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../config.example.toml")
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	if problems := config.DecodeStrict(regexp.MustCompile(`(?m)^#([^# \n])`).ReplaceAll(text, []byte("$1")), cfg); len(problems) > 0 {
		t.Fatal(problems)
	}
	registry := NewRegistry()
	if err := registry.Register("my-handler", func(context.Context, Event) ([]event.Effect, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	if _, problems := Compile(cfg, Options{Registry: registry}); len(problems) > 0 {
		t.Error(problems)
	}
}
