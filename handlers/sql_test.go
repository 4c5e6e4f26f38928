package handlers

import (
	"reflect"
	"testing"

	"creel/config"
	"creel/event"
)

func TestStatementsGetTheirParams(t *testing.T) {
	t.Parallel()
	d := decided(t, config.Rule{Key: "{body.id}", SQL: &config.SQL{
		Statements: []string{"INSERT INTO app_a VALUES (:id, :who)", "DELETE FROM app_b WHERE id = :id"},
		Params:     map[string]string{"who": "{body.who?}", "id": "{body.id}"},
	}}, `{"id":"'; DROP TABLE event; --"}`)
	want := []event.Effect{event.SQL{Key: "'; DROP TABLE event; --", Rule: "rule",
		Statements: []string{"INSERT INTO app_a VALUES (:id, :who)", "DELETE FROM app_b WHERE id = :id"},
		Params:     []event.Field{{Name: "id", Value: "'; DROP TABLE event; --"}, {Name: "who", Value: ""}}}}
	if d.State != event.Done || !reflect.DeepEqual(d.Effects, want) {
		t.Errorf("%+v", d)
	}
	told(t, problemsOf(config.Rule{SQL: &config.SQL{}}), "rule[0].sql.statements", "is missing")
	told(t, problemsOf(config.Rule{SQL: &config.SQL{Statements: []string{"a", " "}}}), "rule[0].sql.statements[1]", "is empty")
	dead(t, decided(t, config.Rule{SQL: &config.SQL{Statements: []string{"x"}, Params: map[string]string{"id": "{body.id}"}}}, `{}`),
		"rule: sql: params: id: body.id: nothing stands there")
}
