package deliver

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"creel/config"
	"creel/event"
	"creel/internal/testkit"
)

// sentTo makes one attempt at a destination and returns what came.
func sentTo(t *testing.T, cfg config.Destination, s event.Shipment, change ...func(*Options)) testkit.Received {
	t.Helper()
	app := testkit.NewDestination(t)
	cfg.URL = app.URL + cfg.URL
	result := compiled(t, cfg, change...).Attempt(t.Context(), s, time.Now())
	if result.Attempt.Outcome != event.OK {
		t.Fatalf("%s: %s", result.Attempt.Outcome, result.Attempt.Error)
	}
	return app.Requests()[0]
}

// body decodes a request body as configuration files write it.
func bodyOf(t testing.TB, text string) *config.RequestBody {
	t.Helper()
	var d struct{ Body *config.RequestBody }
	if problems := config.DecodeStrict([]byte(text), &d); len(problems) > 0 {
		t.Fatal(problems)
	}
	return d.Body
}

// hostile is a shipment whose values are hostile to every form they go into.
func hostile() event.Shipment {
	s := shipment()
	s.Type, s.Rule, s.Object, s.Version, s.LongID = "order.paid", "chat", "o/1", "7", ""
	s.Event.Account = "acct 1"
	s.Payload.Body = []byte(`{"id":"a\"b\\c\n<é>&{id}{{x}} ` + "\u2028" + `\ud800","n":1.0e5,"big":12345678901234567890,"none":null,"empty":"",` +
		`"flag":true,"nested":{"a":[1, 2 ,{"b":"c"}]},"evil":"x\r\nX-Evil: 1","slash":"../a b?c#d%2F"}`)
	s.Payload.Header += "X-Signature: theirs\nContent-Encoding: identity\nX-Trace: 1\n"
	return s
}

// TestDraftJSON checks values, escapes and forms of a JSON body, byte for byte.
func TestDraftJSON(t *testing.T) {
	t.Parallel()
	got := sentTo(t, config.Destination{Body: bodyOf(t, `
[body]
json = { text = "New {body.id}!", n = "{body.n}", same = "{=body.n}", big = "{=body.big}", all = "{=body.nested}", no = "{=body.gone?}", nil = "{=body.none}",
  opt = "[{body.gone?}]", flag = true, int = 3, float = 1.5, braces = "{{id}}", list = [ "{type}", 1, { a = "{body.flag}" } ], "k{x}" = "" }
`)}, hostile())
	const id = `a\"b\\c\n<é>&{id}{{x}} ` + "\u2028" + `\ud800`
	want := `{"all":{"a":[1, 2 ,{"b":"c"}]},"big":12345678901234567890,"braces":"{id}","flag":true,"float":1.5,"int":3,"k{x}":"",` +
		`"list":["order.paid",1,{"a":"true"}],"n":"1.0e5","nil":null,"no":null,"opt":"[]","same":1.0e5,"text":"New ` + id + `!"}`
	if string(got.Body) != want {
		t.Errorf("got  %s\nwant %s", got.Body, want)
	}
	if !json.Valid(got.Body) || got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s is no JSON, or says %q", got.Body, got.Header.Get("Content-Type"))
	}
}

// TestDraftNames fills in every plain name, as rules have them and beyond.
func TestDraftNames(t *testing.T) {
	t.Parallel()
	s := hostile()
	s.Tries = 3
	got := sentTo(t, config.Destination{Body: &config.RequestBody{Text: "{source}|{account}|{tenant}|{id}|{type}|{object}|{version}|{event}|{rule}|{key}|{delivery}|{attempt}|" +
		"{header.x-trace}|{setting.room}|{alert.text?}|{alert.subject?}|{body.id}"},
		Settings: map[string]config.Secret{"room": config.NewSecret("a {type} room")}}, s,
		func(o *Options) { o.Tenant = func(source, account string) string { return source + "'s " + account } })
	want := "stripe|acct 1|stripe's acct 1|evt_1|order.paid|o/1|7|stripe/acct 1/evt_1|chat|stripe//evt_1/all|" + got.ID() + "|3|1|a {type} room|||" +
		"a\"b\\c\n<é>&{id}{{x}} \u2028\xed\xa0\x80"
	if string(got.Body) != want {
		t.Errorf("got  %q\nwant %q", got.Body, want)
	}
	if got.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Error(got.Header.Get("Content-Type"))
	}
	s.LongID, s.LongKey = "the long id", "the long key"
	got = sentTo(t, config.Destination{Body: &config.RequestBody{Text: "{id}, {key}"}}, s)
	if string(got.Body) != "the long id, the long key" {
		t.Errorf("%q", got.Body)
	}
}

func TestDraftForm(t *testing.T) {
	t.Parallel()
	got := sentTo(t, config.Destination{Method: "PUT", Body: &config.RequestBody{Form: map[string]string{"to&": "+1 {body.id}", "a": "{body.n}"}}}, hostile())
	fields, err := url.ParseQuery(string(got.Body))
	if err != nil || fields.Get("to&") != "+1 a\"b\\c\n<é>&{id}{{x}} \u2028\xed\xa0\x80" || fields.Get("a") != "1.0e5" || len(fields) != 2 {
		t.Errorf("%q: %v, %v", got.Body, fields, err)
	}
	if got.Method != http.MethodPut || got.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		t.Errorf("%s %v", got.Method, got.Header)
	}
}

// TestDraftRequest is a request of the owner's own: the sender's headers stay
// here, ours and the owner's come, and it is signed over what is sent.
func TestDraftRequest(t *testing.T) {
	t.Parallel()
	got := sentTo(t, config.Destination{URL: "/api/{setting.key}/{body.slash}/x?q={body.slash}&r={body.empty?}", Method: "PATCH", PassHeaders: []string{"X-Trace"},
		Settings: map[string]config.Secret{"key": config.NewSecret("env:KEY")},
		Headers: map[string]config.Secret{"X-Title": config.NewSecret("Order {body.evil}"), "X-Fixed": config.NewSecret("{{}} {setting.key}"),
			"Authorization": config.NewSecret("env:KEY")},
		Body: &config.RequestBody{JSON: map[string]any{"a": "{type}"}, Type: "application/vnd.x+json"}}, hostile(),
		func(o *Options) { o.Env = func(string) (string, bool) { return "s3cret/key", true } })
	if got.Method != "PATCH" || got.URL != "/api/s3cret/key/..%2Fa%20b%3Fc%23d%252F/x?q=..%2Fa+b%3Fc%23d%252F&r=" {
		t.Errorf("%s %s", got.Method, got.URL)
	}
	for name, want := range map[string]string{"X-Title": "Order x%0D%0AX-Evil: 1", "X-Fixed": "{} s3cret/key", "Authorization": "s3cret/key", "X-Trace": "1",
		"X-Signature": "", "Content-Encoding": "", "X-Evil": "", "User-Agent": "Creel/test", "Content-Type": "application/vnd.x+json", "Creel-Type": "order.paid"} {
		if got.Header.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, got.Header.Get(name), want)
		}
	}
	verify(t, got)
}

// TestDraftGET has neither body nor what describes one.
func TestDraftGET(t *testing.T) {
	t.Parallel()
	got := sentTo(t, config.Destination{URL: "/ping?id={body.n}", Method: "GET"}, hostile())
	if got.Method != "GET" || got.URL != "/ping?id=1.0e5" || len(got.Body) != 0 || got.Header["Content-Type"] != nil || got.Header["Content-Length"] != nil {
		t.Errorf("%s %s %q %v", got.Method, got.URL, got.Body, got.Header)
	}
	verify(t, got)
}

// TestDraftFailures are final, name both places, and quote nothing.
func TestDraftFailures(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	json := func(text string) *config.RequestBody {
		return &config.RequestBody{JSON: map[string]any{"a": []any{text}}}
	}
	broken := hostile()
	broken.Payload.Body = []byte(`{"id":"canary-in-a-broken-body`)
	twice := hostile()
	twice.Payload.Body = []byte(`{"id":"canary","id":"canary"}`)
	for name, c := range map[string]struct {
		cfg  config.Destination
		s    event.Shipment
		want string
	}{
		"nothing there":     {config.Destination{Body: json("{body.gone}")}, hostile(), "body.json.a[0]: body.gone: nothing stands there"},
		"null":              {config.Destination{Body: json("{body.none}")}, hostile(), "body.json.a[0]: body.none: nothing stands there"},
		"no value":          {config.Destination{Body: json("{=body.gone}")}, hostile(), "body.json.a[0]: body.gone: nothing stands there"},
		"no JSON":           {config.Destination{Body: json("{body.id}")}, broken, "body.json.a[0]: body.id: the body is not valid JSON"},
		"twice":             {config.Destination{Body: json("{body.id}")}, twice, "body.json.a[0]: body.id: the member is written twice"},
		"in the text":       {config.Destination{Body: &config.RequestBody{Text: "{query.q}"}}, hostile(), "body.text: query.q: nothing stands there"},
		"in a form":         {config.Destination{Body: &config.RequestBody{Form: map[string]string{"f": "{tenant}"}}}, hostile(), "body.form.f: tenant: nothing stands there"},
		"in a header":       {config.Destination{Headers: map[string]config.Secret{"X-A": config.NewSecret("{body.gone}")}}, hostile(), "headers.X-A: body.gone: nothing stands there"},
		"a long header":     {config.Destination{Headers: map[string]config.Secret{"X-A": config.NewSecret(strings.Repeat("{body.id}", 999))}}, hostile(), "headers.X-A: the header is over"},
		"in the path":       {config.Destination{URL: "/{body.empty}"}, hostile(), "url: body.empty: nothing stands there"},
		"an alert's":        {config.Destination{Body: json("{alert.text}")}, hostile(), "body.json.a[0]: alert.text: nothing stands there"},
		"a step of dots":    {config.Destination{URL: "/{body.dots}/x"}, dots(".."), "url: the values make a step of dots"},
		"dots in two parts": {config.Destination{URL: "/{body.dots}{body.dots}/x"}, dots("."), "url: the values make a step of dots"},
		"encoded dots":      {config.Destination{URL: "/%2e{body.dots}/x"}, dots("."), "url: the values make a step of dots"},
		"a long URL":        {config.Destination{URL: "/{body.dots}"}, dots(strings.Repeat("x", 9000)), "url: the URL is over"},
		"a huge body":       {config.Destination{Body: json(strings.Repeat("{body.dots}", 20))}, dots(strings.Repeat("x", 1<<20)), "the body is over"},
	} {
		c.cfg.URL = app.URL + c.cfg.URL
		result := compiled(t, c.cfg).Attempt(t.Context(), c.s, time.Now())
		if a := result.Attempt; a.Outcome != event.Permanent || !strings.Contains(a.Error, c.want) || strings.Contains(a.Error, "canary") || result.Wrote {
			t.Errorf("%s: %s, %q, want %q", name, a.Outcome, a.Error, c.want)
		}
	}
	if app.Count() != 0 {
		t.Errorf("%d requests came", app.Count())
	}
}

func dots(text string) event.Shipment {
	s := shipment()
	s.Payload.Body = []byte(`{"dots":"` + text + `"}`)
	return s
}

// TestDraftIsTheSame on every attempt, but for what counts attempts.
func TestDraftIsTheSame(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	d := compiled(t, config.Destination{URL: app.URL, Body: bodyOf(t, `body.json = { c = "{body.id}", b = "{=body.nested}", a = "{event}", d = ["{object}"] }`)})
	s := hostile()
	for s.Tries = 1; s.Tries < 10; s.Tries++ {
		d.Attempt(t.Context(), s, time.Now().Add(time.Duration(s.Tries)*time.Hour))
	}
	for _, got := range app.Requests() {
		if string(got.Body) != string(app.Requests()[0].Body) {
			t.Errorf("%s and %s", app.Requests()[0].Body, got.Body)
		}
	}
}

// TestAlerts carries a message without an event to templates, and as it is
// where there are none.
func TestAlerts(t *testing.T) {
	t.Parallel()
	alert := event.Alert{Subject: `app is "down"`, Text: "line\nline", Cause: "destination_down", SubjectOf: "app", State: "open", URL: "http://x/?a=1&b=2"}
	s := event.Shipment{Delivery: event.Delivery{ID: 1, Alert: 1, Key: "=incident/1/opened", Destination: "app", Run: 1, Tries: 1}, Type: "incident.opened", Message: alert.Message()}
	got := sentTo(t, config.Destination{Headers: map[string]config.Secret{"X-Title": config.NewSecret("{alert.subject}")}, Body: bodyOf(t, `
body.json = { text = "{alert.subject}: {alert.text}", more = "{alert.cause} {alert.subject_of} {alert.state} {alert.url} {type} {key} {body.id?}{source?}" }`)}, s)
	want := `{"more":"destination_down app open http://x/?a=1&b=2 incident.opened =incident/1/opened ","text":"app is \"down\": line\nline"}`
	if string(got.Body) != want || got.Header.Get("X-Title") != `app is "down"` {
		t.Errorf("got  %s\nwant %s", got.Body, want)
	}
	for _, name := range []string{"Creel-Source", "Creel-Event", "Creel-Account"} {
		if _, ok := got.Header[name]; ok {
			t.Errorf("%s: %q", name, got.Header[name])
		}
	}
	plain := sentTo(t, config.Destination{MaxBody: 10}, s)
	back, err := event.AlertOf(string(plain.Body))
	if err != nil || back != alert || plain.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s as %q: %v", plain.Body, plain.Header.Get("Content-Type"), err)
	}
	verify(t, plain)
}

// TestSettingsStayHidden although the other side echoes them in every form.
func TestSettingsStayHidden(t *testing.T) {
	t.Parallel()
	const secret = `kå"y/with+all?of&it`
	app := testkit.NewDestination(t)
	app.Answer(func(r testkit.Received) testkit.Answer {
		return testkit.Answer{Status: 302, Header: map[string]string{"Location": "/elsewhere" + r.URL}, Body: r.URL + "\n" + r.Header.Get("X-K") + "\n" + string(r.Body)}
	})
	d := compiled(t, config.Destination{URL: app.URL + "/{setting.k}/x?k={setting.k}&id={body.id}", Settings: map[string]config.Secret{"k": config.NewSecret("env:K")},
		Headers: map[string]config.Secret{"X-K": config.NewSecret("{setting.k}")},
		Body:    &config.RequestBody{JSON: map[string]any{"k": "{setting.k}"}}}, func(o *Options) { o.Env = func(string) (string, bool) { return secret, true } })
	a := d.Attempt(t.Context(), shipment(), time.Now()).Attempt
	if a.Status != 302 {
		t.Fatalf("%d %s", a.Status, a.Error)
	}
	shown := a.Answer + a.Error + d.String()
	for _, form := range []string{"with+all", "with%2Ball", "evt_1/"} {
		if strings.Contains(shown, form) {
			t.Errorf("%q shows %q", shown, form)
		}
	}
	if !strings.Contains(d.String(), "/{setting.k}/x?…") {
		t.Error(d.String())
	}
}

// checkJSON reads back what was written of a text.
func checkJSON(t *testing.T, out []byte, text string) {
	t.Helper()
	var back string
	if err := json.Unmarshal(out, &back); err != nil {
		t.Fatalf("%q became %s: %v", text, out, err)
	}
	if want := strings.ToValidUTF8(text, "\ufffd"); utf8.ValidString(text) && back != want {
		t.Fatalf("%q became %q", text, back)
	}
}
