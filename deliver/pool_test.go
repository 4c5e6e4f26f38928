package deliver

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"creel/config"
	"creel/event"
	"creel/internal/testkit"
)

// peer is the other end of one connection of a scripted server.
type peer struct {
	net.Conn
	reader *bufio.Reader
	number int64 // of the connection, from 1
}

// request reads one request whole.
func (p *peer) request() bool {
	req, err := http.ReadRequest(p.reader)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, req.Body)
	return err == nil
}

func (p *peer) say(text string) { _, _ = io.WriteString(p.Conn, text) }

// reset makes the close of the connection a reset.
func (p *peer) reset() {
	if plain, ok := p.Conn.(*net.TCPConn); ok {
		_ = plain.SetLinger(0)
	}
}

// scripted serves every connection with a function and closes it after that.
func scripted(t testing.TB, secure *tls.Config, serve func(*peer)) (url string, connections *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	connections = new(atomic.Int64)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
			p := &peer{Conn: conn, number: connections.Add(1)}
			if secure != nil {
				p.Conn = tls.Server(conn, secure)
			}
			p.reader = bufio.NewReader(p.Conn)
			go func() {
				defer p.Conn.Close()
				serve(p)
			}()
		}
	}()
	if secure != nil {
		return "https://" + listener.Addr().String(), connections
	}
	return "http://" + listener.Addr().String(), connections
}

// kept is how many connections a destination keeps.
func (d *Destination) kept() int {
	d.pool.mu.Lock()
	defer d.pool.mu.Unlock()
	return len(d.pool.idle)
}

// eventually waits for a condition and tells whether it came.
func eventually(condition func() bool) bool {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); <-tick.C {
		if condition() {
			return true
		}
	}
	return false
}

// certificate is one that a test's destination shows, and who vouches for it.
func certificate(t testing.TB) (*tls.Config, *x509.CertPool) {
	t.Helper()
	app := testkit.NewTLSDestination(t)
	roots := x509.NewCertPool()
	roots.AddCert(app.Server.Certificate())
	return &tls.Config{Certificates: app.Server.TLS.Certificates}, roots
}

// TestGateD10ClosedWhileIdle ends kept connections in each way in which a
// server does. The next attempt notices before it writes: it is one request
// over a new connection, and not a send with an unknown outcome.
func TestGateD10ClosedWhileIdle(t *testing.T) {
	t.Parallel()
	secure, roots := certificate(t)
	for name, c := range map[string]struct {
		secure *tls.Config
		end    func(*peer)
	}{
		"closed":     {nil, func(*peer) {}},
		"reset":      {nil, (*peer).reset},
		"timed out":  {nil, func(p *peer) { p.say("HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n") }},
		"chatty":     {nil, func(p *peer) { p.say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); _, _ = p.reader.ReadByte() }},
		"TLS closed": {secure, func(*peer) {}},
		"TLS cut":    {secure, func(p *peer) { _ = p.Conn.(*tls.Conn).NetConn().Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			end := make(chan struct{})
			url, connections := scripted(t, c.secure, func(p *peer) {
				for p.request() {
					requests.Add(1)
					p.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
					<-end
					c.end(p)
					return
				}
			})
			d := compiled(t, config.Destination{URL: url}, func(o *Options) { o.RootCAs = roots })
			for n := range 3 {
				if result := d.Attempt(t.Context(), shipment(), time.Now()); result.Attempt.Outcome != event.OK {
					t.Fatalf("attempt %d: %s %s", n, result.Attempt.Outcome, result.Attempt.Error)
				}
				if d.kept() != 1 {
					t.Fatalf("%d connections kept", d.kept())
				}
				end <- struct{}{}
				// What was sent is on its way; an attempt that never looks
				// fails all the same.
				eventually(func() bool { return !d.pool.idle[0].isQuiet() })
			}
			if requests.Load() != 3 || connections.Load() != 3 {
				t.Errorf("%d requests over %d connections for 3 attempts", requests.Load(), connections.Load())
			}
		})
	}
}

// TestReuse has the answers after which a connection can carry another
// request, and those after which it can not. Every attempt gets its answer.
func TestReuse(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100<<10)
	for name, c := range map[string]struct {
		answer string
		status int
		kept   bool
		text   string
	}{
		"empty":              {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, true, ""},
		"short":              {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, true, "ok"},
		"chunked":            {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n1;x=y\r\n!\r\n0\r\n\r\n", 200, true, "ok!"},
		"trailer":            {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-A\r\n\r\n2\r\nok\r\n0\r\nX-A: b\r\n\r\n", 200, true, "ok"},
		"64 KiB":             {"HTTP/1.1 200 OK\r\nContent-Length: 65536\r\n\r\n" + long[:64<<10], 200, true, long[:mostKept]},
		"chunks of 2 KiB":    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n800\r\n" + long[:2<<10] + "\r\n0\r\n\r\n", 200, true, long[:mostKept]},
		"over 64 KiB":        {"HTTP/1.1 200 OK\r\nContent-Length: 102400\r\n\r\n" + long, 200, false, long[:mostKept]},
		"204":                {"HTTP/1.1 204 No Content\r\n\r\n", 204, true, ""},
		"304 with a length":  {"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 304, true, ""},
		"204 with a body":    {"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nabcde", 204, false, ""},
		"more than it says":  {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, false, "ok"},
		"close":              {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", 200, false, "ok"},
		"HTTP/1.0":           {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, false, "ok"},
		"HTTP/1.0 kept":      {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", 200, true, "ok"},
		"100":                {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", 201, true, ""},
		"103, 103":           {strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 2) + "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", 500, true, ""},
		"102, 101":           {"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", 101, false, ""},
		"200, then trailing": {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok\r\n", 200, false, "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, connections := scripted(t, nil, func(p *peer) {
				for p.request() {
					p.say(c.answer)
				}
			})
			d := compiled(t, config.Destination{URL: url})
			for n := range 2 {
				got := d.Attempt(t.Context(), shipment(), time.Now()).Attempt
				if got.Status != c.status || got.Answer != c.text {
					t.Errorf("attempt %d: %d %q, %s", n, got.Status, got.Answer, got.Error)
				}
			}
			want := int64(2)
			if c.kept {
				want = 1
			}
			if connections.Load() != want {
				t.Errorf("%d connections for two attempts, want %d", connections.Load(), want)
			}
		})
	}
}

// TestEndOfAnEndlessAnswer keeps nothing of an answer that ends with its
// connection.
func TestEndOfAnEndlessAnswer(t *testing.T) {
	t.Parallel()
	url, _ := scripted(t, nil, func(p *peer) {
		if p.request() {
			p.say("HTTP/1.1 200 OK\r\n\r\nuntil the end")
		}
	})
	d := compiled(t, config.Destination{URL: url})
	if got := d.Attempt(t.Context(), shipment(), time.Now()).Attempt; got.Answer != "until the end" || d.kept() != 0 {
		t.Errorf("%q, %d kept: %s", got.Answer, d.kept(), got.Error)
	}
}

// TestPoolBounds keeps no more than may be in flight, nothing for too long, and nothing
// after the destination was closed.
func TestPoolBounds(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	d := compiled(t, config.Destination{URL: app.URL, MaxInFlight: 2})
	together := func(n int) {
		open := make(chan struct{})
		app.Script(testkit.Answer{Wait: open})
		done := make(chan event.Outcome)
		before := app.Count()
		for range n {
			go func() { done <- d.Attempt(context.Background(), shipment(), time.Now()).Attempt.Outcome }()
		}
		if !eventually(func() bool { return app.Busy() == n }) {
			t.Errorf("%d of %d attempts arrived", app.Count()-before, n)
		}
		close(open)
		for range n {
			if outcome := <-done; outcome != event.OK {
				t.Error(outcome)
			}
		}
	}
	together(4)
	if d.kept() != 2 || !eventually(func() bool { return app.Open() == 2 }) {
		t.Errorf("%d kept and %d open, want 2", d.kept(), app.Open())
	}
	if old := d.pool.expired(time.Now()); len(old) != 0 || d.pool.sweep == nil {
		t.Errorf("%d ended at once", len(old))
	}
	old := d.pool.expired(time.Now().Add(idleConnection))
	if len(old) != 2 || d.kept() != 0 || d.pool.sweep != nil {
		t.Errorf("%d ended, %d kept", len(old), d.kept())
	}
	for _, c := range old {
		_ = c.stream.Close()
	}
	together(1)
	d.pool.idle[0].since = time.Now().Add(-idleConnection)
	together(1)
	last := app.Requests()[app.Count()-2:]
	if last[0].Peer == last[1].Peer || d.kept() != 1 || !eventually(func() bool { return app.Open() == 1 }) {
		t.Errorf("an old connection was used: %d kept, %d open", d.kept(), app.Open())
	}
	open := make(chan struct{})
	app.Script(testkit.Answer{Wait: open})
	done := make(chan event.Outcome)
	go func() { done <- d.Attempt(context.Background(), shipment(), time.Now()).Attempt.Outcome }()
	if !eventually(func() bool { return app.Busy() == 1 }) {
		t.Error("the attempt did not arrive")
	}
	d.Close()
	close(open)
	if outcome := <-done; outcome != event.OK || d.kept() != 0 || !eventually(func() bool { return app.Open() == 0 }) {
		t.Errorf("%s after the close, %d kept, %d open", outcome, d.kept(), app.Open())
	}
}

// TestSweepComesAgain closes what is old and leaves the rest for later.
func TestSweepComesAgain(t *testing.T) {
	t.Parallel()
	p := &pool{most: 2}
	for range 2 {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { _ = theirs.Close() })
		s := &socket{Conn: ours}
		p.put(newConn(s, s))
	}
	p.mu.Lock()
	p.idle[0].since = time.Now().Add(-idleConnection)
	p.mu.Unlock()
	p.expire()
	if len(p.idle) != 1 || p.sweep == nil || !p.sweep.Stop() {
		t.Errorf("%d kept, and nothing comes for them", len(p.idle))
	}
	p.close()
}

// TestTLSReuse carries several attempts, one of them long, over one connection.
func TestTLSReuse(t *testing.T) {
	t.Parallel()
	app := testkit.NewTLSDestination(t)
	roots := x509.NewCertPool()
	roots.AddCert(app.Server.Certificate())
	d := compiled(t, config.Destination{URL: app.URL}, func(o *Options) { o.RootCAs = roots })
	peers := map[string]bool{}
	for n, size := range []int{10, mostTogether, 3 << 20, 10} {
		s := shipment()
		s.Payload.Body = bytes.Repeat([]byte("x"), size)
		if result := d.Attempt(t.Context(), s, time.Now()); result.Attempt.Outcome != event.OK {
			t.Fatalf("attempt %d: %s", n, result.Attempt.Error)
		}
		got := app.Requests()[n]
		peers[got.Peer] = true
		if !bytes.Equal(got.Body, s.Payload.Body) {
			t.Errorf("attempt %d: %d bytes arrived of %d", n, len(got.Body), size)
		}
	}
	if len(peers) != 1 {
		t.Errorf("%d connections", len(peers))
	}
}
