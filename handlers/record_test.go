package handlers

import (
	"reflect"
	"testing"

	"creel/config"
	"creel/event"
)

func TestRecordHasTheExactTextsInOrder(t *testing.T) {
	t.Parallel()
	d := decided(t, config.Rule{Key: "{body.id}", Record: &config.Record{Kind: "order", Fields: map[string]string{
		"total": "{body.total}", "id": "{body.id}", "note": "{body.note?}", "label": "{type}: {body.id}", "object": "{body.who}",
	}}}, `{"id":9007199254740993,"total":10.50,"who":{"name":"a/b"}}`)
	want := []event.Effect{event.Record{Key: "9007199254740993", Rule: "rule", Of: "order", Fields: []event.Field{
		{Name: "id", Value: "9007199254740993"}, {Name: "label", Value: "invoice.paid: 9007199254740993"}, {Name: "note", Value: ""},
		{Name: "object", Value: `{"name":"a/b"}`}, {Name: "total", Value: "10.50"},
	}}}
	if d.State != event.Done || !reflect.DeepEqual(d.Effects, want) {
		t.Errorf("%+v", d)
	}
	dead(t, decided(t, config.Rule{Record: &config.Record{Kind: "order", Fields: map[string]string{"id": "{body.id}"}}}, `{}`),
		"rule: record: fields: id: body.id: nothing stands there")
}

func TestRecordIsChecked(t *testing.T) {
	t.Parallel()
	told(t, problemsOf(config.Rule{Record: &config.Record{}}), "rule[0].record.kind", "is missing")
	told(t, problemsOf(config.Rule{Record: &config.Record{Kind: "k", Fields: map[string]string{"a": "{bdy.x}"}}}), "rule[0].record.fields.a", "is no name here")
}

func TestEffectsOfARuleStandInTheOrderInWhichTheyApply(t *testing.T) {
	t.Parallel()
	d := decided(t, config.Rule{
		Record: &config.Record{Kind: "k"}, Grant: &config.Grant{To: "a", Unit: "u", Amount: "1"}, State: &config.SetState{To: "paid"},
		SQL: &config.SQL{Statements: []string{"x"}}, Email: &config.Email{To: []string{"a@example.com"}, Subject: "s", Text: "t"},
		Forward: forward("app"),
	}, `{}`)
	var kinds []string
	for _, effect := range d.Effects {
		kinds = append(kinds, effect.Kind())
		if effect.RuleName() != "rule" || effect.BusinessKey() != "gen//evt_1/rule" {
			t.Errorf("%+v", effect)
		}
	}
	if want := []string{"state", "record", "grant", "sql", "email", "forward"}; !reflect.DeepEqual(kinds, want) {
		t.Errorf("%v: %+v", kinds, d)
	}
}
