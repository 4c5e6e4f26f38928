package handlers

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"creel/config"
	"creel/event"
	"creel/path"
)

// What a source hides is quoted by no error and no verdict, not of an owner's
// handler either, whatever it makes of it.
func TestGateO8ErrorsQuoteNothingHidden(t *testing.T) {
	t.Parallel()
	const number = "4111 1111 1111 1111, which is a number"
	hidden, err := path.ParseRedaction([]string{"body.card"})
	if err != nil {
		t.Fatal(err)
	}
	registry := NewRegistry()
	if err := registry.Register("quotes", func(_ context.Context, e Event) ([]event.Effect, error) {
		return nil, fmt.Errorf("what is %q, and %s?", number, number[:30])
	}); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Sources = []config.Source{{Name: "shop"}}
	cfg.Rules = []config.Rule{{Name: "r", Match: config.Match{Source: config.StringList{"shop"}}, Go: "quotes"}}
	w := work(fmt.Sprintf(`{"card":[%q],"note":"fine"}`, number))
	w.Key.Source = "shop"
	for name, o := range map[string]Options{"hidden": {Registry: registry, Hidden: func(source string, p event.Payload) []string {
		if source != "shop" {
			t.Errorf("asked for %q", source)
		}
		return hidden.Texts(p)
	}}, "nothing hidden": {Registry: registry}} {
		d := compiled(t, cfg, o).Decide(t.Context(), w)
		if d.Error == "" || len(d.Verdicts) != 1 {
			t.Fatalf("%s: %+v", name, d)
		}
		if said := d.Error + d.Verdicts[0].Reason; strings.Contains(said, "4111") != (name != "hidden") || !strings.Contains(said, "what is") {
			t.Errorf("%s: %s", name, said)
		}
	}
}
