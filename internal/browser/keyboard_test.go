//go:build browser

package browser

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"creel/internal/testkit"
)

// What stands for the keys that write nothing.
const (
	enter  = "\r"
	tab    = "\t"
	escape = "\u001b"
)

func (w *window) press(keys ...string) {
	w.t.Helper()
	for _, key := range keys {
		w.run(chromedp.KeyEvent(key))
	}
}

// awaits waits until the page says yes. While it is loaded it says nothing.
func (w *window) awaits(what, script string) {
	w.t.Helper()
	yes := func() bool {
		ctx, cancel := context.WithTimeout(w.Context, soon)
		defer cancel()
		said, err := chromedp.Run(ctx, chromedp.Evaluate[bool](script))
		return err == nil && said
	}
	if !testkit.Await(soon, yes) {
		w.t.Fatalf("waited for %s:\n%s", what, w.text("body"))
	}
}

// TestGateO5Keyboard finds, opens, selects and replays by keys alone: with those
// of the page where scripts run, and with those of every browser where not.
func TestGateO5Keyboard(t *testing.T) {
	t.Parallel()
	s := newServer(t, "")
	s.dead(3)
	w := s.open(view{width: 1280, height: 900})
	w.login("ana")
	w.goTo("/?view=flat")
	w.press("j", "j", "x")
	checked := eval[string](w, `Array.from(document.querySelectorAll("input[name=key]")).map(b => b.checked ? "1" : "0").join("")`)
	if checked != "010" || !strings.Contains(w.text(".bar"), "Replay 1 selected…") {
		t.Errorf("j j x selects %s: %s", checked, w.text(".bar"))
	}
	w.press("r")
	w.awaits("the plan", `document.querySelector("#reason") !== null`)
	w.run(chromedp.Focus(chromedp.CSS("#reason")))
	w.press("m", "e", "n", "d", "e", "d", enter)
	w.awaits("the action", `document.querySelector("h1").textContent.startsWith("Action")`)
	s.await("sent", 1)
	w.goTo("/?view=flat")
	w.press("/")
	if focused := eval[string](w, `document.activeElement.name`); focused != "q" {
		t.Errorf("/ goes to %q", focused)
	}
	w.press(escape)
	w.goTo("/?view=flat")
	w.press("j", enter)
	w.awaits("the event", `document.querySelector("#bodytext") !== null && document.readyState === "complete"`)
	w.press("r")
	s.await("sent", 2)
	w.awaits("what was done", `document.querySelector(".notice") !== null`)

	// Without scripts: Tab goes through all that can be used, and what has the
	// focus is seen.
	plain := s.open(view{width: 1280, height: 900, plain: true})
	plain.login("bob")
	plain.goTo("/?view=flat")
	for n := 0; eval[string](plain, `(document.activeElement.name || "") + "=" + (document.activeElement.value || "")`) != fmt.Sprintf("one=%s", eval[string](plain, `document.querySelector("button[name=one]").value`)); n++ {
		if n > 60 {
			t.Fatal("Tab does not lead to the button that replays")
		}
		plain.press(tab)
		if seen := eval[bool](plain, `(s => s.outlineStyle !== "none" || document.activeElement === document.body || parseFloat(s.outlineWidth) > 0)(getComputedStyle(document.activeElement))`); !seen {
			t.Errorf("the focus is not seen at %s", eval[string](plain, `document.activeElement.outerHTML.slice(0, 100)`))
		}
	}
	plain.press(enter)
	s.await("sent", 3)
}
