package deliver

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"creel/config"
	"creel/internal/testkit"
)

// TestPartsOfSecretsStayHidden lets the other side quote what stands behind a
// scheme or in a parameter: "Invalid API key: sk_live_…" is a usual answer.
func TestPartsOfSecretsStayHidden(t *testing.T) {
	t.Parallel()
	const canary, other = "sk_live_0123456789", "p4ssw\"ord/0123456"
	basic := base64.StdEncoding.EncodeToString([]byte("owner:" + other))
	for value, hidden := range map[string][]string{
		"Bearer " + canary:                              {canary},
		"bearer  " + canary + " ":                       {canary},
		"Basic " + basic:                                {basic, other, "owner:" + other},
		`Token token="` + canary + `", id=` + other[:9]: {canary, other[:9]},
		"GenieKey " + canary:                            {canary},
		"session=" + canary + "; csrf=" + other[9:]:     {canary, other[9:]},
		canary:          {canary},
		"key=" + canary: {canary},
	} {
		env := func(string) (string, bool) { return value, true }
		app := testkit.NewDestination(t)
		d := compiled(t, config.Destination{URL: app.URL, Headers: map[string]config.Secret{"Authorization": config.NewSecret("env:A")}},
			func(o *Options) { o.Env = env })
		by := map[string]*mask{"a header": &d.mask}
		d = compiled(t, config.Destination{URL: app.URL, Settings: map[string]config.Secret{"a": config.NewSecret("env:A")},
			Headers: map[string]config.Secret{"Authorization": config.NewSecret("{setting.a}")}}, func(o *Options) { o.Env = env })
		by["a setting"] = &d.mask
		by["a variable"] = &command(t, config.Destination{Command: []string{"/bin/true"}, Env: map[string]config.Secret{"A": config.NewSecret("env:A")}}, env).mask
		f, problems := NewFetcher(config.Fetch{URL: "http://localhost/{id}", Headers: map[string]config.Secret{"Authorization": config.NewSecret("env:A")}},
			"rule[0].fetch", Options{Env: env, Clock: time.Now})
		if f == nil {
			t.Fatal(problems)
		}
		by["a fetch"] = &f.mask
		for _, secret := range hidden {
			written, err := json.Marshal(secret)
			if err != nil {
				t.Fatal(err)
			}
			for _, echo := range []string{secret, url.QueryEscape(secret), string(written)} {
				for where, m := range by {
					if got := m.masked("refused: " + echo + "!"); got == "refused: "+echo+"!" || strings.Contains(got, echo[1:len(echo)-1]) {
						t.Errorf("%q as %s: %q is shown as %q", value, where, echo, got)
					}
				}
			}
		}
		for where, m := range by {
			if got := m.masked("Bearer Token Signature session owner"); got != "Bearer Token Signature session owner" {
				t.Errorf("%q as %s tears a hole: %q", value, where, got)
			}
		}
	}
}

// TestLongerSecretsFirst because one may begin another.
func TestLongerSecretsFirst(t *testing.T) {
	t.Parallel()
	var m mask
	m.hide("0123456789", "0123456789-and-more", "0123456789")
	if got := m.masked("it is 0123456789-and-more."); got != "it is [secret]." {
		t.Errorf("%q", got)
	}
	if got := m.maskedCut("it is 0123456789-and"); got != "it is [secret]" {
		t.Errorf("%q", got)
	}
}
