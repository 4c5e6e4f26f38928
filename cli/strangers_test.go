package cli_test

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"
)

// Strangers ask the page without end and read nothing, and send heads without
// end: what they hold is bounded, and senders are answered meanwhile.
func TestGateO6StrangersTakeNothingFromSenders(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	s.Start(t)
	at, err := url.Parse(s.AdminURL("/"))
	if err != nil {
		t.Fatal(err)
	}
	asked := strings.Repeat("GET /login HTTP/1.1\r\nHost: "+at.Host+"\r\n\r\n", 400)
	for range 600 {
		c, err := net.DialTimeout("tcp", at.Host, 5*time.Second)
		if err != nil {
			break // the backlog of the listener is full: so it is bounded
		}
		defer c.Close()
		_ = c.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
		_, _ = c.Write([]byte(asked)) // as far as it goes
	}
	most := 0
	for range 30 { // it takes them in one after another
		files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.PID()))
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, len(files))
		time.Sleep(100 * time.Millisecond)
	}
	if most > 320 {
		t.Errorf("the server held %d files and connections open", most)
	}
	s.send(t, `{"id":"evt_1","type":"order.paid"}`)
}

// A head of the page is as bounded as one of a sender.
func TestGateO6HeadsOfThePage(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	s.Start(t)
	for size, want := range map[int]int{8 << 10: 401, 20 << 10: 431} {
		if got := strange(t, s.Process, "GET", "/api/v1/events", "", "Cookie", "a="+strings.Repeat("x", size)); got.status != want {
			t.Errorf("a cookie of %d bytes: %d, want %d", size, got.status, want)
		}
	}
}
