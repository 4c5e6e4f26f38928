//go:build interop

package examples_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"creel/event"
	"creel/internal/testkit"
)

// nodeApp is the app of the example in a life of its own.
type nodeApp struct {
	t      *testing.T
	url    string
	ledger string

	cmd  *exec.Cmd
	mu   sync.Mutex
	told []string // what it has printed
	done chan struct{}
}

func startNode(t *testing.T, ledger string) *nodeApp {
	t.Helper()
	a := &nodeApp{t: t, ledger: ledger, cmd: exec.Command("node", "app.mjs"), done: make(chan struct{})}
	a.cmd.Dir = "sidecar"
	a.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "PORT=0", "APP_WEBHOOK_SECRET=" + appSecret, "APP_LEDGER=" + ledger}
	a.cmd.Stderr = os.Stderr
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.cmd.Start(); err != nil {
		t.Fatalf("start node: %v", err)
	}
	go func() {
		defer close(a.done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			a.mu.Lock()
			a.told = append(a.told, lines.Text())
			a.mu.Unlock()
		}
		_ = a.cmd.Wait()
	}()
	t.Cleanup(func() { a.end(syscall.SIGKILL) })
	testkit.Poll(t, soon, "the app to listen", func() bool { return len(a.said()) > 0 })
	port, listens := strings.CutPrefix(a.said()[0], "listening on ")
	if !listens {
		t.Fatalf("the app said %q", a.said())
	}
	a.url = "http://127.0.0.1:" + port
	return a
}

func (a *nodeApp) said() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.told)
}

func (a *nodeApp) end(by os.Signal) {
	_ = a.cmd.Process.Signal(by)
	<-a.done
}

// entries are the lines of the ledger.
func (a *nodeApp) entries() (all []struct{ ID, Source, Type, Object string }) {
	a.t.Helper()
	text, err := os.ReadFile(a.ledger)
	if err != nil {
		a.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		all = append(all, struct{ ID, Source, Type, Object string }{})
		if err := json.Unmarshal([]byte(line), &all[len(all)-1]); err != nil {
			a.t.Fatalf("%v: %q", err, line)
		}
	}
	return all
}

// TestSidecar lets Creel deliver to the app through a way that loses the first
// answer, and others knock at the app's door.
func TestSidecar(t *testing.T) {
	t.Parallel()
	ledger := filepath.Join(t.TempDir(), "ledger.jsonl")
	if err := os.WriteFile(ledger, []byte(`{"id":"msg_cut_off_by_a_cr`), 0o600); err != nil {
		t.Fatal(err)
	}
	app, way := startNode(t, ledger), newFront(t)
	way.lead(t, app.url)
	way.loseNext(1)
	const secret = "whsec_a_stripe_secret_is_taken_as_text"
	e := newExample(t, "sidecar", []string{"http://127.0.0.1:3000", way.URL, "[destination.app]",
		"[retry.brief]\ndelays = [\"10ms\", \"20ms\"]\n\n[destination.app]\nretry = \"brief\""},
		"STRIPE_WEBHOOK_SECRET="+secret, "APP_WEBHOOK_SECRET="+appSecret)
	e.sender = testkit.Sender{URL: e.URL("/in/stripe"), Secret: secret, Sign: testkit.SignStripe}
	e.send(stripeEvent("evt_1", "invoice.paid", `{"id":"in_1","object":"invoice"}`))
	e.await(map[string]event.State{"evt_1": event.Done})
	e.awaitDeliveries("stripe//", map[string]delivered{"evt_1": {"sent", 2, 200}})
	requests := way.requests()
	id := requests[0].Header.Get("webhook-id")
	want := []string{"201 " + id, "200 " + id}
	if got := app.said()[1:]; !slices.Equal(got, want) {
		t.Errorf("the app said %q, want %q", got, want)
	}
	if got := app.entries(); len(got) != 1 || got[0].ID != id || got[0].Source != "stripe" || got[0].Type != "invoice.paid" || got[0].Object != "in_1" {
		t.Errorf("the ledger holds %+v", got)
	}
	e.stop()

	refused(t, app.url)
	app.end(syscall.SIGTERM)
	app = startNode(t, ledger)
	knock := testkit.Sender{URL: app.url, Secret: appSecret, Sign: testkit.SignStandard}
	if status, _ := knock.Send(t, id, []byte(`{}`)); status != 200 {
		t.Errorf("what was done before a restart: %d", status)
	}
	if status, _ := knock.Send(t, "msg_2", []byte(`{}`)); status != 201 {
		t.Errorf("something new: %d", status)
	}
	if got := app.entries(); len(got) != 2 {
		t.Errorf("the ledger holds %+v", got)
	}
}

// refused sends the app what it has to refuse, all under new ids.
func refused(t *testing.T, url string) {
	t.Helper()
	now, body := time.Now(), []byte(`{"data":{"object":{"id":"in_2"}}}`)
	ours := testkit.Sender{URL: url, Secret: appSecret, Sign: testkit.SignStandard}
	theirs := testkit.Sender{URL: url, Secret: merchantSecret, Sign: testkit.SignStandard}
	header := func(name, value string) *http.Request {
		r := ours.Request(t, "msg_x", body, now)
		r.Header.Del(name)
		if value != "" {
			r.Header.Set(name, value)
		}
		return r
	}
	altered := ours.Request(t, "msg_x", []byte(`{}`), now)
	altered.Header = ours.Request(t, "msg_x", body, now).Header
	for name, c := range map[string]struct {
		request *http.Request
		status  int
	}{
		"somebody else":       {theirs.Request(t, "msg_x", body, now), 401},
		"another body":        {altered, 401},
		"another id":          {header("webhook-id", "msg_y"), 401},
		"an old one":          {ours.Request(t, "msg_x", body, now.Add(-6*time.Minute)), 401},
		"one of the future":   {ours.Request(t, "msg_x", body, now.Add(6*time.Minute)), 401},
		"no id":               {header("webhook-id", ""), 401},
		"no time":             {header("webhook-timestamp", ""), 401},
		"no number":           {header("webhook-timestamp", "NaN"), 401},
		"no signature":        {header("webhook-signature", ""), 401},
		"an empty signature":  {header("webhook-signature", "v1,"), 401},
		"a short signature":   {header("webhook-signature", "v1,AAAA"), 401},
		"another version":     {header("webhook-signature", "v2"+ours.Request(t, "msg_x", body, now).Header.Get("webhook-signature")[2:]), 401},
		"genuine and no JSON": {ours.Request(t, "msg_x", []byte("<html>"), now), 422},
		"too large":           {theirs.Request(t, "msg_x", make([]byte, 8<<20), now), 413},
	} {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		response, err := client.Do(c.request)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_ = response.Body.Close()
		if response.StatusCode != c.status {
			t.Errorf("%s: %d, want %d", name, response.StatusCode, c.status)
		}
	}
}
