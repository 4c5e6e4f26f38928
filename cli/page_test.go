package cli_test

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"creel/internal/testkit"
)

// visitor is a browser without scripts that has logged in to the page.
type visitor struct {
	*http.Client
	base  string
	token string
}

var (
	printedPassword = regexp.MustCompile(`Password +([A-Z2-7]{26})`)
	formToken       = regexp.MustCompile(`name="token" value="([^"]+)"`)
	links           = regexp.MustCompile(` href="([^"#]*)`)
	clicks          = regexp.MustCompile(`name="one" value="([^"]+)"`)
	actionNumber    = regexp.MustCompile(`/audit/(\d+)$`)
)

// firstPassword is what the first start printed.
func firstPassword(t *testing.T, p *testkit.Process) string {
	t.Helper()
	var found [][]byte
	testkit.Poll(t, soon, "the password", func() bool {
		found = printedPassword.FindSubmatch(p.Stdout())
		return found != nil
	})
	return string(found[1])
}

// visit logs in.
func visit(t *testing.T, p *testkit.Process, name, password string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := &visitor{base: strings.TrimSuffix(p.AdminURL("/"), "/"), Client: &http.Client{Jar: jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	res, _ := v.post(t, "/login", url.Values{"name": {name}, "password": {password}})
	if res.StatusCode != http.StatusSeeOther {
		t.Fatalf("login as %s: %s", name, res.Status)
	}
	_, text := v.see(t, "/")
	v.token = formToken.FindStringSubmatch(text)[1]
	return v
}

func (v *visitor) see(t *testing.T, path string) (*http.Response, string) {
	t.Helper()
	res, err := v.Get(v.base + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text)
}

func (v *visitor) post(t *testing.T, path string, form url.Values) (*http.Response, string) {
	t.Helper()
	if v.token != "" {
		form.Set("token", v.token)
	}
	res, err := v.PostForm(v.base+path, form)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text)
}

// plan makes a plan and gives its address.
func (v *visitor) plan(t *testing.T, form url.Values) string {
	t.Helper()
	res, text := v.post(t, "/plan", form)
	to := res.Header.Get("Location")
	if res.StatusCode != http.StatusSeeOther || !strings.HasPrefix(to, "/plan/") {
		t.Fatalf("a plan of %v: %s %s", form, res.Status, text)
	}
	return to
}

// deadSite is a site with n dead letters at a destination that is fine by now.
func deadSite(t *testing.T, n int) *site {
	t.Helper()
	s := newSite(t, "")
	s.app.Script(testkit.Answer{Status: 422})
	s.Start(t)
	for i := range n {
		s.send(t, fmt.Sprintf(`{"id":"evt_%d","type":"order.paid"}`, i))
	}
	await(t, s.Process, n, "deliveries", "--state", "dead", "--json")
	s.app.Script(testkit.Answer{Status: 204})
	return s
}

func sentTimes(s *site) (total int) {
	for _, n := range s.app.Counts() {
		total += n
	}
	return total
}

// TestGateO5 replays what is dead from the page without scripts: one by a
// double click, a selection, and all that match from two browsers at once.
func TestGateO5(t *testing.T) {
	t.Parallel()
	s := deadSite(t, 12)
	password := firstPassword(t, s.Process)
	ana, bob := visit(t, s.Process, "ana", password), visit(t, s.Process, "bob", password)

	res, text := ana.see(t, "/")
	if res.StatusCode != http.StatusOK || !strings.Contains(text, "HTTP 422") || !strings.Contains(text, "Replay 12…") {
		t.Fatalf("the groups: %s", text)
	}
	_, text = ana.see(t, "/?view=flat&q=evt_3")
	found := clicks.FindAllStringSubmatch(text, -1)
	if len(found) != 1 {
		t.Fatalf("a search for one finds %d: %s", len(found), text)
	}
	one := url.Values{"one": {html.UnescapeString(found[0][1])}, "back": {"/?view=flat"}}
	var both sync.WaitGroup
	for _, v := range []*visitor{ana, bob} {
		both.Go(func() { v.post(t, "/replay", url.Values{"one": one["one"], "back": one["back"]}) })
	}
	both.Wait()
	await(t, s.Process, 11, "deliveries", "--state", "dead", "--json")
	ana.post(t, "/replay", one) // once more, when it is done
	testkit.Poll(t, soon, "one of it to be sent", func() bool { return sentTimes(s) >= 13 })

	plan := ana.plan(t, url.Values{"do": {"replay"}, "key": {"shop//evt_1", "shop//evt_2"}})
	if _, text = ana.see(t, plan); !strings.Contains(text, "Nothing has been changed or sent yet") || !strings.Contains(text, "send again") || !strings.Contains(text, ">2<") {
		t.Fatalf("the plan: %s", text)
	}
	if res, _ := ana.post(t, plan, url.Values{}); res.StatusCode != http.StatusBadRequest {
		t.Errorf("a plan without a reason: %s", res.Status)
	}
	if n := sentTimes(s); n != 13 {
		t.Errorf("a plan alone sent: %d", n)
	}
	ana.post(t, plan, url.Values{"reason": {"price was added"}})
	await(t, s.Process, 9, "deliveries", "--state", "dead", "--json")

	first, second := ana.plan(t, url.Values{"do": {"replay all"}, "source": {"shop"}}), bob.plan(t, url.Values{"do": {"replay all"}, "source": {"shop"}})
	to := map[string]int{}
	var mu sync.Mutex
	for v, at := range map[*visitor]string{ana: first, bob: second} {
		for range 2 { // each clicks twice
			both.Go(func() {
				res, _ := v.post(t, at, url.Values{"reason": {"all of it"}})
				mu.Lock()
				defer mu.Unlock()
				to[res.Header.Get("Location")]++
			})
		}
	}
	both.Wait()
	await(t, s.Process, 0, "deliveries", "--state", "dead", "--json")
	testkit.Poll(t, soon, "the rest to be sent", func() bool { return sentTimes(s) >= 24 })
	if n := sentTimes(s); n != 24 || len(to) != 2 {
		t.Errorf("%d requests at the app, want 12 that failed and 12; the four clicks led to %v", n, to)
	}
	done := 0
	for _, a := range lines[actionLine](t, s.Process, "audit", "--json") {
		if a.Action == "replay" {
			done += a.Done
		}
	}
	if done != 12 {
		t.Errorf("the audit trail has %d replayed events, want 12", done)
	}
}

// TestGateO2Page wants one audit action of a replay on the page, with who, why
// and what.
func TestGateO2Page(t *testing.T) {
	t.Parallel()
	s := deadSite(t, 2)
	ana := visit(t, s.Process, "ana <b>", firstPassword(t, s.Process))
	res, _ := ana.post(t, ana.plan(t, url.Values{"do": {"replay all"}, "q": {"type:order.*"}}), url.Values{"reason": {"bug 412"}})
	number := actionNumber.FindStringSubmatch(res.Header.Get("Location"))
	if number == nil {
		t.Fatalf("the plan leads to %q", res.Header.Get("Location"))
	}
	await(t, s.Process, 0, "deliveries", "--state", "dead", "--json")
	all := lines[actionLine](t, s.Process, "audit", "--json")
	if len(all) != 1 || all[0].Actor != "page:ana <b>" || all[0].Reason != "bug 412" || all[0].Done != 2 {
		t.Errorf("the audit trail: %+v", all)
	}
	if _, text := ana.see(t, "/audit/"+number[1]); !strings.Contains(text, "shop//evt_1") || !strings.Contains(text, "bug 412") || strings.Contains(text, "ana <b>") {
		t.Errorf("the action's page: %s", text)
	}
}

// TestGateO6GetChangesNothing follows every link of the page, and asks every
// address of a deed, and compares the files of the database.
func TestGateO6GetChangesNothing(t *testing.T) {
	t.Parallel()
	s := deadSite(t, 3)
	ana := visit(t, s.Process, "ana", firstPassword(t, s.Process))
	var before, after []byte
	seen := map[string]string{}
	for range 5 { // the server itself counts by the minute
		before = s.database(t)
		seen = ana.crawl(t)
		if after = s.database(t); bytes.Equal(before, after) {
			break
		}
	}
	if !bytes.Equal(before, after) || len(seen) < 40 {
		t.Errorf("%d pages were seen; the database is the same: %v", len(seen), bytes.Equal(before, after))
	}
}

func (s *site) database(t *testing.T) []byte {
	t.Helper()
	var all []byte
	for _, name := range []string{"creel.db", "creel.db-wal"} {
		data, err := os.ReadFile(filepath.Join(s.Dir, name))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		all = append(all, data...)
	}
	return all
}

// crawl gets every page that links lead to.
func (v *visitor) crawl(t *testing.T) map[string]string {
	t.Helper()
	queue := []string{"/", "/?view=flat", "/replay", "/plan", "/decide", "/acknowledge", "/switch", "/skip", "/retry", "/tokens/revoked", "/logout"}
	known := map[string]string{}
	for len(queue) > 0 && len(known) < 500 {
		path := queue[0]
		queue = queue[1:]
		if _, seen := known[path]; seen {
			continue
		}
		res, text := v.see(t, path)
		known[path] = text
		if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("GET %s: %s", path, res.Status)
		}
		for _, link := range links.FindAllStringSubmatch(text, -1) {
			if to := html.UnescapeString(link[1]); strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "//") {
				queue = append(queue, to)
			} else if to != "" {
				t.Errorf("%s links to %q", path, to)
			}
		}
	}
	return known
}

// TestGateO8Page looks for canaries on every page that links lead to: a secret is
// on none, and a payload on those alone that show bodies.
func TestGateO8Page(t *testing.T) {
	t.Parallel()
	app := testkit.NewDestination(t)
	app.Script(testkit.Answer{Status: 422, Body: "no"})
	c := testkit.NewCanary(t)
	text, env := leaky(app.URL, c)
	p := testkit.NewProcess(t, text, env...)
	c.Watch("the log", p.Stderr)
	p.Start(t)
	s := &site{Process: p, app: app, canary: c}
	s.send(t, fmt.Sprintf(`{"id":"e1","type":"order.paid","note":%q}`, c.Payload))
	s.send(t, fmt.Sprintf(`{"id":"e1","type":"order.paid","note":%q,"other":1}`, c.Payload))
	s.send(t, fmt.Sprintf(`{"id":"e2","type":"order.broken","note":%q}`, c.Payload))
	for _, request := range badRequests(t, c, p.URL("/in/shop")) {
		exchange(t, request)
	}
	await(t, p, 1, "deliveries", "--state", "dead", "--json")
	bodies := 0
	ana := visit(t, p, "ana", firstPassword(t, p))
	plan := ana.plan(t, url.Values{"do": {"replay all"}, "source": {"shop"}})
	pages := ana.crawl(t)
	_, pages[plan] = ana.see(t, plan)
	for path, text := range pages {
		if strings.Contains(text, c.Secret) || strings.Contains(text, html.EscapeString(c.Secret)) {
			t.Errorf("%s shows a secret", path)
		}
		if !strings.Contains(text, c.Payload) {
			continue
		}
		bodies++
		if at, _, _ := strings.Cut(path, "?"); at != "/" && at != "/event" && at != "/event/body" && !strings.HasPrefix(at, "/rejects/") {
			t.Errorf("%s shows a payload", path)
		}
	}
	if bodies < 3 || len(pages) < 40 {
		t.Errorf("%d pages, %d of them with a body", len(pages), bodies)
	}
}

// A password is printed at the first start alone, is in no log line, and ends
// with a new one; tokens are shown once.
func TestPasswordAndTokens(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	s.Start(t)
	first := firstPassword(t, s.Process)
	ana := visit(t, s.Process, "ana", first)
	made := strings.TrimSpace(command(t, s.Process, 0, "password", "--reason", "ana left"))
	if res, _ := ana.see(t, "/"); res.StatusCode != http.StatusSeeOther {
		t.Errorf("logged in with the old password still: %s", res.Status)
	}
	visit(t, s.Process, "bob", made)
	_, secret, _ := s.Run(t, "token", "create", "grafana", "--scope", "read")
	if !regexp.MustCompile(`^creel_[A-Z2-7]{26}\n$`).Match(secret) {
		t.Fatalf("a token prints %q", secret)
	}
	command(t, s.Process, 2, "token", "create", "grafana", "--scope", "all")
	if list := command(t, s.Process, 0, "token", "list"); !strings.Contains(list, "grafana") || strings.Contains(list, string(secret)) {
		t.Errorf("the list: %s", list)
	}
	command(t, s.Process, 0, "token", "revoke", "grafana")
	command(t, s.Process, 4, "token", "revoke", "grafana")
	if exit := s.Terminate(); exit.Code != 0 {
		t.Fatalf("stop: %+v", exit)
	}
	alone := strings.TrimSpace(command(t, s.Process, 0, "password"))
	s.Start(t)
	visit(t, s.Process, "carla", alone)
	if n := len(printedPassword.FindAll(s.Stdout(), -1)); n != 1 {
		t.Errorf("%d passwords were printed by two starts", n)
	}
	for _, text := range []string{first, made, alone, strings.TrimSpace(string(secret))} {
		if bytes.Contains(s.Stderr(), []byte(text)) {
			t.Errorf("the log has %q", text)
		}
		if bytes.Contains(s.database(t), []byte(text)) {
			t.Errorf("the database has %q", text)
		}
	}
	if audit := command(t, s.Process, 0, "audit"); !strings.Contains(audit, "ana left") || !strings.Contains(audit, "token create") || !strings.Contains(audit, "token revoke") {
		t.Errorf("the audit trail: %s", audit)
	}
}
