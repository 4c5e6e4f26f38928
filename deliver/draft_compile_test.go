package deliver

import (
	"strings"
	"testing"
	"time"

	"creel/config"
)

// TestTemplateProblems finds what is wrong with a request of the owner's own
// when it is loaded, at its key.
func TestTemplateProblems(t *testing.T) {
	t.Parallel()
	const good = "https://api.example.com/x"
	secret := map[string]config.Secret{"key": config.NewSecret("env:KEY")}
	json := func(value any) *config.RequestBody { return &config.RequestBody{JSON: map[string]any{"a": value}} }
	header := func(text string) map[string]config.Secret {
		return map[string]config.Secret{"X-A": config.NewSecret(text)}
	}
	for name, c := range map[string]struct {
		cfg        config.Destination
		path, says string
		warning    bool
	}{
		"url, no name":             {config.Destination{URL: good + "/{nobody}"}, "url", "{nobody} is no name here", false},
		"url, open brace":          {config.Destination{URL: good + "/{body.x"}, "url", "without its }", false},
		"url, other scheme":        {config.Destination{URL: "ftp://host/{body.x}"}, "url", "does not start with http", false},
		"url, other scheme, free":  {config.Destination{URL: "ftp://{body.x}/"}, "url", "does not start with http", false},
		"url, no scheme":           {config.Destination{URL: "api.example.com/{body.x}"}, "url", "does not start with http", false},
		"url, fragment":            {config.Destination{URL: good + "#{body.x}"}, "url", "never sent", false},
		"url, port":                {config.Destination{URL: "http://h:99999/{body.x}"}, "url", "port", false},
		"url, user before a place": {config.Destination{URL: "http://u:p@{body.x}/"}, "url", "user before a host", false},
		"url, no such setting":     {config.Destination{URL: good + "/{setting.gone}"}, "url", "{setting.gone} is no name", false},
		"setting, unresolved":      {config.Destination{URL: good + "/{setting.a}", Settings: map[string]config.Secret{"a": config.NewSecret("env:NONE")}}, "settings.a", "NONE", false},
		"setting, exposed":         {config.Destination{URL: "{body.x}", Settings: secret, Body: json("{setting.key}")}, "settings.key", "the event decides", true},
		"header, exposed":          {config.Destination{URL: "http://{body.x}/", Headers: header("env:KEY")}, "headers.X-A", "the event decides", true},
		"header, open brace":       {config.Destination{URL: good, Headers: header("{body.x")}, "headers.X-A", "without its }", false},
		"header, a name":           {config.Destination{URL: good, Headers: header("{x}")}, "headers.X-A", "{x} is no name", false},
		"json, a name":             {config.Destination{URL: good, Body: json([]any{map[string]any{"b": "{x}"}})}, "body.json.a[0].b", "{x} is no name", false},
		"json, a date":             {config.Destination{URL: good, Body: json(time.Now())}, "body.json.a", "nothing that JSON has", false},
		"json, two values":         {config.Destination{URL: good, Body: json("{=body.a}{body.b}")}, "body.json.a", "is not one place", false},
		"json, value of a name":    {config.Destination{URL: good, Body: json("{=id}")}, "body.json.a", "is not one place", false},
		"json, value of a header":  {config.Destination{URL: good, Body: json("{=header.x}")}, "body.json.a", "is not one place", false},
		"form, a name":             {config.Destination{URL: good, Body: &config.RequestBody{Form: map[string]string{"f": "{x}"}}}, "body.form.f", "{x} is no name", false},
		"text, a name":             {config.Destination{URL: good, Body: &config.RequestBody{Text: "{x}"}}, "body.text", "{x} is no name", false},
		"text as JSON":             {config.Destination{URL: good, Body: &config.RequestBody{Text: "{body.x}", Type: "application/json"}}, "body.text", "not escaped", true},
		"type":                     {config.Destination{URL: good, Body: &config.RequestBody{Text: "x", Type: "no\ntype"}}, "body.type", "no media type", false},
		"nothing":                  {config.Destination{URL: good, Body: &config.RequestBody{}}, "body", "says nothing", false},
		"time of an address":       {config.Destination{URL: good, MaxBody: 1, BodyURLTTL: 5}, "body_url_ttl", "millisecond", false},
	} {
		d, problems := New("app", c.cfg, "destination.app", Options{Clock: time.Now, Env: func(name string) (string, bool) { return "a secret", name == "KEY" }})
		found := false
		for _, p := range problems {
			found = found || p.Path == "destination.app."+c.path && strings.Contains(p.Message, c.says) && p.Warning == c.warning
		}
		if !found || c.warning == (d == nil) {
			t.Errorf("%s: %v", name, problems)
		}
		if d != nil {
			d.Close()
		}
	}
}

// TestTemplatesLoad without a word: what nobody verifies needs no secret.
func TestTemplatesLoad(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]config.Destination{
		"chat":      {URL: "https://chat.example.com/{setting.hook}", Settings: map[string]config.Secret{"hook": config.NewSecret("env:KEY")}, Body: &config.RequestBody{JSON: "{{}}"}},
		"all of it": {URL: "{setting.hook}", Settings: map[string]config.Secret{"hook": config.NewSecret("env:URL")}, Body: &config.RequestBody{JSON: []any{}}},
		"get":       {URL: "https://ping.example.com/{source}", Method: "GET"},
		"free":      {URL: "{body.response_url}", Body: &config.RequestBody{Text: "done"}},
		"host":      {URL: "https://{body.shop}.example.com/hook?a={id}", Body: &config.RequestBody{Text: "done"}},
	} {
		d, problems := New("app", cfg, "destination.app", Options{Clock: time.Now, Env: func(name string) (string, bool) {
			return map[string]string{"KEY": "T000/B000", "URL": "https://hooks.example.com/T000/B000"}[name], true
		}})
		if len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
			continue
		}
		if strings.Contains(d.String(), "T000") || d.Local() {
			t.Errorf("%s is shown as %s", name, d)
		}
		if free := name == "free" || name == "host"; free != (d.pools != nil) {
			t.Errorf("%s: an event decides the host: %v", name, d.pools != nil)
		}
		d.Close()
	}
}

// FuzzAddress puts anything into URLs: what comes out goes to the host that is
// written, or is refused.
func FuzzAddress(f *testing.F) {
	for _, text := range []string{"a/b", "..", "@evil", "\r\n", "[::1]", "http://[::1]/", "%2e%2e", "#", "?", "é", "http://h:1/a b"} {
		f.Add(text)
	}
	destination := func(url string) *Destination {
		d, problems := New("app", config.Destination{URL: url}, "destination.app", Options{Env: noEnv, Clock: time.Now})
		if len(problems.Faults()) > 0 {
			f.Fatal(problems)
		}
		f.Cleanup(d.Close)
		return d
	}
	fixed, host, whole := destination("http://api.example.com:8080/a/{header.x}/b?q={header.x}"), destination("https://{header.x}.example.com/{header.x?}"), destination("{header.x}")
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range []*Destination{fixed, host, whole} {
			s := shipment()
			s.Payload.Header = "X: " + text
			p, err := d.placesOf(&s)
			if err != nil {
				t.Fatal(err)
			}
			way, err := d.wayOf(p)
			if err != nil {
				continue
			}
			head := string(way.target.head)
			if strings.Count(head, "\r\n") != 2 || !strings.HasSuffix(head, "\r\n") {
				t.Fatalf("%q makes the head %q", text, head)
			}
			switch {
			case d == fixed && (way.target.address != "api.example.com:8080" || !strings.Contains(head, "\r\nHost: api.example.com:8080\r\n") || !strings.HasPrefix(head, "POST /a/") || !strings.Contains(head, "/b?q=")):
				t.Fatalf("%q leads to %s by %q", text, way.target.address, head)
			case d == host && (!strings.HasSuffix(way.target.address, ".example.com:443") || !way.target.secure):
				t.Fatalf("%q leads to %s", text, way.target.address)
			}
		}
	})
}

// FuzzDraft puts anything into JSON: it stays JSON, and the text comes back.
func FuzzDraft(f *testing.F) {
	for _, text := range []string{`"`, `\`, "\x00", "\u2028", "{", "{{x}}", "\xff", "\xed\xa0\x80", "é"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out := appendJSON(nil, text)
		checkJSON(t, out, text)
	})
}
