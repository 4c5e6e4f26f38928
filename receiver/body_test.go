package receiver_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"creel/internal/testkit"
	"creel/receiver"
)

func bigGate() map[string]receiver.Source {
	return map[string]receiver.Source{"gen": &gate{}, "big": &gate{maxBody: 25 << 20}}
}

func TestBodiesOfEverySizeArriveWhole(t *testing.T) {
	t.Parallel()
	d := open(t, deskOptions{sources: bigGate()})
	for _, size := range []int{0, 1, 1023, 16 << 10, 16<<10 + 1, 64 << 10, 1 << 20, 3<<20 + 7} {
		body := strings.Repeat("x", size)
		for _, chunked := range []bool{false, true} {
			name := fmt.Sprint(size, chunked)
			req, err := http.NewRequest("POST", d.url("/in/big"), io.MultiReader(strings.NewReader(body)))
			if err != nil {
				t.Fatal(err)
			}
			req.Header = signedHeader(name, body)
			if !chunked {
				req.Body, req.ContentLength = io.NopCloser(strings.NewReader(body)), int64(size)
			}
			wantStatus(t, send(t, req), 200)
			got := d.basket.all()
			if last := got[len(got)-1]; string(last.Body) != body {
				t.Errorf("%s: %d bytes were stored", name, len(last.Body))
			}
		}
	}
	if d.Memory() != 0 {
		t.Errorf("%d bytes are still charged", d.Memory())
	}
}

// TestBugHTTP06: a body over the limit is refused by its declared length,
// without reading it; a chunked one as soon as it is over.
func TestBugHTTP06TooLarge(t *testing.T) {
	t.Parallel()
	d := open(t, deskOptions{})
	head := "POST /in/gen HTTP/1.1\r\nHost: x\r\n"
	answer, closed := d.raw(t, head+"Content-Length: 2147483648\r\n\r\n")
	if !strings.HasPrefix(answer, "HTTP/1.1 413 ") || !closed {
		t.Errorf("declared: %q, closed %v", answer, closed)
	}
	answer, _ = d.raw(t, head+"Content-Length: 2147483648\r\nExpect: 100-continue\r\n\r\n")
	if !strings.HasPrefix(answer, "HTTP/1.1 413 ") || strings.Contains(answer, "100 Continue") {
		t.Errorf("expecting: %q", answer)
	}
	chunk := "10000\r\n" + strings.Repeat("0", 64<<10) + "\r\n"
	var wait sync.WaitGroup
	for range 10 {
		wait.Go(func() {
			// The sender would go on for ever; it is cut after its first MiB.
			answer, _ := d.raw(t, head+"Transfer-Encoding: chunked\r\n\r\n"+strings.Repeat(chunk, 17))
			if !strings.HasPrefix(answer, "HTTP/1.1 413 ") {
				t.Errorf("chunked: %q", answer)
			}
		})
	}
	wait.Wait()
	if n := countsOf(d, "gen").Results["too_large"]; n != 12 {
		t.Errorf("%d were counted as too large", n)
	}
	testkit.Poll(t, time.Second, "all memory given back", func() bool { return d.Memory() == 0 })
}

// TestBugHTTP07: a big and honest payload passes where the source allows it.
func TestBugHTTP07BigHonestBody(t *testing.T) {
	t.Parallel()
	d := open(t, deskOptions{sources: bigGate()})
	body := `{"x":"` + strings.Repeat("y", 24<<20) + `"}`
	wantStatus(t, d.do(t, "POST", "/in/big", signedHeader("1", body), []byte(body)), 200)
	if got := d.basket.all(); len(got) != 1 || string(got[0].Body) != body {
		t.Error("the body is not what was sent")
	}
}

func TestExpectContinueAndOldHTTP(t *testing.T) {
	t.Parallel()
	d := open(t, deskOptions{})
	sig := "X-Sig: " + signedHeader("1", "{}")["X-Sig"][0] + "\r\nX-Id: 1\r\n"
	answer, _ := d.raw(t, "POST /in/gen HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-continue\r\n"+sig+"Content-Length: 2\r\n\r\n{}")
	if !strings.HasPrefix(answer, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 ") {
		t.Errorf("expecting: %q", answer)
	}
	answer, closed := d.raw(t, "POST /in/gen HTTP/1.0\r\n"+sig+"Content-Length: 2\r\n\r\n{}")
	if !strings.HasPrefix(answer, "HTTP/1.0 200 ") && !strings.HasPrefix(answer, "HTTP/1.1 200 ") || !closed {
		t.Errorf("HTTP/1.0: %q, closed %v", answer, closed)
	}
	answer, closed = d.raw(t, "POST /in/gen HTTP/1.1\r\nHost: x\r\n"+sig+"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n")
	if !strings.HasPrefix(answer, "HTTP/1.1 200 ") || !closed {
		t.Errorf("chunked: %q, closed %v", answer, closed)
	}
}

// A sender that stops in the middle leaves nothing behind, even where what
// came is signed.
func TestTruncatedUploadStoresNothing(t *testing.T) {
	t.Parallel()
	d := open(t, deskOptions{})
	for i, text := range []string{
		"Content-Length: 100\r\n\r\n{}",
		"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
		"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
	} {
		c := dial(t, d.addr)
		_, _ = io.WriteString(c, "POST /in/gen HTTP/1.1\r\nHost: x\r\nX-Id: 1\r\nX-Sig: "+signedHeader("1", "{}")["X-Sig"][0]+"\r\n"+text)
		_ = c.(*net.TCPConn).CloseWrite()
		answer, _ := io.ReadAll(c)
		_ = c.Close()
		if !bytes.HasPrefix(answer, []byte("HTTP/1.1 400 ")) {
			t.Errorf("answer %q", answer)
		}
		if n := countsOf(d, "gen").Results["truncated"]; n != int64(i+1) {
			t.Errorf("%d were counted as truncated, want %d", n, i+1)
		}
	}
	if len(d.basket.all()) != 0 {
		t.Error("something was stored")
	}
}

// TestBugHTTP08: slow senders are cut by a deadline, while the others are
// served; and the deadline does not touch a request that waits for the store.
func TestBugHTTP08SlowSenders(t *testing.T) {
	t.Parallel()
	d := open(t, deskOptions{readTimeout: 400 * time.Millisecond, connections: 600})
	slow := make([]net.Conn, 200)
	for i := range slow {
		c := dial(t, d.addr)
		slow[i] = c
		_, _ = io.WriteString(c, "POST /in/gen HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
	}
	wantStatus(t, d.signed(t, "1", "{}"), 200)
	for _, c := range slow {
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if answer, err := io.ReadAll(c); err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 408 ")) {
			t.Fatalf("answer %q, %v", answer, err)
		}
	}
	if n := countsOf(d, "gen").Results["too_slow"]; n != int64(len(slow)) {
		t.Errorf("%d were counted as too slow", n)
	}
}

// The same for senders that never finish their head: they are closed.
func TestBugHTTP08SlowHeads(t *testing.T) {
	t.Parallel()
	d := open(t, deskOptions{headTimeout: 300 * time.Millisecond, connections: 600})
	slow := make([]net.Conn, 200)
	for i := range slow {
		slow[i] = dial(t, d.addr)
		_, _ = io.WriteString(slow[i], "POST /in/gen HTTP/1.1\r\nX-Slow: ")
	}
	wantStatus(t, d.signed(t, "1", "{}"), 200)
	for _, c := range slow {
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if answer, err := io.ReadAll(c); err != nil || len(answer) != 0 {
			t.Fatalf("answer %q, %v", answer, err)
		}
	}
}

func TestBugHTTP08ReadDeadlineDoesNotEndTheWaitForTheStore(t *testing.T) {
	t.Parallel()
	const deadline = 150 * time.Millisecond
	d := open(t, deskOptions{readTimeout: deadline})
	hold, entered := make(chan struct{}), make(chan struct{}, 1)
	d.basket.set(func(b *basket) { b.hold, b.entered = hold, entered })
	got := make(chan reply, 1)
	go func() { got <- d.signed(t, "1", "{}") }()
	<-entered
	<-time.After(2 * deadline) // the read deadline of the request passes meanwhile
	close(hold)
	wantStatus(t, <-got, 200)
}

// A sender that hangs up while its event is being stored does not undo it.
func TestHangUpDoesNotCancelTheStore(t *testing.T) {
	t.Parallel()
	d := open(t, deskOptions{})
	hold, entered := make(chan struct{}), make(chan struct{}, 1)
	d.basket.set(func(b *basket) { b.hold, b.entered = hold, entered })
	c := dial(t, d.addr)
	_, _ = io.WriteString(c, "POST /in/gen HTTP/1.1\r\nHost: x\r\nX-Id: 1\r\nX-Sig: "+signedHeader("1", "{}")["X-Sig"][0]+"\r\nContent-Length: 2\r\n\r\n{}")
	<-entered
	_ = c.Close()
	close(hold)
	testkit.Poll(t, 2*time.Second, "the event stored", func() bool { return len(d.basket.all()) == 1 })
}

// Slow large uploads use up their share of the memory and no more: small
// requests still pass.
func TestMemoryIsBoundedAndKeepsAReserve(t *testing.T) {
	t.Parallel()
	d := open(t, deskOptions{
		sources:  bigGate(),
		receiver: receiver.Options{Memory: 2 << 20},
	})
	part := strings.Repeat("x", 600<<10)
	for range 8 {
		c := dial(t, d.addr)
		_, _ = io.WriteString(c, "POST /in/big HTTP/1.1\r\nHost: x\r\nContent-Length: 20000000\r\n\r\n"+part)
	}
	testkit.Poll(t, 5*time.Second, "large uploads turned away", func() bool {
		return countsOf(d, "big").Results["over_budget"] >= 6
	})
	if d.Memory() > 2<<20 {
		t.Errorf("%d bytes are held", d.Memory())
	}
	small := strings.Repeat("y", 60<<10)
	wantStatus(t, d.signed(t, "1", small), 200)
}

// A compressed body is refused before it is read, unless its
// source knows the coding.
func TestContentEncodings(t *testing.T) {
	t.Parallel()
	d := open(t, deskOptions{sources: map[string]receiver.Source{
		"gen": &gate{}, "zip": &gate{encodings: []string{"gzip"}},
	}})
	for _, row := range []struct {
		source string
		values []string
		status int
	}{
		{"gen", []string{"gzip"}, 415},
		{"gen", []string{"br"}, 415},
		{"gen", []string{"identity, gzip"}, 415},
		{"gen", []string{"identity", "gzip"}, 415},
		{"gen", []string{"Identity"}, 200},
		{"gen", []string{""}, 200},
		{"zip", []string{"GZIP"}, 200},
		{"zip", []string{"deflate"}, 415},
	} {
		header := signedHeader("1", "{}")
		header["Content-Encoding"] = row.values
		if got := d.do(t, "POST", "/in/"+row.source, header, []byte("{}")); got.status != row.status {
			t.Errorf("%s %q: %d, want %d", row.source, row.values, got.status, row.status)
		}
	}
}
