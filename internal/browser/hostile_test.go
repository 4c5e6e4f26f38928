//go:build browser

package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"creel/internal/testkit"
)

// runs is what shows that something ran that a stranger wrote.
const runs = `document.title='pwn'`

// hostileTexts want to be a page: what is looked at is whether they become one.
func hostileTexts() []string {
	return []string{
		"<script>" + runs + "</script>", `"><img src=x onerror=` + runs + `>`, "</script><script>" + runs + "</script>",
		"</pre></td></table><svg onload=" + runs + ">", "javascript:" + runs, "{{.}}${7*7}", "' onmouseover='" + runs, "</title><script>" + runs + "</script>",
		"\u202egnp.exe\u2066\u200b", strings.Repeat("Donaudampfschifffahrt", 60), "../../login", "a/b%2f", "a\r\nb",
	}
}

// hostileServer is one on which a stranger wrote whatever he can write: ids,
// types, accounts, objects, versions, bodies, headers, queries, and what a
// destination answers; and its owner what he can name.
func hostileServer(t *testing.T) *server {
	t.Helper()
	s := &server{t: t, app: testkit.NewDestination(t)}
	text := strings.NewReplacer(`name = "everything else"`, `name = 'everything else <img src=x onerror=`+runs+`>'`,
		`object    = "body.order?"`, "object = \"body.order?\"\n  account = \"body.account?\"\n  version = \"body.version?\"",
		`types = ["note.*", "<*"]`, `types = ["*"]`).Replace(fmt.Sprintf(configuration, "", s.app.URL))
	s.Process = testkit.NewProcess(t, text, "SHOP_SECRET="+secret, "PAGE_PASSWORD="+password)
	s.Start(t)
	s.sender = testkit.Sender{URL: s.URL("/in/shop"), Secret: secret, Sign: testkit.SignPlain}
	s.base = s.AdminURL("")
	s.app.Answer(func(testkit.Received) testkit.Answer {
		return testkit.Answer{Status: 422, Body: hostileTexts()[0] + hostileTexts()[9]}
	})
	send := func(fields map[string]any) {
		t.Helper()
		body, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		s.send(string(body))
	}
	texts := hostileTexts()
	for i, evil := range texts {
		send(map[string]any{"id": evil, "type": "note." + evil, "order": evil, "account": evil, "customer": evil, "version": i + 1, evil: evil})
		send(map[string]any{"id": fmt.Sprint("order ", evil), "type": "order." + evil, "order": fmt.Sprint(i, evil), "customer": evil})
		send(map[string]any{"id": evil, "type": "note." + evil, "account": evil, "note": "another body"}) // a conflict
		request := s.sender.Request(t, "", []byte(`{"id":"`+fmt.Sprint(i)+`"}`), time.Now())
		request.Header.Set("User-Agent", strings.ToValidUTF8(strings.Map(printable, evil), ""))
		request.Header.Set("X-Signature", "wrong")
		request.URL.RawQuery = "q=%3Cscript%3E" + strings.Map(printable, strings.ReplaceAll(evil, " ", ""))
		if status, _ := s.sender.Do(t, request); status != http.StatusUnauthorized {
			t.Fatalf("a request with a wrong signature is answered %d", status)
		}
	}
	testkit.Poll(t, soon, "the dead letters", func() bool { return s.states()["dead"] >= 2*len(texts) })
	for _, evil := range texts[:3] {
		s.Run(t, "replay", "--query", "id:0", "--reason", evil)
		s.Run(t, "token", "create", evil, "--scope", "read")
		s.Run(t, "pause", "app", "--reason", evil)
	}
	return s
}

// printable drops what no header holds.
func printable(r rune) rune {
	if r < ' ' || r > '~' {
		return -1
	}
	return r
}

// TestGateO5HostilePayloads looks at what strangers wrote, in every view, on a
// desk and on a phone: it is text, nothing of it runs, and nothing is wider than
// the window.
func TestGateO5HostilePayloads(t *testing.T) {
	t.Parallel()
	s := hostileServer(t)
	for _, v := range []view{views()[0], views()[2]} {
		w := s.open(v)
		w.login("<b>ana</b>")
		for _, path := range append(paths(w), "/?view=flat&q=%22%3E%3Cscript%3E", "/objects?object=%3Cscript%3E", "/events?q=%3Cscript%3E%22", "/nothing?%3Cscript%3E") {
			w.goTo(path)
			w.harmless(v.name + " " + path)
			w.fits(v, path)
		}
		// One of each that can be opened from the lists.
		for _, sight := range [][2]string{{"/events", "tbody td a"}, {"/", "tbody td a"}, {"/rejects", "tbody td a"}, {"/audit", "tbody td a"}} {
			w.goTo(sight[0])
			for _, link := range eval[[]string](w, `Array.from(document.querySelectorAll("`+sight[1]+`")).map(a => a.getAttribute("href")).slice(0, 26)`) {
				w.goTo(link)
				w.harmless(v.name + " " + link)
				w.fits(v, link)
			}
		}
		w.goTo("/")
		// By script: the list may come up to date between finding the button and
		// pressing it, and nothing here is about that.
		eval[bool](w, `(document.querySelector('button[value="replay all"]').click(), true)`)
		w.run(chromedp.WaitReady(chromedp.CSS("#reason")))
		w.harmless(v.name + " plan")
		w.fits(v, "plan")
	}
}

// harmless fails where something that a stranger wrote became a part of the page.
func (w *window) harmless(where string) {
	w.t.Helper()
	if title := eval[string](w, "document.title"); title == "pwn" {
		w.t.Errorf("%s: something ran", where)
	}
	if found := eval[string](w, `(document.querySelector("main script, main img, main svg:not(.chart), main style, main iframe, [onerror], [onload], [onmouseover], a[href^='javascript:'], nav b") || {outerHTML: ""}).outerHTML.slice(0, 200)`); found != "" {
		w.t.Errorf("%s: what came in became a part of the page: %s", where, found)
	}
	if odd := eval[string](w, `(document.body.innerText.match(/.{0,20}[\u202a-\u202e\u2066-\u2069\u200b].{0,20}/) || [""])[0]`); odd != "" {
		w.t.Errorf("%s: it shows %q", where, odd)
	}
}
