package examples_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"creel/internal/testkit"
)

// TestGateO3Alerts stops the app, waits until everybody has been told, starts it
// again, and looks that its end is on its way. One server stands for all the
// tools; the wait is made short.
func TestGateO3Alerts(t *testing.T) {
	t.Parallel()
	tools := testkit.NewDestination(t)
	mail := testkit.NewMailServer(t, testkit.MailOptions{})
	listener, err := net.Listen("tcp", "127.0.0.1:0") // nobody is behind it
	if err != nil {
		t.Fatal(err)
	}
	app := listener.Addr().String()
	_ = listener.Close()
	const secret, token = "a-secret-that-the-shop-knows", "0123456789abcdef0123456789abcdef"
	replace := []string{"127.0.0.1:1025", mail.Addr, "127.0.0.1:3000", app, `wait = "10s"`, `wait = "1s"`}
	for _, host := range []string{"hooks.slack.com", "discord.com", "ntfy.sh", "events.pagerduty.com"} {
		replace = append(replace, "https://"+host, tools.URL)
	}
	e := newExample(t, "alerts", replace, "SHOP_SECRET="+secret, "APP_WEBHOOK_SECRET=a-secret-that-the-app-knows", "SLACK_HOOK=T000/B000/XXXX",
		"DISCORD_HOOK=1234/token", "NTFY_TOPIC=a-topic", "PAGERDUTY_KEY="+token)
	e.sender = testkit.Sender{URL: e.URL("/in/shop"), Secret: secret, Sign: testkit.SignPlain}
	for n := range 3 {
		e.send(fmt.Sprintf(`{"id":"o%d","type":"order.paid","canary":"canary"}`, n))
	}
	const title = "[creel] app is down: 3 deliveries wait"
	told := mail.Wait(t, 1, soon)
	if !strings.Contains(string(told[0].Data), "Subject: "+title+"\r\n") || told[0].To != "owner@example.com" {
		t.Errorf("mailed:\n%s", told[0].Data)
	}
	requests := map[string]testkit.Received{}
	for _, r := range tools.Wait(t, 4, soon) {
		requests[r.URL] = r
		if text := string(r.Body); strings.Contains(text, "canary") || strings.Contains(text, secret) || !strings.Contains(text, "app is down") {
			t.Errorf("%s: %s", r.URL, text)
		}
	}
	var page struct {
		Action string                                  `json:"event_action"`
		Key    string                                  `json:"dedup_key"`
		URL    string                                  `json:"client_url"`
		Load   struct{ Summary, Source, Class string } `json:"payload"`
	}
	if err := json.Unmarshal(requests["/v2/enqueue"].Body, &page); err != nil {
		t.Fatal(err)
	}
	if page.Action != "trigger" || page.Key != "creel/1" || page.URL != "https://creel.example.com/alerts/1" ||
		page.Load.Summary != title || page.Load.Source != "app" || page.Load.Class != "destination_down" {
		t.Errorf("PagerDuty: %s", requests["/v2/enqueue"].Body)
	}
	if phone := requests["/a-topic"]; phone.Header.Get("Title") != title || !strings.Contains(string(phone.Body), "creel ack 1") {
		t.Errorf("ntfy: %v %s", phone.Header, phone.Body)
	}
	for _, url := range []string{"/services/T000/B000/XXXX", "/api/webhooks/1234/token"} {
		if requests[url].Method != http.MethodPost {
			t.Errorf("%s was not told", url)
		}
	}
	e.backAgain(app)
}

// backAgain starts the app that was down, and expects that its incident ends and
// that the notices are in the outbox.
func (e *example) backAgain(app string) {
	e.t.Helper()
	listener, err := net.Listen("tcp", app)
	if err != nil {
		e.t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	e.t.Cleanup(func() { _ = server.Close() })
	if _, _, stderr := e.Run(e.t, "resume", "app"); len(stderr) > 0 {
		e.t.Errorf("resume: %s", stderr)
	}
	ok := testkit.Await(soon, func() bool {
		waiting := 0
		for _, d := range e.list("deliveries", "--state", "ready") {
			if d.Destination != "app" {
				waiting++
			}
		}
		return waiting == 5
	})
	if !ok {
		e.t.Errorf("the notices are not there: %+v", e.list("deliveries"))
	}
	e.stop()
}
