package testkit

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func post(t *testing.T, url, id string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader("body of "+id))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("webhook-id", id)
	return http.DefaultClient.Do(req)
}

func TestDestinationFollowsItsScript(t *testing.T) {
	t.Parallel()
	d := NewDestination(t)
	d.Script(Answer{Status: 503, Header: map[string]string{"Retry-After": "7"}}, Answer{Fault: Reset}, Answer{Body: "ok"})

	resp, err := post(t, d.URL, "a")
	if err != nil || resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "7" {
		t.Fatalf("first answer: %v %v", resp, err)
	}
	_ = resp.Body.Close()
	if resp, err := post(t, d.URL, "a"); err == nil {
		_ = resp.Body.Close()
		t.Fatal("the second request must end without an answer")
	}
	for range 2 {
		resp, err := post(t, d.URL, "b")
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("the last answer goes on: %v %v", resp, err)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(text) != "ok" {
			t.Fatalf("body %q", text)
		}
	}
	got := d.Wait(t, 4, time.Second)
	if string(got[0].Body) != "body of a" || got[3].ID() != "b" || d.Counts()["a"] != 2 {
		t.Fatalf("kept %+v", got)
	}
}

func TestDestinationFaultsEndWithTheRequest(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]Fault{"hang": Hang, "close": Close, "half": HalfAnswer, "endless": Endless} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := NewDestination(t)
			d.Script(Answer{Fault: fault})
			client := &http.Client{Timeout: 200 * time.Millisecond}
			resp, err := client.Post(d.URL, "text/plain", strings.NewReader("x"))
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			if err == nil {
				t.Fatal("the fault must be seen by the sender")
			}
			if d.Count() != 1 {
				t.Fatalf("%d requests", d.Count())
			}
		})
	}
}

func TestCanaryFindsALeak(t *testing.T) {
	t.Parallel()
	c := NewCanary(t)
	text := "nothing here"
	c.Watch("the log", func() []byte { return []byte(text) })
	if leaks := c.Leaks(); len(leaks) != 0 {
		t.Fatalf("false alarm: %v", leaks)
	}
	text = "secret=" + c.Secret
	if leaks := c.Leaks(); !slices.Equal(leaks, []string{"the secret stands in the log"}) {
		t.Fatalf("leaks %v", leaks)
	}
	text = ""
}

func TestSenderAgreesWithTheOfficialLibrary(t *testing.T) {
	t.Parallel()
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	body := []byte(`{"type":"ping"}`)
	header := http.Header{}
	SignStandard(header, secret, "msg_1", body, time.Now())
	judge, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := judge.Verify(body, header); err != nil {
		t.Fatalf("the official library refuses our signature: %v", err)
	}
}

func TestSendersMatchPublishedExamples(t *testing.T) {
	t.Parallel()
	// The example of GitHub's own documentation on validating deliveries.
	header := http.Header{}
	SignGitHub(header, "It's a Secret to Everybody", "id", []byte("Hello, World!"), time.Now())
	const want = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	if got := header.Get("X-Hub-Signature-256"); got != want {
		t.Fatalf("got %s", got)
	}
}

func TestClockStandsStill(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 6_700_000, time.FixedZone("x", 3600))
	c := NewClock(start)
	if got := c.Now(); got.Location() != time.UTC || got.Nanosecond() != 6_000_000 {
		t.Fatalf("now %v", got)
	}
	if got := c.Advance(time.Hour); got.Sub(c.Now()) != 0 || !got.After(start) {
		t.Fatalf("advanced to %v", got)
	}
	c.Set(start.Add(-3 * time.Hour))
	if !c.Now().Before(start) {
		t.Fatal("a clock can go back")
	}
}

func TestAwaitGivesUp(t *testing.T) {
	t.Parallel()
	if Await(20*time.Millisecond, func() bool { return false }) {
		t.Fatal("never true")
	}
	tries := 0
	if !Await(time.Second, func() bool { tries++; return tries > 3 }) {
		t.Fatal("true at the fourth look")
	}
}

func TestExitOfSomethingElse(t *testing.T) {
	t.Parallel()
	if exitOf(errors.New("not started")).Code != -1 || exitOf(nil).Code != 0 {
		t.Fatal("exit codes")
	}
}
