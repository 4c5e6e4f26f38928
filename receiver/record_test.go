package receiver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"creel/internal/testkit"
	"creel/receiver"
)

func TestStoredHeadersAreWhatCameLessWhatIsPrivate(t *testing.T) {
	t.Parallel()
	d := open(t, deskOptions{sources: map[string]receiver.Source{
		"gen": &gate{}, "token": &gate{token: "X-Token"},
	}})
	text := "POST /in/%s HTTP/1.1\r\nHost: x\r\nConnection: close, X-Private\r\nX-Private: 1\r\nX-Zed: 2\r\nx-alpha: a: b \r\nX-Alpha:  \xc3\xa9\xff\r\n" +
		"Cookie: c\r\nAuthorization: Bearer abc\r\nProxy-Authorization: p\r\nTE: trailers\r\nKeep-Alive: 5\r\nUpgrade: h2c\r\nX-Token: secret\r\n" +
		"X-Id: 1\r\nX-Sig: " + signedHeader("1", "{}")["X-Sig"][0] + "\r\nContent-Length: 2\r\n\r\n{}"
	sig := "X-Sig: " + signedHeader("1", "{}")["X-Sig"][0] + "\n"
	common := "X-Alpha: a: b\nX-Alpha: \xc3\xa9\xff\nX-Id: 1\n" + sig
	for _, row := range []struct {
		source string
		keep   []string
		want   string
	}{
		{"gen", nil, "Content-Length: 2\n" + common + "X-Token: secret\nX-Zed: 2\n"},
		{"token", nil, "Content-Length: 2\n" + common + "X-Zed: 2\n"},
		{"token", []string{"authorization", "cookie", "te", "x-token"}, "Authorization: Bearer abc\nContent-Length: 2\nCookie: c\n" + common + "X-Zed: 2\n"},
	} {
		if err := d.Apply(receiver.Settings{KeepHeaders: row.keep}); err != nil {
			t.Fatal(err)
		}
		answer, _ := d.raw(t, fmt.Sprintf(text, row.source))
		if !strings.HasPrefix(answer, "HTTP/1.1 200 ") {
			t.Fatalf("answer %q", answer)
		}
		got := d.basket.all()
		if header := got[len(got)-1].Header; header != row.want {
			t.Errorf("%s keeping %q:\n%s\nwant\n%s", row.source, row.keep, header, row.want)
		}
	}
}

// What is rejected is in the drawer with its cause, in bounded memory, and
// never with the header that carries a secret.
func TestDrawerOfRejected(t *testing.T) {
	t.Parallel()
	d := open(t, deskOptions{
		sources:  map[string]receiver.Source{"gen": &gate{token: "X-Token"}},
		receiver: receiver.Options{DrawerEntries: 3, DrawerBody: 10},
	})
	for i := range 5 {
		header := http.Header{"X-Token": {"nearly the secret"}, "Authorization": {"Bearer x"}, "X-N": {fmt.Sprint(i)}}
		wantStatus(t, d.do(t, "POST", "/in/gen?q=1", header, []byte("0123456789abc")), 401)
	}
	got := d.Rejected(0)
	if len(got) != 3 || got[0].ID != 5 || got[2].ID != 3 {
		t.Fatalf("drawer %+v", got)
	}
	entry, ok := d.RejectedByID(5)
	if !ok || string(entry.Body) != "0123456789" || entry.BodySize != 13 || entry.Cause != "missing_signature" ||
		entry.Query != "q=1" || entry.Peer != "127.0.0.1" || !strings.Contains(entry.Header, "X-N: 4\n") {
		t.Errorf("entry %+v", entry)
	}
	all, _ := json.Marshal(got)
	for _, secret := range []string{"nearly the secret", "Bearer"} {
		if strings.Contains(string(all), secret) || strings.Contains(d.log.String(), secret) {
			t.Errorf("%q is kept", secret)
		}
	}
	if _, ok := d.RejectedByID(1); ok {
		t.Error("the oldest entry did not fall out")
	}
}

func TestDrawerIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	d := open(t, deskOptions{receiver: receiver.Options{DrawerBytes: 10_000, DrawerBody: 4000}})
	body := []byte(strings.Repeat("x", 5000))
	for range 10 {
		wantStatus(t, d.do(t, "POST", "/in/gen", nil, body), 401)
	}
	if got := d.Rejected(0); len(got) != 2 {
		t.Errorf("%d entries are kept", len(got))
	}
	if got := d.Rejected(1); len(got) != 1 || got[0].ID != 10 {
		t.Errorf("newest: %+v", got)
	}
}

// Hostile traffic writes few log lines; the traffic that verifies is served
// all the same.
func TestFailedSignaturesAreLoggedWithinBounds(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock(time.Unix(1_700_000_000, 0))
	d := open(t, deskOptions{clock: clock.Now})
	for range 60 {
		wantStatus(t, d.do(t, "POST", "/in/gen", nil, []byte("{}")), 401)
	}
	if n := d.log.count("request rejected"); n != 20 {
		t.Errorf("%d lines, want the burst of 20", n)
	}
	wantStatus(t, d.signed(t, "1", "{}"), 200)
	clock.Advance(3 * time.Second)
	for range 5 {
		wantStatus(t, d.do(t, "POST", "/in/gen", nil, []byte("{}")), 401)
	}
	if n := d.log.count("request rejected"); n != 21 {
		t.Errorf("%d lines, want one more after 3 s", n)
	}
	if !strings.Contains(d.log.String(), `"left_out":40`) {
		t.Error("the lines that were left out are not counted")
	}
	counts := countsOf(d, "gen")
	if counts.Results["rejected"] != 65 || counts.Rejects["missing_signature"] != 65 {
		t.Errorf("counts %+v", counts)
	}
}

func TestGoodPathIsSilent(t *testing.T) {
	t.Parallel()
	d := open(t, deskOptions{level: zerolog.InfoLevel})
	for i := range 10 {
		wantStatus(t, d.signed(t, fmt.Sprint(i), "{}"), 200)
	}
	if d.log.String() != "" {
		t.Errorf("log: %s", d.log)
	}
	wantStatus(t, d.signed(t, "1", "{}"), 200)
	if d.log.count("duplicate received") != 1 || !strings.Contains(d.log.String(), `"duplicates":1`) {
		t.Errorf("log: %s", d.log)
	}
}

// The series do not depend on what strangers ask for.
func TestThreatS18CountersDoNotGrowWithRequests(t *testing.T) {
	t.Parallel()
	d := open(t, deskOptions{})
	for i := range 500 {
		wantStatus(t, d.do(t, "POST", fmt.Sprintf("/in/%d", i), nil, nil), 404)
	}
	counts := d.Counts()
	if len(counts) != 1 || counts[0].Source != "" || counts[0].Results["unknown"] != 500 {
		t.Errorf("counts %+v", counts)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	if _, err := receiver.New(receiver.Options{}); err == nil {
		t.Error("a receiver without anything was made")
	}
	d := open(t, deskOptions{})
	if err := d.Apply(receiver.Settings{TrustedProxies: []string{"10.0.0.0/8", "nonsense"}}); err == nil {
		t.Error("nonsense is a trusted proxy")
	}
}
