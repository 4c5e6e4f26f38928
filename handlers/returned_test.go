package handlers

import (
	"context"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"creel/config"
	"creel/event"
)

func TestHandlersReturnEveryKindOfEffect(t *testing.T) {
	t.Parallel()
	floor := int64(0)
	rules := calling(t, time.Minute, nil, func(_ context.Context, e Event) ([]event.Effect, error) {
		grant := e.Grant("u_1", "credits", 100)
		grant.Floor = &floor
		step := e.State("a/b", "shipped", "")
		step.From = []string{"paid"}
		back := e.Reverse("other")
		back.Key = "back"
		return []event.Effect{
			e.State("a/b", "paid", "7"), step, e.Record("order", map[string]string{"b": "2", "a": "1"}), grant, back,
			e.SQL("UPDATE app_x SET a = :a", map[string]string{"a": "1"}), e.Email("Ann <ann@example.com>", "s", "t"), e.Forward("app"),
			event.Record{Key: "own", Rule: "another", Of: "order", Fields: []event.Field{{Name: "z"}, {Name: "y"}}},
		}, nil
	})
	d := rules.Decide(t.Context(), work(`{"id":1}`))
	want := []event.Effect{
		event.SetState{Key: "k/1", Rule: "go", Object: "gen//a%2Fb", To: "paid", Version: "7"},
		event.SetState{Key: "k/1", Rule: "go", Object: "gen//a%2Fb", To: "shipped", From: []string{"paid"}, OnRefuse: event.RefuseLater},
		event.Record{Key: "k/1", Rule: "go", Of: "order", Fields: []event.Field{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}}},
		event.Grant{Key: "k/1", Rule: "go", To: "u_1", Unit: "credits", Amount: 100, Floor: &floor},
		event.Grant{Key: "back", Rule: "go", Reverse: "other"},
		event.SQL{Key: "k/1", Rule: "go", Statements: []string{"UPDATE app_x SET a = :a"}, Params: []event.Field{{Name: "a", Value: "1"}}},
		event.Email{Key: "k/1", Rule: "go", To: "ann@example.com", Subject: "s", Text: "t"},
		event.Forward{Key: "k/1", Rule: "go", Destination: "app"},
		event.Record{Key: "own", Rule: "go", Of: "order", Fields: []event.Field{{Name: "y"}, {Name: "z"}}},
	}
	if d.State != event.Done || !reflect.DeepEqual(d.Effects, want) {
		t.Errorf("%+v", d)
	}
}

func TestWhatAHandlerReturnsIsChecked(t *testing.T) {
	t.Parallel()
	beyond := int64(math.MinInt64)
	for want, effect := range map[string]event.Effect{
		"names no kind of record":                     event.Record{},
		`has the field "a" twice`:                     event.Record{Of: "k", Fields: []event.Field{{Name: "a"}, {Name: "a"}}},
		"has a field without a name":                  event.Record{Of: "k", Fields: []event.Field{{}}},
		"says not whose balance":                      event.Grant{Amount: 1},
		"amount: 0 is not above 0":                    event.Grant{To: "t", Unit: "u"},
		"amount: 2305843009213693953 is more than":    event.Grant{To: "t", Unit: "u", Amount: event.MaxAmount + 1},
		"amount: -1 is not above 0":                   event.Grant{Reverse: "r", Amount: -1},
		"has a floor that is beyond":                  event.Grant{Reverse: "r", Floor: &beyond},
		"says not of which object":                    event.SetState{To: "a", Version: "1"},
		"names no state":                              event.SetState{Object: "o", Version: "1"},
		"has no version that orders it":               event.SetState{Object: "o", To: "a"},
		"has a version, or was fetched, beside":       event.SetState{Object: "o", To: "a", Version: "1", From: []string{"b"}},
		"its rule keeps no order":                     event.SetState{Object: "o", To: "a", Fetched: true},
		"says not what a refusal comes to":            event.SetState{Object: "o", To: "a", From: []string{"b"}, OnRefuse: "late"},
		"has no statement":                            event.SQL{},
		"to: is no mail address":                      event.Email{Subject: "s", Text: "t"},
		"subject: has a line break":                   event.Email{To: "a@example.com", Subject: "s\nBcc: b", Text: "t"},
		"says nothing":                                event.Email{To: "a@example.com", Subject: "s"},
		"effect 1: there is no destination \"other\"": event.Forward{Destination: "other"},
	} {
		rules := calling(t, time.Minute, nil, func(context.Context, Event) ([]event.Effect, error) { return []event.Effect{effect}, nil })
		if d := rules.Decide(t.Context(), work(`{"id":1}`)); d.State != event.Dead || !strings.Contains(d.Error, want) {
			t.Errorf("%s: %+v", want, d)
		}
	}
}

func TestDeliveriesOfAHandlerKeepTheLane(t *testing.T) {
	t.Parallel()
	registry := NewRegistry()
	if err := registry.Register("mine", func(_ context.Context, e Event) ([]event.Effect, error) {
		return []event.Effect{e.Forward("app"), e.Email("a@example.com", "s", "t"), event.SetState{Object: "o", To: "a", Fetched: true}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	rules := compiled(t, configuration(config.Rule{Name: "go", Go: "mine", OrderBy: "{object}", OnDead: "skip"}), Options{Registry: registry})
	d := rules.Decide(t.Context(), work(`{}`))
	want := []event.Effect{
		event.Forward{Key: "gen//evt_1/go", Rule: "go", Destination: "app", Lane: "gen//in_1", LaneSkip: true},
		event.Email{Key: "gen//evt_1/go", Rule: "go", To: "a@example.com", Subject: "s", Text: "t", Lane: "gen//in_1", LaneSkip: true},
		event.SetState{Key: "gen//evt_1/go", Rule: "go", Object: "o", To: "a", Fetched: true},
	}
	if d.State != event.Done || !reflect.DeepEqual(d.Effects, want) {
		t.Errorf("%+v", d)
	}
}
