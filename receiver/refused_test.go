package receiver_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"creel/internal/testkit"
	"creel/receiver"
)

// What is refused for how it is sent is noted like what does not verify: it may
// be the sender's own big event. Of its sender nothing is known, so that it has
// the bounds of any reject, and nothing of its body is kept.
func TestWhatIsRefusedUnverifiedIsNoted(t *testing.T) {
	t.Parallel()
	const chunked = "Transfer-Encoding: chunked\r\n"
	for name, c := range map[string]struct {
		head, body, cause, detail string
		size, status              int
	}{
		"too large, as it says": {"Content-Length: 2000000\r\n", "", "too_large", "its body of 2000000 bytes is over max_body = 1000 of the source", 2000000, 413},
		"too large, as it came": {chunked, "800\r\n" + strings.Repeat("x", 2048) + "\r\n0\r\n\r\n", "too_large",
			"its body is over max_body = 1000 of the source", 1001, 413},
		"compressed":              {"Content-Encoding: br\r\nContent-Length: 12\r\n", "", "unsupported_encoding", "verify.content_encodings", 12, 415},
		"compressed, of any size": {"Content-Encoding: br\r\n" + chunked, "", "unsupported_encoding", "verify.content_encodings", 0, 415},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := make(chan receiver.Rejected, 1)
			clock := testkit.NewClock(time.Unix(1_700_000_000, 0))
			d := open(t, deskOptions{clock: clock.Now, sources: map[string]receiver.Source{"gen": &gate{maxBody: 1000, token: "X-Token"}},
				receiver: receiver.Options{Rejected: func(r receiver.Rejected) { told <- r }}})
			answer, _ := d.raw(t, "POST /in/gen?q=1 HTTP/1.1\r\nHost: x\r\nX-Token: nearly the secret\r\nX-N: 1\r\n"+c.head+"\r\n"+c.body)
			if got := strings.Fields(answer)[1]; got != map[int]string{413: "413", 415: "415"}[c.status] {
				t.Fatalf("answered %q", answer)
			}
			heard := <-told
			entry, ok := d.RejectedByID(1)
			if !ok || entry.Cause != c.cause || !strings.Contains(entry.Detail, c.detail) || len(entry.Body) != 0 || !entry.Cut() ||
				entry.Missing() == "" || entry.Query != "q=1" || entry.Peer != "127.0.0.1" || !entry.At.Equal(clock.Now()) ||
				!strings.Contains(entry.Header, "X-N: 1\n") || strings.Contains(entry.Header, "nearly") {
				t.Errorf("entry %+v", entry)
			}
			if c.size != 1001 && entry.BodySize != c.size || entry.BodySize < c.size {
				t.Errorf("its size is %d, want %d", entry.BodySize, c.size)
			}
			if heard.ID != 1 || heard.Cause != c.cause || heard.Detail != entry.Detail {
				t.Errorf("told %+v", heard)
			}
			if counts := countsOf(d, "gen"); counts.Rejects[c.cause] != 1 {
				t.Errorf("counts %+v", counts)
			}
			if log := d.log.String(); d.log.count("request rejected") != 1 || !strings.Contains(log, `"cause":"`+c.cause) || !strings.Contains(log, `"hint":`) ||
				strings.Contains(log, "nearly") {
				t.Errorf("log %s", log)
			}
			again, err := d.Readmit(context.Background(), 1, d.basket.Accept)
			if err != nil || again.Outcome != receiver.RejectedCut || again.Detail != entry.Missing() {
				t.Errorf("again: %+v, %v", again, err)
			}
		})
	}
}

// A flood of what is too large has the same bounds as any.
func TestWhatIsRefusedUnverifiedIsBounded(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock(time.Unix(1_700_000_000, 0))
	d := open(t, deskOptions{clock: clock.Now, sources: map[string]receiver.Source{"gen": &gate{maxBody: 10}},
		receiver: receiver.Options{DrawerEntries: 30}})
	for range 60 {
		wantStatus(t, d.do(t, "POST", "/in/gen", nil, []byte("01234567890")), http.StatusRequestEntityTooLarge)
	}
	if n := d.log.count("request rejected"); n != 20 {
		t.Errorf("%d lines, want the burst of 20", n)
	}
	if n := len(d.Rejected(0)); n != 30 {
		t.Errorf("%d in the drawer, want 30", n)
	}
	if n := countsOf(d, "gen").Rejects["too_large"]; n != 60 {
		t.Errorf("%d are counted, want 60", n)
	}
}
