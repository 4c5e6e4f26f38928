package cli_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"creel/internal/testkit"
)

const discreet = `redact  = ["body.card.number", "body.%s", "header.x-holder"]
redact_stored = ["body.card.cvc"]
forward = "app"
`

// TestGateO8Redacted puts canaries into fields that a source redacts, in events
// that end in every way, and looks for them in all that anybody can look at:
// every page, the API, every command, the log, what was rejected. Those that are
// not kept are nowhere in the database either, and the app gets the others.
func TestGateO8Redacted(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	app.Answer(func(r testkit.Received) testkit.Answer { // it repeats what it got
		status := 200
		if bytes.Contains(r.Body, []byte("order.sour")) {
			status = 422
		}
		return testkit.Answer{Status: status, Body: string(r.Body)}
	})
	c := testkit.NewCanary(t)
	shownNot, keptNot := c.Payload+"-not-shown", c.Payload+"-not-kept"
	for _, text := range []string{c.Payload, shownNot, keptNot} {
		c.Mark(text+" in base64", strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(text)), "=")[4:])
	}
	text := strings.Replace(plain(app.URL, ""), "forward = \"app\"\n", fmt.Sprintf(discreet, "lines.*.note"), 1)
	text = strings.Replace(text, "[log]\n", "[log]\nlevel = \"debug\"\n", 1) + `
[[rule]]
name  = "quotes"
match = { types = ["order.wrong"] }
  [rule.grant]
  to     = "x"
  amount = "body.card.number"
  unit   = "credits"
`
	p := testkit.NewProcess(t, text, "SHOP_SECRET="+c.Secret, "APP_SECRET="+appSecret)
	shown := &outputs{}
	c.Watch("the standard output", p.Stdout)
	c.Watch("the log", p.Stderr)
	c.Watch("what commands and answers showed", shown.bytes)
	p.Start(t)
	told := follow(t, p)
	s := &site{Process: p, app: app, canary: c}
	body := func(id, kind, more string) string {
		return fmt.Sprintf(`{"id":%q,"type":%q,"card":{"number":%q,"n\u0075mber":%q,"cvc":%q},"lines":[{"note":%q},[{"note":{"deep":%q}}]],"fine":"to see"%s}`,
			id, kind, shownNot, shownNot, keptNot, shownNot, shownNot, more)
	}
	s.send(t, body("e1", "order.paid", ""))
	s.send(t, body("e1", "order.paid", "")) // a duplicate: the key and the content are those of what came
	s.send(t, body("e1", "order.paid", `,"other":true`))
	s.send(t, body("e2", "order.sour", ""))
	s.send(t, fmt.Sprintf(`{"id":"e3","type":"order.wrong","card":{"number":%q},"fine":"to see"}`, shownNot))
	s.send(t, `{"id":"e4","card":{"number":"`+shownNot+`","cvc":"`+keptNot) // can not be read
	sender := testkit.Sender{URL: p.URL("/in/shop"), Secret: c.Secret + " which is wrong", Sign: testkit.SignPlain}
	for _, text := range []string{body("bad", "order.paid", ""), body("cut", "order.paid", "")[:200]} {
		request := sender.Request(t, "", []byte(text), time.Now())
		request.Header.Set("X-Holder", shownNot)
		shown.add(exchange(t, request))
	}
	await(t, p, 1, "deliveries", "--state", "dead", "--json")
	await(t, p, 3, "events", "--state", "dead", "--json")

	s.showAll(t, shown)
	for _, args := range [][]string{{"events", "shop//e1"}, {"events", "shop//e1", "--json"}, {"events", "shop//e2"}, {"events", "shop//e2", "--json"},
		{"events", "shop//e3"}, {"events", "shop//e3", "--json"}, {"rejects", "--json"}, {"rejects", "show", "1"}, {"rejects", "show", "2", "--json"},
		{"rejects", "show", "1", "--json"}, {"rejects", "show", "1", "--save", "captured.http"}, {"deliveries", "--state", "dead"}} {
		shown.add(command(t, p, 0, args...))
	}
	for _, e := range lines[eventLine](t, p, "events", "--json") {
		whole := shown.add(command(t, p, 0, "events", e.Source+"/"+e.Account+"/"+e.ID, "--json"))
		if hidden := strings.Contains(whole, "can not be read"); !hidden && e.Type != "creel.test" && !strings.Contains(whole, "to see") {
			t.Errorf("the rest of the body is not shown:\n%s", whole)
		}
	}
	shown.add(command(t, p, 1, "verify", "--drawer", "1"))
	captured, err := os.ReadFile(filepath.Join(p.Dir, "captured.http"))
	if err != nil {
		t.Fatal(err)
	}
	shown.add(string(captured))
	ana := visit(t, p, "ana", firstPassword(t, p))
	pages := ana.crawl(t)
	plan := ana.plan(t, url.Values{"do": {"replay all"}, "source": {"shop"}})
	_, pages[plan] = ana.see(t, plan)
	for path, text := range pages {
		if shown.add(text); strings.Contains(text, c.Payload) {
			t.Errorf("%s shows what is redacted", path)
		}
	}
	if len(pages) < 40 {
		t.Errorf("%d pages", len(pages))
	}
	s.askAll(t, shown)
	if exit := p.Terminate(); exit.Code != 0 {
		t.Errorf("stop: %+v", exit)
	}
	for line := range told.lines {
		shown.add(line)
	}
	for _, r := range app.Requests() {
		if bytes.Contains(r.Body, []byte("card")) != bytes.Contains(r.Body, []byte(shownNot)) || bytes.Contains(r.Body, []byte(keptNot)) {
			t.Errorf("the app got %s", r.Body)
		}
	}
	inFiles(t, p.Dir, keptNot, false)
	inFiles(t, p.Dir, shownNot, true)
}

// askAll asks the API for all that may hold a body.
func (s *site) askAll(t *testing.T, shown *outputs) {
	t.Helper()
	_, made, _ := s.Run(t, "token", "create", "eyes", "--scope", "read")
	token := strings.TrimSpace(string(made))
	ask := func(path string) string {
		request, err := http.NewRequest(http.MethodGet, s.AdminURL(path), nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		return shown.add(exchange(t, request))
	}
	for _, e := range lines[eventLine](t, s.Process, "events", "--json") {
		key := "?key=" + url.QueryEscape(e.Source+"/"+e.Account+"/"+e.ID)
		for _, path := range []string{"/api/v1/event", "/api/v1/event/body"} {
			if whole := ask(path + key); !strings.HasPrefix(whole, "200") {
				t.Errorf("%s: %s", path+key, whole)
			}
		}
	}
	for _, path := range []string{"events", "deliveries", "deliveries/1", "deliveries/2", "dead-letters", "failures", "rejects", "rejects/1", "rejects/2", "incidents", "conflicts", "records", "ledger"} {
		ask("/api/v1/" + path)
	}
}

// inFiles looks for a text in the files of a database.
func inFiles(t *testing.T, dir, text string, wanted bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.db*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	found := false
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			continue // a socket
		}
		quoted, _ := json.Marshal(text)
		found = found || bytes.Contains(data, []byte(text)) || bytes.Contains(data, quoted[1:len(quoted)-1])
	}
	if found != wanted {
		t.Errorf("in the files of the database: %v, want %v: %s", found, wanted, text)
	}
}
