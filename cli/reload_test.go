package cli_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"creel/internal/testkit"
)

// rotation is a site whose source takes the secrets of a list.
type rotation struct {
	*testkit.Process
	url      string // of the destination
	old, new string
}

func (r *rotation) configuration(secrets string) string {
	return strings.Replace(plain(r.url, ""), `["env:SHOP_SECRET"]`, secrets, 1)
}

func newRotation(t *testing.T) (*rotation, *site) {
	t.Helper()
	s := newSite(t, "")
	r := &rotation{url: s.app.URL, old: testkit.NewCanary(t).Secret, new: testkit.NewCanary(t).Secret}
	r.Process = testkit.NewProcess(t, r.configuration(`["env:OLD"]`), "OLD="+r.old, "NEW="+r.new, "APP_SECRET="+appSecret)
	s.Process = r.Process
	return r, s
}

// TestGateR3 rotates a secret while senders send: no request that is good at
// the time is refused, and the old secret ends with its removal.
func TestGateR3(t *testing.T) {
	t.Parallel()
	for name, reload := range map[string]func(*testing.T, *rotation, int){
		"by the command": func(t *testing.T, r *rotation, _ int) { command(t, r.Process, 0, "reload") },
		"by SIGHUP": func(t *testing.T, r *rotation, n int) {
			if err := r.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			logged(t, r.Process, n, "configuration reloaded")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, s := newRotation(t)
			r.Start(t)
			load := startLoad(t, r.URL("/in/shop"), r.old)
			load.more(t, 20)
			if status := load.once(t, r.new, "early"); status != http.StatusUnauthorized {
				t.Errorf("the new secret before its time: %d", status)
			}

			s.configure(t, r.configuration(`["env:OLD", "env:NEW"]`))
			reload(t, r, 1)
			load.use(r.old, r.new)
			load.more(t, 40)
			load.use(r.new)
			load.more(t, 20)

			s.configure(t, r.configuration(`["env:NEW"]`))
			reload(t, r, 2)
			load.more(t, 20)
			if status := load.once(t, r.old, "late"); status != http.StatusUnauthorized {
				t.Errorf("the old secret after its removal: %d", status)
			}
			load.end(t)
			if exit := r.Terminate(); exit.Code != 0 {
				t.Errorf("stop: %+v", exit)
			}
		})
	}
}

// TestReloadKeepsTheOldConfiguration gives the server new files that can not
// be used: it goes on as it was and says why, to the command and in the log.
func TestReloadKeepsTheOldConfiguration(t *testing.T) {
	t.Parallel()
	r, s := newRotation(t)
	r.Start(t)
	good := r.configuration(`["env:OLD"]`)
	refused := 0
	for name, broken := range map[string]struct{ text, want string }{
		"no TOML":          {"listen = ", "creel.toml:1"},
		"unknown key":      {strings.Replace(good, "forward = ", "forwrad = ", 1), `forwrad: unknown key`},
		"secret not set":   {r.configuration(`["env:NOT_SET"]`), "the environment variable NOT_SET is not set"},
		"rule without app": {good + "\n[[rule]]\nname = \"x\"\nwhen = \"body.a >\"\n[rule.forward]\nto = \"app\"\n", "rule[0].when"},
		"another listener": {strings.Replace(good, `listen   = "127.0.0.1:0"`, `listen = "127.0.0.1:1"`, 1), "listen changed"},
		"another database": {strings.Replace(good, `"creel.db"`, `"other.db"`, 1), ""},
		"another identity": {strings.Replace(good, `"body.id"`, `"body.number"`, 1), "identity settings of shop changed"},
	} {
		sender := testkit.Sender{URL: r.URL("/in/shop"), Secret: r.old, Sign: testkit.SignPlain}
		if status, _ := sender.Send(t, "", fmt.Appendf(nil, `{"id":%q,"number":1}`, name)); status != 200 {
			t.Fatalf("%s: answered %d before", name, status)
		}
		s.configure(t, broken.text)
		code, stdout, stderr := r.Run(t, "reload")
		if name == "another database" {
			// The command looks beside the other database, where nobody is.
			if code != 1 || !strings.Contains(string(stderr), "no server runs on this database") {
				t.Errorf("%s: exit %d %s", name, code, stderr)
			}
		} else {
			refused++
			if code != 2 || len(stdout) > 0 || !strings.Contains(string(stderr), "the old configuration stays in force") || !strings.Contains(string(stderr), broken.want) {
				t.Errorf("%s: exit %d, want %q in %s", name, code, broken.want, stderr)
			}
			logged(t, r.Process, refused, "the new configuration was refused, the old one stays in force")
		}
		if err := r.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		refused++
		logged(t, r.Process, refused, "the new configuration was refused, the old one stays in force")
		if status, _ := sender.Send(t, "", fmt.Appendf(nil, `{"id":"%s again","number":2}`, name)); status != 200 {
			t.Errorf("%s: answered %d after", name, status)
		}
	}
	s.configure(t, good)
	if said := command(t, r.Process, 0, "reload"); !strings.HasPrefix(said, "The new configuration is in force.\n") ||
		!strings.Contains(said, "Values of env:APP_SECRET, env:OLD are those with which the server was started: a changed one needs a restart") {
		t.Errorf("said %q", said)
	}
	if exit := r.Terminate(); exit.Code != 0 {
		t.Errorf("stop: %+v", exit)
	}
	if said := command(t, r.Process, 1, "reload"); !strings.Contains(said, "no server runs") || !strings.Contains(said, "Try: creel serve") {
		t.Errorf("without a server: %q", said)
	}
}

// TestReloadTellsWhatIsLeftBehind renames a rule and a destination: the command
// and the log say what that means for what the database has.
func TestReloadTellsWhatIsLeftBehind(t *testing.T) {
	t.Parallel()
	r, s := newRotation(t)
	named := func(rule string) string {
		return strings.Replace(r.configuration(`["env:OLD"]`), `forward = "app"`, "", 1) +
			"\n[[rule]]\nname = \"" + rule + "\"\n[rule.forward]\nto = \"app\"\n"
	}
	s.configure(t, named("ship"))
	r.Start(t)
	sender := testkit.Sender{URL: r.URL("/in/shop"), Secret: r.old, Sign: testkit.SignPlain}
	if status, answer := sender.Send(t, "", []byte(`{"id":"e1"}`)); status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	testkit.Poll(t, soon, "a delivery", func() bool {
		_, stdout, _ := r.Run(t, "deliveries", "--json")
		return strings.Contains(string(stdout), `"ship"`)
	})
	const gone = `the rule "ship" has made deliveries and is gone`
	if said := command(t, r.Process, 0, "reload"); strings.Contains(said, "has made deliveries") {
		t.Errorf("nothing was renamed: %q", said)
	}
	s.configure(t, named("send"))
	if said := command(t, r.Process, 0, "reload"); !strings.HasPrefix(said, "The new configuration is in force.\n") || !strings.Contains(said, gone) ||
		!strings.Contains(said, "a replay may send once more") {
		t.Errorf("said %q", said)
	}
	logged(t, r.Process, 1, "is gone")
	if err := r.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	logged(t, r.Process, 2, "is gone")
	if exit := r.Terminate(); exit.Code != 0 {
		t.Errorf("stop: %+v", exit)
	}
}

// load sends without pause, each request signed with one of the secrets that
// are good at the time.
type load struct {
	url     string
	good    sync.RWMutex // held for reading by a request that is on its way
	secrets []string
	sent    atomic.Int64
	stop    chan struct{}
	done    sync.WaitGroup

	mu      sync.Mutex
	refused []string
}

func startLoad(t *testing.T, url, secret string) *load {
	t.Helper()
	l := &load{url: url, stop: make(chan struct{})}
	l.use(secret)
	for worker := range 3 {
		l.done.Add(1)
		go func() {
			defer l.done.Done()
			for n := 0; ; n++ {
				select {
				case <-l.stop:
					return
				default:
				}
				l.good.RLock()
				status := l.once(t, l.secrets[n%len(l.secrets)], fmt.Sprintf("%d-%d", worker, n))
				l.good.RUnlock()
				if status != http.StatusOK {
					l.mu.Lock()
					l.refused = append(l.refused, fmt.Sprintf("%d-%d: %d", worker, n, status))
					l.mu.Unlock()
				}
				l.sent.Add(1)
			}
		}()
	}
	t.Cleanup(func() { l.finish() })
	return l
}

// use makes the secrets the good ones, once no request is on its way that was
// signed with another.
func (l *load) use(secrets ...string) {
	l.good.Lock()
	defer l.good.Unlock()
	l.secrets = secrets
}

func (l *load) once(t *testing.T, secret, id string) int {
	sender := testkit.Sender{URL: l.url, Secret: secret, Sign: testkit.SignPlain}
	response, err := http.DefaultClient.Do(sender.Request(t, "", fmt.Appendf(nil, `{"id":%q}`, id), time.Now()))
	if err != nil {
		t.Errorf("send: %v", err)
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// more waits until so many requests have been answered from now on.
func (l *load) more(t *testing.T, n int64) {
	t.Helper()
	until := l.sent.Load() + n
	testkit.Poll(t, soon, "more requests to be answered", func() bool { return l.sent.Load() >= until })
}

func (l *load) finish() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.done.Wait()
}

func (l *load) end(t *testing.T) {
	t.Helper()
	l.finish()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.refused) > 0 {
		t.Errorf("%d of %d good requests were refused, the first: %s", len(l.refused), l.sent.Load(), l.refused[0])
	}
}
