package source

import (
	"slices"
	"strings"
	"testing"
	"time"

	"creel/config"
)

func TestCompileReportsEverything(t *testing.T) {
	t.Parallel()
	hour := config.Duration(time.Hour)
	for name, c := range map[string]struct {
		change func(*config.Source)
		want   []string
	}{
		"unknown words": {func(cfg *config.Source) {
			cfg.Verify.Auth, cfg.Verify.Encoding, cfg.Verify.Key, cfg.Verify.Unit = "hmac-md5", "rot13", "latin1", "min"
			cfg.Verify.Integrity, cfg.Verify.Match, cfg.Mode = "most", "some", "prod"
		}, []string{"verify.auth", "verify.encoding", "verify.key", "verify.unit", "verify.integrity", "verify.match", "mode"}},
		"bad places": {func(cfg *config.Source) {
			cfg.Verify.Signature, cfg.Verify.ID = config.StringList{"heder.x"}, config.StringList{"body..id"}
			cfg.Verify.Type, cfg.Verify.Signed = config.StringList{"setting.none"}, "{bdy}"
		}, []string{"verify.signature", "verify.id", "verify.type", "verify.signed"}},
		"nothing said": {func(cfg *config.Source) { cfg.Verify = &config.Scheme{Auth: "hmac-sha256"} },
			[]string{"verify.signature", "verify.id"}},
		"no body":            {func(cfg *config.Source) { cfg.Verify.Signed = "{ts}" }, []string{"verify.timestamp", "verify.integrity"}},
		"account unsigned":   {func(cfg *config.Source) { cfg.Verify.Account = config.StringList{"header.X-Shop"} }, []string{"verify.account"}},
		"window of nothing":  {func(cfg *config.Source) { cfg.Verify.Late = &hour }, []string{"verify.timestamp"}},
		"no public URL":      {func(cfg *config.Source) { cfg.Verify.Signed = "{url}{body}" }, []string{"public_url"}},
		"odd public URL":     {func(cfg *config.Source) { cfg.Verify.Signed, cfg.PublicURL = "{url}{body}", "hooks.example" }, []string{"public_url"}},
		"mode unknown to it": {func(cfg *config.Source) { cfg.Mode = "live" }, []string{"mode"}},
		"accounts of none":   {func(cfg *config.Source) { cfg.Accounts = map[string]string{"a": "b"} }, []string{"accounts"}},
		"label of nothing":   {func(cfg *config.Source) { cfg.Verify.Pair = "" }, []string{"verify.pair"}},
		"half a brace":       {func(cfg *config.Source) { cfg.Verify.Signed = "{body" }, []string{"verify.signed", "verify.integrity"}},
		"probe after verify": {func(cfg *config.Source) {
			cfg.Verify.Challenge = []config.Challenge{{Method: "GET", When: map[string]string{"query.x": "*"}}}
		}, []string{"verify.challenge[0].after"}},
		"no preset": {func(cfg *config.Source) { cfg.Provider = "strype" }, []string{"provider"}},
		"nothing":   {func(cfg *config.Source) { cfg.Verify = nil }, []string{"provider"}},
	} {
		cfg := config.Source{Name: "gen", Verify: testScheme(t, "gen"), Secrets: []config.Secret{config.NewSecret("a secret that is long enough")}}
		c.change(&cfg)
		src, problems := Compile(cfg, "source[0]", noEnv)
		var got []string
		for _, p := range problems.Faults() {
			got = append(got, strings.TrimPrefix(p.Path, "source[0]."))
		}
		if src != nil || !containsAll(got, c.want) {
			t.Errorf("%s: faults at %q, want %q", name, got, c.want)
		}
	}
}

func containsAll(got, want []string) bool {
	for _, one := range want {
		if !slices.Contains(got, one) {
			return false
		}
	}
	return true
}

func TestSecretsAtTheStart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		provider, secret, fault, warning string
	}{
		{"github", "a secret that is long enough", "", "stands in the configuration"},
		{"github", "whsec_1234...", "placeholder", ""},
		{"github", "fifteen-bytes-1", "shorter than 16", ""},
		{"github", " a secret that is long enough", "", "begins or ends with a blank"},
		{"github", "xxxxxxxxxxxxxxxxxxxx", "placeholder", ""},
		{"github", "Your-Webhook-Secret", "placeholder", ""},
		{"svix", "whsec_not base64 at all!", "not base64", ""},
		{"svix", "whsec_AAECAwQ=", "shorter than 16", ""},
		{"svix", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "", ""},
		{"svix", "v1,whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "", ""},
		{"svix", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "", ""},
		{"svix", "env:NOT_SET", "NOT_SET", ""},
	} {
		_, problems := Compile(config.Source{Name: "s", Provider: c.provider, Secrets: []config.Secret{config.NewSecret(c.secret)}}, "source[0]", noEnv)
		faults, warnings := problems.Faults().Error(), problems.Warnings().Error()
		if (faults == "") != (c.fault == "") || !strings.Contains(faults, c.fault) || !strings.Contains(warnings, c.warning) {
			t.Errorf("%s %q: %q, %q", c.provider, c.secret, faults, warnings)
		}
		if strings.HasPrefix(c.secret, "whsec_") && strings.Contains(faults+warnings, c.secret) {
			t.Errorf("the secret is told: %s", faults)
		}
	}
	twice := config.NewSecret("a secret that is long enough")
	_, problems := Compile(config.Source{Name: "s", Provider: "github", Secrets: []config.Secret{twice, twice}}, "source[0]", noEnv)
	if !strings.Contains(problems.Warnings().Error(), "the same as secrets[0]") {
		t.Errorf("a doubled secret is not told: %v", problems)
	}
}

func TestOverridesOfAPreset(t *testing.T) {
	t.Parallel()
	cfg := config.Source{Name: "s", Provider: "github", Secrets: []config.Secret{config.NewSecret("a secret that is long enough")},
		Verify: &config.Scheme{ID: config.StringList{"body.id"}, Type: config.StringList{"const.push"}}}
	s := mustCompile(t, cfg)
	r := s.Receive(signedBy(t, s, []byte(`{"id":7}`)), bugNow)
	wantAccepted(t, r, "7")
	if r.Items[0].Type != "push" || r.BodyWindow != 0 {
		t.Errorf("%+v", r.Items[0])
	}
	if s.MaxBody() != 25<<20 {
		t.Errorf("the preset's cap is gone: %d", s.MaxBody())
	}
	cfg.MaxBody = 1 << 10
	if got := mustCompile(t, cfg).MaxBody(); got != 1<<10 {
		t.Errorf("the owner's cap: %d", got)
	}
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	s := gen(t, nil)
	if s.RejectStatus() != 401 || s.DuplicateStatus() != 200 || s.ProbeStatus() != 200 {
		t.Error("the default statuses")
	}
	s = gen(t, func(cfg *config.Source) { cfg.RejectStatus, cfg.DuplicateStatus, cfg.ProbeStatus = 406, 409, 405 })
	if s.RejectStatus() != 406 || s.DuplicateStatus() != 409 || s.ProbeStatus() != 405 {
		t.Error("the statuses that were set")
	}
	token := handshakeSource(t, "gitlab")
	if got := token.SecretHeaders(); !slices.Equal(got, []string{"X-Gitlab-Token"}) {
		t.Errorf("secret headers %q", got)
	}
	if got := gen(t, nil).SecretHeaders(); got != nil {
		t.Errorf("a signature is no secret: %q", got)
	}
}

func TestTimestamps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		unit unit
		text string
		want bool
	}{
		{seconds, "1700000000", true}, {seconds, "0", true}, {seconds, "", false}, {seconds, "-1", false},
		{seconds, "+1700000000", false}, {seconds, " 1700000000", false}, {seconds, "1700000000.0", false},
		{seconds, "1e9", false}, {seconds, "0x10", false}, {seconds, "１７", false}, {seconds, "99999999999999999999", false},
		{seconds, "1_000", false}, {milliseconds, "1700000000000", true}, {milliseconds, "2023-11-14T22:13:20Z", false},
		{rfc3339, "2023-11-14T22:13:20Z", true}, {rfc3339, "2023-11-14T22:13:20.123456789Z", true},
		{rfc3339, "2023-11-14T22:13:20-07:00", true}, {rfc3339, "2023-11-14T22:13:20,5Z", false},
		{rfc3339, "2023-11-14 22:13:20Z", false}, {rfc3339, "2023-11-14T2:13:20Z", false}, {rfc3339, "2023-13-14T22:13:20Z", false},
		{rfc3339, "1700000000", false}, {rfc3339, "2023-11-14T22:13:20", false},
	} {
		if _, ok := (window{unit: c.unit}).parse(c.text); ok != c.want {
			t.Errorf("%s %q: %v", c.unit, c.text, ok)
		}
	}
	w := window{unit: seconds, late: defaultWindow, early: defaultWindow}
	far, ok := w.parse("999999999999999")
	if why := w.check(far, bugNow); !ok || why == nil || why.cause != TooNew {
		t.Errorf("a time out of every range: %v %+v", ok, why)
	}
	if why := w.check(time.Unix(0, 0), time.Date(2290, 1, 1, 0, 0, 0, 0, time.UTC)); why == nil || why.cause != TooOld {
		t.Errorf("a very old time: %+v", why)
	}
}

func TestURLForms(t *testing.T) {
	t.Parallel()
	for full, want := range map[string]string{
		"https://a.example/x?y=1":        "https://a.example:443/x?y=1",
		"https://a.example:443/x":        "https://a.example/x",
		"http://u:p@a.example":           "http://u:p@a.example:80",
		"https://u:p@a.example:8443/x":   "https://u:p@a.example/x",
		"https://[::1]/x":                "https://[::1]:443/x",
		"https://[::1]:443/x":            "https://[::1]/x",
		"https://a.example/x?u=http://b": "https://a.example:443/x?u=http://b",
	} {
		if got := otherPort(full); got != want {
			t.Errorf("%s: %s, want %s", full, got, want)
		}
	}
	if got := withoutUser("https://u:p@a.example/x?y=@"); got != "https://a.example/x?y=@" {
		t.Errorf("user and password are shown: %s", got)
	}
}
