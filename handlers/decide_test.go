package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"creel/config"
	"creel/event"
	"creel/path"
)

func TestBugHTTP21NoRuleIsIgnored(t *testing.T) {
	t.Parallel()
	d := decided(t, config.Rule{Name: "r", Match: config.Match{Types: []string{"charge.*"}}}, `{}`)
	if d.State != event.Ignored || len(d.Effects) != 0 || !strings.Contains(d.Error, "no rule") {
		t.Errorf("%+v", d)
	}
	if len(d.Verdicts) != 1 || d.Verdicts[0].Decision != event.Skipped || d.Verdicts[0].Seq != 7 || d.Verdicts[0].Run != 2 {
		t.Errorf("verdicts %+v", d.Verdicts)
	}
}

func TestRulesMatchBySourceAndType(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		match config.Match
		want  bool
	}{
		{config.Match{}, true},
		{config.Match{Types: []string{"*"}}, true},
		{config.Match{Types: []string{"charge.*", "invoice.*"}}, true},
		{config.Match{Types: []string{"invoice"}}, false},
		{config.Match{Source: []string{"gen"}}, true},
		{config.Match{Source: []string{"g*"}, Types: []string{"*.paid"}}, true},
		{config.Match{Source: []string{"gh"}}, false},
	} {
		d := decided(t, config.Rule{Match: c.match}, `{}`)
		if (d.State == event.Done) != c.want {
			t.Errorf("%+v: %+v", c.match, d)
		}
	}
}

func TestForwardMakesOneEffectADestination(t *testing.T) {
	t.Parallel()
	d := decided(t, config.Rule{Name: "to both/%", Forward: forward("app", "audit")}, `{}`)
	want := []event.Effect{
		event.Forward{Key: "gen//evt_1/to both%2F%25", Rule: "to both/%", Destination: "app"},
		event.Forward{Key: "gen//evt_1/to both%2F%25", Rule: "to both/%", Destination: "audit"},
	}
	if d.State != event.Done || d.Error != "" || !reflect.DeepEqual(d.Effects, want) {
		t.Errorf("%+v", d)
	}
	if len(d.Verdicts) != 1 || d.Verdicts[0].Decision != event.Applied || d.Verdicts[0].Rule != "to both/%" {
		t.Errorf("verdicts %+v", d.Verdicts)
	}
}

func TestSourceForwardIsARule(t *testing.T) {
	t.Parallel()
	cfg := configuration()
	cfg.Sources[0].Forward = config.StringList{"app"}
	rules := compiled(t, cfg, Options{})
	d := rules.Decide(t.Context(), work(`not even json`))
	if d.State != event.Done || len(d.Effects) != 1 || d.Effects[0].BusinessKey() != "gen//evt_1/forward gen" {
		t.Errorf("%+v", d)
	}
	other := work(`{}`)
	other.Key.Source = "gh"
	if d := rules.Decide(t.Context(), other); d.State != event.Ignored {
		t.Errorf("another source: %+v", d)
	}
}

func TestBugHTTP11BigIntegersStayApart(t *testing.T) {
	t.Parallel()
	r := config.Rule{Key: "{source}/{body.id}"}
	one := decided(t, r, `{"id":9007199254740993,"type":"t"}`)
	two := decided(t, r, `{"id":9007199254740992,"type":"t"}`)
	if one.Effects[0].BusinessKey() != "gen/9007199254740993" || two.Effects[0].BusinessKey() != "gen/9007199254740992" {
		t.Errorf("%v and %v", one.Effects, two.Effects)
	}
}

func TestBugSIG24FormBodyIsUnwrapped(t *testing.T) {
	t.Parallel()
	rules := compiled(t, configuration(config.Rule{
		Name: "r", When: `body.zen == "a+b c" && form.payload startsWith "{"`, Key: "{body.id}/{body.zen}", Forward: forward("app"),
	}), Options{})
	w := work("payload=%7B%22id%22%3A%22d-8%22%2C%22zen%22%3A%22a%2Bb+c%22%7D")
	w.Part = "form.payload"
	if d := rules.Decide(t.Context(), w); d.State != event.Done || d.Effects[0].BusinessKey() != "d-8/a+b c" {
		t.Errorf("%+v", d)
	}
}

func TestPartOfARequestIsItsBody(t *testing.T) {
	t.Parallel()
	rules := compiled(t, configuration(config.Rule{Name: "r", When: `body.n == 2`, Key: "{body.id}", Forward: forward("app")}), Options{})
	w := work(`[{"id":"a","n":1},{"id":"b","n":2}]`)
	w.Part = "body.1"
	if d := rules.Decide(t.Context(), w); d.State != event.Done || d.Effects[0].BusinessKey() != "b" {
		t.Errorf("%+v", d)
	}
	w.Part = "body.0"
	if d := rules.Decide(t.Context(), w); d.State != event.Ignored || d.Error != "no rule's condition holds" {
		t.Errorf("%+v", d)
	}
}

func TestBugS28BracesOfAPayloadStayLiteral(t *testing.T) {
	t.Parallel()
	d := decided(t, config.Rule{Key: "k-{body.x}"}, `{"x":"{{body.secret}}{id}","secret":"hidden"}`)
	if d.State != event.Done || d.Effects[0].BusinessKey() != "k-{{body.secret}}{id}" {
		t.Errorf("%+v", d)
	}
}

func TestErrorsOfAnEventAreDeadAtOnceAndNameThePlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ when, key, body, want string }{
		{"body.a.b > 1", "", `{"a":{}}`, "rule: when: body.a.b: nothing stands there"},
		{"", "{body.a.b}", `{"a":{}}`, "rule: key: body.a.b: nothing stands there"},
		{"", "{tenant}", `{}`, "rule: key: tenant: nothing stands there"},
		{"", "{body.id}", `{"id":1,"id":2}`, "rule: key: body.id: the member is written twice"},
		{"body.id == 1", "", `{"id":1,"id":2}`, "rule: when: body.id: the member is written twice"},
		{"", "{body.id}", `{"id":1`, "rule: key: body.id: the body is not valid JSON"},
		{"", "{body.id}", strings.Repeat("[", 100_000), "rule: key: body.id: the body is nested deeper than 512 levels"},
		{"body.id > 1", "", `{"id":"secret"}`, "invalid operation: string > int"},
		{"", "{body.id}", `{"id":""}`, "rule: key: body.id: nothing stands there"},
	} {
		d := decided(t, config.Rule{When: c.when, Key: c.key}, c.body)
		if d.State != event.Dead || !strings.Contains(d.Error, c.want) || len(d.Effects) != 0 || d.Rule != "rule" {
			t.Errorf("%s%s of %.40s: %+v", c.when, c.key, c.body, d)
		}
		if strings.Contains(d.Error, "secret") {
			t.Errorf("the error quotes the payload: %s", d.Error)
		}
		if len(d.Verdicts) != 1 || d.Verdicts[0].Decision != event.Failed {
			t.Errorf("verdicts %+v", d.Verdicts)
		}
	}
}

func TestAccountsMapToTenants(t *testing.T) {
	t.Parallel()
	cfg := configuration(config.Rule{Name: "r", When: `tenant != "none"`, Key: "{tenant}/{id}", Forward: forward("app")})
	cfg.Sources[0].Accounts = map[string]string{"acct_1": "acme", "": "own"}
	rules := compiled(t, cfg, Options{})
	for account, key := range map[string]string{"acct_1": "acme/evt_1", "": "own/evt_1"} {
		w := work(`{}`)
		w.Key.Account = account
		if d := rules.Decide(t.Context(), w); d.State != event.Done || d.Effects[0].BusinessKey() != key {
			t.Errorf("%q: %+v", account, d)
		}
	}
	w := work(`{}`)
	w.Key.Account, w.Tenant = "acct_2", "acme" // a tenant that was stored once is no authority
	w.Type = "no rule knows it"
	if d := rules.Decide(t.Context(), w); d.State != event.Dead || !strings.Contains(d.Error, `account "acct_2"`) {
		t.Errorf("an unknown account: %+v", d)
	}
}

func TestRulesOfAnEventApplyTogether(t *testing.T) {
	t.Parallel()
	rules := compiled(t, configuration(
		config.Rule{Name: "good", Forward: forward("app")},
		config.Rule{Name: "not this", When: "false", Forward: forward("app")},
		config.Rule{Name: "bad", When: "body.x == 1", Forward: forward("audit")},
	), Options{})
	d := rules.Decide(t.Context(), work(`{}`))
	if d.State != event.Dead || d.Rule != "bad" || len(d.Effects) != 0 {
		t.Errorf("%+v", d)
	}
	var got []event.Decision
	for _, v := range d.Verdicts {
		got = append(got, v.Decision)
	}
	if !reflect.DeepEqual(got, []event.Decision{event.Later, event.Skipped, event.Failed}) {
		t.Errorf("verdicts %+v", d.Verdicts)
	}
	if d := rules.Decide(t.Context(), work(`{"x":1}`)); d.State != event.Done || len(d.Effects) != 2 || len(d.Verdicts) != 3 {
		t.Errorf("%+v", d)
	}
}

// calling makes rules with one Go handler.
func calling(t testing.TB, timeout time.Duration, panicked func(Panic), f Func) *Rules {
	t.Helper()
	registry := NewRegistry()
	if err := registry.Register("mine", f); err != nil {
		t.Fatal(err)
	}
	cfg := configuration(config.Rule{Name: "go", Go: "mine", Key: "k/{body.id}"})
	cfg.Worker.Timeout = config.Duration(timeout)
	return compiled(t, cfg, Options{Registry: registry, Panicked: panicked})
}

func TestGoHandlerReturnsEffects(t *testing.T) {
	t.Parallel()
	rules := calling(t, time.Minute, nil, func(_ context.Context, e Event) ([]event.Effect, error) {
		id, err := e.Text("body.id")
		if err != nil || id != "9007199254740993" || e.Rule() != "go" || e.Type != "invoice.paid" {
			return nil, Permanent(fmt.Errorf("id %q, %w", id, err))
		}
		if _, err := e.Text("body.none"); !errors.Is(err, path.ErrMissing) {
			return nil, Permanent(err)
		}
		if none, err := e.Text("body.none?"); err != nil || none != "" {
			return nil, Permanent(err)
		}
		var decoded struct{ ID json.Number }
		if err := e.Decode(&decoded); err != nil {
			return nil, err
		}
		body, err := e.Body()
		clear(body) // the handler's own copy
		return []event.Effect{e.Forward("app"), event.Forward{Key: "own/" + decoded.ID.String(), Destination: "audit", Claimed: true}}, err
	})
	w := work(`{"id":9007199254740993}`)
	d := rules.Decide(t.Context(), w)
	want := []event.Effect{
		event.Forward{Key: "k/9007199254740993", Rule: "go", Destination: "app"},
		event.Forward{Key: "own/9007199254740993", Rule: "go", Destination: "audit"},
	}
	if d.State != event.Done || !reflect.DeepEqual(d.Effects, want) {
		t.Errorf("%+v", d)
	}
	if string(w.Body) != `{"id":9007199254740993}` {
		t.Errorf("the handler changed the body to %q", w.Body)
	}
}

func TestGateA7HandlerErrorsAreTransientUnlessPermanent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want event.State
	}{
		{errors.New("the database is away"), event.Pending},
		{fmt.Errorf("wrapped: %w", Permanent(errors.New("no such plan"))), event.Dead},
		{Permanent(nil), event.Done},
	} {
		rules := calling(t, time.Minute, nil, func(context.Context, Event) ([]event.Effect, error) { return nil, c.err })
		d := rules.Decide(t.Context(), work(`{"id":1}`))
		if d.State != c.want || d.Interrupted || (c.err != nil && d.Error != "go: go: "+c.err.Error()) {
			t.Errorf("%v: %+v", c.err, d)
		}
	}
}

func TestAPermanentFailureWinsOverATransientOne(t *testing.T) {
	t.Parallel()
	rules := calling(t, time.Minute, nil, func(context.Context, Event) ([]event.Effect, error) { return nil, errors.New("away") })
	failing := compiled(t, configuration(config.Rule{Name: "bad", When: "body.none", Forward: forward("app")}), Options{})
	rules.rules = append(rules.rules, failing.rules...)
	d := rules.Decide(t.Context(), work(`{"id":1}`))
	if d.State != event.Dead || d.Rule != "bad" || len(d.Verdicts) != 2 || d.Verdicts[0].Decision != event.Later || d.Verdicts[1].Decision != event.Failed {
		t.Errorf("%+v", d)
	}
}

func TestGateA8PanicsAreTransientAndKeepTheirStackOut(t *testing.T) {
	t.Parallel()
	var seen []Panic
	rules := calling(t, time.Minute, func(p Panic) { seen = append(seen, p) },
		func(context.Context, Event) ([]event.Effect, error) { panic("poison") })
	d := rules.Decide(t.Context(), work(`{"id":1}`))
	if d.State != event.Pending || d.Error != "go: go: panic: poison" || strings.Contains(d.Error, "goroutine") {
		t.Errorf("%+v", d)
	}
	if len(seen) != 1 || seen[0].Rule != "go" || seen[0].Event.ID != "evt_1" || !strings.Contains(string(seen[0].Stack), "decide_test.go") {
		t.Errorf("the log got %+v", seen)
	}
	nothing := calling(t, time.Minute, nil, func(context.Context, Event) ([]event.Effect, error) { panic(nil) })
	if d := nothing.Decide(t.Context(), work(`{"id":1}`)); d.State != event.Pending || d.Error == "" {
		t.Errorf("panic(nil): %+v", d)
	}
}

func TestAHandlerThatHangsIsLeftBehind(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	rules := calling(t, 5*time.Millisecond, nil, func(context.Context, Event) ([]event.Effect, error) {
		<-release
		return nil, nil
	})
	rules.timeout = time.Millisecond
	for range 100 * maxRunning { // a busy machine may end a turn before the call
		running := len(rules.rules[0].running)
		d := rules.Decide(t.Context(), work(`{"id":1}`))
		if d.State != event.Pending || d.Interrupted {
			t.Fatalf("%+v", d)
		}
		if strings.Contains(d.Error, "too many handlers") {
			if running != maxRunning {
				t.Fatalf("%d handlers: %s", running, d.Error)
			}
			return
		}
	}
	t.Fatal("no call was refused")
}

func TestAStopInterruptsWithoutADecision(t *testing.T) {
	t.Parallel()
	started := make(chan struct{})
	rules := calling(t, time.Minute, nil, func(ctx context.Context, _ Event) ([]event.Effect, error) {
		close(started)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	if d := rules.Decide(ctx, work(`{"id":1}`)); d.State != event.Pending || (!d.Interrupted && !strings.Contains(d.Error, "canceled")) {
		t.Errorf("%+v", d)
	}
	if d := rules.Decide(ctx, work(`{"id":1}`)); !d.Interrupted || len(d.Verdicts) != 0 {
		t.Errorf("stopped before: %+v", d)
	}
}

type strange struct{}

func (strange) Kind() string        { return "strange" }
func (strange) BusinessKey() string { return "x" }
func (strange) RuleName() string    { return "x" }

func TestEffectsOfAHandlerAreChecked(t *testing.T) {
	t.Parallel()
	for want, effect := range map[string]event.Effect{
		"effect 1: is nil": nil,
		`effect 1: there is no destination "nowhere"`: event.Forward{Destination: "nowhere"},
		"effect 1: is of a kind that is not known":    strange{},
	} {
		rules := calling(t, time.Minute, nil, func(context.Context, Event) ([]event.Effect, error) { return []event.Effect{effect}, nil })
		if d := rules.Decide(t.Context(), work(`{"id":1}`)); d.State != event.Dead || !strings.Contains(d.Error, want) {
			t.Errorf("%v: %+v", effect, d)
		}
	}
}

func TestDecideIsRepeatable(t *testing.T) {
	t.Parallel()
	body, err := os.ReadFile("testdata/invoice.json")
	if err != nil {
		t.Fatal(err)
	}
	rules := compiled(t, configuration(config.Rule{
		Name: "r", When: `any(body.data.object.lines, .amount > 100) && body.data.object?.paid`, Key: "{body.data.object.id}", Forward: forward("app", "audit"),
	}), Options{})
	first := rules.Decide(t.Context(), work(string(body)))
	if first.State != event.Done {
		t.Fatalf("%+v", first)
	}
	for range 20 {
		if again := rules.Decide(t.Context(), work(string(body))); !reflect.DeepEqual(first, again) {
			t.Fatalf("%+v, then %+v", first, again)
		}
	}
}

func TestDecideByManyAtOnce(t *testing.T) {
	t.Parallel()
	rules := compiled(t, configuration(config.Rule{
		Name: "r", When: `any(body.list, # == body.n) && len(map(body.list, string(#) + "x")) == 3`, Key: "{body.n}", Forward: forward("app"),
	}), Options{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				n := i%3 + 1
				d := rules.Decide(t.Context(), work(fmt.Sprintf(`{"n":%d,"list":[1,2,3]}`, n)))
				if d.State != event.Done || d.Effects[0].BusinessKey() != fmt.Sprint(n) {
					t.Errorf("%d: %+v", n, d)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkDecide(b *testing.B) {
	body, err := os.ReadFile("testdata/invoice.json")
	if err != nil {
		b.Fatal(err)
	}
	for name, r := range map[string]config.Rule{
		"forward":   {Name: "r", Forward: forward("app")},
		"condition": {Name: "r", When: `body.data.object.amount_paid > 0`, Key: "{body.data.object.id}", Forward: forward("app")},
	} {
		b.Run(name, func(b *testing.B) {
			rules := compiled(b, configuration(r), Options{})
			w := work(string(body))
			b.ReportAllocs()
			for b.Loop() {
				if d := rules.Decide(b.Context(), w); d.State != event.Done {
					b.Fatal(d)
				}
			}
		})
	}
}

func TestUnmatchedSaysBeforehandWhatDecideWouldSay(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	source := config.DefaultSource()
	source.Name = "s"
	mapped := config.DefaultSource()
	mapped.Name, mapped.Accounts = "mapped", map[string]string{"a": "tenant"}
	cfg.Sources = []config.Source{source, mapped}
	destination := config.DefaultDestination()
	cfg.Destinations["app"] = destination
	cfg.Rules = []config.Rule{{Name: "paid", Match: config.Match{Source: config.StringList{"s"}, Types: []string{"invoice.*"}},
		Forward: &config.Forward{To: config.StringList{"app"}}}}
	rules, problems := Compile(cfg, Options{})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		source, kind string
		want         bool
	}{{"s", "invoice.paid", false}, {"s", "charge", true}, {"s", "", true}, {"other", "invoice.paid", true}, {"mapped", "charge", false}} {
		key := event.Key{Source: c.source, ID: "1"}
		reason, unmatched := rules.Unmatched(key, c.kind)
		if unmatched != c.want {
			t.Errorf("%+v: unmatched is %t", c, unmatched)
		}
		decided := rules.Decide(context.Background(), event.Work{Event: event.Event{Key: key, Type: c.kind}})
		if unmatched && (decided.State != event.Ignored || decided.Error != reason) {
			t.Errorf("%+v: beforehand %q, decided %s %q", c, reason, decided.State, decided.Error)
		}
	}
}
