package cli_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"creel/internal/testkit"
)

// outputs collects what commands and answers showed.
type outputs struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *outputs) add(text string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.WriteString(text + "\n")
	return text
}

func (o *outputs) bytes() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return []byte(o.text.String())
}

// leaky is a configuration in which every place that may hold a secret holds
// a canary.
func leaky(destination string, c *testkit.Canary) (text string, env []string) {
	key := base64.StdEncoding.EncodeToString([]byte(c.Secret))
	target, _ := url.Parse(destination)
	target.Path = "/hook"
	target.User = url.UserPassword("creel", c.Secret+"-user")
	target.RawQuery = "token=" + c.Secret + "-query"
	down := *target
	down.Host = "127.0.0.1:1"
	text = strings.Replace(plain(target.String(), ""), "[log]\n", "[log]\nlevel = \"debug\"\n", 1) + fmt.Sprintf(`
headers = { "X-Api-Key" = "env:API_KEY", "Authorization" = "Bearer %s-literal" }
retry   = "brief"

[destination.down]
url     = %q
secret  = "env:APP_SECRET"
retry   = "brief"
headers = { "X-Api-Key" = "env:API_KEY" }

[[rule]]
name  = "down too"
match = { types = ["order.down"] }
  [rule.forward]
  to = "down"

[[rule]]
name  = "no place"
match = { types = ["order.broken"] }
key   = "{body.missing}"
  [rule.forward]
  to = "down"
`, c.Secret, down.String())
	c.Mark("destination's key in base64", key)
	c.Mark("secret in hex", hex.EncodeToString([]byte(c.Secret)))
	c.Mark("user info in base64", base64.StdEncoding.EncodeToString([]byte("creel:"+c.Secret+"-user")))
	c.Mark("payload in base64", base64.StdEncoding.EncodeToString([]byte(c.Payload)))
	c.Mark("payload in hex", hex.EncodeToString([]byte(c.Payload)))
	return text, []string{"SHOP_SECRET=" + c.Secret, "APP_SECRET=whsec_" + key, "API_KEY=" + c.Secret + "-header"}
}

// TestGateO8 puts canaries into every secret and every body, lets all go
// wrong that can, at the chattiest log level, and looks for them everywhere
// but in the one command that shows an event whole.
func TestGateO8(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	app.Script(testkit.Answer{Status: 500, Body: "no"}, testkit.Answer{Status: 422, Body: "no"})
	c := testkit.NewCanary(t)
	text, env := leaky(app.URL, c)
	p := testkit.NewProcess(t, text, env...)
	shown := &outputs{}
	c.Watch("the standard output", p.Stdout)
	c.Watch("the log", p.Stderr)
	c.Watch("what commands and answers showed", shown.bytes)
	p.Start(t)
	told := follow(t, p)

	s := &site{Process: p, app: app, canary: c}
	note := fmt.Sprintf(`"note":%q`, c.Payload)
	s.send(t, `{"id":"e1","type":"order.paid",`+note+`}`)
	s.send(t, `{"id":"e1","type":"order.paid","other":true,`+note+`}`) // a conflict
	s.send(t, `{"id":"e1","type":"order.paid",`+note+`}`)              // a duplicate
	s.send(t, `{"id":"e2","type":"order.down",`+note+`}`)
	s.send(t, `{"id":"e3","type":"order.broken",`+note+`}`)
	s.send(t, `{"type":"order.paid",`+note+`}`) // no id
	s.send(t, note)                             // no JSON
	for _, request := range badRequests(t, c, p.URL("/in/shop")) {
		shown.add(exchange(t, request))
	}
	testkit.Poll(t, soon, "the dead letters", func() bool {
		return len(lines[deliveryLine](t, p, "deliveries", "--state", "dead", "--json")) > 0 &&
			len(lines[eventLine](t, p, "events", "--state", "dead", "--json")) >= 4
	})
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		request, _ := http.NewRequest(http.MethodGet, p.AdminURL(path), nil)
		shown.add(exchange(t, request))
	}
	s.showAll(t, shown)
	s.showRejects(t, shown)
	s.badSecrets(t, text, shown)

	if whole := command(t, p, 0, "events", "shop//e1"); !strings.Contains(whole, c.Payload) || strings.Contains(whole, c.Secret) {
		t.Errorf("an event whole must show its payload and no secret:\n%s", whole)
	}
	if exit := p.Terminate(); exit.Code != 0 {
		t.Errorf("stop: %+v", exit)
	}
	for line := range told.lines {
		shown.add(line)
	}
	shown.add(command(t, p, 0, "stats"))
}

// badRequests are requests that fail in every way in which verification can.
func badRequests(t *testing.T, c *testkit.Canary, url string) []*http.Request {
	t.Helper()
	body := []byte(fmt.Sprintf(`{"id":"bad","type":"order.paid","note":%q}`, c.Payload))
	sender := testkit.Sender{URL: url, Secret: c.Secret, Sign: testkit.SignPlain}
	var all []*http.Request
	with := func(change func(*http.Request)) {
		request := sender.Request(t, "", body, time.Now())
		change(request)
		all = append(all, request)
	}
	with(func(r *http.Request) { r.Header.Del("X-Signature") })
	with(func(r *http.Request) { r.Header.Set("X-Signature", c.Secret) })
	with(func(r *http.Request) { r.Header.Set("X-Signature", strings.Repeat("0", 64)) })
	with(func(r *http.Request) { r.Header.Set("Content-Encoding", c.Payload) })
	with(func(r *http.Request) { r.Method = http.MethodDelete })
	with(func(r *http.Request) { r.URL.Path = "/in/" + c.Payload })
	with(func(r *http.Request) { r.URL.RawQuery = "token=" + c.Secret; r.Header.Set("X-Signature", "zz") })
	return all
}

// exchange is the answer to a request, with its head.
func exchange(t *testing.T, request *http.Request) string {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(response.Status, response.Header, string(body))
}

// showAll runs every command that shows something.
func (s *site) showAll(t *testing.T, shown *outputs) {
	t.Helper()
	for _, args := range [][]string{
		{"check"}, {"check", "--json"}, {"events"}, {"events", "--json"}, {"deliveries"}, {"deliveries", "--json"},
		{"health"}, {"health", "--json"}, {"stats"}, {"stats", "--json"}, {"providers"}, {"version"},
		{"replay", "--state", "dead", "--dry-run"}, {"replay", "--state", "dead", "--dry-run", "--json"},
		{"replay", "--state", "dead", "--reason", "again"}, {"pause", "app"}, {"resume", "app"},
		{"audit"}, {"audit", "--json"}, {"audit", "1"}, {"send", "shop"}, {"send", "shop", "--flaw", "body"}, {"reload"},
		{"events", "--error", "nothing at all"}, {"events", "no-key"}, {"send", "nobody"},
	} {
		_, stdout, stderr := s.Run(t, args...)
		shown.add(string(stdout) + string(stderr))
	}
}

// showRejects looks at what was rejected in every way. One that is shown whole
// shows its payload, as an event does, and no secret.
func (s *site) showRejects(t *testing.T, shown *outputs) {
	t.Helper()
	type rejectLine struct{ ID int64 }
	list := lines[rejectLine](t, s.Process, "rejects", "--json")
	if len(list) < 4 {
		t.Fatalf("%d rejected requests", len(list))
	}
	whole := ""
	for _, r := range list {
		n := fmt.Sprint(r.ID)
		for _, args := range [][]string{{"verify", "--drawer", n}, {"verify", "--drawer", n, "--json"}, {"rejects", "retry", n}} {
			_, stdout, stderr := s.Run(t, args...)
			shown.add(string(stdout) + string(stderr))
		}
		whole += command(t, s.Process, 0, "rejects", "show", n) + command(t, s.Process, 0, "rejects", "show", n, "--json")
	}
	if !strings.Contains(whole, s.canary.Payload) || strings.Contains(whole, s.canary.Secret) {
		t.Errorf("rejected requests whole must show their payload and no secret:\n%s", whole)
	}
	command(t, s.Process, 0, "rejects", "show", "2", "--save", "captured.http")
	for _, args := range [][]string{{"rejects"}, {"rejects", "retry", "--source", "shop"}, {"verify", "captured.http"}, {"verify", "creel.toml"}, {"verify", "--source", "shop", "captured.http", "--json"}} {
		_, stdout, stderr := s.Run(t, args...)
		shown.add(string(stdout) + string(stderr))
	}
}

// badSecrets gives the commands configurations whose secrets are the fault.
func (s *site) badSecrets(t *testing.T, good string, shown *outputs) {
	t.Helper()
	for name, secrets := range map[string]string{
		"literal":           fmt.Sprintf(`[%q]`, s.canary.Secret),
		"not base64":        fmt.Sprintf(`["whsec_%s!"]`, s.canary.Secret),
		"like a shell":      fmt.Sprintf(`["${%s}"]`, s.canary.Secret),
		"a list in a list":  fmt.Sprintf(`[[%q]]`, s.canary.Secret),
		"a text":            fmt.Sprintf(`%q`, s.canary.Secret),
		"no quotes":         s.canary.Secret,
		"an open quote":     `"` + s.canary.Secret,
		"with a line break": fmt.Sprintf(`["%s\n"]`, s.canary.Secret),
		"of another kind":   fmt.Sprintf(`["vault:%s"]`, s.canary.Secret),
	} {
		s.configure(t, strings.Replace(good, `["env:SHOP_SECRET"]`, secrets, 1))
		for _, args := range [][]string{{"check"}, {"check", "--json"}, {"reload"}, {"events"}} {
			code, stdout, stderr := s.Run(t, args...)
			if said := shown.add(string(stdout) + string(stderr)); args[0] == "check" && code == 0 && !strings.Contains(said, "warning") {
				t.Errorf("%s: creel check has nothing to say", name)
			}
		}
	}
	s.configure(t, good)
}
