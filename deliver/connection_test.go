package deliver

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"creel/config"
	"creel/event"
	"creel/internal/testkit"
)

// breaker is a server that answers the first request of a connection and
// closes it after it has read the second one whole.
type breaker struct {
	url      string
	requests atomic.Int64
}

func newBreaker(t *testing.T) *breaker {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	b := &breaker{url: "http://" + listener.Addr().String()}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go b.serve(conn)
		}
	}()
	return b
}

func (b *breaker) serve(conn net.Conn) {
	defer conn.Close()
	reader := bufio.NewReader(conn)
	for n := range 2 {
		req, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		b.requests.Add(1)
		if n == 0 {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	}
}

// TestGateD10 breaks every reused connection after the request was read. Each
// attempt is one request, with and without a body; net/http would send the
// second one again by itself.
func TestGateD10(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"id":"evt_1"}`, ""} {
		server := newBreaker(t)
		d := compiled(t, config.Destination{URL: server.url})
		s := shipment()
		s.Payload.Body = []byte(body)
		for n := range 6 {
			result := d.Attempt(t.Context(), s, time.Now())
			want := event.OK
			if n%2 == 1 {
				want = event.Unknown
			}
			if result.Attempt.Outcome != want {
				t.Errorf("body %q, attempt %d: %s (%s), want %s", body, n+1, result.Attempt.Outcome, result.Attempt.Error, want)
			}
			if got := server.requests.Load(); got != int64(n+1) {
				t.Fatalf("body %q: %d requests after %d attempts", body, got, n+1)
			}
		}
	}
}

// staleConn takes one request and refuses the next without writing a byte, as
// a kept connection does whose other end went away.
type staleConn struct {
	net.Conn
	writes atomic.Int64
}

func (c *staleConn) Write(data []byte) (int, error) {
	if c.writes.Add(1) > 1 {
		return 0, syscall.EPIPE
	}
	return c.Conn.Write(data)
}

// TestStaleConnectionCostsNothing finds a new connection within the same
// attempt where a kept one took nothing of the request.
func TestStaleConnectionCostsNothing(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	d := compiled(t, config.Destination{URL: app.URL})
	var dials atomic.Int64
	d.pool.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		dials.Add(1)
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &staleConn{Conn: conn}, nil
	}
	for n := range 20 {
		if result := d.Attempt(t.Context(), shipment(), time.Now()); result.Attempt.Outcome != event.OK {
			t.Fatalf("attempt %d: %s %s", n, result.Attempt.Outcome, result.Attempt.Error)
		}
	}
	if app.Count() != 20 || dials.Load() != 20 {
		t.Errorf("%d requests over %d connections for 20 attempts", app.Count(), dials.Load())
	}
}

// TestBrokenDialerEnds has connections that take nothing at all: the attempt
// fails as one before anything was written.
func TestBrokenDialerEnds(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	d := compiled(t, config.Destination{URL: app.URL})
	d.pool.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		stale := &staleConn{Conn: conn}
		stale.writes.Store(1)
		return stale, err
	}
	result := d.Attempt(t.Context(), shipment(), time.Now())
	if result.Attempt.Outcome != event.Transient || result.Wrote || app.Count() != 0 {
		t.Errorf("%s, wrote %v, %d requests: %s", result.Attempt.Outcome, result.Wrote, app.Count(), result.Attempt.Error)
	}
}

// TestBugOUT07 makes many attempts with answers of 10 KB, some of them errors:
// the connections are reused.
func TestBugOUT07(t *testing.T) {
	t.Parallel()
	const attempts, workers = 5000, 8
	app := testkit.NewDestination(t)
	large := strings.Repeat("x", 10<<10)
	peers := map[string]bool{}
	var mu sync.Mutex
	app.Answer(func(r testkit.Received) testkit.Answer {
		mu.Lock()
		peers[r.Peer] = true
		mu.Unlock()
		return testkit.Answer{Status: []int{200, 500, 404}[r.Number%3], Body: large}
	})
	d := compiled(t, config.Destination{URL: app.URL, MaxInFlight: workers})
	var wg sync.WaitGroup
	var kept atomic.Int64
	for range workers {
		wg.Go(func() {
			for range attempts / workers {
				kept.Add(int64(len(d.Attempt(t.Context(), shipment(), time.Now()).Attempt.Answer)))
			}
		})
	}
	wg.Wait()
	if len(peers) > 4*workers || app.Open() > workers {
		t.Errorf("%d connections for %d attempts by %d workers, %d open", len(peers), attempts, workers, app.Open())
	}
	if kept.Load() != attempts*mostKept {
		t.Errorf("%d bytes kept, want %d", kept.Load(), attempts*mostKept)
	}
}

// TestNoProxy dials what the configuration names, whatever the environment
// says.
func TestNoProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("NO_PROXY", "")
	app := testkit.NewDestination(t)
	d := compiled(t, config.Destination{URL: app.URL})
	if result := d.Attempt(t.Context(), shipment(), time.Now()); result.Attempt.Outcome != event.OK {
		t.Error(result.Attempt.Error)
	}
}
