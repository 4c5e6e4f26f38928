//go:build browser

package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"creel/internal/testkit"
)

// refused makes every delivery a dead letter at once.
func (s *server) refuse() {
	s.app.Answer(func(testkit.Received) testkit.Answer { return testkit.Answer{Status: 422, Body: "unknown price"} })
}

func (s *server) accept() {
	s.app.Answer(func(testkit.Received) testkit.Answer { return testkit.Answer{Status: 200} })
}

func order(n int) string {
	return fmt.Sprintf(`{"id":"evt_%d","type":"order.paid","order":"%d","customer":"cus_%d","amount":1152921506151679042}`, n, 1000+n, n%3)
}

// dead makes n dead letters.
func (s *server) dead(n int) {
	s.t.Helper()
	s.refuse()
	for i := range n {
		s.send(order(i))
	}
	s.await("dead", n)
	s.accept()
}

// TestGateO5ReplayOne finds a dead letter by search, looks into it, and
// replays it with one click; the second click of a double click is no second
// replay.
func TestGateO5ReplayOne(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		s := newServer(t, "")
		s.dead(3)
		w := s.open(view{width: 1280, height: 900, plain: plain})
		w.login("ana")
		w.goTo("/?view=flat&q=" + "body.customer:cus_1")
		if text := w.text("main"); !strings.Contains(text, "evt_1") || strings.Contains(text, "evt_2") {
			t.Fatalf("the search by a field of the body found:\n%s", text)
		}
		w.run(chromedp.Click(chromedp.CSS("tbody td a")), chromedp.WaitReady(chromedp.CSS("#bodytext")))
		if text := w.text("main"); !strings.Contains(text, "1152921506151679042") || !strings.Contains(text, "unknown price") && !strings.Contains(text, "422") {
			t.Errorf("the event shows:\n%s", text)
		}
		w.run(chromedp.DoubleClick(chromedp.CSS("button[name=one]")), chromedp.WaitReady(chromedp.CSS("main")))
		s.await("sent", 1)
		if n := s.actions(); n != 1 {
			t.Errorf("plain %t: a double click left %d actions", plain, n)
		}
	}
}

// TestGateO5Plans replays a selection, a group and all that match, each after
// a plan that has changed nothing.
func TestGateO5Plans(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		s := newServer(t, "")
		s.dead(6)
		w := s.open(view{width: 360, height: 780, plain: plain})
		w.login("ana")
		w.goTo("/?view=flat")
		w.run(chromedp.Click(chromedp.CSS(`input[value="shop//evt_0"]`)), chromedp.Click(chromedp.CSS(`input[value="shop//evt_3"]`)),
			chromedp.Click(chromedp.CSS(`button[name=do][value=replay]`)), chromedp.WaitReady(chromedp.CSS("#reason")))
		if text := w.text("main"); !strings.Contains(text, "2 events") || !strings.Contains(text, "Nothing has been changed") {
			t.Fatalf("the plan of two says:\n%s", text)
		}
		if s.states()["dead"] != 6 || s.actions() != 0 {
			t.Error("a plan changed something")
		}
		w.run(chromedp.SendKeys(chromedp.CSS("#reason"), "price added"), chromedp.Submit(chromedp.CSS("#reason")), chromedp.WaitReady(chromedp.CSS("main")))
		s.await("sent", 2)
		w.goTo("/")
		w.run(chromedp.Click(chromedp.CSS(`button[value="replay all"]`)), chromedp.WaitReady(chromedp.CSS("#reason")),
			chromedp.SendKeys(chromedp.CSS("#reason"), "the rest"), chromedp.Submit(chromedp.CSS("#reason")), chromedp.WaitReady(chromedp.CSS("main")))
		s.await("sent", 6)
		if n := s.actions(); n != 2 {
			t.Errorf("%d actions", n)
		}
		w.goTo("/")
		if text := w.text("main"); !strings.Contains(text, "Nothing is dead") {
			t.Errorf("in the end the page says:\n%s", text)
		}
	}
}

// TestGateO5TwoBrowsers lets two admins carry out plans for the same events at
// the same moment: each event is replayed once.
func TestGateO5TwoBrowsers(t *testing.T) {
	t.Parallel()
	s := newServer(t, "")
	s.dead(4)
	var both [2]*window
	for i := range both {
		both[i] = s.open(view{width: 1280, height: 900})
		both[i].login([]string{"ana", "bob"}[i])
		both[i].goTo("/")
		both[i].run(chromedp.Click(chromedp.CSS(`button[value="replay all"]`)), chromedp.WaitReady(chromedp.CSS("#reason")), chromedp.SendKeys(chromedp.CSS("#reason"), "both"))
	}
	var wait sync.WaitGroup
	for _, w := range both {
		wait.Go(func() { w.run(chromedp.Submit(chromedp.CSS("#reason")), chromedp.WaitReady(chromedp.CSS("main"))) })
	}
	wait.Wait()
	s.await("sent", 4)
	if n := s.app.Count(); n != 8 { // each was refused once, and sent once
		t.Errorf("the app was asked %d times", n)
	}
	_, stdout, _ := s.Run(t, "audit", "--json")
	done := 0
	for line := range strings.Lines(string(stdout)) {
		var one struct{ Done int }
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		done += one.Done
	}
	if done != 4 {
		t.Errorf("%d events were replayed:\n%s", done, stdout)
	}
}

// paths are the views of the menu and those behind the first rows of their
// lists.
func paths(w *window) []string {
	w.t.Helper()
	seen := map[string]bool{}
	var all []string
	collect := func(selector string) {
		found := eval[[]string](w, `Array.from(document.querySelectorAll("`+selector+`")).map(a => a.getAttribute("href")).filter(h => h && h.startsWith("/") && !h.includes("/event/body") && !h.includes("/api/"))`)
		for _, path := range found {
			base := strings.SplitN(path, "#", 2)[0]
			// One of each view, and the dead letters one by one and in a group too.
			view := strings.SplitN(base, "?", 2)[0]
			if view == "/" {
				view = strings.SplitN(base, "=", 2)[0]
			}
			if !seen[view] {
				seen[view] = true
				all = append(all, base)
			}
		}
	}
	w.goTo("/")
	collect("header nav a")
	for _, path := range append([]string(nil), all...) {
		w.goTo(path)
		collect("main a")
	}
	return all
}

// TestGateO5Accessible lets axe judge every view, wide and narrow, light and
// dark, and takes the pictures of docs/page where PICTURES names a folder.
func TestGateO5Accessible(t *testing.T) {
	t.Parallel()
	s := gallery(t)
	judge := axe(t)
	folder := os.Getenv("PICTURES")
	for _, v := range views() {
		w := s.open(v)
		look := func(name string) {
			w.accessible(judge, v.name+" "+name)
			w.fits(v, name)
			w.steady(v.name + " " + name)
			w.keep(folder, v, name)
		}
		w.goTo("/login")
		look("login")
		w.login("ana")
		for _, sight := range sights() {
			w.visit(sight.path)
			look(sight.name)
		}
	}
}

// accessible fails for each violation that axe finds. A page that has brought
// itself up to date meanwhile may leave axe without an end: it is asked again.
func (w *window) accessible(judge, where string) {
	w.t.Helper()
	found := evalAgain[[]string](w, judge+";axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v => v.id + ': ' + v.help + ': ' + v.nodes.map(n => n.html).slice(0, 3).join(' | ')))")
	for _, violation := range found {
		w.t.Errorf("%s: %s", where, violation)
	}
}

// fits fails where a page is wider than its window.
func (w *window) fits(v view, path string) {
	w.t.Helper()
	width := eval[int64](w, "document.documentElement.scrollWidth")
	if width > v.width {
		w.t.Errorf("%s %s is %d wide in a window of %d", v.name, path, width, v.width)
	}
}

// steady fails where a page has moved under the eye of whoever reads it.
func (w *window) steady(where string) {
	w.t.Helper()
	moved := eval[float64](w, `new Promise(done => { let sum = 0; new PerformanceObserver(l => l.getEntries().forEach(e => sum += e.value)).observe({type: "layout-shift", buffered: true}); setTimeout(() => done(sum), 50) })`)
	if moved > 0.01 {
		w.t.Errorf("%s: its layout has shifted by %.3f", where, moved)
	}
}

// TestGateO5BelowAPrefix looks at the page behind nginx, which strips a prefix.
func TestGateO5BelowAPrefix(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	s := newServer(t, `public_url = "http://127.0.0.1:`+strconv.Itoa(port)+`/hooks/"`)
	s.dead(2)
	nginx(t, port, s.AdminURL(""))
	s.base = "http://127.0.0.1:" + strconv.Itoa(port) + "/hooks"
	w := s.open(view{width: 1280, height: 900})
	w.login("ana")
	w.goTo("/?view=flat")
	outside := eval[[]string](w, `Array.from(document.querySelectorAll("a[href],form[action],link[href],script[src]")).map(e => e.getAttribute("href") || e.getAttribute("action") || e.getAttribute("src")).filter(u => u.startsWith("/") && !u.startsWith("/hooks/"))`)
	if len(outside) > 0 {
		t.Errorf("links lead out of the prefix: %v", outside)
	}
	w.run(chromedp.Click(chromedp.CSS("tbody td button[name=one]")), chromedp.WaitReady(chromedp.CSS("main")))
	s.await("sent", 1)
	at := got(w, chromedp.Location())
	if !strings.HasPrefix(at, s.base+"/") {
		t.Errorf("a replay leads to %s", at)
	}
	response, err := http.Get(s.base + "/assets/style.css")
	if err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("the style below the prefix: %v, %v", response, err)
	}
}
