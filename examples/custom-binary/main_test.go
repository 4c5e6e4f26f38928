package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"creel/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const (
	secret = "a-secret-that-the-shop-knows"
	soon   = 20 * time.Second
)

// custom is the custom binary with its own configuration, its ports and
// destination replaced.
func custom(t *testing.T, folder, destination, more string, replace ...string) *testkit.Process {
	t.Helper()
	text, err := os.ReadFile("creel.toml")
	if err != nil {
		t.Fatal(err)
	}
	configuration := strings.NewReplacer(append(replace,
		`"127.0.0.1:8080"`, `"127.0.0.1:0"`,
		"http://127.0.0.1:3000/big-orders", destination,
	)...).Replace(string(text))
	return testkit.NewProcessOf(t, testkit.Build(t, folder), configuration+more,
		"SHOP_SECRET="+secret, "OWNER_SECRET=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "CREEL_ADMIN_LISTEN=127.0.0.1:0", "CREEL_LOG_FORMAT=json")
}

func send(t *testing.T, p *testkit.Process, body string) {
	t.Helper()
	sender := testkit.Sender{URL: p.URL("/in/shop"), Secret: secret, Sign: testkit.SignPlain}
	if status, answer := sender.Send(t, "", []byte(body)); status != 200 {
		t.Fatalf("answered %d %q", status, answer)
	}
}

// seen is an event as creel events --json lists it.
type seen struct {
	ID, State, Error string
	Attempts         int
}

func events(t *testing.T, p *testkit.Process) map[string]seen {
	t.Helper()
	_, stdout, _ := p.Run(t, "events", "--json")
	all := map[string]seen{}
	for line := range strings.Lines(string(stdout)) {
		var one seen
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all[one.ID] = one
	}
	return all
}

// TestHandler sees what the handler of the example does.
func TestHandler(t *testing.T) {
	t.Parallel()
	owner := testkit.NewDestination(t)
	p := custom(t, "examples/custom-binary", owner.URL, "")
	if code, stdout, stderr := p.Run(t, "check"); code != 0 {
		t.Fatalf("check: exit %d\n%s%s", code, stdout, stderr)
	}
	p.Start(t)
	send(t, p, `{"id":"small","type":"order.paid","number":"1000","cents":99}`)
	send(t, p, `{"id":"none","type":"order.paid","number":"1002"}`)
	send(t, p, `{"id":"big","type":"order.paid","number":"1001","cents":250000}`)
	send(t, p, `{"id":"again","type":"order.updated","number":"1001","cents":250000}`)
	testkit.Poll(t, soon, "all events to end", func() bool {
		all := events(t, p)
		return all["small"].State == "done" && all["big"].State == "done" && all["again"].State == "done" && all["none"].State == "dead"
	})
	got := owner.Wait(t, 1, soon)
	if len(got) != 1 || !strings.Contains(string(got[0].Body), `"1001"`) {
		t.Errorf("the owner got %d messages: %s", len(got), got[0].Body)
	}
	if why := events(t, p)["none"].Error; !strings.Contains(why, "the order has no cents") {
		t.Errorf("an order without cents: %q", why)
	}
	if exit := p.Terminate(); exit.Code != 0 {
		t.Errorf("stop: %+v", exit)
	}
}

// brief is a destination for the poison binary, and six attempts within a
// moment.
const brief = `
[destination.app]
url = %q

[worker]
retry = "brief"

[retry.brief]
delays = ["10ms", "10ms", "10ms", "10ms", "10ms"]
`

// TestGateA8 gives the binary an event whose handler kills the process, and
// one whose handler panics, with healthy events beside and behind them.
// A supervisor starts it again each time.
func TestGateA8(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	p := custom(t, "examples/custom-binary/testdata/poison", app.URL, fmt.Sprintf(brief, app.URL),
		`"big orders"`, `"poison"`, "{body.number}/big-order", "{id}/poison")
	p.Start(t)
	// One request at a time: the server dies of the first event, so the healthy
	// ones behind it reach the lives that follow.
	healthy := []string{"h1", "h2", "h3"}
	sent := []string{`{"id":"panic","type":"order.panic"}`, `{"id":"poison","type":"order.poison"}`}
	for _, id := range healthy {
		sent = append(sent, fmt.Sprintf(`{"id":%q,"type":"order.paid"}`, id))
	}
	lives, deaths := 1, 0
	const most = 12 // lives; at most seven of them end by the poison
	for len(sent) > 0 || !over(t, p) {
		select {
		case <-p.Ended():
			if exit := p.Wait(); exit.Code != 3 {
				t.Fatalf("life %d ended with %+v\n%s", lives, exit, p.Stderr())
			}
			deaths++
			if lives++; lives > most {
				t.Fatalf("%d lives and not over: %+v", lives, events(t, p))
			}
			p.Launch(t)
			_ = p.Ready(testkit.ReadyLimit) // it may die before it has said so
		default:
			if len(sent) > 0 && post(t, p, sent[0]) {
				sent = sent[1:]
			}
		}
	}
	all := events(t, p)
	// The first death may be forgiven: it is not known which of the events that
	// were claimed together killed the process. From then on they run alone.
	if got := all["poison"]; got.State != "dead" || got.Attempts != 6 || deaths < 6 || deaths > 7 {
		t.Errorf("the poison: %+v after %d deaths", got, deaths)
	}
	if got := all["panic"]; got.State != "dead" || got.Attempts != 6 {
		t.Errorf("the panic: %+v", got)
	}
	for _, id := range healthy {
		if got := all[id]; got.State != "done" || got.Attempts != 1 {
			t.Errorf("%s: %+v", id, got)
		}
	}
	app.Wait(t, len(healthy), soon)
	if counts := app.Counts(); len(counts) != len(healthy) {
		t.Errorf("%d deliveries arrived", len(counts))
	}
	t.Logf("%d lives, %+v", lives, all)
	if exit := p.Terminate(); exit.Code != 0 {
		t.Errorf("the last stop: %+v", exit)
	}
}

// over tells whether every event has ended.
func over(t *testing.T, p *testkit.Process) bool {
	for _, one := range events(t, p) {
		if one.State != "done" && one.State != "dead" {
			return false
		}
	}
	return true
}

// post sends one event and tells whether it was acknowledged: the server may
// die meanwhile.
func post(t *testing.T, p *testkit.Process, body string) bool {
	t.Helper()
	sender := testkit.Sender{URL: p.URL("/in/shop"), Secret: secret, Sign: testkit.SignPlain}
	response, err := http.DefaultClient.Do(sender.Request(t, "", []byte(body), time.Now()))
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == 200
}
