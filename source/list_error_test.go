package source

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"creel/config"
)

// What went wrong with a list is told with what to do next.
func TestListErrorsHaveHints(t *testing.T) {
	t.Parallel()
	answering := func(status int, body string, header ...string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(untrusted.Close)
	for name, c := range map[string]struct{ at, says, hint string }{
		"no server":     {"http://" + closed.Addr().String(), "no answer: dial tcp", "nothing listens there"},
		"no name":       {"http://nobody.invalid", "no answer: dial tcp: lookup nobody.invalid", "DNS"},
		"not trusted":   {untrusted.URL, "certificate", "CA certificates"},
		"wrong token":   {answering(401, ""), "HTTP 401 Unauthorized: reconcile.token", "make a token that may read events"},
		"lacks rights":  {answering(403, ""), "HTTP 403 Forbidden: reconcile.token", "make a token that may read events"},
		"too often":     {answering(429, ""), "HTTP 429", "again in some minutes; a smaller reconcile.rate"},
		"asks for time": {answering(429, "", "Retry-After", "90"), "HTTP 429", "again in 1m30s, as the sender asks"},
		"secondary":     {answering(403, "", "Retry-After", "60"), "HTTP 403", "again in 1m0s, as the sender asks"},
		"long":          {answering(503, "", "Retry-After", "7200"), "HTTP 503 Service Unavailable, and it asks to wait for 2h0m0s", "again in 2h0m0s"},
		"trouble":       {answering(500, ""), "HTTP 500", "trouble of its own"},
		"another place": {answering(404, ""), "HTTP 404 Not Found: look at reconcile.url", "curl the address"},
		"elsewhere":     {answering(302, "", "Location", "https://www.example.com/login"), "to https://www.example.com, which is not followed", "curl the address"},
		"a page":        {answering(200, "<html>"), "a page for people", "curl the address"},
		"nonsense":      {answering(200, `{"ok":1}`), "the answer has no list at body.data", "curl the address"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mustCompile(t, config.Source{Name: "shop", Verify: &config.Scheme{Auth: "none", ID: config.StringList{"body.id"}},
				Reconcile: &config.Reconcile{URL: config.StringList{c.at + "/events?k=v"}, Items: "body.data", Token: config.NewSecret("tok_0123456789")}})
			now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
			pace := NewPace(func() time.Time { return now }, func(_ context.Context, d time.Duration) error { now = now.Add(d); return nil })
			_, err := s.Lister().List(t.Context(), pace, Span{From: now.Add(-time.Hour), Until: now}, func([]Listed) error { return nil })
			var told *ListError
			if !errors.As(err, &told) || !strings.Contains(told.Error(), c.says) || !strings.Contains(told.Hint(), c.hint) {
				t.Fatalf("%v (%s), want %q (%s)", err, told.Hint(), c.says, c.hint)
			}
			if text := told.Error() + told.Hint(); strings.Contains(text, "tok_0") || strings.Contains(text, "k=v") || !strings.Contains(text, strings.TrimPrefix(c.at, "http://")) && !strings.Contains(text, c.at) {
				t.Errorf("says %q", text)
			}
		})
	}
}
