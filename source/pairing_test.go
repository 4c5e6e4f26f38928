package source

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"creel/config"
)

// pairingSource is a source whose sender hands its secret over in a header
// and wants it back.
const handsOver = `
[pairing]
secret = "header.X-Hook-Secret"
[pairing.answer]
status = 204
header = { X-Hook-Secret = "{header.x-hook-secret}" }
`

func pairingSource(t *testing.T, secrets ...string) *Source {
	t.Helper()
	cfg := config.Source{Name: "asana", AwaitSecret: len(secrets) == 0, Verify: schemeOfText(t,
		"auth = \"hmac-sha256\"\nsignature = \"header.X-Hook-Signature\"\nid = \"body.id\"\n"+handsOver)}
	for _, secret := range secrets {
		cfg.Secrets = append(cfg.Secrets, config.NewSecret(secret))
	}
	return mustCompile(t, cfg)
}

func handing(secret string) *Request {
	return &Request{Method: "POST", Header: http.Header{"X-Hook-Secret": {secret}}, Body: []byte("{}")}
}

func TestOffer(t *testing.T) {
	t.Parallel()
	src := pairingSource(t)
	offer, ok, err := src.Offer(handing(diagnosedSecret))
	if !ok || err != nil || string(offer.Secret) != diagnosedSecret || offer.Show || offer.Answer.Status != 204 || offer.Answer.Header["X-Hook-Secret"] != diagnosedSecret {
		t.Errorf("%+v, %t, %v", offer, ok, err)
	}
	for name, req := range map[string]*Request{
		"no secret":      {Method: "POST", Header: http.Header{}},
		"an empty one":   handing(""),
		"two of them":    {Method: "POST", Header: http.Header{"X-Hook-Secret": {diagnosedSecret, "b"}}},
		"another method": {Method: "GET", Header: http.Header{"X-Hook-Secret": {diagnosedSecret}}},
	} {
		if _, ok, err := src.Offer(req); ok || err != nil {
			t.Errorf("%s: %t, %v", name, ok, err)
		}
	}
	for _, bad := range []string{"too brief", "changeme", strings.Repeat("x", 40)} {
		_, ok, err := src.Offer(handing(bad))
		if !ok || !errors.Is(err, errUnusable) || strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %t, %v", bad, ok, err)
		}
	}
	if _, ok, _ := plainSource(t, diagnosedSecret, "").Offer(handing(diagnosedSecret)); ok {
		t.Error("a scheme without pairing takes a secret")
	}
}

// Outside of a pairing mode nothing is taken: a handover is refused, unless it
// is the secret that we have.
func TestHandoverOutsideOfPairing(t *testing.T) {
	t.Parallel()
	if r := pairingSource(t).Receive(handing(diagnosedSecret), suiteNow); r.Cause != NoSecret {
		t.Errorf("no secret yet: %+v", r)
	}
	src := pairingSource(t, diagnosedSecret)
	if r := src.Receive(handing("another "+diagnosedSecret), suiteNow); r.Cause != MissingSignature {
		t.Errorf("another secret: %+v", r)
	}
	if r := src.Receive(handing(diagnosedSecret), suiteNow); r.Answer == nil || r.Answer.Status != 204 {
		t.Errorf("our secret, again: %+v", r)
	}
	if r := src.Receive(src.mustSign(t, `{"id":"1"}`), suiteNow); r.Refused() || len(r.Items) != 1 {
		t.Errorf("an event: %+v", r)
	}
}

// A source may name the file of a secret that is still to come.
func TestAwaitedSecretFile(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "asana.secret")
	cfg := config.Source{Name: "a", Provider: "stripe", AwaitSecret: true, Secrets: []config.Secret{config.NewSecret("file:" + name)}}
	if src := mustCompile(t, cfg); !src.Awaiting() || src.Secrets() != 0 {
		t.Error("the source does not wait for its secret")
	}
	if err := os.WriteFile(name, []byte(diagnosedSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if src := mustCompile(t, cfg); src.Awaiting() || src.Secrets() != 1 {
		t.Error("the source still waits for its secret")
	}
	cfg.AwaitSecret, cfg.Secrets = false, []config.Secret{config.NewSecret("file:" + name + ".not")}
	if _, problems := Compile(cfg, "source[0]", noEnv); problems.Err() == nil {
		t.Error("a missing file is no problem")
	}
	if _, problems := Compile(config.Source{Name: "a", Verify: schemeOfText(t, "auth = \"hmac-sha256\"\nsignature = \"header.a\"\n[pairing]\n")}, "source[0]", noEnv); problems.Err() == nil {
		t.Error("a pairing without a secret is no problem")
	}
}
