package receiver_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"creel/internal/testkit"
)

// TestThreatS09: what a proxy and we could read in two ways is refused, the
// connection ends, and nothing that hides behind it is taken for a request.
func TestThreatS09Smuggling(t *testing.T) {
	t.Parallel()
	hidden := "POST /in/gen HTTP/1.1\r\nHost: x\r\nX-Id: hidden\r\nX-Sig: " +
		signedHeader("", "{}")["X-Sig"][0] + "\r\nContent-Length: 2\r\n\r\n{}"
	for name, text := range map[string]string{
		"TE and CL":              "POST /in/gen HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"CL and TE":              "POST /in/gen HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\ncontent-length: 4\r\n\r\n0\r\n\r\n",
		"two CL":                 "POST /in/gen HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
		"CL list":                "POST /in/gen HTTP/1.1\r\nHost: x\r\nContent-Length: 2, 3\r\n\r\n{}",
		"CL with a sign":         "POST /in/gen HTTP/1.1\r\nHost: x\r\nContent-Length: +2\r\n\r\n{}",
		"bare LF":                "POST /in/gen HTTP/1.1\nHost: x\nContent-Length: 2\n\n{}",
		"one bare LF":            "POST /in/gen HTTP/1.1\r\nHost: x\nContent-Length: 2\r\n\r\n{}",
		"bare LF at the end":     "POST /in/gen HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\n{}",
		"folded line":            "POST /in/gen HTTP/1.1\r\nHost: x\r\nX-A: b\r\n c\r\nContent-Length: 2\r\n\r\n{}",
		"folded with a tab":      "POST /in/gen HTTP/1.1\r\nHost: x\r\nX-A: b\r\n\tc\r\nContent-Length: 2\r\n\r\n{}",
		"space before the colon": "POST /in/gen HTTP/1.1\r\nHost: x\r\nContent-Length : 2\r\n\r\n{}",
		"no host":                "POST /in/gen HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
		"two hosts":              "POST /in/gen HTTP/1.1\r\nHost: x\r\nHost: y\r\nContent-Length: 2\r\n\r\n{}",
		"NUL in a value":         "POST /in/gen HTTP/1.1\r\nHost: x\r\nX-A: a\x00b\r\nContent-Length: 2\r\n\r\n{}",
	} {
		d := open(t, deskOptions{})
		answer, closed := d.raw(t, text+hidden)
		if !strings.HasPrefix(answer, "HTTP/1.1 400 ") || !closed {
			t.Errorf("%s: answer %q, closed %v", name, answer, closed)
		}
		if strings.Count(answer, "HTTP/1.1 ") != 1 || len(d.basket.all()) != 0 {
			t.Errorf("%s: the hidden request was answered: %q", name, answer)
		}
	}
}

// Transfer codings that we do not know are refused in net/http's own words.
func TestThreatS09UnknownTransferEncoding(t *testing.T) {
	t.Parallel()
	d := open(t, deskOptions{})
	for _, coding := range []string{"xchunked", "chunked, identity", "gzip, chunked", "identity"} {
		answer, closed := d.raw(t, "POST /in/gen HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "+coding+"\r\n\r\n0\r\n\r\n")
		if !strings.HasPrefix(answer, "HTTP/1.1 501 ") || !closed {
			t.Errorf("%s: answer %q, closed %v", coding, answer, closed)
		}
	}
}

// A chunked request ends its connection, so that what is pipelined behind it
// is never read.
func TestThreatS09ChunkedEndsTheConnection(t *testing.T) {
	t.Parallel()
	d := open(t, deskOptions{})
	one := "POST /in/gen HTTP/1.1\r\nHost: x\r\n"
	answer, closed := d.raw(t, one+"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"+one+"Content-Length: 2\r\n\r\n{}")
	if strings.Count(answer, "HTTP/1.1 401 ") != 1 || !closed {
		t.Errorf("answer %q, closed %v", answer, closed)
	}
}

// The look at heads stays out of bodies, however requests follow each other.
func TestHeadsAreLookedAtAndBodiesAreNot(t *testing.T) {
	t.Parallel()
	d := open(t, deskOptions{})
	body := "{\n \"Content-Length\": 1,\n\tTransfer-Encoding: chunked\nContent-Length: 1\n\n}"
	var stream strings.Builder
	for _, id := range []string{"1", "2", "3", "4"} {
		stream.WriteString("POST /in/gen HTTP/1.1\r\nHost: x\r\nX-Id: " + id + "\r\nX-Sig: " +
			signedHeader(id, body)["X-Sig"][0] + "\r\nContent-Length: 72\r\n\r\n" + body)
	}
	if len(body) != 72 {
		t.Fatalf("the body has %d bytes", len(body))
	}
	answer, _ := d.raw(t, stream.String())
	if strings.Count(answer, "HTTP/1.1 200 ") != 4 {
		t.Errorf("pipelined: %q", answer)
	}
	for _, id := range []string{"5", "6"} { // on one connection, one after the other
		wantStatus(t, d.signed(t, id, body), 200)
	}
}

// At the limit of connections the one that has gone longest without a request
// makes room: half-open connections can not shut the door.
func TestHalfOpenConnectionsMakeRoom(t *testing.T) {
	t.Parallel()
	d := open(t, deskOptions{connections: 8})
	for range 40 {
		c := dial(t, d.addr)
		_, _ = c.Write([]byte("POST /in/gen HTT"))
	}
	start := time.Now()
	wantStatus(t, d.signed(t, "1", "{}"), 200)
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("the good request took %v", took)
	}
}

// When every connection has a request in work, newcomers wait.
func TestBusyConnectionsAreNotClosed(t *testing.T) {
	t.Parallel()
	d := open(t, deskOptions{connections: 64})
	hold, entered := make(chan struct{}), make(chan struct{}, 128)
	d.basket.set(func(b *basket) { b.hold, b.entered = hold, entered })
	got := make(chan int, 100)
	for range 100 {
		go func() {
			var resp *http.Response
			for tries := 0; resp == nil; tries++ {
				req, _ := http.NewRequest("POST", d.url("/in/gen"), strings.NewReader("{}"))
				req.Header = signedHeader("1", "{}")
				var err error
				// On a slow machine a connection may wait longer for its request than
				// it has places to wait in; one with a request would be counted twice.
				if resp, err = client.Do(req); err != nil && tries == 10 {
					t.Errorf("send: %v", err)
					got <- 0
					return
				}
			}
			_ = resp.Body.Close()
			got <- resp.StatusCode
		}()
	}
	for range 64 {
		<-entered
	}
	select {
	case <-entered:
		t.Error("a 65th request is in work")
	case <-time.After(300 * time.Millisecond): // a place would have been taken after a third of it
	}
	close(hold)
	for range 100 {
		if status := <-got; status != 200 {
			t.Errorf("status %d", status)
		}
	}
	testkit.Poll(t, time.Second, "100 receipts", func() bool { return len(d.basket.all()) >= 100 })
	if n := len(d.basket.all()); n != 100 {
		t.Errorf("%d receipts of 100 requests: one was closed while it was in work", n)
	}
}
