package receiver_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"creel/event"
	"creel/receiver"
)

func TestEveryResultHasItsStatus(t *testing.T) {
	t.Parallel()
	g := &gate{}
	d := open(t, deskOptions{sources: map[string]receiver.Source{
		"gen":      g,
		"strict":   &gate{reject: 406, duplicate: 409, probe: 405},
		"awaiting": &gate{awaits: true},
		"broken":   &gate{panics: true},
		"small":    &gate{maxBody: 8},
	}})
	good := signedHeader("1", "{}")
	for _, row := range []struct {
		name, method, path string
		header             http.Header
		body               string
		status             int
		answer             string
	}{
		{"new", "POST", "/in/gen", good, "{}", 200, "ok\n"},
		{"duplicate", "POST", "/in/gen/", good, "{}", 200, "ok\n"},
		{"duplicate with 409", "POST", "/in/strict", good, "{}", 409, "ok\n"},
		{"skipped", "POST", "/in/gen", signedHeader("2", "test mode"), "test mode", 200, "ok\n"},
		{"handshake", "POST", "/in/gen?challenge", nil, "", 200, "<b>hi</b>"},
		{"probe", "GET", "/in/gen", nil, "", 200, ""},
		{"probe by HEAD", "HEAD", "/in/gen/", nil, "", 200, ""},
		{"probe handshake", "GET", "/in/gen?challenge", nil, "", 200, "1158201444"},
		{"probe refused", "GET", "/in/strict", nil, "", 405, "method not allowed\n"},
		{"rejected", "POST", "/in/gen", nil, "{}", 401, "rejected\n"},
		{"rejected with 406", "POST", "/in/strict", nil, "{}", 406, "rejected\n"},
		{"unknown source", "POST", "/in/nobody", good, "{}", 404, "not found\n"},
		{"unknown probe", "GET", "/in/nobody", nil, "", 404, "not found\n"},
		{"unknown path", "POST", "/", nil, "", 404, "not found\n"},
		{"letter case", "POST", "/IN/gen", good, "{}", 404, "not found\n"},
		{"deeper path", "POST", "/in/gen/x", good, "{}", 404, "not found\n"},
		{"method", "PUT", "/in/gen", nil, "{}", 405, "method not allowed\n"},
		{"options", "OPTIONS", "/in/gen", nil, "", 405, "method not allowed\n"},
		{"method of an unknown source", "PUT", "/in/nobody", nil, "{}", 404, "not found\n"},
		{"too large", "POST", "/in/small", nil, "123456789", 413, "too large\n"},
		{"just fits", "POST", "/in/small", nil, "12345678", 401, "rejected\n"},
		{"encoding", "POST", "/in/gen", http.Header{"Content-Encoding": {"gzip"}}, "{}", 415, "unsupported content encoding\n"},
		{"identity", "POST", "/in/gen", http.Header{"Content-Encoding": {"identity"}}, "{}", 401, "rejected\n"},
		{"awaiting", "POST", "/in/awaiting", good, "{}", 503, "come again later\n"},
		{"awaiting probe", "HEAD", "/in/awaiting", nil, "", 200, ""},
		{"awaiting handshake", "POST", "/in/awaiting?challenge", nil, "", 200, "<b>hi</b>"},
		{"panic", "POST", "/in/broken", good, "{}", 503, "come again later\n"},
		{"alive", "GET", "/healthz", nil, "", 200, "ok\n"},
		{"alive, method", "POST", "/healthz", nil, "", 405, "method not allowed\n"},
		{"ready", "GET", "/readyz", nil, "", 200, "ok\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := d.do(t, row.method, row.path, row.header, []byte(row.body))
			wantStatus(t, got, row.status)
			if got.body != row.answer && row.method != "HEAD" {
				t.Errorf("body %q, want %q", got.body, row.answer)
			}
			if ct := got.header.Get("Content-Type"); !strings.HasPrefix(ct, "text/plain") {
				t.Errorf("content type %q", ct)
			}
			if got.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Error("nosniff is missing")
			}
			if (got.status == 503) != (got.header.Get("Retry-After") != "") {
				t.Errorf("Retry-After %q with status %d", got.header.Get("Retry-After"), got.status)
			}
			if (got.status == 405) != (got.header.Get("Allow") != "") {
				t.Errorf("Allow %q with status %d", got.header.Get("Allow"), got.status)
			}
		})
	}
}

func TestStoreTroubleIsNeverASuccess(t *testing.T) {
	t.Parallel()
	d := open(t, deskOptions{receiver: receiver.Options{StoreWait: 50 * time.Millisecond}})
	for _, fail := range []error{event.ErrBusy, event.ErrUnavailable, errors.New("something else")} {
		d.basket.set(func(b *basket) { b.fail = fail })
		got := d.signed(t, "1", "{}")
		wantStatus(t, got, 503)
		if got.header.Get("Retry-After") == "" {
			t.Errorf("%v: no Retry-After", fail)
		}
	}
	d.basket.set(func(b *basket) { b.fail, b.hold = nil, make(chan struct{}) })
	start := time.Now()
	wantStatus(t, d.signed(t, "1", "{}"), 503)
	if waited := time.Since(start); waited > 5*time.Second {
		t.Errorf("the answer took %v", waited)
	}
	d.basket.set(func(b *basket) { b.hold = nil })
	wantStatus(t, d.signed(t, "1", "{}"), 200)
	want := map[string]int64{"busy": 1, "unavailable": 2, "timeout": 1, "new": 1}
	if diff := cmp.Diff(want, countsOf(d, "gen").Results); diff != "" {
		t.Error(diff)
	}
}

func TestStopAnswers503AndCloses(t *testing.T) {
	t.Parallel()
	d := open(t, deskOptions{})
	d.Stop()
	got := d.signed(t, "1", "{}")
	wantStatus(t, got, 503)
	if got.header.Get("Retry-After") == "" || !got.closes {
		t.Errorf("headers %v", got.header)
	}
	wantStatus(t, d.do(t, "GET", "/healthz", nil, nil), 200)
	wantStatus(t, d.do(t, "GET", "/readyz", nil, nil), 503)
	if len(d.basket.all()) != 0 {
		t.Error("something was stored")
	}
}

func TestPanicIsCountedAndSaysNothing(t *testing.T) {
	t.Parallel()
	d := open(t, deskOptions{sources: map[string]receiver.Source{"gen": &gate{panics: true}}})
	wantStatus(t, d.signed(t, "1", "canary-body"), 503)
	if countsOf(d, "gen").Results["panic"] != 1 {
		t.Error("the panic was not counted")
	}
	if d.log.count("a request panicked") != 1 || strings.Contains(d.log.String(), "canary-body") {
		t.Errorf("log: %s", d.log)
	}
	if d.Memory() != 0 {
		t.Errorf("%d bytes are still charged", d.Memory())
	}
}

// A sender learns nothing from the answer to a bad request, header set
// included.
func TestGateR1RejectsAreByteIdentical(t *testing.T) {
	t.Parallel()
	d := open(t, deskOptions{})
	var first string
	for i, header := range []string{
		"", "X-Sig: \r\n", "X-Sig: zz\r\n", "X-Sig: 00\r\n", "X-Sig: 00\r\nX-Sig: 00\r\n",
	} {
		answer, _ := d.raw(t, "POST /in/gen HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+header+"Content-Length: 2\r\n\r\n{}")
		answer = withoutDate(answer)
		if i == 0 {
			first = answer
		}
		if answer != first || !strings.HasPrefix(answer, "HTTP/1.1 401 ") {
			t.Errorf("answer %d differs:\n%s\n%s", i, answer, first)
		}
	}
	if len(d.basket.all()) != 0 {
		t.Error("something was stored")
	}
}

// TestThreatS15: a source that does not exist can not be told from any other
// path that does not.
func TestThreatS15UnknownSourceIsAnyUnknownPath(t *testing.T) {
	t.Parallel()
	d := open(t, deskOptions{})
	ask := func(method, path string) string {
		answer, _ := d.raw(t, method+" "+path+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
		return withoutDate(answer)
	}
	for _, method := range []string{"POST", "GET", "PUT", "OPTIONS", "DELETE"} {
		want := ask(method, "/elsewhere")
		for _, path := range []string{"/in/nobody", "/in/nobody/", "/in/", "/in", "/In/gen", "/in/gen/x", "//in/gen"} {
			if got := ask(method, path); got != want || !strings.HasPrefix(got, "HTTP/1.1 404 ") {
				t.Errorf("%s %s: %q, want %q", method, path, got, want)
			}
		}
	}
}

func withoutDate(answer string) string {
	kept := []string{}
	for line := range strings.Lines(answer) {
		if !strings.HasPrefix(line, "Date:") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

func countsOf(d *desk, source string) receiver.Counts {
	for _, counts := range d.Counts() {
		if counts.Source == source {
			return counts
		}
	}
	return receiver.Counts{}
}
