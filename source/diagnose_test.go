package source

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"creel/config"
)

// diagnosedPart is the part that a flaw must be put down to.
func (s *Source) diagnosedPart(flaw Flaw) []Part {
	switch flaw {
	case CorruptBody:
		if len(s.bodyWords()) == 0 {
			return []Part{PartSecret}
		}
		return []Part{PartEither, PartBody, PartTimestamp}
	case CorruptSignature:
		return []Part{PartEither, PartSecret, PartSignature}
	case WrongSecret:
		return []Part{PartEither, PartSecret}
	case Stale, Future:
		return []Part{PartClock}
	case Unsigned:
		return []Part{PartMissing}
	case Doubled:
		return []Part{PartSignature}
	}
	return nil
}

// TestDiagnoseSuite: every scheme's flawed requests are put down to the part
// that is wrong, with something to do, and without a secret.
func TestDiagnoseSuite(t *testing.T) {
	t.Parallel()
	for _, sub := range subjects(t) {
		t.Run(sub.name, func(t *testing.T) {
			t.Parallel()
			src := mustCompile(t, sub.cfg)
			draft := src.Sample("", "", suiteNow)
			good, err := src.Sign(draft, Signing{At: suiteNow, Private: sub.private})
			if errors.Is(err, ErrCannotSign) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := src.Diagnose(good, suiteNow, nil); !d.Verified || d.Part != "" || len(d.Events) == 0 || d.Cause != "" {
				t.Errorf("a good request: %+v", d)
			}
			for _, flaw := range Flaws() {
				_, applies := src.suiteCause(flaw)
				req, err := src.Sign(draft, Signing{At: suiteNow, Flaw: flaw, Private: sub.private})
				if errors.Is(err, ErrNoWindow) || !applies {
					continue
				}
				if err != nil {
					t.Fatalf("%s: %v", flaw, err)
				}
				d := src.Diagnose(req, suiteNow, nil)
				if d.Verified || d.Problem == "" || d.Next == "" || !slices.Contains(src.diagnosedPart(flaw), d.Part) {
					t.Errorf("%s: %+v, want a part of %q", flaw, d, src.diagnosedPart(flaw))
				}
				quotesNothing(t, src, good, d)
			}
		})
	}
}

// quotesNothing looks for the secrets and the signature in a diagnosis.
func quotesNothing(t *testing.T, src *Source, good *Request, d Diagnosis) {
	t.Helper()
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	hidden := src.scheme.sig.written(&view{src: src, req: good})
	for _, k := range src.keys {
		if k.raw != nil {
			hidden = append(hidden, string(k.raw), hex.EncodeToString(k.raw), base64.RawStdEncoding.EncodeToString(k.raw))
		}
	}
	for _, one := range hidden {
		if len(one) > 4 && bytes.Contains(text, []byte(one)) {
			t.Errorf("the diagnosis quotes %q: %s", one, text)
		}
	}
}

const diagnosedSecret = "a secret of the diagnosis, long enough"

// plainSource signs the body alone, in hex.
func plainSource(t *testing.T, secret string, more string) *Source {
	t.Helper()
	text := `
auth      = "hmac-sha256"
signature = "header.X-Signature"
id        = "body.id"
` + more
	if !strings.Contains(more, "signed") {
		text += "signed = \"{body}\"\n"
	}
	return mustCompile(t, config.Source{Name: "plain", PublicURL: "https://hooks.example.test/in/plain", AllowWeakSecret: true,
		Secrets: []config.Secret{config.NewSecret(secret)}, Verify: schemeOfText(t, text)})
}

func (s *Source) mustSign(t *testing.T, body string) *Request {
	t.Helper()
	req, err := s.Sign(Draft{ID: "e1", Body: []byte(body)}, Signing{At: suiteNow})
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// What happens to bodies on their way is found by trying.
func TestDiagnoseBodies(t *testing.T) {
	t.Parallel()
	src := plainSource(t, diagnosedSecret, "")
	for _, change := range []struct {
		name, sent, came, likely string
	}{
		{"an editor's line end", `{"id":"e1"}`, "{\"id\":\"e1\"}\n", "without its last line end"},
		{"a lost line end", "{\"id\":\"e1\"}\n", `{"id":"e1"}`, "with a line end behind it"},
		{"CRLF became LF", "{\r\n\"id\":\"e1\"}", "{\n\"id\":\"e1\"}", "CRLF in place of LF"},
		{"LF became CRLF", "{\n\"id\":\"e1\"}", "{\r\n\"id\":\"e1\"}", "LF in place of CRLF"},
		{"a byte order mark", `{"id":"e1"}`, "\ufeff{\"id\":\"e1\"}", "byte order mark"},
		{"indented", `{"id":"e1","a":[1,2]}`, "{\n  \"id\": \"e1\",\n  \"a\": [\n    1,\n    2\n  ]\n}", "the same JSON without blanks"},
		{"of Python", `{"id": "e1", "a": [1, 2]}`, `{"id":"e1","a":[1,2]}`, "a blank behind each comma"},
		{"of Python, in ASCII", `{"id": "e1", "n": "Gr\u00fc\u00dfe \ud83d\ude00"}`, `{"id":"e1","n":"Grüße 😀"}`, "in ASCII"},
		{"of PHP", `{"id":"e1","u":"http:\/\/x\/\u00fc"}`, `{"id":"e1","u":"http://x/ü"}`, "escaped slashes"},
		{"of Go", `{"id":"e1","u":"a\u003cb\u0026c"}`, `{"id":"e1","u":"a<b&c"}`, "with <, > and & escaped"},
		{"members in another order", `{"id":"e1","u":"x"}`, `{"u":"x","id":"e1"}`, ""},
		{"nothing is left", ``, `{}`, "empty body"},
	} {
		req := src.mustSign(t, change.sent)
		req.Body = []byte(change.came)
		d := src.Diagnose(req, suiteNow, nil)
		if change.likely == "" {
			if d.Part != PartEither || len(d.Tried) < 3 {
				t.Errorf("%s: %+v", change.name, d)
			}
			continue
		}
		if d.Part != PartBody || !strings.Contains(d.Likely, change.likely) {
			t.Errorf("%s: %s, %s", change.name, d.Part, d.Likely)
		}
	}
}

// What happens to secrets on their way into a configuration is found too.
func TestDiagnoseSecrets(t *testing.T) {
	t.Parallel()
	raw := []byte("bytes that are a secret, 32 long")
	text := base64.StdEncoding.EncodeToString(raw)
	for _, c := range []struct{ name, senders, ours, form, likely string }{
		{"a line end", diagnosedSecret, diagnosedSecret + "\n", "", "without the blanks"},
		{"a blank", diagnosedSecret, "  " + diagnosedSecret, "", "without the blanks"},
		{"quotes", diagnosedSecret, `"` + diagnosedSecret + `"`, "", "without the quotes"},
		{"the sender's line end", diagnosedSecret + "\n", diagnosedSecret, "", "with a line end behind it"},
		{"base64 as text", string(raw), text, "", "decoded as base64"},
		{"hex as text", string(raw), hex.EncodeToString(raw), "", "decoded as hex"},
		{"a prefix", "whsec_" + diagnosedSecret, diagnosedSecret, "", "with the prefix whsec_"},
		{"no prefix", diagnosedSecret, "whsec_" + diagnosedSecret, "", "without its prefix whsec_"},
		{"text as base64", text, text, "base64", "taken as text"},
	} {
		sender := plainSource(t, c.senders, "")
		form := ""
		if c.form != "" {
			form = fmt.Sprintf("key = %q\n", c.form)
		}
		d := plainSource(t, c.ours, form).Diagnose(sender.mustSign(t, `{"id":"e1"}`), suiteNow, nil)
		if d.Part != PartSecret || !strings.Contains(d.Likely, c.likely) || d.Next == "" {
			t.Errorf("%s: %s, %s", c.name, d.Part, d.Likely)
		}
	}
	empty := plainSource(t, diagnosedSecret, "")
	empty.keys = []key{{raw: nil}}
	d := plainSource(t, diagnosedSecret, "").Diagnose(empty.mustSign(t, `{"id":"e1"}`), suiteNow, nil)
	if d.Part != PartSecret || !strings.Contains(d.Likely, "empty secret") {
		t.Errorf("an empty secret: %s, %s", d.Part, d.Likely)
	}
}

// The other sources of the configuration are tried: an exchanged secret, an
// exchanged URL.
func TestDiagnoseOtherSources(t *testing.T) {
	t.Parallel()
	shop := mustCompile(t, config.Source{Name: "shop", Provider: "stripe", Secrets: []config.Secret{config.NewSecret(diagnosedSecret)}})
	test := mustCompile(t, config.Source{Name: "test", Provider: "stripe", Secrets: []config.Secret{config.NewSecret("another " + diagnosedSecret)}})
	hub := mustCompile(t, config.Source{Name: "hub", Provider: "github", Secrets: []config.Secret{config.NewSecret("a third " + diagnosedSecret)}})
	all := []*Source{shop, test, hub}

	of := func(s *Source) *Request {
		req, err := s.Sign(s.Sample("", "", suiteNow), Signing{At: suiteNow})
		if err != nil {
			t.Fatal(err)
		}
		return req
	}
	for _, c := range []struct {
		at, of *Source
		part   Part
		likely string
	}{
		{shop, test, PartSource, `the source "test"`},
		{shop, hub, PartSource, `those of GitHub, and it verifies as the source "hub"`},
		{hub, shop, PartSource, `those of Stripe, and it verifies as the source "shop"`},
	} {
		if d := c.at.Diagnose(of(c.of), suiteNow, all); d.Part != c.part || !strings.Contains(d.Likely, c.likely) {
			t.Errorf("%s of %s: %s, %s", c.at.name, c.of.name, d.Part, d.Likely)
		}
	}
	// Signed with a secret of another scheme's source.
	plain := plainSource(t, "a third "+diagnosedSecret, "")
	mine := plainSource(t, diagnosedSecret, "")
	mine.name = "mine"
	if d := mine.Diagnose(plain.mustSign(t, `{"id":"e1"}`), suiteNow, []*Source{mine, hub}); d.Part != PartSecret || !strings.Contains(d.Likely, `secret of the source "hub"`) {
		t.Errorf("another's secret: %s, %s", d.Part, d.Likely)
	}
}

// A signed time that was changed, in another unit, or too far away.
func TestDiagnoseTimes(t *testing.T) {
	t.Parallel()
	src := mustCompile(t, config.Source{Name: "shop", Provider: "stripe", Secrets: []config.Secret{config.NewSecret(diagnosedSecret)}})
	req := src.mustSign(t, `{"id":"e1","type":"x"}`)
	later := suiteNow.Add(72*time.Hour + 5*time.Minute)
	d := src.Diagnose(req, later, nil)
	if d.Part != PartClock || d.Cause != TooOld || !d.SignedAt.Equal(suiteNow.Truncate(time.Second)) || d.Outside != -(72*time.Hour+123*time.Millisecond).Milliseconds() ||
		!strings.Contains(d.Problem, "3 days before") || !strings.Contains(d.Next, "--at") {
		t.Errorf("old: %+v", d)
	}
	d = src.Diagnose(req, suiteNow.Add(-6*time.Minute), nil)
	if d.Part != PartClock || d.Cause != TooNew || d.Outside != (time.Minute-123*time.Millisecond).Milliseconds() || !strings.Contains(d.Problem, "after the time of the check") {
		t.Errorf("new: %+v", d)
	}
	text := req.Header.Get("Stripe-Signature")
	stamp := fmt.Sprint(suiteNow.Unix())
	req.Header.Set("Stripe-Signature", strings.Replace(text, stamp, fmt.Sprint(suiteNow.Unix()+60), 1))
	if d = src.Diagnose(req, suiteNow, nil); d.Part != PartTimestamp || !strings.Contains(d.Likely, stamp) {
		t.Errorf("changed: %+v", d)
	}
	req.Header.Set("Stripe-Signature", strings.Replace(text, stamp, "soon", 1))
	if d = src.Diagnose(req, suiteNow, nil); d.Part != PartTimestamp || d.Cause != MalformedTimestamp {
		t.Errorf("no number: %+v", d)
	}
	millis := plainSource(t, diagnosedSecret, "signed = \"{ts}.{body}\"\ntimestamp = \"header.X-Time\"\nunit = \"ms\"\n")
	seconds := plainSource(t, diagnosedSecret, "signed = \"{ts}.{body}\"\ntimestamp = \"header.X-Time\"\n")
	if d = seconds.Diagnose(millis.mustSign(t, `{"id":"e1"}`), suiteNow, nil); d.Part != PartTimestamp || !strings.Contains(d.Likely, "another unit") {
		t.Errorf("another unit: %+v", d)
	}
}

// A URL that is not quite the registered one, a scheme that is not the
// sender's.
func TestDiagnoseSchemes(t *testing.T) {
	t.Parallel()
	url := "signed = \"{url}{body}\"\n"
	for _, public := range []string{"http://hooks.example.test/in/plain", "https://hooks.example.test/in/plain/", "https://hooks.example.test:443/in/plain", "https://internal:8080/in/plain"} {
		sender := plainSource(t, diagnosedSecret, url)
		sender.publicURL = public
		req := sender.mustSign(t, `{"id":"e1"}`)
		req.Header.Set("Host", "internal:8080")
		if d := plainSource(t, diagnosedSecret, url).Diagnose(req, suiteNow, nil); d.Part != PartURL || !strings.Contains(d.Likely, public) {
			t.Errorf("%s: %s, %s", public, d.Part, d.Likely)
		}
	}
	sender := plainSource(t, diagnosedSecret, "signed = \"{ts}.{body}\"\ntimestamp = \"header.X-Time\"\n")
	mine := plainSource(t, diagnosedSecret, "signed = \"{body}\"\ntimestamp = \"header.X-Time\"\n")
	if d := mine.Diagnose(sender.mustSign(t, `{"id":"e1"}`), suiteNow, nil); d.Part != PartScheme || !strings.Contains(d.Next, `verify.signed = "{ts}.{body}"`) {
		t.Errorf("another content: %s, %s, %s", d.Part, d.Likely, d.Next)
	}
	coded := plainSource(t, diagnosedSecret, "encoding = \"base64\"\n")
	if d := plainSource(t, diagnosedSecret, "").Diagnose(coded.mustSign(t, `{"id":"e1"}`), suiteNow, nil); d.Part != PartSignature || !strings.Contains(d.Likely, "reads as base64") {
		t.Errorf("another encoding: %s, %s", d.Part, d.Likely)
	}
}

// What can be seen without a key, and requests that are fine but for a detail.
func TestDiagnoseNotes(t *testing.T) {
	t.Parallel()
	src := plainSource(t, diagnosedSecret, "")
	req := src.mustSign(t, `{"id":"e1"}`)
	req.Header.Set("Content-Length", "400")
	req.Body = []byte(`{"id":"e`)
	if d := src.Diagnose(req, suiteNow, nil); d.Part != PartBody || len(d.Notes) != 1 {
		t.Errorf("a body cut short: %+v", d)
	}
	if d := src.Diagnose(src.mustSign(t, `{"n":1}`), suiteNow, nil); !d.Verified || d.Part != PartID || d.Next == "" || len(d.Events) != 1 {
		t.Errorf("no id: %+v", d)
	}
	req = src.mustSign(t, `{"id":"e1"}`)
	req.Header = http.Header{"X-Signature-Sha256": req.Header["X-Signature"]}
	if d := src.Diagnose(req, suiteNow, nil); d.Part != PartMissing || !strings.Contains(d.Likely, "X-Signature-Sha256") {
		t.Errorf("a header of much the same name: %+v", d)
	}
	awaiting := mustCompile(t, config.Source{Name: "later", Provider: "stripe", AwaitSecret: true})
	if d := awaiting.Diagnose(req, suiteNow, nil); d.Part != PartSecret || d.Next == "" {
		t.Errorf("no secret yet: %+v", d)
	}
	slack := mustCompile(t, config.Source{Name: "slack", Provider: "slack", Secrets: []config.Secret{config.NewSecret(diagnosedSecret)}})
	if d := slack.Diagnose(slack.mustSign(t, `{"type":"url_verification","challenge":"c"}`), suiteNow, nil); !d.Verified || !d.Handshake || len(d.Notes) == 0 {
		t.Errorf("a handshake: %+v", d)
	}
}

// A large body does not make the search endless.
func TestDiagnoseIsBounded(t *testing.T) {
	t.Parallel()
	src := plainSource(t, diagnosedSecret, "")
	req := src.mustSign(t, `{"id":"`+strings.Repeat("e", 20<<20)+`"}`)
	req.Body[100] = 'x'
	start := time.Now()
	if d := src.Diagnose(req, suiteNow, nil); d.Verified || d.Part != PartEither {
		t.Errorf("%+v", d)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("20 MiB took %s", took)
	}
}
