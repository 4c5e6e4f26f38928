//go:build browser

package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
)

// TestGateO5Live leaves a page open: it brings itself up to date without
// loading anew, and not while somebody types, ticks, opens or selects anything
// in it; it says which of the two, and says so when the server is gone.
func TestGateO5Live(t *testing.T) {
	t.Parallel()
	s := newServer(t, "")
	s.dead(1)
	w := s.open(view{width: 1280, height: 900})
	w.login("ana")
	// Its ten seconds pass in half a one, and are counted.
	call(w, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `(later => {
		window.rounds = 0;
		window.setTimeout = (f, ms, ...more) => later(() => { if (ms >= 1000) { window.rounds++; } f(...more); }, ms >= 1000 ? ms / 20 : ms);
	})(window.setTimeout)`})
	w.goTo("/?view=flat")
	w.awaits("the word for it", `document.querySelector("#updates").textContent === "live"`)
	const rows = `document.querySelectorAll("tbody tr").length`
	eval[bool](w, `window.mark = true`)
	s.refuse()
	next := 1
	arrives := func() {
		s.send(order(next))
		next++
		s.await("dead", next)
	}
	arrives()
	w.awaits("the second row", rows+` === 2`)
	if !eval[bool](w, `window.mark === true`) {
		t.Error("the page was loaded anew")
	}
	if !strings.Contains(w.text("#signals"), "as of ") {
		t.Errorf("the signals do not say when they were measured: %s", w.text("#signals"))
	}
	for _, c := range []struct{ what, begin, end string }{
		{"a ticked box", `document.querySelector("input[name=key]").click()`, `document.querySelector("input[name=key]").click()`},
		{"an open payload", `document.querySelector("main details").open = true`, `document.querySelector("main details").open = false`},
		{"typed text", `document.querySelector("input[name=q]").value = "evt"`, `document.querySelector("input[name=q]").value = ""`},
		{"another choice", `document.querySelector("select[name=source]").selectedIndex = 1`, `document.querySelector("select[name=source]").selectedIndex = 0`},
		{"a selection", `getSelection().selectAllChildren(document.querySelector("h1"))`, `getSelection().removeAllRanges()`},
		{"a focus", `document.querySelector("tbody a").focus()`, `document.activeElement.blur()`},
	} {
		before := eval[int](w, rows)
		eval[bool](w, c.begin+`, document.dispatchEvent(new Event("change")), true`)
		w.awaits(c.what+" to pause it", `document.querySelector("#updates").textContent === "paused"`)
		asked := eval[int](w, `performance.getEntriesByType("resource").filter(e => e.initiatorType === "fetch").length`)
		arrives()
		rounds := eval[int](w, "window.rounds")
		w.awaits("some rounds to pass", fmt.Sprint("window.rounds > ", rounds+6))
		if n := eval[int](w, rows); n != before {
			t.Errorf("%s: %d rows became %d", c.what, before, n)
		}
		if n := eval[int](w, `performance.getEntriesByType("resource").filter(e => e.initiatorType === "fetch").length`); n != asked {
			t.Errorf("%s: it was asked for %d times", c.what, n-asked)
		}
		eval[bool](w, c.end+`, document.dispatchEvent(new Event("change")), true`)
		w.awaits("the row that came meanwhile, after "+c.what, fmt.Sprint(rows, " > ", before))
	}
	s.Kill()
	w.awaits("the page to say that it is old", `!document.querySelector("#stale").hidden`)
}
