package receiver_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"creel/event"
	"creel/internal/testkit"
	"creel/receiver"
	"creel/source"
)

const testSecret = "a secret of the tests, long enough"

// gate is a source for behaviour that is the receiver's alone: an HMAC over
// the body in X-Sig, the event's id in X-Id.
type gate struct {
	maxBody   int64
	reject    int
	duplicate int
	probe     int
	encodings []string
	token     string // the header that carries a secret
	panics    bool
	awaits    bool
	seen      func(*source.Request)
}

func (g *gate) Receive(r *source.Request, _ time.Time) source.Result {
	if g.seen != nil {
		g.seen(r)
	}
	if g.panics {
		panic("a payload that must not be logged: " + string(r.Body))
	}
	if r.Query == "challenge" {
		return source.Result{Answer: &source.Answer{Status: 200, Body: "<b>hi</b>"}}
	}
	if g.awaits {
		return source.Result{Cause: source.NoSecret}
	}
	sent := r.Header.Values("X-Sig")
	if len(sent) == 0 {
		return source.Result{Cause: source.MissingSignature}
	}
	got, err := hex.DecodeString(sent[0])
	if err != nil || len(sent) > 1 {
		return source.Result{Cause: source.MalformedSignature}
	}
	if !hmac.Equal(got, sign(r.Body)) {
		return source.Result{Cause: source.WrongSignature}
	}
	if bytes.Contains(r.Body, []byte("test mode")) {
		return source.Result{}
	}
	sum := sha256.Sum256(r.Body)
	return source.Result{Body: r.Body, Items: []event.Item{{
		Key:     event.Key{Source: "gen", ID: r.Header.Get("X-Id")},
		State:   event.Pending,
		Content: [16]byte(sum[:16]),
	}}}
}

func (g *gate) Probe(r *source.Request) (source.Answer, bool) {
	if r.Query == "challenge" {
		return source.Answer{Status: 200, Body: "1158201444"}, true
	}
	return source.Answer{}, false
}

func (g *gate) MaxBody() int64 {
	if g.maxBody == 0 {
		return 1 << 20
	}
	return g.maxBody
}
func (g *gate) AcceptsEncoding(coding string) bool { return slices.Contains(g.encodings, coding) }
func (g *gate) RejectStatus() int                  { return orElse(g.reject, 401) }
func (g *gate) DuplicateStatus() int               { return orElse(g.duplicate, 200) }
func (g *gate) ProbeStatus() int                   { return orElse(g.probe, 200) }
func (g *gate) SecretHeaders() []string {
	if g.token == "" {
		return nil
	}
	return []string{g.token}
}

func orElse(value, fallback int) int {
	if value == 0 {
		return fallback
	}
	return value
}

func sign(body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(testSecret))
	mac.Write(body)
	return mac.Sum(nil)
}

// basket is an inbox in memory.
type basket struct {
	mu       sync.Mutex
	receipts []event.Receipt
	counts   map[event.Key]int
	fail     error
	hold     chan struct{} // Accept waits for it, or for its context
	entered  chan struct{}
}

func (b *basket) Accept(ctx context.Context, receipt *event.Receipt) (event.Accepted, error) {
	b.mu.Lock()
	hold, fail, entered := b.hold, b.fail, b.entered
	b.mu.Unlock()
	if entered != nil {
		entered <- struct{}{}
	}
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return event.Accepted{}, ctx.Err()
		}
	}
	if fail != nil {
		return event.Accepted{}, fail
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.counts == nil {
		b.counts = map[event.Key]int{}
	}
	b.receipts = append(b.receipts, *receipt)
	var accepted event.Accepted
	for _, item := range receipt.Items {
		res := event.New
		if b.counts[item.Key] > 0 {
			res = event.Duplicate
		}
		b.counts[item.Key]++
		accepted.Items = append(accepted.Items, event.AcceptedItem{
			Key: item.Key, Result: res, Duplicates: b.counts[item.Key] - 1,
		})
	}
	return accepted, nil
}

func (b *basket) all() []event.Receipt {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.receipts)
}

func (b *basket) set(change func(*basket)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(b)
}

// lines is a log that tests read.
type lines struct{ testkit.Log }

func (l *lines) count(message string) int {
	return l.Count(fmt.Sprintf("%q", message))
}

// desk is a receiver on a real listener.
type desk struct {
	*receiver.Receiver
	basket *basket
	log    *lines
	server *http.Server
	addr   string
}

type deskOptions struct {
	sources     map[string]receiver.Source
	lookup      func(string) (receiver.Source, bool) // instead of sources
	inbox       receiver.Inbox                       // the basket where it is nil
	receiver    receiver.Options
	readTimeout time.Duration
	headTimeout time.Duration
	connections int
	level       zerolog.Level
	clock       func() time.Time
}

// open starts a desk that ends with the test.
func open(t testing.TB, o deskOptions) *desk {
	t.Helper()
	d := &desk{basket: &basket{}, log: &lines{}}
	if o.sources == nil {
		o.sources = map[string]receiver.Source{"gen": &gate{}}
	}
	options := o.receiver
	options.Sources = func(name string) (receiver.Source, bool) {
		src, ok := o.sources[name]
		return src, ok
	}
	if o.lookup != nil {
		options.Sources = o.lookup
	}
	options.Inbox = d.basket
	if o.inbox != nil {
		options.Inbox = o.inbox
	}
	options.Clock = time.Now
	if o.clock != nil {
		options.Clock = o.clock
	}
	options.Log = zerolog.New(d.log).Level(o.level)
	var err error
	if d.Receiver, err = receiver.New(options); err != nil {
		t.Fatalf("make a receiver: %v", err)
	}
	d.server = receiver.NewServer(d.Receiver, options.Log)
	if o.readTimeout > 0 {
		d.server.ReadTimeout = o.readTimeout
	}
	if o.headTimeout > 0 {
		d.server.ReadHeaderTimeout = o.headTimeout
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	d.addr = inner.Addr().String()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = d.server.Serve(receiver.Listen(inner, orElse(o.connections, 64)))
	}()
	t.Cleanup(func() {
		_ = d.server.Close()
		<-served
	})
	return d
}

func (d *desk) url(path string) string { return "http://" + d.addr + path }

// reply is an answer as a test compares it.
type reply struct {
	status int
	header http.Header
	body   string
	closes bool
}

// do sends a request and reads the answer.
func (d *desk) do(t testing.TB, method, path string, header http.Header, body []byte) reply {
	t.Helper()
	req, err := http.NewRequest(method, d.url(path), bytes.NewReader(body))
	if err != nil {
		t.Fatalf("make a request: %v", err)
	}
	maps.Copy(req.Header, header)
	return send(t, req)
}

var client = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
}

func send(t testing.TB, req *http.Request) reply {
	t.Helper()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("send: %v", err)
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("read the answer: %v", err)
	}
	return reply{resp.StatusCode, resp.Header, string(got), resp.Close}
}

// signed posts an event to the source gen.
func (d *desk) signed(t testing.TB, id, body string) reply {
	t.Helper()
	return d.do(t, http.MethodPost, "/in/gen", signedHeader(id, body), []byte(body))
}

func signedHeader(id, body string) http.Header {
	return http.Header{"X-Sig": {hex.EncodeToString(sign([]byte(body)))}, "X-Id": {id}}
}

// raw writes bytes on a connection of its own and returns all that comes back
// before the other side closes or the limit passes.
func (d *desk) raw(t testing.TB, text string) (answer string, closed bool) {
	t.Helper()
	c, err := net.Dial("tcp", d.addr)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	defer func() { _ = c.Close() }()
	if _, err := io.WriteString(c, text); err != nil {
		t.Logf("write: %v", err)
	}
	_ = c.SetReadDeadline(time.Now().Add(2 * time.Second))
	got, err := io.ReadAll(bufio.NewReader(c))
	return string(got), err == nil
}

// dial opens a connection that ends with the test.
func dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func wantStatus(t testing.TB, got reply, status int) {
	t.Helper()
	if got.status != status {
		t.Errorf("status %d, want %d (body %q)", got.status, status, got.body)
	}
}
