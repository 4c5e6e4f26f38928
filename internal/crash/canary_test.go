package crash

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"creel/internal/testkit"
)

// TestGateO8 sends planted secrets and payloads down every path that has
// something to say (verified, refused, broken, dead, conflicting) and looks
// for them in everything that the server and the command line wrote.
func TestGateO8(t *testing.T) {
	t.Parallel()
	destination := testkit.NewDestination(t)
	p, canary := serve(t, destination.URL, "headers = { x-app-token = \"env:LOAD_SECRET\" }\n")
	p.Setenv("CREEL_LOG_LEVEL", "debug")
	destination.Answer(func(r testkit.Received) testkit.Answer {
		if strings.Contains(string(r.Body), "refused by the app") {
			return testkit.Answer{Status: http.StatusBadRequest, Body: canary.Payload}
		}
		return testkit.Answer{}
	})
	said := &answers{}
	canary.Watch("an answer to a sender", said.text)
	p.Start(t)

	sender := testkit.Sender{URL: p.URL("/in/load"), Secret: canary.Secret, Sign: testkit.SignPlain}
	send := func(want int, body string, alter func(*http.Request)) {
		t.Helper()
		req := sender.Request(t, "", []byte(body), time.Now())
		if alter != nil {
			alter(req)
		}
		status, answer := sender.Do(t, req)
		said.add(answer)
		if status != want {
			t.Errorf("answered %d, want %d: %.80s", status, want, body)
		}
	}
	note := `,"note":"` + canary.Payload + `"`
	send(200, `{"id":"e1","type":"order.paid"`+note+`}`, nil)
	send(200, `{"id":"e1","type":"order.paid"`+note+`}`, nil)                            // duplicate
	send(200, `{"id":"e1","type":"order.paid","more":1`+note+`}`, nil)                   // conflict
	send(200, `{"id":"e2","type":"order.paid","for":"refused by the app"`+note+`}`, nil) // dead delivery
	send(200, `{"type":"order.paid"`+note+`}`, nil)                                      // no id
	send(200, `{"id":"e3","type":"order.paid"`+note, nil)                                // not JSON
	send(401, `{"id":"e4"`+note+`}`, func(r *http.Request) { r.Header.Set("X-Signature", canary.Payload) })
	send(401, `{"id":"e5"`+note+`}`, func(r *http.Request) { r.Header.Del("X-Signature") })
	send(404, `{"id":"e6"`+note+`}`, func(r *http.Request) { r.URL.Path = "/in/" + canary.Payload })

	destination.Wait(t, 2, 20*time.Second)
	testkit.Poll(t, 20*time.Second, "a dead delivery", func() bool {
		return look(t, p.Dir, `SELECT count(*) FROM delivery WHERE state = 'dead'`) == 1
	})
	outputs := &answers{}
	canary.Watch("the command line", outputs.text)
	for _, args := range [][]string{
		{"check"}, {"events"}, {"events", "--json"}, {"deliveries"}, {"deliveries", "--json"},
		{"replay", "--state", "dead", "--dry-run"}, {"replay", "--state", "dead", "--reason", "canary"},
		{"audit", "--json"}, {"health", "--json"},
	} {
		code, out, errs := p.Run(t, append(args, "-c", "creel.toml")...)
		outputs.add(string(out) + string(errs))
		if code == 2 {
			t.Errorf("creel %v: %s", args, errs)
		}
	}
	operator := &answers{}
	canary.Watch("the operator's listener", operator.text)
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/"} {
		resp, err := http.Get(p.AdminURL(path))
		if err != nil {
			t.Fatalf("ask the operator's listener: %v", err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			t.Fatalf("ask the operator's listener: %v", err)
		}
		operator.add(string(text))
	}
	p.Kill()
	p.Start(t) // what recovery says counts too
	if exit := p.Terminate(); exit.Code != 0 {
		t.Errorf("stop: %+v", exit)
	}
	if len(p.Stderr())+len(p.Stdout()) == 0 || len(outputs.text()) == 0 {
		t.Error("nothing was written: nothing was looked at")
	}
}

// answers collects texts.
type answers struct {
	mu   sync.Mutex
	said strings.Builder
}

func (a *answers) add(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.said.WriteString(text)
}

func (a *answers) text() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return []byte(a.said.String())
}
