package source

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"

	"creel/config"
)

// handshakeSource is a source of a scheme of the tests with one secret.
func handshakeSource(t *testing.T, name string) *Source {
	t.Helper()
	s := subject{name: name, cfg: config.Source{Verify: testScheme(t, name)}}
	s.finish(t)
	return mustCompile(t, s.cfg)
}

func probe(query string, pairs ...string) *Request {
	req := post(nil, pairs...)
	req.Method, req.Query = "GET", query
	return req
}

func TestGateR8Handshakes(t *testing.T) {
	t.Parallel()
	mac := hmac.New(sha256.New, []byte("first secret of the suite"))
	mac.Write([]byte("abc"))
	sum := mac.Sum(nil)
	for _, c := range []struct {
		scheme string
		req    *Request
		status int
		kind   string
		body   string
	}{
		{"meta", probe("hub.mode=subscribe&hub.verify_token=a+verify+token&hub.challenge=1158201444"), 200, "text/plain", "1158201444"},
		{"meta", probe("hub.mode=subscribe&hub.verify_token=wrong&hub.challenge=1158201444"), 403, "", ""},
		{"meta", probe("hub.mode=subscribe&hub.challenge=1158201444"), 403, "", ""},
		{"meta", probe("hub.mode=subscribe&hub.verify_token=a+verify+token&hub.challenge=%3Cscript%3E1%3C/script%3E"), 200, "text/plain", "<script>1</script>"},
		{"okta", probe("", "X-Okta-Verification-Challenge", `a"b`), 200, "application/json", `{"verification":"a\"b"}`},
		{"x-crc", probe("crc_token=abc"), 200, "application/json", `{"response_token":"sha256=` + base64.StdEncoding.EncodeToString(sum) + `"}`},
	} {
		answer, ok := handshakeSource(t, c.scheme).Probe(c.req)
		if !ok || answer.Status != c.status || answer.Type != c.kind || answer.Body != c.body {
			t.Errorf("%s %s: %v %+v", c.scheme, c.req.Query, ok, answer)
		}
	}
	if _, ok := handshakeSource(t, "meta").Probe(probe("x=1")); ok {
		t.Error("a probe that is no handshake got an answer")
	}
	head := probe("hub.mode=subscribe&hub.verify_token=a+verify+token&hub.challenge=1")
	head.Method = "HEAD"
	if _, ok := handshakeSource(t, "meta").Probe(head); ok {
		t.Error("a HEAD got a handshake")
	}
	graph := post(nil)
	graph.Query = "validationToken=Validation%3A%20Testing%20client%20application"
	if r := handshakeSource(t, "graph").Receive(graph, bugNow); r.Answer == nil || r.Answer.Body != "Validation: Testing client application" || r.Answer.Type != "text/plain" {
		t.Errorf("graph: %+v", r)
	}
	if r := handshakeSource(t, "monday").Receive(post([]byte(`{"challenge":"x"}`)), bugNow); r.Answer == nil || r.Answer.Body != `{"challenge":"x"}` {
		t.Errorf("monday: %+v", r)
	}
	signedHandshakes(t, hex.EncodeToString(sum))
}

// signedHandshakes are answered only where the request is authentic.
func signedHandshakes(t *testing.T, sum string) {
	for _, c := range []struct {
		scheme, body, want string
		status             int
		header             []string
	}{
		{"zoom", `{"event":"endpoint.url_validation","payload":{"plainToken":"abc"}}`, `{"encryptedToken":"` + sum + `","plainToken":"abc"}`, 200, nil},
		{"twitch", `{"challenge":"pogchamp"}`, "pogchamp", 200, []string{"Twitch-Eventsub-Message-Type", "webhook_callback_verification"}},
		{"discord", `{"type":0}`, "", 204, nil},
	} {
		sub := subject{name: c.scheme, cfg: config.Source{Verify: testScheme(t, c.scheme)}}
		sub.finish(t)
		s := mustCompile(t, sub.cfg)
		d := Draft{ID: "m-1", Header: http.Header{}, Body: []byte(c.body)}
		for i := 0; i+1 < len(c.header); i += 2 {
			d.Header.Set(c.header[i], c.header[i+1])
		}
		good, err := s.Sign(d, Signing{At: bugNow, Private: sub.private})
		if err != nil {
			t.Fatal(err)
		}
		if r := s.Receive(good, bugNow); r.Answer == nil || r.Answer.Body != c.want || r.Answer.Status != c.status || len(r.Items) > 0 {
			t.Errorf("%s: %+v", c.scheme, r)
		}
		bad, err := s.Sign(d, Signing{At: bugNow, Flaw: CorruptSignature, Private: sub.private})
		if err != nil {
			t.Fatal(err)
		}
		if r := s.Receive(bad, bugNow); !r.Refused() {
			t.Errorf("%s: a handshake that is not signed was answered", c.scheme)
		}
	}
}

func TestAwaitSecret(t *testing.T) {
	t.Parallel()
	cfg := config.Source{Name: "meta", AwaitSecret: true, Verify: testScheme(t, "meta"),
		Settings: map[string]string{"verify_token": "env:VERIFY_TOKEN"}}
	env := func(name string) (string, bool) { return "a verify token", name == "VERIFY_TOKEN" }
	s, problems := Compile(cfg, "source[0]", env)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Probe(probe("hub.mode=subscribe&hub.verify_token=a+verify+token&hub.challenge=1")); !ok || !s.Awaiting() {
		t.Error("a source that waits for its secret answers no handshake")
	}
	wantCause(t, s.Receive(post([]byte(`{}`), "X-Hub-Signature-256", "sha256=00"), bugNow), NoSecret)
}

// TestInBody covers the schemes whose proof stands inside the body, which Sign
// does not make.
func TestInBody(t *testing.T) {
	t.Parallel()
	const secret = "first secret of the suite"
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("1700000000token"))
	sig := hex.EncodeToString(mac.Sum(nil))
	mailgun := func(stamp, sig string) string {
		return `{"signature":{"timestamp":"` + stamp + `","token":"token","signature":"` + sig + `"},"event-data":{"id":"m1","event":"opened"}}`
	}
	for _, c := range []struct {
		scheme, body string
		want         Cause
	}{
		{"figma", `{"passcode":"` + secret + `","webhook_id":"1","event_type":"PING","timestamp":"t"}`, ""},
		{"figma", `{"passcode":"first secret of the suitf","webhook_id":"1"}`, WrongSignature},
		{"figma", `{"passcode":"x","passcode":"` + secret + `"}`, MalformedSignature},
		{"figma", `{"webhook_id":"1"}`, MissingSignature},
		{"figma", `{"passcode":null}`, MissingSignature},
		{"figma", `not json`, MalformedSignature},
		{"graph", `{"value":[{"clientState":"` + secret + `"},{"clientState":"` + secret + `","x":1}]}`, ""},
		{"graph", `{"value":[{"clientState":"` + secret + `"},{"clientState":"other"}]}`, WrongSignature},
		{"graph", `{"value":[{"clientState":"` + secret + `"},{}]}`, MissingSignature},
		{"graph", `{"value":[]}`, MissingSignature},
		{"graph", `{}`, MissingPart},
		{"mailgun", mailgun("1700000000", sig), ""},
		{"mailgun", mailgun("1700000001", sig), WrongSignature},
		{"mailgun", mailgun("170000000x", sig), MalformedTimestamp},
	} {
		wantCause(t, handshakeSource(t, c.scheme).Receive(post([]byte(c.body)), bugNow), c.want)
	}
	wantCause(t, handshakeSource(t, "mailgun").Receive(post([]byte(mailgun("1700000000", sig))), bugNow.Add(time.Hour)), TooOld)
}

// TestOtherPlaces covers what the suite's one request a scheme does not show.
func TestOtherPlaces(t *testing.T) {
	t.Parallel()
	sign := func(s *Source, secret int, body string) *Request {
		req, err := s.Sign(Draft{ID: "x", Body: []byte(body)}, Signing{At: bugNow, Secret: secret})
		if err != nil {
			t.Fatal(err)
		}
		return req
	}
	docusign := handshakeSource(t, "docusign")
	req := sign(docusign, 1, `{"event":"e"}`)
	req.Header.Set("X-DocuSign-Signature-100", req.Header.Get("X-DocuSign-Signature-1"))
	req.Header.Set("X-DocuSign-Signature-1", "AAAA")
	wantCause(t, docusign.Receive(req, bugNow), "")
	req.Header.Set("X-DocuSign-Signature-101", req.Header.Get("X-DocuSign-Signature-100"))
	req.Header.Del("X-DocuSign-Signature-100")
	wantCause(t, docusign.Receive(req, bugNow), WrongSignature)

	box := handshakeSource(t, "box")
	req = sign(box, 1, `{"id":"b"}`)
	req.Header.Set("box-signature-secondary", req.Header.Get("box-signature-primary"))
	req.Header.Set("box-signature-primary", "AAAA")
	wantCause(t, box.Receive(req, bugNow), "")
	req.Header.Set("box-signature-version", "2")
	wantCause(t, box.Receive(req, bugNow), Unequal)

	mollie := handshakeSource(t, "mollie")
	req = sign(mollie, 1, `{"id":"m"}`)
	req.Header["X-Mollie-Signature"] = append([]string{"sha256=00"}, req.Header["X-Mollie-Signature"]...)
	wantCause(t, mollie.Receive(req, bugNow), "")

	pusher := handshakeSource(t, "pusher")
	req = sign(pusher, 0, `{}`)
	req.Header.Set("X-Pusher-Key", "another")
	wantCause(t, pusher.Receive(req, bugNow), WrongSignature)

	jwt := handshakeSource(t, "livekit")
	req = sign(jwt, 0, `{"id":"l"}`)
	wantCause(t, jwt.Receive(req, bugNow.Add(time.Hour)), TooOld)
	wantCause(t, jwt.Receive(req, bugNow.Add(-time.Hour)), TooNew)
	none := encURL.encode([]byte(`{"alg":"none"}`)) + "." + encURL.encode([]byte(`{}`)) + "."
	wantCause(t, jwt.Receive(post([]byte(`{}`), "Authorization", none), bugNow), MalformedSignature)

	for _, header := range []string{`{"alg":"HS512"}`, `{"alg":"HS256","crit":["x"]}`, `{}`, `[]`} {
		wantCause(t, jwt.Receive(post([]byte(`{"id":"l"}`), "Authorization", resigned(req.Header.Get("Authorization"), header)), bugNow), MalformedSignature)
	}
	wantCause(t, jwt.Receive(post([]byte(`{"id":"l"}`), "Authorization", resigned(req.Header.Get("Authorization"), `{"alg":"HS256"}`)), bugNow), "")

	polar := subject{cfg: config.Source{Provider: "polar"}}
	polar.finish(t)
	standard := mustCompile(t, polar.cfg)
	req = sign(standard, 0, `{}`)
	req.Header.Del("webhook-id")
	wantCause(t, standard.Receive(req, bugNow), MissingPart)
	req.Header["Webhook-Id"] = []string{"x", "x"}
	wantCause(t, standard.Receive(req, bugNow), MalformedPart)

	supabase := subject{cfg: config.Source{Verify: testScheme(t, "supabase")}}
	supabase.finish(t)
	supabase.cfg.Secrets = []config.Secret{config.NewSecret("v1,whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw|v1,whsec_b2xkLW9sZC1vbGQtb2xkLW9sZC1vbGQt")}
	sb := mustCompile(t, supabase.cfg)
	wantCause(t, sb.Receive(sign(sb, 1, `{}`), bugNow), "")
}

// resigned is a token with another header, signed by the right secret.
func resigned(token, header string) string {
	claims := strings.Split(token, ".")[1]
	signed := encURL.encode([]byte(header)) + "." + claims
	mac := hmac.New(sha256.New, []byte("first secret of the suite"))
	mac.Write([]byte(signed))
	return signed + "." + encURL.encode(mac.Sum(nil))
}
