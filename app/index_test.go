package app

import (
	"reflect"
	"strings"
	"testing"

	"creel/admin/page"
	"creel/config"
	"creel/event"
)

func TestAnIndexTakesSingleValues(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Sources = []config.Source{{Name: "s", Index: []string{"body.a", "body.n", "body.list", "body.none", "body.long", "header.X-Shop", "query.q"}}}
	all, problems := indexes(cfg)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	got := valuesOf(all["s"], event.Payload{Query: "q=1%202", Header: "X-Shop: demo",
		Body: []byte(`{"a":"cus_1","n":1152921506151679042,"list":[1],"long":"` + strings.Repeat("x", 257) + `"}`)})
	want := []event.IndexValue{{Field: "body.a", Value: "cus_1"}, {Field: "body.n", Value: "1152921506151679042"},
		{Field: "header.X-Shop", Value: "demo"}, {Field: "query.q", Value: "1 2"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := valuesOf(all["s"], event.Payload{Body: []byte("no JSON")}); len(got) != 0 {
		t.Errorf("%v of what is no JSON", got)
	}
}

func TestAnIndexThatFindsNothingIsAProblem(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Sources = []config.Source{{Name: "s", Index: []string{"body.a?", "id", "body..b", "body.fine"}}}
	_, problems := indexes(cfg)
	var at []string
	for _, p := range problems {
		at = append(at, p.Path)
	}
	if got := strings.Join(at, " "); got != "source[0].index[0] source[0].index[1] source[0].index[2]" {
		t.Errorf("problems at %s: %v", got, problems)
	}
}

// The page marks what is found by in a body: not what stands elsewhere, and not
// what is redacted.
func TestPlacesAreThoseOfTheBodyThatAreShown(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.Sources = []config.Source{{Name: "s", Index: []string{"body.list.1.a", `body.x\.y`, "body.card", "body.none", "header.X-Shop"}}}
	all, problems := indexes(cfg)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	got := placesOf(all["s"], event.Payload{Header: "X-Shop: demo", Body: []byte(`{"list":[{},{"a":7}],"x.y":true,"card":"[redacted]"}`)})
	want := []page.Place{{IndexValue: event.IndexValue{Field: "body.list.1.a", Value: "7"}, Steps: []string{"list", "1", "a"}},
		{IndexValue: event.IndexValue{Field: `body.x\.y`, Value: "true"}, Steps: []string{"x.y"}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
