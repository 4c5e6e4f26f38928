package page

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"creel/admin"
	"creel/event"
)

func status(t *testing.T, what string, res *http.Response, want int) {
	t.Helper()
	if res.StatusCode != want {
		t.Errorf("%s: %s, want %d", what, res.Status, want)
	}
}

// Nothing but the login and our own files is seen without a session, and what
// exists looks like what does not.
func TestGateO6Login(t *testing.T) {
	t.Parallel()
	s := newStand(t, "")
	b := s.browser(t)
	for path := range s.page.views() {
		res, text := b.get(t, strings.ReplaceAll(path, ":id", "1"))
		if res.StatusCode != http.StatusSeeOther || !strings.HasPrefix(res.Header.Get("Location"), "/login?to=") || strings.Contains(text, "shop") {
			t.Errorf("%s without a session: %s %s", path, res.Status, res.Header.Get("Location"))
		}
	}
	for path := range s.page.deeds() {
		res, _ := b.do(t, http.MethodPost, strings.ReplaceAll(path, ":id", "1"), url.Values{})
		if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/login" {
			t.Errorf("POST %s without a session: %s", path, res.Status)
		}
	}
	res, _ := b.get(t, "/nothing")
	status(t, "what does not exist", res, http.StatusSeeOther)
	res, _ = b.get(t, "/assets/style.css")
	status(t, "the style", res, http.StatusOK)
	for _, path := range []string{"/assets/..%2flogin.go", "/assets/none.css", "/assets/"} {
		if res, _ := b.get(t, path); res.StatusCode == http.StatusOK {
			t.Errorf("%s: %s", path, res.Status)
		}
	}
	res, text := b.do(t, http.MethodPost, "/login", url.Values{"password": {"wrong"}})
	if res.StatusCode != http.StatusUnauthorized || res.Header.Get("Set-Cookie") != "" || !strings.Contains(text, "not the password") {
		t.Errorf("a wrong password: %s %v", res.Status, res.Header)
	}
	b.login(t)
	res, text = b.get(t, "/")
	if res.StatusCode != http.StatusOK || !strings.Contains(text, "Dead letters") || !strings.Contains(text, "ana") {
		t.Errorf("after the login: %s", res.Status)
	}
	if len(s.acted) > 0 {
		t.Errorf("somebody without a session acted: %v", s.acted)
	}
}

// The name of the audit trail is what is seen of it.
func TestGateO6Names(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"ana": "ana", " Åsa Öberg ": "Åsa Öberg", "": "page", " \t": "page", "bob\u202e": "bob", "a\r\nb": "a b",
		"an\u200ba": "an a", "\xffx": "x", strings.Repeat("é", 40): strings.Repeat("é", 32), "小川": "小川"} {
		if got := named(given); got != want {
			t.Errorf("%q is %q, want %q", given, got, want)
		}
	}
}

// A login gets a new id whatever the browser brought; it ends by itself, at
// once when its owner says so, and with the password.
func TestGateO6Session(t *testing.T) {
	t.Parallel()
	s := newStand(t, "")
	b := s.browser(t)
	at, _ := url.Parse(s.web.URL)
	planted := strings.Repeat("A", 43)
	b.Jar.SetCookies(at, []*http.Cookie{{Name: "creel_session", Value: planted, Path: "/"}})
	b.login(t)
	first := b.session(t)
	if first == planted || len(first) != 43 {
		t.Fatalf("the session is %q", first)
	}
	b.login(t)
	second := b.session(t)
	asked := func(id string) int {
		other := s.browser(t)
		other.Jar.SetCookies(at, []*http.Cookie{{Name: "creel_session", Value: id, Path: "/"}})
		res, _ := other.get(t, "/")
		return res.StatusCode
	}
	if second == first || asked(first) != http.StatusSeeOther || asked(planted) != http.StatusSeeOther || asked(second) != http.StatusOK {
		t.Errorf("a second login: the first id still opens the page")
	}
	res, _ := b.do(t, http.MethodPost, "/logout", url.Values{"token": {b.token(t)}})
	status(t, "logout", res, http.StatusSeeOther)
	if asked(second) != http.StatusSeeOther {
		t.Error("a session that was logged out still opens the page")
	}
	for what, step := range map[string]struct {
		each time.Duration
		n    int
		want int
	}{
		"used every 29 minutes":    {29 * time.Minute, 16, http.StatusOK},
		"idle for 31 minutes":      {31 * time.Minute, 1, http.StatusSeeOther},
		"used for over 8 hours":    {29 * time.Minute, 17, http.StatusSeeOther},
		"a clock that is set back": {-time.Minute, 1, http.StatusSeeOther},
	} {
		b := s.browser(t)
		b.login(t)
		got := 0
		for range step.n {
			s.pass(step.each)
			res, _ := b.get(t, "/")
			got = res.StatusCode
		}
		if got != step.want {
			t.Errorf("%s: %d, want %d", what, got, step.want)
		}
		s.pass(time.Minute)
	}
	b.login(t)
	s.page.EndSessions()
	res, _ = b.get(t, "/")
	status(t, "after the password was changed", res, http.StatusSeeOther)
}

// Cookies say what they must: over TLS at the root the __Host- prefix, below a
// path a path.
func TestGateO6Cookies(t *testing.T) {
	t.Parallel()
	for public, want := range map[string]string{
		"":                            "creel_session=*; Path=/; HttpOnly; SameSite=Strict",
		"https://creel.example/":      "__Host-creel_session=*; Path=/; HttpOnly; Secure; SameSite=Strict",
		"https://creel.example/hooks": "__Secure-creel_session=*; Path=/hooks/; HttpOnly; Secure; SameSite=Strict",
	} {
		s := newStand(t, public)
		res, _ := s.browser(t).do(t, http.MethodPost, "/login", url.Values{"password": {goodPassword}})
		got := res.Header.Get("Set-Cookie")
		name, rest, _ := strings.Cut(got, "=")
		_, flags, _ := strings.Cut(rest, ";")
		if name+"=*;"+flags != want {
			t.Errorf("%s: %s", public, got)
		}
		if hsts := res.Header.Get("Strict-Transport-Security"); (hsts != "") != strings.HasPrefix(public, "https") {
			t.Errorf("%s: Strict-Transport-Security %q", public, hsts)
		}
	}
}

// A deed takes a form of this session from this page, and nothing else.
func TestGateO6CSRF(t *testing.T) {
	t.Parallel()
	s := newStand(t, "")
	b, other := s.browser(t), s.browser(t)
	b.login(t)
	other.login(t)
	own, foreign := b.token(t), other.token(t)
	form := func(token string) url.Values {
		return url.Values{"one": {"1 shop//evt_1"}, "token": {token}, "back": {"/"}}
	}
	for what, c := range map[string]struct {
		token  string
		header []string
	}{
		"no token":              {"", nil},
		"a wrong token":         {own[1:] + "A", nil},
		"somebody else's token": {foreign, nil},
		"from another site":     {own, []string{"Sec-Fetch-Site", "cross-site"}},
		"from a sibling site":   {own, []string{"Sec-Fetch-Site", "same-site"}},
		"of another origin":     {own, []string{"Origin", "https://evil.example"}},
		"of no origin":          {own, []string{"Origin", "null"}},
	} {
		res, _ := b.do(t, http.MethodPost, "/replay", form(c.token), c.header...)
		status(t, what, res, http.StatusForbidden)
	}
	res, _ := b.do(t, http.MethodPost, "/login", url.Values{"password": {goodPassword}}, "Sec-Fetch-Site", "cross-site")
	status(t, "a login from another site", res, http.StatusForbidden)
	for path := range s.page.deeds() {
		if path == "/tokens" || path == "/plan/:id" {
			continue // they are views too
		}
		res, _ := b.get(t, path)
		status(t, "GET "+path, res, http.StatusMethodNotAllowed)
		if res.Header.Get("Allow") == "" {
			t.Errorf("GET %s: no Allow", path)
		}
	}
	if len(s.acted) > 0 {
		t.Fatalf("it acted: %v", s.acted)
	}
	res, _ = b.do(t, http.MethodPost, "/replay", form(own), "Origin", s.web.URL, "Sec-Fetch-Site", "same-origin")
	status(t, "our own form", res, http.StatusSeeOther)
	if len(s.acted) != 1 || s.acted[0].Actor != "page:ana" || s.acted[0].Selector.Run != 1 || s.acted[0].Kind != event.ActionReplay {
		t.Errorf("our own form did %+v", s.acted)
	}
}

// The page answers under its own names alone.
func TestGateO6Host(t *testing.T) {
	t.Parallel()
	cases := []struct {
		public, listen string
		good, bad      []string
	}{
		{"", "127.0.0.1:8081",
			[]string{"127.0.0.1:8081", "localhost:8081", "LOCALHOST:9999", "[::1]:8081", "127.0.0.1"},
			[]string{"evil.example", "evil.example:8081", "127.0.0.1.evil.example:8081", "localhost.evil.example:8081", "127.0.0.1:8081@evil.example",
				"localhost.", "192.168.1.7:8081", "", "[::1", "127.0.0.1:8081.evil.example", "0.0.0.0:8081", "evil.example:127.0.0.1", "2130706433:8081", "127.1:8081"}},
		{"https://creel.example/hooks", "127.0.0.1:8081",
			[]string{"creel.example", "CREEL.example", "127.0.0.1:8081"},
			[]string{"creel.example.evil", "creel.example:444", "example", "xcreel.example"}},
		{"", "0.0.0.0:8081",
			[]string{"192.168.1.7:8081", "localhost:8081", "[fe80::1]:8081"},
			[]string{"evil.example:8081", "creel:8081", "0.0.0.0:8081", ""}},
	}
	for _, c := range cases {
		host := ""
		if c.public != "" {
			u, _ := url.Parse(c.public)
			host = u.Host
		}
		h := newHosts(host, c.listen)
		for _, name := range c.good {
			if !h.allow(name) {
				t.Errorf("%s %s: %q is refused", c.public, c.listen, name)
			}
		}
		for _, name := range c.bad {
			if h.allow(name) && !(name == "0.0.0.0:8081" && c.listen == name) {
				t.Errorf("%s %s: %q is allowed", c.public, c.listen, name)
			}
		}
	}
	s := newStand(t, "")
	b := s.browser(t)
	b.login(t)
	res, text := b.get(t, "/", "Host", "evil.example:8081")
	if res.StatusCode != http.StatusMisdirectedRequest || strings.Contains(text, "Dead letters") {
		t.Errorf("a rebound name, with the session: %s", res.Status)
	}
}

// What this machine alone reaches is not read under a name that somebody else
// points at it: the metrics neither.
func TestGateO6HostOfTheMetrics(t *testing.T) {
	t.Parallel()
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("up 1")) })
	for listen, want := range map[string]int{"127.0.0.1:8081": http.StatusMisdirectedRequest, "0.0.0.0:8081": http.StatusOK} {
		s := newStand(t, "")
		s.page.hosts = newHosts("", listen)
		front := s.page.Front(metrics)
		for host, status := range map[string]int{"evil.example:8081": want, "127.0.0.1:8081": http.StatusOK} {
			r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
			r.Host = host
			w := httptest.NewRecorder()
			front.ServeHTTP(w, r)
			if w.Code != status {
				t.Errorf("%s, asked for %s: %d, want %d", listen, host, w.Code, status)
			}
		}
	}
}

// HEAD is answered like GET, without a body; what is not answered says what
// would be, and to nobody but who has logged in.
func TestGateO6OtherMethods(t *testing.T) {
	t.Parallel()
	s := newStand(t, "")
	b := s.browser(t)
	for _, path := range []string{"/", "/replay", "/nothing", "/assets/page.js"} {
		res, _ := b.do(t, http.MethodPut, path, nil)
		if res.StatusCode != http.StatusSeeOther || res.Header.Get("Allow") != "" {
			t.Errorf("PUT %s of a stranger: %s, Allow %q", path, res.Status, res.Header.Get("Allow"))
		}
	}
	res, _ := b.do(t, http.MethodHead, "/", nil)
	status(t, "HEAD of a stranger", res, http.StatusSeeOther)
	b.login(t)
	for path, want := range map[string]int{"/": 200, "/login": 303, "/assets/style.css": 200, "/nothing": 404, "/event/body?key=shop/a": 200} {
		res, text := b.do(t, http.MethodHead, path, nil)
		if res.StatusCode != want || text != "" {
			t.Errorf("HEAD %s: %s %q", path, res.Status, text)
		}
	}
	for path, want := range map[string]string{"/": "GET, HEAD", "/replay": "POST", "/tokens": "GET, HEAD, POST"} {
		for _, method := range []string{http.MethodPut, http.MethodOptions, http.MethodTrace} {
			res, _ := b.do(t, method, path, nil)
			if res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") != want {
				t.Errorf("%s %s: %s, Allow %q", method, path, res.Status, res.Header.Get("Allow"))
			}
		}
	}
	if len(s.acted) > 0 {
		t.Errorf("it acted: %v", s.acted)
	}
}

// Every answer carries the policy, whatever it is.
func TestGateO6HeadersOnEveryAnswer(t *testing.T) {
	t.Parallel()
	s := newStand(t, "")
	b := s.browser(t)
	answers := map[string]*http.Response{}
	keep := func(what string, want int) func(*http.Response, string) {
		return func(res *http.Response, _ string) {
			status(t, what, res, want)
			answers[what] = res
		}
	}
	keep("login", 200)(b.get(t, "/login"))
	keep("to the login", 303)(b.get(t, "/"))
	b.login(t)
	keep("page", 200)(b.get(t, "/"))
	keep("not found", 404)(b.get(t, "/nothing"))
	keep("method", 405)(b.get(t, "/replay"))
	keep("store error", 500)(b.get(t, "/audit"))
	keep("panic", 500)(b.get(t, "/lanes"))
	keep("host", 421)(b.get(t, "/", "Host", "evil.example"))
	keep("forbidden", 403)(b.do(t, http.MethodPost, "/replay", url.Values{}))
	keep("cross-site", 403)(b.do(t, http.MethodPost, "/replay", url.Values{}, "Sec-Fetch-Site", "cross-site"))
	keep("asset", 200)(b.get(t, "/assets/page.js"))
	keep("asset that is not there", 404)(b.get(t, "/assets/none.js"))
	keep("PUT", 405)(b.do(t, http.MethodPut, "/", nil))
	for what, res := range answers {
		h := res.Header
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
			"Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin"} {
			if h.Get(name) != want {
				t.Errorf("%s: %s is %q", what, name, h.Get(name))
			}
		}
		csp := h.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s: the policy %q has no %s", what, csp, part)
			}
		}
		if strings.Contains(csp, "unsafe") || h.Get("Cache-Control") == "" {
			t.Errorf("%s: policy %q, Cache-Control %q", what, csp, h.Get("Cache-Control"))
		}
	}
	if _, text := b.get(t, "/audit"); strings.Contains(text, "creel.db") {
		t.Error("an error of the store is shown as it is")
	}
}

// Of a thousand guesses a minute thirty are looked at, five from one address;
// the owner gets in a minute later.
func TestGateO6BruteForce(t *testing.T) {
	t.Parallel()
	s := newStand(t, "")
	b := s.browser(t)
	refused := 0
	for range 100 {
		res, _ := b.do(t, http.MethodPost, "/login", url.Values{"password": {"guess"}})
		if res.StatusCode == http.StatusTooManyRequests {
			refused++
			if res.Header.Get("Retry-After") == "" {
				t.Fatal("no Retry-After")
			}
		}
	}
	if n := s.asked.Load(); n != admin.GuessesEach || refused != 95 {
		t.Errorf("of 100 guesses from one address %d were looked at, %d refused", n, refused)
	}
	l := admin.NewGuesses(func() time.Time { return began })
	granted := 0
	for i := range 1000 {
		if _, ok := l.Take("10.0." + string(rune('a'+i%26)) + string(rune('a'+i/26%26))); ok {
			granted++
		}
	}
	if granted != admin.GuessesAll {
		t.Errorf("of 1000 guesses from many addresses %d were granted", granted)
	}
	s.pass(time.Minute)
	b.login(t)
}

// Strangers who guess, from one address or from many, do not keep a browser out
// that was in before; it has guesses of its own, and what it shows opens nothing.
func TestGateO6GuessesKeepNobodyOut(t *testing.T) {
	t.Parallel()
	s := newStand(t, "")
	owner, thief := s.browser(t), s.browser(t)
	owner.login(t)
	at, _ := url.Parse(s.web.URL)
	for _, c := range owner.Jar.Cookies(at) {
		if c.Name == "creel_known" {
			thief.Jar.SetCookies(at, []*http.Cookie{c})
		}
	}
	res, _ := thief.get(t, "/")
	status(t, "what a known browser shows, without a login", res, http.StatusSeeOther)
	for i := range admin.GuessesAll {
		s.page.guesses.Take(fmt.Sprint("198.51.100.", i))
	}
	guess := func(b *browser, password string) int {
		res, _ := b.do(t, http.MethodPost, "/login", url.Values{"password": {password}})
		return res.StatusCode
	}
	if got := guess(s.browser(t), goodPassword); got != http.StatusTooManyRequests {
		t.Errorf("a stranger: %d", got)
	}
	for range admin.GuessesEach {
		if got := guess(thief, "guess"); got != http.StatusUnauthorized {
			t.Errorf("a guess of a browser that is known: %d", got)
		}
	}
	if got := guess(thief, goodPassword); got != http.StatusTooManyRequests {
		t.Errorf("one guess too many: %d", got)
	}
	s.pass(time.Minute)
	for i := range admin.GuessesAll {
		s.page.guesses.Take(fmt.Sprint("198.51.100.", i))
	}
	if got := guess(owner, goodPassword); got != http.StatusSeeOther {
		t.Errorf("the owner, while strangers guess: %d", got)
	}
	s.page.EndSessions()
	if got := guess(owner, goodPassword); got != http.StatusTooManyRequests {
		t.Errorf("a browser that was known before the password was changed: %d", got)
	}
}

// Of version 6 whoever guesses has more addresses than can be counted.
func TestGateO6GuessesOfOneNetwork(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		address string
		granted int
	}{
		"one site":  {"2001:db8:1:2::%x", admin.GuessesEach},
		"two sites": {"2001:db8:1:%x::1", admin.GuessesAll},
		"version 4": {"::ffff:192.0.2.%d", admin.GuessesAll},
	} {
		l := admin.NewGuesses(func() time.Time { return began })
		granted := 0
		for i := range 200 {
			if _, ok := l.Take(fmt.Sprintf(c.address, i+1)); ok {
				granted++
			}
		}
		if granted != c.granted {
			t.Errorf("%s: %d are granted, want %d", what, granted, c.granted)
		}
	}
}

// Where the login leads stays on this page.
func TestGateO6OpenRedirect(t *testing.T) {
	t.Parallel()
	s := newStand(t, "")
	for to, want := range map[string]string{
		"/audit/7":                "/audit/7",
		"/event?key=shop%2F%2Fa":  "/event?key=shop%2F%2Fa",
		"https://evil.example/":   "/",
		"//evil.example/":         "/",
		"/\\evil.example/":        "/",
		"\\\\evil.example":        "/",
		"/\t/evil.example":        "/",
		"/\n/evil.example":        "/",
		" //evil.example":         "/",
		"javascript:alert(1)":     "/",
		"evil.example":            "/",
		"/login?to=/":             "/",
		"/audit\r\nSet-Cookie: a": "/",
		"":                        "/",
	} {
		res, _ := s.browser(t).do(t, http.MethodPost, "/login", url.Values{"password": {goodPassword}, "to": {to}})
		if got := res.Header.Get("Location"); got != want || res.Header.Get("Set-Cookie") == "" {
			t.Errorf("to %q leads to %q", to, got)
		}
		s.pass(time.Minute)
	}
	b := s.browser(t)
	b.login(t)
	res, _ := b.get(t, "/login?to=//evil.example")
	if got := res.Header.Get("Location"); got != "/" {
		t.Errorf("logged in already: to %q", got)
	}
}

// A link in a mail comes from another site, where a strict cookie stays at home:
// our own page sends the browser on, and then the session is there.
func TestLinksFromElsewhereNeedNoSecondLogin(t *testing.T) {
	t.Parallel()
	s := newStand(t, "")
	res, text := s.browser(t).get(t, "/alerts/7", "Sec-Fetch-Site", "cross-site")
	if res.StatusCode != http.StatusOK || !strings.Contains(text, `http-equiv="refresh" content="0; url=/login?to=%2Falerts%2F7"`) {
		t.Errorf("%s %s", res.Status, text)
	}
	b := s.browser(t)
	b.login(t)
	res, _ = b.get(t, "/login?to=%2Falerts%2F7", "Sec-Fetch-Site", "same-origin")
	if got := res.Header.Get("Location"); got != "/alerts/7" {
		t.Errorf("on to %q", got)
	}
}

// Below a path of a proxy every link, form, asset and redirect has it, whether
// the proxy takes it off or not.
func TestBugUI07SubPath(t *testing.T) {
	t.Parallel()
	s := newStand(t, "http://127.0.0.1:8081/hooks")
	s.letters = []Letter{{Event: event.Event{Key: event.Key{Source: "shop", ID: "../a%2f"}, State: event.Dead, Run: 1}}}
	b := s.browser(t)
	const prefix = "/hooks"
	res, _ := b.get(t, "/")
	if got := res.Header.Get("Location"); got != prefix+"/login?to=%2F" {
		t.Errorf("the login is at %q", got)
	}
	res, _ = b.do(t, http.MethodPost, prefix+"/login", url.Values{"password": {goodPassword}})
	if got := res.Header.Get("Location"); got != prefix+"/" {
		t.Fatalf("the login leads to %q", got)
	}
	res, text := b.get(t, prefix+"/?view=flat") // a proxy that does not cut it; the jar sends the cookie there
	status(t, "with the prefix", res, http.StatusOK)
	for _, attribute := range []string{`href="`, `src="`, `action="`} {
		for i, part := range strings.Split(text, attribute) {
			if i > 0 && !strings.HasPrefix(part, prefix+"/") && !strings.HasPrefix(part, "#") {
				t.Errorf("%s%.60s", attribute, part)
			}
		}
	}
	if !strings.Contains(text, prefix+"/event?key=shop%2F%2F..%252Fa%25252f") {
		t.Error("no link to the event")
	}
	res, _ = b.do(t, http.MethodPost, prefix+"/replay", url.Values{"one": {"1 shop//a"}, "token": {tokenField.FindStringSubmatch(text)[1]}, "back": {"/?view=flat"}})
	if got := res.Header.Get("Location"); got != prefix+"/?view=flat" {
		t.Errorf("after a replay: %s to %q", res.Status, got)
	}
}
