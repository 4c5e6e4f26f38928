package source

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"creel/config"
)

// subject is a scheme under test with secrets that suit it.
type subject struct {
	name    string
	cfg     config.Source
	private crypto.Signer
}

// suiteNow has a fraction, as clocks have.
var suiteNow = time.Date(2026, 1, 1, 0, 0, 0, 123_000_000, time.UTC)

// subjects are all presets and all schemes of the tests.
func subjects(t testing.TB) []subject {
	t.Helper()
	var out []subject
	for _, p := range Presets() {
		out = append(out, subject{name: p.Name, cfg: config.Source{Provider: p.Name}})
	}
	entries, err := os.ReadDir("testdata/schemes")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		name := strings.TrimSuffix(entry.Name(), ".toml")
		out = append(out, subject{name: "test/" + name, cfg: config.Source{Verify: testScheme(t, name)}})
	}
	for i := range out {
		out[i].finish(t)
	}
	return out
}

// finish gives a subject what every source has.
func (s *subject) finish(t testing.TB) {
	t.Helper()
	s.cfg.Name, s.cfg.PublicURL = "suite", "https://hooks.example.test/in/suite"
	s.cfg.Settings = map[string]string{"api_key": "an api key", "verify_token": "a verify token"}
	in := s.cfg.Verify
	if in == nil {
		p, _, _ := preset(s.cfg.Provider)
		in = &p.Scheme
	}
	if in.Auth == "none" {
		return
	}
	first, private := suiteSecret(t, in, "first secret of the suite")
	second, _ := suiteSecret(t, in, "second secret of the suite")
	s.cfg.Secrets = []config.Secret{config.NewSecret(first), config.NewSecret(second)}
	s.private = private
}

// suiteSecret writes a secret as the scheme wants it.
func suiteSecret(t testing.TB, in *config.Scheme, text string) (string, crypto.Signer) {
	t.Helper()
	var private crypto.Signer
	var err error
	switch in.Auth {
	case "ed25519":
		_, private, err = ed25519.GenerateKey(rand.Reader)
	case "ecdsa-p256":
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "rsa-sha256":
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	default:
		return writeSecret(in, []byte(text)), nil
	}
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	if public, ok := private.Public().(ed25519.PublicKey); ok {
		raw = public
	}
	return writeSecret(in, raw), private
}

func writeSecret(in *config.Scheme, raw []byte) string {
	text := string(raw)
	switch in.Key {
	case "base64", "spki-base64":
		text = base64.StdEncoding.EncodeToString(raw)
	case "hex":
		text = hex.EncodeToString(raw)
	case "pem":
		text = string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: raw}))
	}
	if in.KeyBy != "" {
		text = "name:" + text
	}
	return text
}

// TestSuite puts every scheme through the same requests: good, flipped bit,
// stale, future, rotated, wrong secret, no signature, doubled header.
func TestSuite(t *testing.T) {
	t.Parallel()
	for _, s := range subjects(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			src := mustCompile(t, s.cfg)
			suiteRun(t, s, src)
		})
	}
}

func suiteRun(t *testing.T, s subject, src *Source) {
	draft := src.Sample("", "", suiteNow)
	good, err := src.Sign(draft, Signing{At: suiteNow, Private: s.private})
	if errors.Is(err, ErrCannotSign) {
		return // its signature stands inside the body: see the vectors and TestInBody
	}
	if err != nil {
		t.Fatal(err)
	}
	r := src.Receive(good, suiteNow)
	if r.Refused() || len(r.Items) == 0 {
		t.Fatalf("a good request: %s %s, %d items", r.Cause, r.Detail, len(r.Items))
	}
	for _, flaw := range Flaws() {
		want, applies := src.suiteCause(flaw)
		req, err := src.Sign(draft, Signing{At: suiteNow, Flaw: flaw, Private: s.private})
		if errors.Is(err, ErrNoWindow) && len(src.scheme.timestamp) == 0 {
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", flaw, err)
		}
		r := src.Receive(req, suiteNow)
		if applies && !containsCause(want, r.Cause) {
			t.Errorf("%s: %q (%s), want one of %q", flaw, r.Cause, r.Detail, want)
		}
		if !applies && r.Refused() {
			t.Errorf("%s: refused as %q", flaw, r.Cause)
		}
	}
	suiteRotated(t, s, src, draft)
}

// suiteRotated: the second secret is as good as the first, and its index is
// told.
func suiteRotated(t *testing.T, s subject, src *Source, draft Draft) {
	if len(s.cfg.Secrets) < 2 || s.private != nil {
		return
	}
	req, err := src.Sign(draft, Signing{At: suiteNow, Secret: 1})
	if err != nil {
		t.Fatal(err)
	}
	if r := src.Receive(req, suiteNow); r.SecretIndex != 1 {
		t.Errorf("rotated: secret %d, %q, want secret 1", r.SecretIndex, r.Cause)
	}
	one := s.cfg
	one.Secrets = one.Secrets[:1]
	if r := mustCompile(t, one).Receive(req, suiteNow); r.Cause != WrongSignature {
		t.Errorf("a removed secret: %q, want %q", r.Cause, WrongSignature)
	}
}

func containsCause(list []Cause, c Cause) bool {
	for _, one := range list {
		if one == c {
			return true
		}
	}
	return false
}

// suiteCause says what a flaw must come to; false where the scheme can not see
// it.
func (s *Source) suiteCause(flaw Flaw) ([]Cause, bool) {
	if s.scheme.auth == "none" {
		return nil, false
	}
	switch flaw {
	case CorruptBody:
		return []Cause{WrongSignature, WrongBodyHash, MalformedTimestamp}, s.scheme.integrity == Full
	case CorruptSignature:
		return []Cause{WrongSignature, MalformedSignature}, true
	case WrongSecret:
		return []Cause{WrongSignature}, !s.scheme.rule.asymmetric()
	case Stale:
		return []Cause{TooOld}, len(s.scheme.timestamp) > 0
	case Future:
		return []Cause{TooNew}, len(s.scheme.timestamp) > 0
	case Unsigned:
		return []Cause{MissingSignature}, true
	case Doubled:
		return []Cause{MalformedSignature}, !s.scheme.sig.repeat && s.scheme.sig.places[0].kind == inHeader
	}
	return nil, false
}

// TestEmptySecret: no scheme starts with a secret that is none.
func TestEmptySecret(t *testing.T) {
	t.Parallel()
	for _, s := range subjects(t) {
		if len(s.cfg.Secrets) == 0 {
			continue
		}
		for _, text := range []string{" ", "changeme", "whsec_...", "whsec_", "${WEBHOOK_SECRET}", "<your secret>", "no-secret-provided"} {
			s.cfg.Secrets = []config.Secret{config.NewSecret(text)}
			s.cfg.AllowWeakSecret = true
			if src, problems := Compile(s.cfg, "source[0]", noEnv); src != nil || problems.Err() == nil {
				t.Errorf("%s: %q was taken as a secret", s.name, text)
			}
		}
		s.cfg.Secrets = nil
		if src, problems := Compile(s.cfg, "source[0]", noEnv); src != nil || problems.Err() == nil {
			t.Errorf("%s: starts without a secret", s.name)
		}
	}
}
