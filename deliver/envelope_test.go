package deliver

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"creel/config"
	"creel/event"
	"creel/internal/testkit"
)

// verify checks the signature of a request with the official library.
func verify(t testing.TB, got testkit.Received) {
	t.Helper()
	official, err := standardwebhooks.NewWebhook(testSecret)
	if err != nil {
		t.Fatal(err)
	}
	if err := official.Verify(got.Body, got.Header); err != nil {
		t.Error(err)
	}
}

// TestGateD9Envelope draws the line at max_body, byte for byte, and describes
// what stays here.
func TestGateD9Envelope(t *testing.T) {
	t.Parallel()
	link := func(o *Options) {
		o.Schedule = 3 * time.Hour
		o.Link = func(seq int64, key event.Key, until time.Time) string {
			return fmt.Sprintf("http://creel/body/%d?%s&%d", seq, key, until.Unix())
		}
	}
	s := shipment()
	s.Payload.Body = []byte(strings.Repeat("x", 1000))
	s.Payload.Header = "Content-Type: text/x; charset=y\nContent-Encoding: identity\nX-Signature: theirs\n"
	if got := sentTo(t, config.Destination{MaxBody: 1000}, s, link); len(got.Body) != 1000 || got.Header.Get("Content-Type") != "text/x; charset=y" {
		t.Errorf("at the limit: %q as %q", got.Body, got.Header.Get("Content-Type"))
	}
	now := time.Now()
	got := sentTo(t, config.Destination{MaxBody: 999}, s, link)
	var is envelope
	if err := json.Unmarshal(got.Body, &is); err != nil {
		t.Fatal(err)
	}
	until, err := time.Parse(time.RFC3339, is.ExpiresAt)
	if left := until.Sub(now); err != nil || left < 27*time.Hour-2*time.Second || left > 27*time.Hour+10*time.Second {
		t.Errorf("it is over in %s: %v", left, err)
	}
	sum := sha256.Sum256(s.Payload.Body)
	want := envelope{Creel: "envelope", Event: "stripe//evt_1", Type: "invoice.paid", Size: 1000, ContentType: "text/x; charset=y",
		SHA256: hex.EncodeToString(sum[:]), URL: fmt.Sprintf("http://creel/body/1?stripe//evt_1&%d", until.Unix()), ExpiresAt: is.ExpiresAt}
	if is != want {
		t.Errorf("%+v", is)
	}
	for name, value := range map[string]string{"Content-Type": TypeEnvelope, "Content-Encoding": "", "X-Signature": "theirs", "Creel-Type": "invoice.paid"} {
		if got.Header.Get(name) != value || len(got.Header[name]) > 1 {
			t.Errorf("%s: %q, want %q", name, got.Header[name], value)
		}
	}
	verify(t, got)
	s.Payload = event.Payload{Body: []byte(`{"items":[1,{"a":"` + strings.Repeat("x", 100) + `"}]}`), Header: "Content-Type: text/plain\n", Part: "body.items.1"}
	got = sentTo(t, config.Destination{MaxBody: 100}, s, link)
	if err := json.Unmarshal(got.Body, &is); err != nil || is.Size != 108 || is.ContentType != "application/json" || got.Header.Get("Content-Type") != TypeEnvelope {
		t.Errorf("one of several: %v, %+v as %q", err, is, got.Header["Content-Type"])
	}
	s.Payload.Part = "body.items.0"
	if got = sentTo(t, config.Destination{MaxBody: 100}, s, link); string(got.Body) != "1" {
		t.Errorf("a small one of a large request came as %s", got.Body)
	}
	s.Payload.Part = ""
	d := compiled(t, config.Destination{URL: "http://127.0.0.1:1", MaxBody: 1})
	if a := d.Attempt(t.Context(), s, now).Attempt; a.Outcome != event.Permanent || !strings.Contains(a.Error, "no server") {
		t.Errorf("without a server of bodies: %s %q", a.Outcome, a.Error)
	}
}
