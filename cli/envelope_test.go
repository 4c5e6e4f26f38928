package cli_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"creel/internal/testkit"
)

// wrapped is an envelope as an app reads it.
type wrapped struct {
	Creel, Event, Type, SHA256, URL string
	Size                            int
	ContentType                     string    `json:"content_type"`
	ExpiresAt                       time.Time `json:"expires_at"`
}

// fetch asks for an address and returns the answer, read whole.
func fetch(t *testing.T, method, url string, header ...string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, body
}

// TestGateD9 sends an event that is larger than its app takes: a signed
// envelope comes, and its address gives the exact bytes, also after a
// restart, and nothing to whoever changes it.
func TestGateD9(t *testing.T) {
	t.Parallel()
	s := newSite(t, "max_body = \"1KB\"\nretry = \"brief\"\n")
	if out := command(t, s.Process, 0, "check", "-c", "creel.toml"); strings.Contains(out, "max_body") {
		t.Errorf("check: %s", out)
	}
	s.app.Script(testkit.Answer{Status: 503}, testkit.Answer{Status: 503}, testkit.Answer{})
	s.Start(t)
	large := fmt.Sprintf("{ \"id\":\"evt_1\",\"type\":\"paid\", \"n\":1.0, \"pad\":\"\\u00e9%s\" }\r\n", strings.Repeat("x", 100_000))
	s.send(t, large)
	requests := s.app.Wait(t, 3, soon)
	official, err := standardwebhooks.NewWebhook(appSecret)
	if err != nil {
		t.Fatal(err)
	}
	var last wrapped
	for _, got := range requests {
		if err := official.Verify(got.Body, got.Header); err != nil {
			t.Error(err)
		}
		if got.ID() != requests[0].ID() || got.Header.Get("Content-Type") != "application/vnd.creel.envelope+json" || len(got.Body) > 1000 {
			t.Errorf("%s: %s", got.ID(), got.Body)
		}
		if err := json.Unmarshal(got.Body, &last); err != nil {
			t.Fatal(err)
		}
	}
	sum := sha256.Sum256([]byte(large))
	if last.Creel != "envelope" || last.Event != "shop//evt_1" || last.Type != "paid" || last.Size != len(large) ||
		last.SHA256 != hex.EncodeToString(sum[:]) || last.ContentType != "application/json" {
		t.Errorf("%+v", last)
	}
	if left := time.Until(last.ExpiresAt); left < 23*time.Hour || left > 25*time.Hour {
		t.Errorf("the address is over in %s", left)
	}
	if res, body := fetch(t, http.MethodGet, last.URL); res.StatusCode != 200 || string(body) != large {
		t.Fatalf("%s: %.80q", res.Status, body)
	}
	s.Terminate()
	s.Start(t) // on another port: nobody has told it to stay
	address := s.AdminURL(last.URL[strings.Index(last.URL, "/body/"):])
	res, body := fetch(t, http.MethodGet, address)
	if res.StatusCode != 200 || string(body) != large || res.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%s %v: %.80q", res.Status, res.Header, body)
	}
	res, body = fetch(t, http.MethodHead, address)
	if res.StatusCode != 200 || len(body) != 0 || res.ContentLength != int64(len(large)) {
		t.Errorf("HEAD: %s, %d", res.Status, res.ContentLength)
	}
	if res, body = fetch(t, http.MethodGet, address, "Range", "bytes=10-19"); res.StatusCode != 206 || string(body) != large[10:20] {
		t.Errorf("a range: %s %q", res.Status, body)
	}
	for i := range len(address) - strings.Index(address, "/body/") - len("/body/") {
		at := strings.Index(address, "/body/") + len("/body/") + i
		changed := []byte(address)
		changed[at] ^= 1
		if res, body := fetch(t, http.MethodGet, string(changed)); res.StatusCode != 404 || bytes.Contains(body, []byte("pad")) {
			t.Fatalf("changed at %d: %s %.80q", i, res.Status, body)
		}
	}
	s.send(t, `{"id":"evt_2","type":"paid"}`)
	if got := s.app.Wait(t, 4, soon)[3]; string(got.Body) != `{"id":"evt_2","type":"paid"}` {
		t.Errorf("a small event came as %s", got.Body)
	}
}
