package deliver

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"creel/config"
	"creel/event"
)

// TestEarlyAnswer is a peer that answers before it has read the body, and then
// reads no more, closes, or breaks the connection. The answer counts.
func TestEarlyAnswer(t *testing.T) {
	t.Parallel()
	secure, roots := certificate(t)
	for name, after := range map[string]func(*peer){
		"silent": func(*peer) { <-t.Context().Done() },
		"closed": func(*peer) {},
		"reset":  (*peer).reset,
	} {
		for _, size := range []int{mostTogether, 16 << 20} {
			for _, scheme := range []string{"http", "https"} {
				t.Run(name+" "+scheme, func(t *testing.T) {
					t.Parallel()
					settings := secure
					if scheme == "http" {
						settings = nil
					}
					url, _ := scripted(t, settings, func(p *peer) {
						if _, err := http.ReadRequest(p.reader); err != nil {
							return
						}
						p.say("HTTP/1.1 413 Content Too Large\r\nContent-Length: 8\r\n\r\ntoo much")
						after(p)
					})
					d := compiled(t, config.Destination{URL: url, Timeout: config.Duration(20 * time.Second)},
						func(o *Options) { o.RootCAs = roots })
					s := shipment()
					s.Payload.Body = bytes.Repeat([]byte("x"), size)
					began := time.Now()
					got := d.Attempt(t.Context(), s, time.Now()).Attempt
					if got.Status != 413 || got.Outcome != event.Permanent || got.Answer != "too much" {
						t.Errorf("%d bytes: %d %s %q: %s", size, got.Status, got.Outcome, got.Answer, got.Error)
					}
					if took := time.Since(began); took > 10*time.Second {
						t.Errorf("%d bytes took %s", size, took)
					}
				})
			}
		}
	}
}

// brokenWriter is a socket that breaks in the middle of a request to which
// the answer has come already.
type brokenWriter struct {
	net.Conn
	answer *strings.Reader
	most   int
}

func (c *brokenWriter) Write(data []byte) (int, error) {
	if len(data) <= c.most {
		c.most -= len(data)
		return len(data), nil
	}
	return c.most, &net.OpError{Op: "write", Err: net.UnknownNetworkError("broken")}
}

func (c *brokenWriter) Read(into []byte) (int, error) { return c.answer.Read(into) }

// TestAnswerToABrokenRequest breaks the writing. An answer that is there
// counts; without one the outcome depends on whether a byte got out, and the
// reason is that of the writing.
func TestAnswerToABrokenRequest(t *testing.T) {
	t.Parallel()
	for _, size := range []int{10, mostTogether + 1} {
		for _, c := range []struct {
			most   int
			answer string
			want   event.Outcome
			wrote  bool
		}{
			{100, "HTTP/1.1 413 No\r\nContent-Length: 0\r\n\r\n", event.Permanent, true},
			{100, "", event.Unknown, true},
			{0, "", event.Transient, false},
		} {
			d := compiled(t, config.Destination{URL: "http://127.0.0.1:1"})
			ours, theirs := net.Pipe()
			t.Cleanup(func() { _ = theirs.Close() })
			d.pool.dial = func(context.Context, string, string) (net.Conn, error) {
				return &brokenWriter{Conn: ours, answer: strings.NewReader(c.answer), most: c.most}, nil
			}
			s := shipment()
			s.Payload.Body = bytes.Repeat([]byte("x"), size)
			result := d.Attempt(t.Context(), s, time.Now())
			if result.Attempt.Outcome != c.want || result.Wrote != c.wrote {
				t.Errorf("%d bytes, %d written, answer %q: %s, wrote %v: %s", size, c.most, c.answer,
					result.Attempt.Outcome, result.Wrote, result.Attempt.Error)
			}
			if d.kept() != 0 {
				t.Error("a broken connection is kept")
			}
		}
	}
}

// secondRead tells of the read after the one that found the head.
type secondRead struct {
	net.Conn
	reads   int
	reached chan<- struct{}
}

func (c *secondRead) Read(into []byte) (int, error) {
	if c.reads++; c.reads == 2 {
		c.reached <- struct{}{}
	}
	return c.Conn.Read(into)
}

// TestCancel interrupts an attempt at each of its stages. It ends at once and
// says whether something was written.
func TestCancel(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		scheme string
		serve  func(p *peer, reached chan<- struct{})
		body   int
		status int
		wrote  bool
	}{
		"handshake": {"https", func(p *peer, reached chan<- struct{}) { _, _ = p.reader.ReadByte(); reached <- struct{}{} }, 10, 0, false},
		"answer":    {"http", func(p *peer, reached chan<- struct{}) { p.request(); reached <- struct{}{} }, 10, 0, true},
		"writing":   {"http", func(p *peer, reached chan<- struct{}) { _, _ = p.reader.ReadByte(); reached <- struct{}{} }, 16 << 20, 0, true},
		"head": {"http", func(p *peer, reached chan<- struct{}) {
			p.request()
			p.say("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nX-")
			reached <- struct{}{}
		}, 10, 0, true},
		"body": {"http", func(p *peer, reached chan<- struct{}) {
			p.request()
			p.say("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
		}, 10, 200, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reached := make(chan struct{}, 1)
			url, _ := scripted(t, nil, func(p *peer) {
				c.serve(p, reached)
				<-t.Context().Done()
			})
			d := compiled(t, config.Destination{URL: strings.Replace(url, "http:", c.scheme+":", 1),
				Timeout: config.Duration(time.Minute), ConnectTimeout: config.Duration(time.Minute)})
			if name == "body" {
				dial := d.pool.dial
				d.pool.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
					conn, err := dial(ctx, network, address)
					return &secondRead{Conn: conn, reached: reached}, err
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-reached; cancel() }()
			s := shipment()
			s.Payload.Body = bytes.Repeat([]byte("x"), c.body)
			began := time.Now()
			result := d.Attempt(ctx, s, time.Now())
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %s", took)
			}
			if result.Attempt.Status != c.status || result.Wrote != c.wrote {
				t.Errorf("%d, wrote %v: %s", result.Attempt.Status, result.Wrote, result.Attempt.Error)
			}
			if c.status == 0 && !strings.HasPrefix(result.Attempt.Error, "interrupted by the stop of the server") {
				t.Errorf("error %q", result.Attempt.Error)
			}
			if d.kept() != 0 {
				t.Error("an interrupted connection is kept")
			}
		})
	}
}

// TestCancelled sends nothing where the stop came first.
func TestCancelled(t *testing.T) {
	t.Parallel()
	url, connections := scripted(t, nil, func(*peer) {})
	d := compiled(t, config.Destination{URL: url})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	result := d.Attempt(ctx, shipment(), time.Now())
	if result.Attempt.Outcome != event.Transient || result.Wrote || connections.Load() != 0 {
		t.Errorf("%s, wrote %v, %d connections: %s", result.Attempt.Outcome, result.Wrote, connections.Load(), result.Attempt.Error)
	}
}

// TestInvalidAnswers names what is wrong with an answer that is not HTTP, and
// shows nothing of it: it may repeat our request.
func TestInvalidAnswers(t *testing.T) {
	t.Parallel()
	const secret = "Bearer s3cr3t\"t0ken"
	for name, c := range map[string]struct{ answer, says string }{
		"banner":          {"SSH-2.0-" + secret + "\r\n", "the answer is not valid HTTP: malformed HTTP "},
		"status text":     {"HTTP/1.1 " + secret + "\r\n\r\n", "the answer is not valid HTTP: malformed HTTP status code"},
		"version":         {"HTTX/1.1 200 " + secret + "\r\n\r\n", "the answer is not valid HTTP: malformed HTTP version"},
		"status 000":      {"HTTP/1.1 000 " + secret + "\r\n\r\n", "the status of the answer is under 100"},
		"status +42":      {"HTTP/1.1 +42 " + secret + "\r\n\r\n", "the status of the answer is under 100"},
		"header line":     {"HTTP/1.1 200 OK\r\n" + strings.ReplaceAll(secret, ":", "") + "\r\n\r\n", "the answer is not valid HTTP: malformed MIME header"},
		"length":          {"HTTP/1.1 200 OK\r\nContent-Length: " + secret + "\r\n\r\n", "the answer is not valid HTTP: bad Content-Length"},
		"lengths":         {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", "the answer is not valid HTTP: "},
		"encoding":        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: " + secret + "\r\n\r\n", "the answer is not valid HTTP: unsupported transfer encoding"},
		"endless line":    {"HTTP/1.1 200 " + strings.Repeat("x", 100<<10), "the headers of the answer are over 65536 bytes"},
		"endless header":  {"HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: "+secret+"\r\n", 5000), "the headers of the answer are over 65536 bytes"},
		"endless interim": {strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 100), "over 16 interim answers"},
		"long interim":    {strings.Repeat("HTTP/1.1 103 Early\r\nX-A: "+strings.Repeat("x", 8000)+"\r\n\r\n", 10), "the headers of the answer are over 65536 bytes"},
		"half":            {"HTTP/1.1 200 OK\r\nX-A: " + secret + "\r\n", "closed the connection without an answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, _ := scripted(t, nil, func(p *peer) {
				if p.request() {
					p.say(c.answer)
				}
			})
			d := compiled(t, config.Destination{URL: url, Headers: map[string]config.Secret{"Authorization": config.NewSecret(secret)}})
			result := d.Attempt(t.Context(), shipment(), time.Now())
			if result.Attempt.Outcome != event.Unknown || !result.Wrote || !strings.Contains(result.Attempt.Error, c.says) {
				t.Errorf("%s, wrote %v: %q", result.Attempt.Outcome, result.Wrote, result.Attempt.Error)
			}
			if strings.Contains(result.Attempt.Error, "s3cr3t") || d.kept() != 0 {
				t.Errorf("%q, %d kept", result.Attempt.Error, d.kept())
			}
		})
	}
}

// TestTarget writes hosts and paths as net/http does.
func TestTarget(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ head, address, name string }{
		"http://app.example":                {"POST / HTTP/1.1\r\nHost: app.example\r\n", "app.example:80", "app.example"},
		"https://app.example/a b?c=d e":     {"POST /a%20b?c=d e HTTP/1.1\r\nHost: app.example\r\n", "app.example:443", "app.example"},
		"http://bücher.example:81/é":        {"POST /%C3%A9 HTTP/1.1\r\nHost: xn--bcher-kva.example:81\r\n", "xn--bcher-kva.example:81", "xn--bcher-kva.example"},
		"https://[::1]:8443/x%2Fy":          {"POST /x%2Fy HTTP/1.1\r\nHost: [::1]:8443\r\n", "[::1]:8443", "::1"},
		"http://[fe80::1%25lo]/":            {"POST / HTTP/1.1\r\nHost: [fe80::1]\r\n", "[fe80::1%lo]:80", "fe80::1%lo"},
		"http://127.0.0.1:3000/hook?a=%20b": {"POST /hook?a=%20b HTTP/1.1\r\nHost: 127.0.0.1:3000\r\n", "127.0.0.1:3000", "127.0.0.1"},
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := newTarget(http.MethodPost, u, "")
		if err != nil || string(got.head) != want.head || got.address != want.address || got.name != want.name {
			t.Errorf("%s: %q at %s as %s, %v", text, got.head, got.address, got.name, err)
		}
		got, err = newTarget(http.MethodPost, u, "inner.example")
		if err != nil || !strings.HasSuffix(string(got.head), "Host: inner.example\r\n") || got.address != want.address || got.name != want.name {
			t.Errorf("%s: %q at %s as %s, %v", text, got.head, got.address, got.name, err)
		}
	}
}
