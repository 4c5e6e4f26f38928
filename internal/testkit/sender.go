package testkit

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"
)

// Sender signs requests the way a provider does. It is written from the
// providers' own descriptions and shares no code with the source room, so that
// each can judge the other.
type Sender struct {
	// Client sends; http.DefaultClient where it is nil.
	Client *http.Client
	// URL is the source's address: http://127.0.0.1:8080/in/stripe.
	URL string
	// Secret is what the provider and we both know.
	Secret string
	// Sign puts the provider's headers on a request for the body.
	Sign func(header http.Header, secret, id string, body []byte, at time.Time)
}

// Request is a signed request for the body under the id, signed at a time.
func (s Sender) Request(t testing.TB, id string, body []byte, at time.Time) *http.Request {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, s.URL, bytes.NewReader(body))
	if err != nil {
		t.Fatalf("make a request: %v", err)
	}
	req.Header.Set("Content-Type", "application/json")
	s.Sign(req.Header, s.Secret, id, body, at)
	return req
}

// Send sends a signed request now and returns the status and body of the
// answer.
func (s Sender) Send(t testing.TB, id string, body []byte) (int, string) {
	t.Helper()
	return s.Do(t, s.Request(t, id, body, time.Now()))
}

// Do sends a request that a test has made or altered.
func (s Sender) Do(t testing.TB, req *http.Request) (int, string) {
	t.Helper()
	client := s.Client
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("send: %v", err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("read the answer: %v", err)
	}
	return resp.StatusCode, string(answer)
}

// SignPlain is the scheme of a plain HMAC source: X-Signature holds the
// SHA-256 HMAC of the body in hex. PlainVerify is its configuration.
func SignPlain(header http.Header, secret, _ string, body []byte, _ time.Time) {
	header.Set("X-Signature", hex.EncodeToString(mac([]byte(secret), body)))
}

// PlainVerify is the configuration that a user writes for SignPlain, below a
// [[source]].
const PlainVerify = `
  [source.verify]
  auth      = "hmac-sha256"
  key       = "utf8"
  signature = "header.x-signature"
  encoding  = "hex"
  signed    = "{body}"
  id        = "body.id"
  type      = "body.type"
  integrity = "full"
`

// SignStripe signs as docs.stripe.com/webhooks describes it: the timestamp, a
// dot and the body.
func SignStripe(header http.Header, secret, _ string, body []byte, at time.Time) {
	stamp := strconv.FormatInt(at.Unix(), 10)
	sum := mac([]byte(secret), []byte(stamp+"."), body)
	header.Set("Stripe-Signature", fmt.Sprintf("t=%s,v1=%s", stamp, hex.EncodeToString(sum)))
}

// SignGitHub signs as GitHub does: the body alone, the delivery id beside it.
func SignGitHub(header http.Header, secret, id string, body []byte, _ time.Time) {
	header.Set("X-GitHub-Delivery", id)
	header.Set("X-GitHub-Event", "push")
	header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac([]byte(secret), body)))
}

// SignStandard signs as the Standard Webhooks specification says; the secret
// is base64 behind "whsec_".
func SignStandard(header http.Header, secret, id string, body []byte, at time.Time) {
	const prefix = "whsec_"
	key := []byte(secret)
	if len(secret) > len(prefix) && secret[:len(prefix)] == prefix {
		if raw, err := base64.StdEncoding.DecodeString(secret[len(prefix):]); err == nil {
			key = raw
		}
	}
	stamp := strconv.FormatInt(at.Unix(), 10)
	sum := mac(key, []byte(id+"."+stamp+"."), body)
	header.Set("webhook-id", id)
	header.Set("webhook-timestamp", stamp)
	header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(sum))
}

func mac(key []byte, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, part := range parts {
		h.Write(part)
	}
	return h.Sum(nil)
}
