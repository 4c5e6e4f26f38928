package deliver

import (
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"creel/config"
	"creel/internal/testkit"
)

func TestCompileProblems(t *testing.T) {
	t.Parallel()
	good := config.Destination{URL: "http://127.0.0.1:3000/webhooks", Secret: config.NewSecret(testSecret)}
	with := func(change func(*config.Destination)) config.Destination {
		cfg := good
		change(&cfg)
		return cfg
	}
	secret := func(text string) config.Destination {
		return with(func(c *config.Destination) { c.Secret = config.NewSecret(text) })
	}
	for name, c := range map[string]struct {
		cfg  config.Destination
		path string // of the one fault
		says string
	}{
		"blank host":       {with(func(c *config.Destination) { c.Headers = map[string]config.Secret{"Host": config.NewSecret("a b")} }), "destination.app.headers.Host", "no host"},
		"slash host":       {with(func(c *config.Destination) { c.Headers = map[string]config.Secret{"Host": config.NewSecret("a/b")} }), "destination.app.headers.Host", "no host"},
		"media type":       {with(func(c *config.Destination) { c.Body = &config.RequestBody{Text: "x", Type: "nonsense"} }), "destination.app.body.type", "no media type"},
		"no url":           {with(func(c *config.Destination) { c.URL = "" }), "destination.app.url", "no url"},
		"no scheme":        {with(func(c *config.Destination) { c.URL = "127.0.0.1:3000" }), "destination.app.url", ""},
		"ftp":              {with(func(c *config.Destination) { c.URL = "ftp://host/" }), "destination.app.url", "http"},
		"no host":          {with(func(c *config.Destination) { c.URL = "http:///x" }), "destination.app.url", "host"},
		"port":             {with(func(c *config.Destination) { c.URL = "http://host:70000/x" }), "destination.app.url", "port"},
		"unreadable":       {with(func(c *config.Destination) { c.URL = "http://user:hunter22@ho st/%zz" }), "destination.app.url", ""},
		"secret unset":     {secret("env:MISSING"), "destination.app.secret", "MISSING"},
		"secret short":     {secret("fifteen bytes.."), "destination.app.secret", "16"},
		"secret blank":     {secret("                        "), "destination.app.secret", "empty"},
		"secret long":      {secret(strings.Repeat("ab", 600)), "destination.app.secret", "1024"},
		"secret base64":    {secret("whsec_!!!"), "destination.app.secret", "base64"},
		"secret key short": {secret("whsec_MDEyMzQ1Njc4OWFiY2RlZg=="), "destination.app.secret", "24 to 64"},
		"secret key long":  {secret("whsec_" + strings.Repeat("MDEy", 22)), "destination.app.secret", "24 to 64"},
		"secret example":   {secret("changeme-changeme-changeme"), "destination.app.secret", "placeholder"},
		"secret repeated":  {secret("xxxxxxxxxxxxxxxxxxxxxxxx"), "destination.app.secret", "placeholder"},
		"timeout":          {with(func(c *config.Destination) { c.Timeout = 5 }), "destination.app.timeout", "millisecond"},
		"long timeout":     {with(func(c *config.Destination) { c.Timeout = config.Duration(48 * time.Hour) }), "destination.app.timeout", "over"},
		"connect":          {with(func(c *config.Destination) { c.ConnectTimeout = -1 }), "destination.app.connect_timeout", ""},
		"retry after":      {with(func(c *config.Destination) { c.MaxRetryAfter = 7 }), "destination.app.max_retry_after", ""},
		"in flight":        {with(func(c *config.Destination) { c.MaxInFlight = -1 }), "destination.app.max_in_flight", "1024"},
		"rate":             {with(func(c *config.Destination) { c.Rate = -1 }), "destination.app.rate", "below"},
		"doubt":            {with(func(c *config.Destination) { c.OnDoubt = "ask" }), "destination.app.on_doubt", "ask"},
		"pass":             {with(func(c *config.Destination) { c.PassHeaders = []string{"X-Ok", "bad name"} }), "destination.app.pass_headers[1]", "name"},
		"pass hop":         {with(func(c *config.Destination) { c.PassHeaders = []string{"connection"} }), "destination.app.pass_headers[0]", "connection"},
		"header name":      {with(func(c *config.Destination) { c.Headers = map[string]config.Secret{"a b": config.NewSecret("x")} }), `destination.app.headers."a b"`, "name"},
		"header value":     {with(func(c *config.Destination) { c.Headers = map[string]config.Secret{"X-A": config.NewSecret("x\ny")} }), "destination.app.headers.X-A", "character"},
		"header hop": {with(func(c *config.Destination) {
			c.Headers = map[string]config.Secret{"Transfer-Encoding": config.NewSecret("x")}
		}), "destination.app.headers.Transfer-Encoding", "connection"},
		"header unresolved": {with(func(c *config.Destination) { c.Headers = map[string]config.Secret{"X-A": config.NewSecret("env:NONE")} }), "destination.app.headers.X-A", "NONE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, problems := New("app", c.cfg, "destination.app", Options{Env: noEnv, Clock: time.Now})
			faults := problems.Faults()
			if d != nil || len(faults) != 1 || faults[0].Path != c.path || !strings.Contains(faults[0].Message, c.says) {
				t.Fatalf("%v, want one fault at %s that says %q", problems, c.path, c.says)
			}
			if strings.Contains(problems.Error(), "hunter22") {
				t.Errorf("%v shows a password", problems)
			}
		})
	}
}

func TestCompileReportsAllAtOnce(t *testing.T) {
	t.Parallel()
	_, problems := New("app", config.Destination{URL: "x", Secret: config.NewSecret("short"), Timeout: 1, OnDoubt: "?",
		MaxInFlight: -2, PassHeaders: []string{""}, Headers: map[string]config.Secret{"": config.NewSecret("x")}},
		"destination.app", Options{Env: noEnv, Clock: time.Now})
	if n := len(problems.Faults()); n != 7 {
		t.Errorf("%d faults: %v", n, problems)
	}
}

func TestCompileWarnings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg  config.Destination
		says string
	}{
		"unsigned":   {config.Destination{URL: "http://127.0.0.1:3000"}, "not signed"},
		"plain http": {config.Destination{URL: "http://app.example.com", Secret: config.NewSecret("env:GOOD")}, "unencrypted"},
		"base64":     {config.Destination{URL: "http://127.0.0.1", Secret: config.NewSecret("env:BASE64")}, "whsec_"},
		"identity":   {config.Destination{URL: "http://127.0.0.1", Secret: config.NewSecret("env:GOOD"), Headers: map[string]config.Secret{"Webhook-Id": config.NewSecret("x")}}, "replaces"},
		"fragment":   {config.Destination{URL: "http://127.0.0.1/#x", Secret: config.NewSecret("env:GOOD")}, "#"},
	} {
		env := func(name string) (string, bool) {
			return map[string]string{"GOOD": testSecret, "BASE64": strings.TrimPrefix(testSecret, "whsec_")}[name], true
		}
		d, problems := New("app", c.cfg, "destination.app", Options{Env: env, Clock: time.Now})
		if d == nil || len(problems) != 1 || !problems[0].Warning || !strings.Contains(problems[0].Message, c.says) {
			t.Errorf("%s: %v", name, problems)
		}
	}
}

func TestCompileDefaults(t *testing.T) {
	t.Parallel()
	d := compiled(t, config.Destination{URL: "http://localhost"})
	if d.timeout != 10*time.Second || d.connect != 3*time.Second || d.InFlight() != 8 || d.Rate() != 0 || d.Review() || d.retry4xx {
		t.Errorf("%+v", d)
	}
	yes, no := true, false
	for _, c := range []struct {
		policy bool
		own    *bool
		want   bool
	}{{true, nil, true}, {true, &no, false}, {false, &yes, true}} {
		d := compiled(t, config.Destination{URL: "http://localhost", Retry4xx: c.own}, func(o *Options) { o.Retry4xx = c.policy })
		if d.retry4xx != c.want {
			t.Errorf("%+v: %v", c, d.retry4xx)
		}
	}
}

// TestNoSecretIsKept lets a server echo all that it got into its answer, its
// status and its Location.
func TestNoSecretIsKept(t *testing.T) {
	t.Parallel()
	canary := testkit.NewCanary(t)
	app := testkit.NewDestination(t)
	app.Answer(func(r testkit.Received) testkit.Answer {
		said := r.URL + " " + r.Header.Get("Authorization") + " " + r.Header.Get("X-Key")
		return testkit.Answer{Status: 302, Body: said, Header: map[string]string{"Location": r.URL + "&and=" + r.Header.Get("X-Key")}}
	})
	env := func(name string) (string, bool) { return canary.Secret, true }
	d := compiled(t, config.Destination{URL: strings.Replace(app.URL, "//", "//u:"+canary.Secret+"@", 1) + "/x?token=" + canary.Secret,
		Headers: map[string]config.Secret{"X-Key": config.NewSecret("env:KEY")}}, func(o *Options) { o.Env = env })
	result := d.Attempt(t.Context(), shipment(), time.Now())
	if !strings.Contains(result.Attempt.Answer, shownSecret) {
		t.Errorf("answer %q", result.Attempt.Answer)
	}
	canary.Mark("basic", strings.TrimPrefix(d.own.Get("Authorization"), "Basic "))
	canary.Watch("error", func() []byte { return []byte(result.Attempt.Error) })
	canary.Watch("answer", func() []byte { return []byte(result.Attempt.Answer) })
	canary.Watch("name", func() []byte { return []byte(d.String()) })
}

// TestSecretAtTheCut echoes a secret across the end of what is kept of an
// answer, at every offset.
func TestSecretAtTheCut(t *testing.T) {
	t.Parallel()
	const secret = "Bearer 0123456789abcdef"
	app := testkit.NewDestination(t)
	d := compiled(t, config.Destination{URL: app.URL, Headers: map[string]config.Secret{"Authorization": config.NewSecret(secret)}})
	for inside := range len(secret) + 1 {
		app.Script(testkit.Answer{Body: strings.Repeat("x", mostKept-inside) + secret + " and more"})
		got := d.Attempt(t.Context(), shipment(), time.Now()).Attempt.Answer
		if strings.Contains(got, secret[:leastHidden/2]) || len(got) < mostKept-len(secret) {
			t.Errorf("%d bytes before the cut: %q", inside, got[max(0, len(got)-40):])
		}
	}
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain\ttext\r\nnext": "plain\ttext\nnext",
		"\x1b[31mred\x00":     "\uFFFD[31mred\uFFFD",
		"bad \xff utf8":       "bad \uFFFD utf8",
		"é\u202e":             "é\uFFFD",
	} {
		if got := printable(text, 100); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := printable(strings.Repeat("é", 600), 1023); len(got) != 1022 || !utf8.ValidString(got) {
		t.Errorf("cut to %d bytes", len(got))
	}
}

func FuzzLocation(f *testing.F) {
	for _, seed := range []string{"/x", "//h/x?y", "http://u:p@h/?q", "http:opaque?q=1", "javascript:x", "%", "\x00", "http://[::1%25lo]/", "?q=secretsecret"} {
		f.Add(seed)
	}
	asked, err := url.Parse("https://app.example/hook?token=secretsecret")
	if err != nil {
		f.Fatal(err)
	}
	d := &Destination{url: asked}
	d.hide("secretsecret")
	f.Fuzz(func(t *testing.T, location string) {
		shown := d.failure(Reply{Status: 302, Wrote: true}, answer{location: location})
		if !utf8.ValidString(shown) || len(shown) > mostError || strings.Contains(shown, "secretsecret") || strings.ContainsAny(shown, "\n\r\x1b") {
			t.Fatalf("%q is shown as %q", location, shown)
		}
		if target, err := asked.Parse(location); err == nil && target.User != nil && strings.Contains(shown, target.User.String()+"@"+target.Host) && target.User.String() != "" {
			t.Fatalf("%q shows user information: %q", location, shown)
		}
	})
}
