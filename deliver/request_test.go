package deliver

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"creel/config"
	"creel/event"
	"creel/internal/testkit"
)

// oddBody has what a re-encoding would change: order, spaces, escapes, digits,
// a byte that is not UTF-8.
const oddBody = "{ \"b\":1.0,  \"a\":123456789012345678901234567890, \"u\":\"\\u00e9é\\/\", \"raw\":\"\xff\" }\r\n"

// TestGateD3Bytes sends a body and headers through a real server and verifies
// our signature with the official library, on attempt 6 and on a replay.
func TestGateD3Bytes(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	d := compiled(t, config.Destination{URL: app.URL})
	official, err := standardwebhooks.NewWebhook(testSecret)
	if err != nil {
		t.Fatal(err)
	}
	s := shipment()
	s.Payload = event.Payload{Body: []byte(oddBody), Header: "Content-Type: application/json; charset=\"utf-8\"\n" +
		"Stripe-Signature: t=1,v1=abc\nX-Twice: one\nX-Twice: two\n" +
		"Webhook-Id: msg_theirs\nWebhook-Signature: v1,theirs\nWebhook-Timestamp: 12\nIdempotency-Key: theirs\n"}
	s.Event.Account, s.Type, s.Tries = "acct_1", "invoice.paid", 6
	now := time.Now()
	for _, at := range []time.Time{now, now.Add(24 * time.Hour)} {
		if result := d.Attempt(t.Context(), s, at); result.Attempt.Outcome != event.OK {
			t.Fatalf("%s: %s", result.Attempt.Outcome, result.Attempt.Error)
		}
		s.Run, s.Tries = 2, 1
	}
	requests := app.Requests()
	if err := official.Verify(requests[0].Body, requests[0].Header); err != nil {
		t.Errorf("attempt 6: %v", err)
	}
	if err := official.VerifyIgnoringTimestamp(requests[1].Body, requests[1].Header); err != nil {
		t.Errorf("the replay: %v", err)
	}
	if got, want := requests[1].Header.Get("webhook-timestamp"), strconv.FormatInt(now.Add(24*time.Hour).Unix(), 10); got != want {
		t.Errorf("the replay is signed for %s, want %s", got, want)
	}
	if requests[0].ID() != requests[1].ID() || strings.Contains(requests[0].ID(), ".") || len(requests[0].ID()) > 40 {
		t.Errorf("webhook-id %q and %q", requests[0].ID(), requests[1].ID())
	}
	got := requests[0]
	if string(got.Body) != oddBody || got.Method != http.MethodPost {
		t.Errorf("%s %q", got.Method, got.Body)
	}
	for name, want := range map[string]string{
		"Content-Type":     `application/json; charset="utf-8"`,
		"Stripe-Signature": "t=1,v1=abc", "X-Twice": "one,two",
		"Creel-Original-Webhook-Id": "msg_theirs", "Creel-Original-Webhook-Signature": "v1,theirs",
		"Creel-Original-Webhook-Timestamp": "12", "Creel-Original-Idempotency-Key": "theirs",
		"Idempotency-Key": got.ID(), "Creel-Source": "stripe", "Creel-Account": "acct_1",
		"Creel-Type": "invoice.paid", "Creel-Event": "stripe/acct_1/evt_1", "Creel-Attempt": "6",
		"User-Agent": "Creel/test", "Content-Length": strconv.Itoa(len(oddBody)),
	} {
		if values := strings.Join(got.Header[name], ","); values != want {
			t.Errorf("%s: %q, want %q", name, values, want)
		}
	}
}

// TestGateD3Secrets verifies what a secret of each form signs.
func TestGateD3Secrets(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	const plain = "a plain secret of the owner"
	d := compiled(t, config.Destination{URL: app.URL, Secret: config.NewSecret(plain)})
	d.Attempt(t.Context(), shipment(), time.Now())
	official, err := standardwebhooks.NewWebhookRaw([]byte(plain))
	if err != nil {
		t.Fatal(err)
	}
	got := app.Requests()[0]
	if err := official.Verify(got.Body, got.Header); err != nil {
		t.Error(err)
	}
	got.Body[0] ^= 1
	if err := official.Verify(got.Body, got.Header); err == nil {
		t.Error("a flipped bit verifies")
	}
}

// TestBugOUT11 is an app that verifies the provider's own signature on what
// it gets.
func TestBugOUT11(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	d := compiled(t, config.Destination{URL: app.URL})
	mac := hmac.New(sha256.New, []byte("github's secret"))
	mac.Write([]byte(oddBody))
	s := shipment()
	s.Payload = event.Payload{Body: []byte(oddBody), Header: "Content-Type: application/json\nX-Github-Event: push\n" +
		"X-Hub-Signature-256: sha256=" + hex.EncodeToString(mac.Sum(nil)) + "\n"}
	d.Attempt(t.Context(), s, time.Now())
	got := app.Requests()[0]
	again := hmac.New(sha256.New, []byte("github's secret"))
	again.Write(got.Body)
	if got.Header.Get("X-Hub-Signature-256") != "sha256="+hex.EncodeToString(again.Sum(nil)) || got.Header.Get("X-GitHub-Event") != "push" {
		t.Errorf("the provider's signature does not verify: %v", got.Header)
	}
}

func TestHeadersThatStay(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	lines := "Authorization: Bearer theirs\nCookie: a=b\nProxy-Authorization: x\nConnection: close, X-Hop\nX-Hop: 1\n" +
		"X-Forwarded-For: 1.2.3.4\nX-Forwarded-Proto: https\nForwarded: for=1.2.3.4\nVia: 1.1 x\nX-Real-Ip: 1.2.3.4\n" +
		"Keep-Alive: 5\nTe: trailers\nTrailer: X\nTransfer-Encoding: chunked\nUpgrade: h2c\nExpect: 100-continue\n" +
		"Host: provider\nContent-Length: 3\nAccept-Encoding: br\nCreel-Source: forged\nCreel-Original-X: forged\n" +
		"X-Kept: yes\nBad Name: x\nX-Bad: a\x00b\nnocolon\nUser-Agent: Provider/1\n"
	s := shipment()
	s.Payload.Header = lines
	for _, c := range []struct {
		pass   []string
		passed string
	}{{nil, ""}, {[]string{"authorization", "X-Forwarded-For"}, "Bearer theirs"}} {
		d := compiled(t, config.Destination{URL: app.URL, PassHeaders: c.pass})
		if result := d.Attempt(t.Context(), s, time.Now()); result.Attempt.Outcome != event.OK {
			t.Fatal(result.Attempt.Error)
		}
		got := app.Requests()[app.Count()-1]
		if got.Header.Get("Authorization") != c.passed {
			t.Errorf("pass %v: Authorization %q", c.pass, got.Header.Get("Authorization"))
		}
		if (got.Header.Get("X-Forwarded-For") != "") != (c.pass != nil) {
			t.Errorf("pass %v: X-Forwarded-For %q", c.pass, got.Header.Get("X-Forwarded-For"))
		}
		for _, name := range []string{"Cookie", "Proxy-Authorization", "Connection", "X-Hop", "X-Forwarded-Proto", "Forwarded", "Via",
			"X-Real-Ip", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect", "Accept-Encoding", "X-Bad", "Bad Name"} {
			if value, ok := got.Header[name]; ok {
				t.Errorf("%s: %q went through", name, value)
			}
		}
		for name, want := range map[string]string{"X-Kept": "yes", "User-Agent": "Provider/1", "Creel-Source": "stripe",
			"Creel-Original-Creel-Source": "forged", "Creel-Original-Creel-Original-X": "forged"} {
			if got.Header.Get(name) != want {
				t.Errorf("%s: %q, want %q", name, got.Header.Get(name), want)
			}
		}
		if got.Host == "provider" || len(got.Body) == 3 {
			t.Errorf("host %q, body %q", got.Host, got.Body)
		}
	}
}

func TestOwnHeadersWin(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	env := func(name string) (string, bool) { return "Bearer of the owner", name == "TOKEN" }
	d := compiled(t, config.Destination{URL: strings.Replace(app.URL, "//", "//user:password1@", 1),
		PassHeaders: []string{"Authorization"},
		Headers: map[string]config.Secret{"authorization": config.NewSecret("env:TOKEN"), "Host": config.NewSecret("inner.example"),
			"content-type": config.NewSecret("application/x-own"), "Creel-Type": config.NewSecret("own")}},
		func(o *Options) { o.Env = env })
	s := shipment()
	s.Payload.Header += "Authorization: Bearer theirs\n"
	d.Attempt(t.Context(), s, time.Now())
	got := app.Requests()[0]
	if got.Header.Get("Authorization") != "Bearer of the owner" || got.Host != "inner.example" ||
		got.Header.Get("Content-Type") != "application/x-own" || got.Header.Get("Creel-Type") != "own" {
		t.Errorf("host %s, %v", got.Host, got.Header)
	}
}

func TestUserInformationIsAuthorization(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	d := compiled(t, config.Destination{URL: strings.Replace(app.URL, "//", "//user:password1@", 1) + "/x?token=abcdefgh"})
	d.Attempt(t.Context(), shipment(), time.Now())
	got := app.Requests()[0]
	user, password, ok := (&http.Request{Header: got.Header}).BasicAuth()
	if !ok || user != "user" || password != "password1" || got.URL != "/x?token=abcdefgh" {
		t.Errorf("%s %s %v at %s", user, password, ok, got.URL)
	}
	if shown := d.String(); strings.Contains(shown, "password1") || strings.Contains(shown, "abcdefgh") {
		t.Errorf("shown as %s", shown)
	}
}

// TestParts sends one event of several byte for byte, and a form as the form
// it came in.
func TestParts(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	d := compiled(t, config.Destination{URL: app.URL})
	const list = `{"items":[ {"n": 1.0} ,{"n":2,  "s":"\u00e9" }]}`
	form := "payload=%7B%22a%22%3A1%7D&x=y"
	for _, c := range []struct{ body, header, part, want, kind string }{
		{list, "Content-Type: application/json\nContent-Encoding: identity\n", "body.items.1", `{"n":2,  "s":"\u00e9" }`, "application/json"},
		{list, "Content-Type: text/plain\n", "body.items.0", `{"n": 1.0}`, "application/json"},
		{form, "Content-Type: application/x-www-form-urlencoded\n", "form.payload", form, "application/x-www-form-urlencoded"},
		{list, "Content-Type: application/json\n", "", list, "application/json"},
		{"", "", "", "", ""},
	} {
		s := shipment()
		s.Payload = event.Payload{Body: []byte(c.body), Header: c.header, Part: c.part}
		if result := d.Attempt(t.Context(), s, time.Now()); result.Attempt.Outcome != event.OK {
			t.Errorf("%q: %s", c.part, result.Attempt.Error)
			continue
		}
		got := app.Requests()[app.Count()-1]
		if string(got.Body) != c.want || got.Header.Get("Content-Type") != c.kind {
			t.Errorf("%q: %q as %q", c.part, got.Body, got.Header.Get("Content-Type"))
		}
	}
	s := shipment()
	s.Payload.Part = "body.items.9"
	result := d.Attempt(t.Context(), s, time.Now())
	if result.Attempt.Outcome != event.Permanent || result.Answered() || result.Wrote {
		t.Errorf("a part that is not there: %s, %s", result.Attempt.Outcome, result.Attempt.Error)
	}
}

// TestForeignText puts bytes that no header can carry where a payload's text
// goes into one.
func TestForeignText(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	d := compiled(t, config.Destination{URL: app.URL})
	s := shipment()
	s.Type = "a b\r\nX-Evil: 1\x00é%\xff" + strings.Repeat("x", 5000)
	s.Event = event.Key{Source: "s", Account: "a/b", ID: "i%d/é"}
	if result := d.Attempt(t.Context(), s, time.Now()); result.Attempt.Outcome != event.OK {
		t.Fatal(result.Attempt.Error)
	}
	got := app.Requests()[0].Header
	if kind := got.Get("Creel-Type"); !strings.HasPrefix(kind, "a%20b%0D%0AX-Evil:%201%00%C3%A9%25%FFxxx") || len(kind) > 3*mostHeaderText {
		t.Errorf("type %q", kind)
	}
	if got.Get("Creel-Event") != "s/a%2Fb/i%25d%2F%C3%A9" || got.Get("X-Evil") != "" {
		t.Errorf("%v", got)
	}
	if key, err := event.ParseKey(got.Get("Creel-Event")); err != nil || key != s.Event {
		t.Errorf("%v, %v", key, err)
	}
}

func FuzzHeader(f *testing.F) {
	f.Add("Content-Type: application/json\nX: y\n", "type", "id")
	f.Add("Connection: x\r\nx: \x7f", "\x00", "a/b%")
	d, problems := New("app", config.Destination{URL: "http://127.0.0.1:1"}, "destination.app", Options{Env: noEnv, Clock: time.Now})
	if len(problems.Faults()) > 0 {
		f.Fatal(problems)
	}
	f.Fuzz(func(t *testing.T, lines, kind, id string) {
		s := shipment()
		s.Payload.Header, s.Type, s.Event.ID = lines, kind, id
		wire := d.appendHead(nil, &s, &content{way: way{target: &d.target}, body: s.Payload.Body}, time.Unix(1, 0))
		req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(append(wire, s.Payload.Body...))))
		if err != nil {
			t.Fatalf("%v: %q", err, wire)
		}
		if body, err := io.ReadAll(req.Body); err != nil || !bytes.Equal(body, s.Payload.Body) {
			t.Fatalf("%v: the body is read as %q", err, body)
		}
		for name, values := range req.Header {
			for _, value := range values {
				if !isToken(name) || !isFieldValue(value) {
					t.Fatalf("%q: %q", name, value)
				}
			}
		}
	})
}

// TestUnderscoresAreNoWayAround: an app behind CGI takes _ for -, so a sender's
// header that would be held back is held back in that spelling too.
func TestUnderscoresAreNoWayAround(t *testing.T) {
	t.Parallel()
	s := shipment()
	s.Payload.Header = "Content-Type: application/json\nX_Forwarded_For: 6.6.6.6\nx_real_ip: 6.6.6.6\nX-Forwarded_Host: evil\n" +
		"Transfer_Encoding: chunked\nX_Key: theirs\nX_Own_Header: kept\nX_Listed: kept\n"
	got := sentTo(t, config.Destination{Headers: map[string]config.Secret{"X-Key": config.NewSecret("ours")}, PassHeaders: []string{"X_Listed"}}, s)
	var names []string
	for name := range got.Header {
		if strings.Contains(name, "_") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"X_listed", "X_own_header"}) || got.Header.Get("X-Key") != "ours" {
		t.Errorf("%q of %v", names, got.Header)
	}
}
