package cli_test

import (
	"bytes"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"creel/internal/testkit"
)

// strange is an answer of the API to a request that has something odd.
func strange(t *testing.T, p *testkit.Process, method, path string, body string, header ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, p.AdminURL(path), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
			continue
		}
		r.Header.Add(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(res.Body); err != nil {
		t.Fatal(err)
	}
	res.Header.Del("Date")
	return answer{res.StatusCode, res.Header, text.String()}
}

// TestGateO6TokensLetIn wants that a token lets in whom it should, as far as its
// scope goes, until it is revoked; over a restart too. It stands nowhere.
func TestGateO6TokensLetIn(t *testing.T) {
	t.Parallel()
	s := deadSite(t, 1)
	looks, acts := newProgram(t, s.Process, "grafana", "read"), newProgram(t, s.Process, "robot", "operate")
	ana := visit(t, s.Process, "ana", firstPassword(t, s.Process))
	for _, operation := range looks.api.Operations() {
		method, path, _ := strings.Cut(operation, " ")
		path = "/api/v1" + braces.ReplaceAllString(path, "1")
		with := func(header ...string) int { return strange(t, s.Process, method, path, "{}", header...).status }
		read, operate, nobody := with("Authorization", "Bearer "+looks.token), with("Authorization", "bearer "+acts.token), with()
		session := with("Cookie", cookieOf(t, ana))
		if method == http.MethodGet && (read == 401 || read == 403 || session != read) || method != http.MethodGet && (read != 403 || session != 403) {
			t.Errorf("%s: %d with a token that may look, %d with a session", operation, read, session)
		}
		if operate == 401 || operate == 403 || operate == 429 || nobody != 401 {
			t.Errorf("%s: %d with a token that may operate, %d with none", operation, operate, nobody)
		}
	}
	if n := len(lines[deliveryLine](t, s.Process, "deliveries", "--state", "dead", "--json")); n != 1 || sentTimes(s) != 1 {
		t.Errorf("somebody replayed: %d dead, %d requests", n, sentTimes(s))
	}
	if exit := s.Terminate(); exit.Code != 0 {
		t.Fatalf("stop: %+v", exit)
	}
	s.Start(t)
	looks.base, acts.base = s.AdminURL("/api/v1"), s.AdminURL("/api/v1")
	acts.want(t, 200, "GET /events", nil, nil)
	looks.want(t, 200, "GET /events", nil, nil)
	command(t, s.Process, 0, "token", "revoke", "grafana")
	looks.want(t, 401, "GET /events", nil, nil)
	acts.want(t, 200, "GET /events", nil, nil)
	for what, text := range map[string][]byte{"log": s.Stderr(), "output": s.Stdout(), "database": s.database(t)} {
		if bytes.Contains(text, []byte(looks.token)) || bytes.Contains(text, []byte(acts.token)) {
			t.Errorf("a token stands in the %s", what)
		}
	}
}

func cookieOf(t *testing.T, v *visitor) string {
	t.Helper()
	at, err := url.Parse(v.base)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range v.Jar.Cookies(at) {
		return c.Name + "=" + c.Value
	}
	t.Fatal("the session has no cookie")
	return ""
}

// TestGateO6TokensRefusedAlike wants one answer, byte for byte, for everybody
// who shows no token that holds, wherever he asks; that guesses are bounded, and
// that whoever guesses keeps nobody else out.
func TestGateO6TokensRefusedAlike(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	s.Start(t)
	p := newProgram(t, s.Process, "robot", "operate")
	p.want(t, 200, "GET /events", nil, nil)
	want := strange(t, s.Process, "GET", "/api/v1/events", "")
	if want.status != 401 || want.header.Get("WWW-Authenticate") == "" || !strings.Contains(want.text, "creel token create") {
		t.Fatalf("without a token: %d %v %s", want.status, want.header, want.text)
	}
	alike := func(what string, got answer) {
		t.Helper()
		if got.status != want.status || got.text != want.text || !maps.EqualFunc(got.header, want.header, slices.Equal[[]string]) {
			t.Errorf("%s: %d %v %s", what, got.status, got.header, got.text)
		}
	}
	for what, path := range map[string]string{"what there is not": "/api/v1/nothing", "the root": "/api", "another version": "/api/v2/events",
		"the description": "/api/v1/openapi.json", "a slash too many": "/api/v1/events/"} {
		alike(what, strange(t, s.Process, "GET", path, ""))
		alike(what, strange(t, s.Process, "DELETE", path, ""))
	}
	alike("a post", strange(t, s.Process, "POST", "/api/v1/replay", `{"all":true}`))
	for i, header := range [][]string{
		{"Authorization", "Basic " + p.token}, {"Authorization", "Bearer"},
		{"Authorization", "Bearer " + strings.ToLower(p.token)}, {"Authorization", "Bearer " + p.token, "Authorization", "Bearer " + p.token},
		{"Cookie", "creel_session=" + strings.Repeat("A", 43)}, {"X-Api-Key", p.token},
	} {
		alike(fmt.Sprint("header ", i), strange(t, s.Process, "GET", "/api/v1/events", "", header...))
	}
	alike("in the address", strange(t, s.Process, "GET", "/api/v1/events?token="+p.token, ""))
	refused := 0
	for range 50 {
		got := strange(t, s.Process, "GET", "/api/v1/events", "", "Authorization", "Bearer creel_GUESS")
		switch {
		case got.status == 429 && got.header.Get("Retry-After") != "":
			refused++
		default:
			alike("a guess", got)
		}
		p.want(t, 200, "GET /events", nil, nil) // a program that is let in stays so
	}
	if n := bytes.Count(s.Stderr(), []byte("a token that does not hold")); n != 5 || refused != 48 {
		t.Errorf("%d guesses were looked at, %d refused", n, refused)
	}
}

// TestGateO6APIHeaders wants the headers of the page on every answer, no way in
// from other origins, and nothing under a strange name.
func TestGateO6APIHeaders(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	s.Start(t)
	p := newProgram(t, s.Process, "robot", "operate")
	token := []string{"Authorization", "Bearer " + p.token}
	for what, c := range map[string]struct {
		status       int
		method, path string
		body         string
		header       []string
	}{
		"list":         {200, "GET", "/events", "", token},
		"description":  {200, "GET", "/openapi.json", "", token},
		"nobody":       {401, "GET", "/events", "", nil},
		"not found":    {404, "GET", "/nothing", "", token},
		"event":        {404, "GET", "/event?key=a//b", "", token},
		"body":         {404, "GET", "/event/body?key=a//b", "", token},
		"method":       {405, "PUT", "/events", "", token},
		"preflight":    {401, "OPTIONS", "/events", "", []string{"Origin", "https://evil.example", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization"}},
		"options":      {405, "OPTIONS", "/replay", "", append([]string{"Origin", "https://evil.example"}, token...)},
		"other origin": {200, "GET", "/events", "", append([]string{"Origin", "https://evil.example"}, token...)},
		"no JSON":      {415, "POST", "/replay", "a=b", token},
		"odd":          {422, "GET", "/events?state=bad", "", token},
		"no key":       {400, "POST", "/replay", `{"all":true}`, append([]string{"Content-Type", "application/json"}, token...)},
		"host":         {421, "GET", "/events", "", append([]string{"Host", "evil.example"}, token...)},
		"port":         {421, "GET", "/events", "", append([]string{"Host", "127.0.0.1.evil.example:8081"}, token...)},
	} {
		got := strange(t, s.Process, c.method, "/api/v1"+c.path, c.body, c.header...)
		h := got.header
		if got.status != c.status || h.Get("Content-Type") != "application/json" || got.status >= 400 && !strings.HasPrefix(got.text, `{"error":"`) {
			t.Errorf("%s: %d %s %s", what, got.status, h.Get("Content-Type"), got.text)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" || h.Get("X-Frame-Options") != "DENY" ||
			!strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") || h.Get("Cross-Origin-Resource-Policy") != "same-origin" {
			t.Errorf("%s: %v", what, h)
		}
		for name := range h {
			if strings.HasPrefix(name, "Access-Control-") || name == "Set-Cookie" {
				t.Errorf("%s has a header %s", what, name)
			}
		}
		if c.status == 405 && (h.Get("Allow") == "" || strings.Contains(h.Get("Allow"), "OPTIONS")) {
			t.Errorf("%s: Allow %q", what, h.Get("Allow"))
		}
	}
}

// TestGateO8API looks for canaries in every answer of the API: a secret is in
// none, a payload in those alone that show bodies.
func TestGateO8API(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	app.Script(testkit.Answer{Status: 422, Body: "no"})
	c := testkit.NewCanary(t)
	text, env := leaky(app.URL, c)
	process := testkit.NewProcess(t, text, env...)
	c.Watch("the log", process.Stderr)
	process.Start(t)
	s := &site{Process: process, app: app, canary: c}
	for _, body := range []string{`{"id":"e1","type":"order.paid","note":%q}`, `{"id":"e1","type":"order.paid","note":%q,"other":1}`, `{"id":"e2","type":"order.broken","note":%q}`} {
		s.send(t, fmt.Sprintf(body, c.Payload))
	}
	for _, request := range badRequests(t, c, process.URL("/in/shop")) {
		exchange(t, request)
	}
	await(t, process, 1, "deliveries", "--state", "dead", "--json")
	p := newProgram(t, process, "robot", "operate")
	plan := decode[struct{ ID string }](t, p.want(t, 200, "POST /plans", nil, object{"action": "replay", "query": "state:dead"}))
	p.want(t, 404, "POST /replay", nil, object{"keys": []string{"shop//none"}}, "Idempotency-Key", "a")
	bodies, asked := 0, 0
	for _, operation := range p.api.Operations() {
		method, path, _ := strings.Cut(operation, " ")
		if method != http.MethodGet {
			continue
		}
		id := any(1)
		if strings.HasPrefix(path, "/plans") {
			id = plan.ID
		}
		query := ""
		switch {
		case path == "/event" || path == "/event/body":
			query = "?key=shop//e1"
		case path == "/object" || path == "/object/history":
			query = "?object=shop//e1"
		}
		a := p.ask(t, operation+query, []any{id}, nil)
		asked++
		all := fmt.Sprint(a.header) + a.text
		if strings.Contains(all, c.Secret) || strings.Contains(all, html.EscapeString(c.Secret)) {
			t.Errorf("%s shows a secret: %s", operation, all)
		}
		if strings.Contains(all, c.Payload) {
			bodies++
			if path != "/event" && path != "/event/body" && path != "/rejects/{id}" {
				t.Errorf("%s shows a payload: %s", operation, all)
			}
		}
	}
	if bodies != 2 && bodies != 3 || asked < 25 {
		t.Errorf("%d answers, %d of them with a body", asked, bodies)
	}
}
