package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"creel/internal/testkit"
)

// program asks the API with a token, and holds every answer against the
// description.
type program struct {
	base, token string
	api         *testkit.OpenAPI
	mu          sync.Mutex
	fine        map[string]string // what it last asked with success, by operation
}

// answer is one answer of the API.
type answer struct {
	status int
	header http.Header
	text   string
}

var braces = regexp.MustCompile(`\{[^}]+\}`)

func newProgram(t *testing.T, p *testkit.Process, name, scope string) *program {
	t.Helper()
	token, _, _ := strings.Cut(command(t, p, 0, "token", "create", name, "--scope", scope), "\n")
	return &program{base: p.AdminURL("/api/v1"), token: token, fine: map[string]string{},
		api: testkit.ReadOpenAPI(t, "../admin/api/openapi.json")}
}

// ask asks for an operation, "GET /deliveries/{id}?…", with values for what is in
// braces. A body that is not nil is sent as JSON.
func (p *program) ask(t *testing.T, operation string, values []any, body any, header ...string) answer {
	t.Helper()
	method, path, _ := strings.Cut(operation, " ")
	path, query, _ := strings.Cut(path, "?")
	filled := path
	for _, value := range values {
		if place := braces.FindString(filled); place != "" {
			filled = strings.Replace(filled, place, url.PathEscape(fmt.Sprint(value)), 1)
		}
	}
	if query != "" {
		filled += "?" + query
	}
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		sent = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, p.base+filled, sent)
	if err != nil {
		t.Fatal(err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if p.token != "" {
		r.Header.Set("Authorization", "Bearer "+p.token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return answer{}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	a := answer{res.StatusCode, res.Header, string(text)}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err := p.api.CheckAnswer(method+" "+path, a.status, kind, text); err != nil {
		t.Error(err)
	}
	if a.status < 300 {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.fine[method+" "+path] = filled
	}
	return a
}

// want is ask, of what has to end with a status.
func (p *program) want(t *testing.T, status int, operation string, values []any, body any, header ...string) string {
	t.Helper()
	a := p.ask(t, operation, values, body, header...)
	if a.status != status {
		t.Fatalf("%s: %d, want %d: %s", operation, a.status, status, a.text)
	}
	return a.text
}

// listed is a page of a list with the members that these tests read.
type listed struct {
	Items []struct {
		ID           any // a number, or the text of an event's
		Lane, Result string
		Run          int
	}
	Next string
}

// object is a JSON object.
type object = map[string]any

// busy is a site on which everything happened that the API can show: effects,
// a duplicate, a conflict, dead letters, a parked lane, a delivery in doubt,
// rejected requests.
func busy(t *testing.T) *site {
	t.Helper()
	s := newSite(t, "")
	broken, unsure := testkit.NewDestination(t), testkit.NewDestination(t)
	broken.Script(testkit.Answer{Status: 422, Body: "no"})
	unsure.Script(testkit.Answer{Fault: testkit.Close})
	s.configure(t, plain(s.app.URL, "")+fmt.Sprintf(`
[destination.broken]
url    = %q
secret = "env:APP_SECRET"

[destination.unsure]
url      = %q
secret   = "env:APP_SECRET"
on_doubt = "review"

[[rule]]
name  = "orders"
match = { types = ["order.paid"] }
key   = "{source}/{body.order}"
  [rule.record]
  kind   = "order"
  fields = { total = "{body.total}" }
  [rule.grant]
  to     = "{body.customer}"
  unit   = "credits"
  amount = 10
  [rule.state]
  object  = "order/{body.order}"
  version = "{body.version}"
  to      = "paid"

[[rule]]
name     = "steps"
match    = { types = ["step.*"] }
order_by = "{body.order}"
  [rule.forward]
  to = "broken"

[[rule]]
name  = "doubts"
match = { types = ["doubt"] }
  [rule.forward]
  to = "unsure"

[[rule]]
name  = "no place"
match = { types = ["wrong"] }
key   = "{body.missing}"
  [rule.forward]
  to = "app"
`, broken.URL, unsure.URL))
	s.Start(t)
	for _, body := range []string{
		`{"id":"o1","type":"order.paid","order":"7","customer":"ann","total":"12.50","version":1}`,
		`{"id":"o1","type":"order.paid","order":"7","customer":"ann","total":"12.50","version":1}`,
		`{"id":"o1","type":"order.paid","order":"7","customer":"ann","total":"99","version":1}`,
		`{"id":"o2","type":"order.paid","order":"8","customer":"bob","total":"1","version":1}`,
		`{"id":"s1","type":"step.one","order":"9"}`, `{"id":"s2","type":"step.two","order":"9"}`,
		`{"id":"d1","type":"doubt"}`, `{"id":"w1","type":"wrong"}`, `{"id":"w2","type":"wrong"}`,
	} {
		s.send(t, body)
	}
	for _, request := range badRequests(t, s.canary, s.URL("/in/shop")) {
		exchange(t, request)
	}
	await(t, s.Process, 1, "deliveries", "--state", "dead", "--json")
	await(t, s.Process, 1, "deliveries", "--state", "in_doubt", "--json")
	await(t, s.Process, 3, "events", "--state", "dead", "--json")
	await(t, s.Process, 1, "lane", "--json")
	return s
}
