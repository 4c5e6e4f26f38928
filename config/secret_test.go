package config

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/rs/zerolog"
)

func TestBugCFG04(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file, want string
		warn       bool
	}{
		{"gh-test-secret", "gh-test-secret", false},
		{"gh-test-secret\n", "gh-test-secret", false},
		{"gh-test-secret\r\n", "gh-test-secret", false},
		{"gh-test-secret\n\n", "gh-test-secret\n", true},
		{"gh-test-secret\r\n\r\n", "gh-test-secret\r\n", true},
		{"gh-test-secret\r", "gh-test-secret\r", true},
		{"gh-test-secret \n", "gh-test-secret ", true},
		{" gh-test-secret", " gh-test-secret", true},
		{"\tgh-test-secret\n", "\tgh-test-secret", true},
		{"gh-test\nsecret\n", "gh-test\nsecret", false},
	} {
		folder := filepath.Dir(write(t, "secret", c.file))
		for _, secret := range []Secret{NewSecret("file:" + filepath.Join(folder, "secret")), NewSecret("credential:secret")} {
			env := lookup("CREDENTIALS_DIRECTORY", folder)
			got, err := secret.Resolve(env)
			if err != nil || string(got) != c.want {
				t.Errorf("file %q: got %q %v, want %q", c.file, got, err, c.want)
			}
			if warned := len(secret.Warnings(env)) > 0; warned != c.warn {
				t.Errorf("file %q: warned %v, want %v", c.file, warned, c.warn)
			}
		}
	}
}

func TestSecretNotReadable(t *testing.T) {
	t.Parallel()
	large := write(t, "large", strings.Repeat("x", maxSecretFile+1))
	for ref, want := range map[string]string{
		"":                              "no secret is set",
		"env:NOT_SET":                   "NOT_SET is not set",
		"env:EMPTY":                     "EMPTY is empty",
		"file:" + write(t, "e", ""):     "is empty",
		"file:" + write(t, "n", "\n"):   "is empty",
		"file:" + write(t, "r", "\r\n"): "is empty",
		"file:" + t.TempDir():           "not a regular file",
		"file:" + large:                 "larger than 64KiB",
		"file:/no/such":                 "no such file",
		"file:/dev/zero":                "not a regular file",
		"credential:a/b":                "names no credential",
		"$STRIPE":                       "no shell",
	} {
		got, err := NewSecret(ref).Resolve(testEnvironment())
		var why *SecretError
		if got != nil || !errors.As(err, &why) || !strings.Contains(why.Reason, want) {
			t.Errorf("%q: got %q %v, want %q", ref, got, err, want)
		} else if ref != "" && why.Hint == "" {
			t.Errorf("%q: no hint", ref)
		}
	}
	_, err := NewSecret("env:EMPTY").Resolve(testEnvironment())
	if !errors.Is(err, ErrEmptySecret) {
		t.Errorf("empty: %v", err)
	}
	_, err = NewSecret("file:/no/such").Resolve(testEnvironment())
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

// No verb, no encoder and no logger shows a secret, wherever it stands.
func TestBugCFG05(t *testing.T) {
	t.Parallel()
	const canary = "canary-0123456789abcdef"
	type holder struct {
		Exported   Secret
		unexported Secret
		Pointer    *Secret
		List       []Secret
		Map        map[string]Secret
		Any        any
	}
	s := NewSecret(canary)
	h := holder{s, s, &s, []Secret{s}, map[string]Secret{"a": s}, s}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%t", "%p", "%10.3s", "%T"} {
		for _, value := range []any{s, &s, h, &h, []any{s}, error(nil)} {
			fmt.Fprintf(&out, verb+"\n", value)
		}
	}
	fmt.Fprintln(&out, s, h, h.unexported, s.GoString())
	fmt.Fprint(&out, errors.New("x").Error(), fmt.Errorf("wrapped %v", h))
	log.New(&out, "", 0).Println(s, h)
	for _, value := range []any{s, &s, h, Config{Admin: Admin{Password: s}}} {
		if text, err := json.Marshal(value); err == nil {
			out.Write(text)
		} else {
			t.Error(err)
		}
	}
	if err := xml.NewEncoder(&out).Encode(struct {
		XMLName xml.Name `xml:"x"`
		A       Secret
	}{A: s}); err != nil {
		t.Error(err)
	}
	if err := toml.NewEncoder(&out).Encode(struct {
		A Secret
		L []Secret
		M map[string]Secret
	}{s, []Secret{s}, h.Map}); err != nil {
		t.Error(err)
	}
	logger := zerolog.New(&out)
	logger.Info().Interface("a", s).Interface("h", h).Any("p", &s).Stringer("s", s).Str("t", s.String()).Fields(map[string]any{"m": s}).Msg("x")
	console := zerolog.New(zerolog.ConsoleWriter{Out: &out, NoColor: true})
	console.Info().Interface("h", h).Msg("x")
	text := out.String()
	if hex := fmt.Sprintf("%x", canary); strings.Contains(text, canary) || strings.Contains(text, "canary") || strings.Contains(strings.ToLower(text), hex[:12]) {
		t.Errorf("the secret is shown:\n%s", text)
	}
	for _, want := range []string{`"Exported":"[secret]"`, `A = "[secret]"`, `"a":"[secret]"`, "<A>[secret]</A>"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in:\n%s", want, text)
		}
	}
	if got := fmt.Sprintf("%v|%s|%q|%x|%#v|%d", s, s, s, s, s, s); got != strings.Repeat("[secret]|", 5)+"[secret]" {
		t.Error(got)
	}
	if got := fmt.Sprint(Secret{}); got != "" {
		t.Errorf("no secret prints %q", got)
	}
}

// Whatever is wrong around a secret, what is said about it does not hold it.
func TestBugCFG05Problems(t *testing.T) {
	t.Parallel()
	const canary = "canary-0123456789abcdef"
	for _, text := range []string{
		"[[source]]\nsecrets = \"" + canary + "\"",
		"[[source]]\nsecrets = [\"" + canary,
		"[[source]]\nsecrets = [" + canary + "]",
		"[[source]]\nsecrets = [\n\"ok\",\n" + canary + "\n]",
		"[[source]]\nsecert = \"" + canary + "\"",
		"[admin]\npassword = " + canary,
		"[admin]\npassword = '" + canary,
		"[admin]\npassword = \"\"\"" + canary,
		"[admin]\npassword = [\"" + canary + "\"]",
		"[admin]\npassword = \"a\"\npassword = \"" + canary + "\"",
		"[destination.app]\nurl = \"https://u:" + canary + "@example.com:x/?token=" + canary + "\"",
		"[destination.app]\nurl = \"mailto:" + canary + "\"",
		"[destination.app.headers]\nAuthorization = \"" + canary + "\"",
		"[destination.app.headers]\nAuthorization = \"Bearer " + canary + "\nX = 1",
		"public_url = \"" + canary + "\"",
	} {
		_, problems := Parse("creel.toml", []byte(text), lookup())
		encoded, err := json.Marshal(problems)
		if err != nil {
			t.Fatal(err)
		}
		if len(problems) == 0 || strings.Contains(problems.Error()+string(encoded), "canary") {
			t.Errorf("%s\ntells: %s", text, problems)
		}
	}
}

func TestSecretKinds(t *testing.T) {
	t.Parallel()
	if !(Secret{}).IsZero() || NewSecret("x").IsZero() || (Secret{}).Literal() {
		t.Error("zero")
	}
	for ref, literal := range map[string]bool{"env:A": false, "file:a": false, "credential:a": false, "whsec_x": true, "v1:x": true} {
		if NewSecret(ref).Literal() != literal {
			t.Errorf("%s: literal %v", ref, !literal)
		}
	}
	// A hash of the page's password and a header that is no secret are not
	// warned about; a header that is one, is.
	_, problems := Parse("creel.toml", []byte(`
[admin]
password = "$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy"
[[source]]
name = "gen"
provider = "x"
forward = "app"
[destination.app]
url = "http://127.0.0.1:3000/"
headers = { X-Environment = "production", Authorization = "Bearer 0123456789abcdef" }
`), lookup())
	if len(problems) != 1 || !has(problems.Warnings(), "creel.toml:10", "headers.Authorization", "stands in the configuration itself") {
		t.Error(problems)
	}
}

// What a reload can not see change is listed: wherever it stands, and once.
func TestFromStart(t *testing.T) {
	t.Parallel()
	cfg := Config{Sources: []Source{
		{Secrets: []Secret{NewSecret("env:B"), NewSecret("file:old"), NewSecret("literal")}},
		{Secrets: []Secret{NewSecret("credential:c"), NewSecret("env:B")}},
	}, Destinations: map[string]Destination{"app": {Headers: map[string]Secret{"Authorization": NewSecret("env:A")}}}}
	if got := strings.Join(cfg.FromStart(), " "); got != "credential:c env:A env:B" {
		t.Errorf("%q", got)
	}
}
