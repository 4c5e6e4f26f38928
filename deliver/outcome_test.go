package deliver

import (
	"bufio"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"creel/config"
	"creel/event"
	"creel/internal/testkit"
)

// outcomes is the table of the contract, for a destination without retry_4xx.
func outcomes() map[int]event.Outcome {
	return map[int]event.Outcome{
		200: event.OK, 201: event.OK, 204: event.OK, 299: event.OK, 409: event.OK,
		301: event.Transient, 302: event.Transient, 303: event.Transient, 304: event.Transient,
		307: event.Transient, 308: event.Transient,
		400: event.Permanent, 401: event.Permanent, 403: event.Permanent, 404: event.Permanent,
		405: event.Permanent, 410: event.Permanent, 413: event.Permanent, 422: event.Permanent,
		408: event.Transient, 425: event.Transient, 429: event.Transient,
		500: event.Transient, 502: event.Transient, 503: event.Transient, 599: event.Transient,
		600: event.Transient, 999: event.Transient,
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	for status, want := range outcomes() {
		if got := Classify(Reply{Status: status, Wrote: true}); got != want {
			t.Errorf("%d: %s, want %s", status, got, want)
		}
	}
	broken := errors.New("broken")
	for _, c := range []struct {
		reply Reply
		want  event.Outcome
	}{
		{Reply{Status: 404, Retry4xx: true}, event.Transient},
		{Reply{Status: 410, Retry4xx: true}, event.Permanent},
		{Reply{Status: 409, Retry4xx: true}, event.OK},
		{Reply{Err: broken}, event.Transient},
		{Reply{Err: broken, Wrote: true}, event.Unknown},
		{Reply{Err: broken, Unsendable: true}, event.Permanent},
	} {
		if got := Classify(c.reply); got != c.want {
			t.Errorf("%+v: %s, want %s", c.reply, got, c.want)
		}
	}
}

// TestGateD1Statuses asks a real server for every status of the gate.
func TestGateD1Statuses(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	d := compiled(t, config.Destination{URL: app.URL})
	for status, want := range outcomes() {
		app.Script(testkit.Answer{Status: status, Body: "said", Header: map[string]string{"Location": "/elsewhere"}})
		before := app.Count()
		result := d.Attempt(t.Context(), shipment(), time.Now())
		got := result.Attempt
		if got.Outcome != want || got.Status != status {
			t.Errorf("%d: status %d %s (%s), want %s", status, got.Status, got.Outcome, got.Error, want)
		}
		if (got.Error == "") != (want == event.OK) {
			t.Errorf("%d: error text %q", status, got.Error)
		}
		if result.Gone != (status == http.StatusGone) || !result.Answered() || !result.Wrote {
			t.Errorf("%d: gone %v, answered %v, wrote %v", status, result.Gone, result.Answered(), result.Wrote)
		}
		if status != 204 && status != 304 && got.Answer != "said" {
			t.Errorf("%d: answer kept %q", status, got.Answer)
		}
		if n := app.Count() - before; n != 1 {
			t.Errorf("%d: %d requests", status, n)
		}
	}
}

// TestGateD1Broken has no status: nobody there, a break, silence, and a
// certificate that nobody knows.
func TestGateD1Broken(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	secured := testkit.NewTLSDestination(t)
	faulty := func(fault testkit.Fault) string {
		app := testkit.NewDestination(t)
		app.Script(testkit.Answer{Fault: fault})
		return app.URL
	}
	for name, c := range map[string]struct {
		url   string
		want  event.Outcome
		wrote bool
		says  string
	}{
		"refused":       {"http://" + closed.Addr().String(), event.Transient, false, "refused the connection"},
		"reset":         {faulty(testkit.Reset), event.Unknown, true, "reset the connection"},
		"closed":        {faulty(testkit.Close), event.Unknown, true, "closed the connection without an answer"},
		"timeout":       {faulty(testkit.Hang), event.Unknown, true, "no answer within 300ms"},
		"TLS":           {secured.URL, event.Transient, false, "TLS: "},
		"no TLS there":  {strings.Replace(faulty(testkit.NoFault), "http:", "https:", 1), event.Transient, false, "TLS: "},
		"no such name":  {"http://no-such-host.invalid/", event.Transient, false, "the name no-such-host.invalid was not found"},
		"HTTP to a TLS": {strings.Replace(secured.URL, "https:", "http:", 1), event.Permanent, true, "HTTP 400"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timeout := 20 * time.Second // nothing but silence needs it
			if name == "timeout" {
				timeout = 300 * time.Millisecond
			}
			d := compiled(t, config.Destination{URL: c.url, Timeout: config.Duration(timeout)})
			began := time.Now()
			result := d.Attempt(t.Context(), shipment(), time.Now())
			if result.Attempt.Outcome != c.want || result.Wrote != c.wrote {
				t.Errorf("outcome %s, wrote %v, want %s, %v: %s", result.Attempt.Outcome, result.Wrote, c.want, c.wrote, result.Attempt.Error)
			}
			if !strings.Contains(result.Attempt.Error, c.says) {
				t.Errorf("error %q does not say %q", result.Attempt.Error, c.says)
			}
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

// TestGateD1StalledHandshake meets a listener that accepts nothing and a TLS handshake
// that never ends: both end by the connect timeout with nothing written.
func TestGateD1StalledHandshake(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	d := compiled(t, config.Destination{URL: "https://" + silent.Addr().String(),
		Timeout: config.Duration(20 * time.Second), ConnectTimeout: config.Duration(200 * time.Millisecond)})
	began := time.Now()
	result := d.Attempt(t.Context(), shipment(), time.Now())
	if result.Attempt.Outcome != event.Transient || result.Wrote || time.Since(began) > 10*time.Second {
		t.Errorf("%s, wrote %v after %s: %s", result.Attempt.Outcome, result.Wrote, time.Since(began), result.Attempt.Error)
	}
	if !strings.Contains(result.Attempt.Error, "no connection to ") {
		t.Errorf("error %q", result.Attempt.Error)
	}
}

// TestGateD1EndlessBody cuts bodies that do not end, trickle, or end early: the
// status is the answer.
func TestGateD1EndlessBody(t *testing.T) {
	t.Parallel()
	endless := testkit.NewDestination(t)
	endless.Script(testkit.Answer{Fault: testkit.Endless})
	for name, url := range map[string]string{
		"endless": endless.URL,
		"half":    rawServer(t, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf", false),
		"trickle": rawServer(t, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf", true),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := compiled(t, config.Destination{URL: url, Timeout: config.Duration(30 * time.Second)})
			began := time.Now()
			result := d.Attempt(t.Context(), shipment(), time.Now())
			if result.Attempt.Outcome != event.OK || result.Attempt.Status != 200 {
				t.Errorf("%s: %s", result.Attempt.Outcome, result.Attempt.Error)
			}
			if n := len(result.Attempt.Answer); n == 0 || n > mostKept {
				t.Errorf("%d bytes kept", n)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

// rawServer answers each connection's first request with bytes, and then hangs
// or closes.
func rawServer(t *testing.T, answer string, hang bool) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
			go func() {
				if req, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					_, _ = io.Copy(io.Discard, req.Body)
				}
				_, _ = io.WriteString(conn, answer)
				if !hang {
					_ = conn.Close()
				}
			}()
		}
	}()
	return "http://" + listener.Addr().String()
}

func TestTLSWithKnownAuthority(t *testing.T) {
	t.Parallel()
	app := testkit.NewTLSDestination(t)
	roots := x509.NewCertPool()
	roots.AddCert(app.Server.Certificate())
	d := compiled(t, config.Destination{URL: app.URL}, func(o *Options) { o.RootCAs = roots })
	if result := d.Attempt(t.Context(), shipment(), time.Now()); result.Attempt.Outcome != event.OK {
		t.Fatalf("%s: %s", result.Attempt.Outcome, result.Attempt.Error)
	}
	if got := app.Requests()[0].Proto; got != "HTTP/1.1" {
		t.Errorf("spoke %s: only over HTTP/1.1 the bytes of a connection tell what was written", got)
	}
	app.Script(testkit.Answer{Fault: testkit.Close})
	if result := d.Attempt(t.Context(), shipment(), time.Now()); result.Attempt.Outcome != event.Unknown {
		t.Errorf("a break after the request over TLS is %s: %s", result.Attempt.Outcome, result.Attempt.Error)
	}
}

// TestBugOUT01 does not follow redirects, names where they point, and shows
// none of the secrets in them.
func TestBugOUT01(t *testing.T) {
	t.Parallel()
	other := testkit.NewDestination(t)
	app := testkit.NewDestination(t)
	d := compiled(t, config.Destination{URL: app.URL + "/hook"})
	for _, status := range []int{301, 302, 303, 307, 308} {
		for location, want := range map[string]string{
			other.URL + "/new/": other.URL + "/new/",
			strings.Replace(other.URL, "//", "//user:hunter2@", 1) + "/x?token=s3cr3t#frag": other.URL + "/x?…",
			"/moved":   app.URL + "/moved",
			"":         "no Location",
			"%zz":      "a Location that is no URL",
			"mailto:x": "the scheme mailto",
		} {
			app.Script(testkit.Answer{Status: status, Header: map[string]string{"Location": location}})
			got := d.Attempt(t.Context(), shipment(), time.Now()).Attempt
			if got.Outcome == event.OK || got.Status != status || !strings.Contains(got.Error, want) {
				t.Errorf("%d to %q: %s, %q does not name %q", status, location, got.Outcome, got.Error, want)
			}
			if strings.Contains(got.Error, "hunter2") || strings.Contains(got.Error, "s3cr3t") {
				t.Errorf("%d: %q shows a secret", status, got.Error)
			}
		}
	}
	if n := other.Count(); n != 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

// TestBugOUT04 is the table that people get wrong, by its numbers.
func TestBugOUT04(t *testing.T) {
	t.Parallel()
	for class, statuses := range map[event.Outcome][]int{
		event.OK:        {200, 204, 409},
		event.Permanent: {400, 401, 404, 410, 422},
		event.Transient: {408, 425, 429, 500, 503, 599},
	} {
		for _, status := range statuses {
			if got := Classify(Reply{Status: status, Wrote: true}); got != class {
				t.Errorf("%d is %s, want %s", status, got, class)
			}
		}
	}
}
