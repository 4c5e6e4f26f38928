package examples_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"creel/internal/testkit"
)

const (
	productSecret = "a-secret-that-the-product-knows"
	globexSecret  = gatewaySecret
	initechSecret = merchantSecret
)

// attempted is what creel events KEY --json tells of the attempts at the one
// delivery of an event.
type attempted struct {
	Deliveries []struct {
		State string
		Tries []struct {
			Run, Number, Status int
			Start               string
			Duration            *int64 `json:"duration_ms"`
			Outcome, Answer     string
		}
	}
}

func (e *example) attempts(key string) (got attempted) {
	e.t.Helper()
	code, stdout, stderr := e.Run(e.t, "events", key, "--json")
	if err := json.Unmarshal(stdout, &got); code != 0 || err != nil || len(got.Deliveries) != 1 {
		e.t.Fatalf("exit %d, %v: %s%s", code, err, stdout, stderr)
	}
	return got
}

// newSender runs the example with the patient schedule in a moment, and alerts
// that are told at once.
func newSender(t *testing.T, globex, initech, mail string) *example {
	e := newExample(t, "sender", []string{"http://127.0.0.1:3001/hooks", globex + "/hooks", "http://127.0.0.1:3002/webhooks", initech + "/webhooks",
		"127.0.0.1:1025", mail, "[alerts]", "[alerts]\nwait = \"0s\"", `retry         = "patient"`, `retry = "hurried"`,
		"[destination.globex]", "[retry.hurried]\ndelays = [\"1ms\", \"5ms\", \"10ms\", \"20ms\", \"40ms\", \"80ms\"]\n\n[destination.globex]"},
		"PRODUCT_SECRET="+productSecret, "GLOBEX_SECRET="+globexSecret, "INITECH_SECRET="+initechSecret)
	e.sender = testkit.Sender{URL: e.URL("/in/product"), Secret: productSecret, Sign: testkit.SignPlain}
	return e
}

func happened(id, kind, customer, more string) string {
	return fmt.Sprintf(`{"id":%q,"type":%q,"customer":%q,"more":%q}`, id, kind, customer, more)
}

// TestSender brings events to two customers: one endpoint fails in every way
// before it takes an event, never takes another and goes away; the other one is
// slow.
func TestSender(t *testing.T) {
	t.Parallel()
	globex, initech, mail := testkit.NewDestination(t), testkit.NewDestination(t), testkit.NewMailServer(t, testkit.MailOptions{})
	slow := make(chan struct{})
	initech.Script(testkit.Answer{Wait: slow})
	globex.Script(testkit.Answer{Status: 500}, testkit.Answer{Status: 404}, testkit.Answer{Fault: testkit.Close}, testkit.Answer{Status: 301},
		testkit.Answer{Status: 503}, testkit.Answer{Status: 502, Body: "<html>Bad Gateway"}, testkit.Answer{Status: 200, Body: "thanks"}, testkit.Answer{Status: 500})
	e := newSender(t, globex.URL, initech.URL, mail.Addr)
	e.send(happened("i1", "payment.completed", "initech", ""), happened("i2", "login", "initech", ""))
	e.send(happened("g1", "payment.completed", "globex", ""))
	e.awaitDeliveries("product/", map[string]delivered{"initech/i1": {"sending", 1, 0}, "globex/g1": {"sent", 7, 200}})
	e.wantTries("product/globex/g1", "500 transient", "404 transient", "0 unknown", "301 transient", "503 transient", "502 transient", "200 ok")
	close(slow)
	e.send(happened("g2", "payment.failed", "globex", ""))
	e.awaitDeliveries("product/", map[string]delivered{"initech/i1": {"sent", 1, 200}, "globex/g1": {"sent", 7, 200}, "globex/g2": {"dead", 7, 500}})
	for _, r := range globex.Requests() {
		genuine(t, r, globexSecret)
	}
	genuine(t, initech.Requests()[0], initechSecret)
	if told := string(mail.Wait(t, 1, soon)[0].Data); !strings.Contains(told, "globex") {
		t.Errorf("support was told\n%s", told)
	}

	globex.Script(testkit.Answer{Status: 410})
	e.send(happened("g3", "payment.completed", "globex", ""))
	testkit.Poll(t, soon, "globex to be disabled", func() bool {
		_, stdout, _ := e.Run(t, "health")
		return strings.Contains(string(stdout), "destination_gone")
	})
	e.send(happened("g4", "payment.completed", "globex", ""))
	globex.Script(testkit.Answer{})
	if code, _, stderr := e.Run(t, "resume", "globex", "--reason", "they are back"); code != 0 {
		t.Fatalf("resume: exit %d, %s", code, stderr)
	}
	e.awaitOne("product/globex/g4", delivered{"sent", 1, 200})
	told := ""
	for _, m := range mail.Wait(t, 2, soon) {
		told += strings.ReplaceAll(string(m.Data), "=\r\n", "")
	}
	if !strings.Contains(told, "410") || !strings.Contains(told, "last success: 20") {
		t.Errorf("support was told\n%s", told)
	}
	e.stop()
}

// TestSenderLargeEvent sends more than an endpoint wants to have in one piece.
func TestSenderLargeEvent(t *testing.T) {
	t.Parallel()
	globex, mail := testkit.NewDestination(t), testkit.NewMailServer(t, testkit.MailOptions{})
	e := newSender(t, globex.URL, "http://127.0.0.1:1", mail.Addr)
	large := happened("g1", "report.made", "globex", strings.Repeat("x", 300_000))
	e.send(large)
	got := globex.Wait(t, 1, soon)[0]
	genuine(t, got, globexSecret)
	if len(got.Body) > 4096 {
		t.Fatalf("%d bytes came", len(got.Body))
	}
	address := findAddress(t, got.Body)
	response, err := http.Get(e.AdminURL(address.RequestURI()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	whole, err := io.ReadAll(response.Body)
	if err != nil || string(whole) != large || address.Host != "hooks.example.com" {
		t.Errorf("%s: %s gave %d bytes, %v", address, response.Status, len(whole), err)
	}
	e.stop()
}

// findAddress finds the address of the body in an envelope.
func findAddress(t *testing.T, envelope []byte) *url.URL {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal(envelope, &members); err != nil {
		t.Fatalf("%v: %s", err, envelope)
	}
	for _, value := range members {
		if text, ok := value.(string); ok && strings.HasPrefix(text, "https://") {
			address, err := url.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			return address
		}
	}
	t.Fatalf("no address in %s", envelope)
	return nil
}

// wantTries checks the table of attempts: each with its own number, its start
// and duration, and its outcome.
func (e *example) wantTries(key string, want ...string) {
	e.t.Helper()
	tries := e.attempts(key).Deliveries[0].Tries
	if len(tries) != len(want) {
		e.t.Fatalf("%s: %+v", key, tries)
	}
	for i, try := range tries {
		_, err := time.Parse(time.RFC3339, try.Start)
		if got := fmt.Sprint(try.Status, " ", try.Outcome); got != want[i] || try.Number != i+1 || try.Run != 1 || err != nil || try.Duration == nil {
			e.t.Errorf("attempt %d: %+v, want %s", i+1, try, want[i])
		}
	}
	if last := tries[len(tries)-1].Answer; last != "text/plain; charset=utf-8: thanks" && last != "thanks" {
		e.t.Errorf("the last answer is %q", last)
	}
}

// awaitOne waits until the delivery of one event is as told.
func (e *example) awaitOne(key string, want delivered) {
	e.t.Helper()
	testkit.Poll(e.t, soon, fmt.Sprintf("%s to be %+v", key, want), func() bool { return e.deliveries("--event", key)[key] == want })
}
