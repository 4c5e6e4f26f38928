//go:build browser

package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"creel/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const (
	secret   = "a-secret-that-the-shop-knows"
	password = "correct horse battery"
	soon     = 60 * time.Second
)

// server is Creel with a shop that sends and an app that can be made to refuse.
type server struct {
	*testkit.Process
	t      *testing.T
	app    *testkit.Destination
	sender testkit.Sender
	base   string // where the page is
}

const configuration = `
listen   = "127.0.0.1:0"
database = "creel.db"
[admin]
listen     = "127.0.0.1:0"
password   = "env:PAGE_PASSWORD"
%s
[log]
format = "json"
[[source]]
name    = "shop"
secrets = ["env:SHOP_SECRET"]
index   = ["body.customer"]
  [source.verify]
  auth      = "hmac-sha256"
  signature = "header.x-signature"
  encoding  = "hex"
  signed    = "{body}"
  id        = "body.id"
  type      = "body.type"
  object    = "body.order?"
[[rule]]
name = "orders"
match = { source = "shop", types = ["order.*"] }
key  = "{body.order}/{type}"
  [rule.record]
  kind   = "order"
  fields = { number = "{body.order}" }
  [rule.grant]
  to     = "{body.customer}"
  amount = 100
  unit   = "credits"
  [rule.forward]
  to = "app"
[[rule]]
name  = "everything else"
match = { source = "shop", types = ["note.*", "<*"] }
  [rule.forward]
  to = "app"
[destination.app]
url   = "%s"
retry = "once"
[retry.once]
first    = "1s"
attempts = 1
`

func newServer(t *testing.T, admin string) *server {
	t.Helper()
	s := &server{t: t, app: testkit.NewDestination(t)}
	s.Process = testkit.NewProcess(t, fmt.Sprintf(configuration, admin, s.app.URL), "SHOP_SECRET="+secret, "PAGE_PASSWORD="+password)
	s.Start(t)
	s.sender = testkit.Sender{URL: s.URL("/in/shop"), Secret: secret, Sign: testkit.SignPlain}
	s.base = s.AdminURL("")
	return s
}

func (s *server) send(bodies ...string) {
	s.t.Helper()
	for _, body := range bodies {
		if status, answer := s.sender.Send(s.t, "", []byte(body)); status != http.StatusOK {
			s.t.Fatalf("answered %d %q to %s", status, answer, body)
		}
	}
}

// states counts deliveries by state, as the command lists them.
func (s *server) states() map[string]int {
	s.t.Helper()
	_, stdout, _ := s.Run(s.t, "deliveries", "--json")
	counts := map[string]int{}
	for line := range strings.Lines(string(stdout)) {
		var one struct{ State string }
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			s.t.Fatal(err)
		}
		counts[one.State]++
	}
	return counts
}

func (s *server) await(state string, n int) {
	s.t.Helper()
	if !testkit.Await(soon, func() bool { return s.states()[state] == n }) {
		s.t.Fatalf("waited for %d %s deliveries, there are %v", n, state, s.states())
	}
}

// actions counts the audit trail.
func (s *server) actions() int {
	s.t.Helper()
	_, stdout, _ := s.Run(s.t, "audit", "--json")
	return strings.Count(string(stdout), "\n")
}

// window is a browser of its own, without anybody's cookies.
type window struct {
	context.Context
	t *testing.T
	s *server
}

// view is how a window looks at a page.
type view struct {
	name          string
	width, height int64
	dark, plain   bool // plain runs no script
}

func views() []view {
	return []view{
		{name: "desktop", width: 1280, height: 900}, {name: "desktop-dark", width: 1280, height: 900, dark: true},
		{name: "phone", width: 360, height: 780}, {name: "phone-dark", width: 360, height: 780, dark: true},
	}
}

func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("there is no Chromium: apt-get install chromium")
	return ""
}

func (s *server) open(v view) *window {
	s.t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium(s.t)), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("disable-quic", true), chromedp.UserDataDir(s.t.TempDir()))
	allocator, stop := chromedp.NewExecAllocator(s.t.Context(), options...)
	ctx, end := chromedp.NewContext(allocator)
	s.t.Cleanup(func() { end(); stop() })
	w := &window{Context: ctx, t: s.t, s: s}
	// The first action starts the browser, which lives as long as its context.
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(v.width, v.height)); err != nil {
		s.t.Fatalf("start Chromium: %v", err)
	}
	call(w, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: v.plain})
	if v.dark {
		call(w, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
	}
	return w
}

// call sends a command of the browser's protocol.
func call[P, R any](w *window, command cdp.Command[P, R], params P) {
	w.t.Helper()
	if _, err := chromedp.Call(w.Context, command, params); err != nil {
		w.t.Fatalf("%s: %v", command.Method, err)
	}
}

func (w *window) run(actions ...chromedp.Action[chromedp.Void]) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.Context, soon)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		w.t.Fatalf("%v\n%s", err, w.text("body"))
	}
}

// got is the value of an action.
func got[T any](w *window, action chromedp.Action[T]) T {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.Context, soon)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		w.t.Fatalf("%v\n%s", err, w.text("body"))
	}
	return value
}

func (w *window) goTo(path string) {
	w.t.Helper()
	w.run(chromedp.Navigate(w.s.base+path), chromedp.WaitReady(chromedp.CSS("main")))
}

// text is what a part of the page says, "" where there is none.
func (w *window) text(selector string) string {
	ctx, cancel := context.WithTimeout(w.Context, 5*time.Second)
	defer cancel()
	text, _ := chromedp.Run(ctx, chromedp.Text(chromedp.CSS(selector)))
	return text
}

// eval asks the page something.
func eval[T any](w *window, script string) T {
	w.t.Helper()
	return got(w, chromedp.Evaluate[T](script, func(p *runtime.EvaluateParams) { p.AwaitPromise = new(true) }))
}

// evalAgain is eval for a script that may not come to its end: it is asked three
// times.
func evalAgain[T any](w *window, script string) T {
	w.t.Helper()
	for range 2 {
		ctx, cancel := context.WithTimeout(w.Context, 20*time.Second)
		value, err := chromedp.Run(ctx, chromedp.Evaluate[T](script, func(p *runtime.EvaluateParams) { p.AwaitPromise = new(true) }))
		cancel()
		if err == nil {
			return value
		}
	}
	return eval[T](w, script)
}

func (w *window) login(name string) {
	w.t.Helper()
	w.goTo("/login")
	w.run(chromedp.SendKeys(chromedp.CSS("#name"), name), chromedp.SendKeys(chromedp.CSS("#password"), password), chromedp.Submit(chromedp.CSS("#password")), chromedp.WaitReady(chromedp.CSS("header nav")))
}

// axe is the accessibility checker, installed as the lock file says.
func axe(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json"} {
		content, err := os.ReadFile(filepath.Join("axe", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	script, err := os.ReadFile(filepath.Join(folder, "node_modules/axe-core/axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}
