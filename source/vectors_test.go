package source

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"creel/config"
)

// vector is a request that a provider's own SDK signed, or that was tampered
// with, and what has to become of it.
type vector struct {
	ID           string            `json:"id"`
	Provider     string            `json:"provider"`
	Method       string            `json:"method"`
	URL          string            `json:"url"`
	Headers      map[string]string `json:"headers"`
	Body         []byte            `json:"body_b64"`
	Secret       string            `json:"secret"`
	SecretFormat string            `json:"secret_format"`
	Second       string            `json:"secondary_secret"`
	PublicKey    string            `json:"public_key"`
	Now          int64             `json:"now"`
	Verdict      string            `json:"verdict"`
}

// needsCode lists the vectors that data can not say: they come with the
// schemes that are code.
func needsCode(v vector) bool {
	return v.Provider == "braintree" || v.Provider == "contentful" || v.SecretFormat == "utf8-nfkd"
}

// schemeOf says which preset, or which scheme of the tests, verifies a vector.
func schemeOf(id string) (preset, scheme string) {
	stem, _, _ := strings.Cut(id, "/")
	if own := strings.TrimSuffix(strings.TrimSuffix(stem, "-doc"), "-computed"); slices.Contains([]string{"paddle", "polar", "workos", "square", "gocardless", "resend"}, own) {
		return own, ""
	}
	for _, p := range []string{"stripe", "standard-webhooks", "svix", "shopify", "razorpay"} {
		if stem == p {
			return p, ""
		}
	}
	switch {
	case strings.HasPrefix(stem, "github-"):
		return "github", ""
	case strings.HasPrefix(stem, "slack-"):
		return "slack", ""
	case stem == "svix-doc":
		return "svix", ""
	case strings.HasPrefix(stem, "twilio-json"):
		return "", "twilio-json"
	case strings.HasPrefix(stem, "twilio-"):
		return "", "twilio-form"
	case strings.HasPrefix(stem, "discord-"):
		return "", "discord"
	case stem == "circleci-doc":
		return "", "circleci"
	}
	return "", stem
}

func loadVectors(t *testing.T, name string) []vector {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var out []vector
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// vectorSource makes the source that an owner would configure for a vector.
func vectorSource(t *testing.T, v vector) *Source {
	t.Helper()
	cfg := config.Source{Name: "vector", AllowWeakSecret: true, PublicURL: v.URL}
	for _, secret := range []string{v.Secret, v.Second} {
		if secret != "" {
			cfg.Secrets = append(cfg.Secrets, config.NewSecret(secret))
		}
	}
	if v.Secret == "" {
		cfg.Secrets = []config.Secret{config.NewSecret(v.PublicKey)}
	}
	preset, scheme := schemeOf(v.ID)
	cfg.Provider = preset
	if preset == "" {
		cfg.Verify = testScheme(t, scheme)
	}
	return mustCompile(t, cfg)
}

func (v vector) request(t *testing.T) *Request {
	t.Helper()
	u, err := url.Parse(v.URL)
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{}
	for name, value := range v.Headers {
		header.Set(name, value)
	}
	return &Request{Method: v.Method, Query: u.RawQuery, Header: header, Body: v.Body}
}

func TestGateR7Vectors(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../shared/vectors/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "testdata/sdk-vectors.jsonl", "testdata/doc-vectors.jsonl")
	for _, name := range files {
		checked := 0
		for _, v := range loadVectors(t, name) {
			if needsCode(v) {
				continue
			}
			checked++
			r := vectorSource(t, v).Receive(v.request(t), time.Unix(v.Now, 0))
			if got := verdictOf(r); got != v.Verdict {
				t.Errorf("%s: %s, want %s (%s %s)", v.ID, got, v.Verdict, r.Cause, r.Detail)
			}
		}
		if atLeast := map[bool]int{true: 20, false: 300}[strings.HasSuffix(name, "doc-vectors.jsonl")]; checked < atLeast {
			t.Errorf("%s: only %d vectors were checked", name, checked)
		}
	}
}

// verdictOf is the verdict of the vectors: they know a handshake as accepted
// where it is a signed request.
func verdictOf(r Result) string {
	if r.Refused() {
		return "reject"
	}
	return "accept"
}
