package handlers

import (
	"reflect"
	"testing"

	"creel/config"
	"creel/event"
)

func TestStateHasTheVersionOfTheEventByDefault(t *testing.T) {
	t.Parallel()
	d := decided(t, config.Rule{State: &config.SetState{To: "{body.status}", Fields: map[string]string{"plan": "{body.plan}"}}}, `{"status":"active","plan":7}`)
	want := []event.Effect{event.SetState{
		Key: "gen//evt_1/rule", Rule: "rule", Object: "gen//in_1", To: "active", Version: "17", Fields: []event.Field{{Name: "plan", Value: "7"}},
	}}
	if d.State != event.Done || !reflect.DeepEqual(d.Effects, want) {
		t.Errorf("%+v", d)
	}
}

func TestStateOfAnObjectOfItsOwn(t *testing.T) {
	t.Parallel()
	rule := config.Rule{State: &config.SetState{Object: "order/{body.id}", To: "paid", Version: "{body.at}"}}
	for version, want := range map[string]string{
		`"2026-01-02T03:04:05Z"`: "2026-01-02T03:04:05Z", `12.50`: "12.50", `"-3"`: "-3", `123456789012345678901234567890`: "123456789012345678901234567890",
		`"yesterday"`: "", `""`: "", `null`: "", `true`: "", `1e3`: "", `{}`: "",
	} {
		d := decided(t, rule, `{"id":"a/b","at":`+version+`}`)
		if want == "" {
			dead(t, d, "rule: state: no version; configure [rule.fetch]")
			continue
		}
		state, _ := d.Effects[0].(event.SetState)
		if state.Version != want || state.Object != "order/a%2Fb" || state.Fetchable || state.Fetched {
			t.Errorf("%s: %+v", version, d)
		}
	}
	dead(t, decided(t, rule, `{"id":1}`), "rule: state: no version; configure [rule.fetch]")
	dead(t, decided(t, rule, `{"at":1}`), "rule: state: object: body.id: nothing stands there")
	dead(t, decided(t, rule, `{"id":1,"at":1,"at":2}`), "rule: state: version: body.at: the member is written twice")
	dead(t, decided(t, config.Rule{State: &config.SetState{To: "{body.to}"}}, `{"to":""}`), "rule: state: to: is empty for this event")
}

func TestCompareAndSetHasNoVersion(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]event.OnRefuse{"": event.RefuseLater, "retry": event.RefuseLater, "stale": event.RefuseStale, "dead": event.RefuseDead} {
		d := decided(t, config.Rule{Key: "{body.id}", State: &config.SetState{To: "paid", From: []string{"", "open"}, OnRefuse: written}}, `{"id":1}`)
		effect := []event.Effect{event.SetState{Key: "1", Rule: "rule", Object: "gen//in_1", To: "paid", From: []string{"", "open"}, OnRefuse: want}}
		if d.State != event.Done || !reflect.DeepEqual(d.Effects, effect) {
			t.Errorf("%q: %+v", written, d)
		}
	}
}

func TestStateIsChecked(t *testing.T) {
	t.Parallel()
	fetch := &config.Fetch{URL: "https://api.example.com/{object}"}
	for _, c := range []struct {
		state      config.SetState
		fetch      *config.Fetch
		path, want string
	}{
		{config.SetState{}, nil, "to", "is missing"},
		{config.SetState{To: "a", Object: "one"}, nil, "object", "is the same for every event"},
		{config.SetState{To: "a", Version: "1"}, nil, "version", "is the same for every event"},
		{config.SetState{To: "a", Version: "{verson}"}, nil, "version", "is no name here"},
		{config.SetState{To: "a", Version: "{version}", From: []string{"b"}}, nil, "version", "stands beside from"},
		{config.SetState{To: "a", From: []string{}}, nil, "from", "names no state"},
		{config.SetState{To: "a", From: []string{"b", "b"}}, nil, "from[1]", "is named twice"},
		{config.SetState{To: "a", OnRefuse: "stale"}, nil, "on_refuse", "goes with from"},
		{config.SetState{To: "a", From: []string{"b"}, OnRefuse: "late"}, nil, "on_refuse", "one of: retry, stale, dead"},
		{config.SetState{To: "a", From: []string{"b"}}, fetch, "from", "stands beside [rule.fetch]"},
	} {
		told(t, problemsOf(config.Rule{State: &c.state, Fetch: c.fetch}), "rule[0].state."+c.path, c.want)
	}
}
