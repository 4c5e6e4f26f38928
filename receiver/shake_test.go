package receiver_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"creel/config"
	"creel/event"
	"creel/internal/testkit"
	"creel/receiver"
	"creel/source"
	"creel/store"
)

func compile(t testing.TB, cfg config.Source) receiver.Source {
	t.Helper()
	cfg.AllowWeakSecret = true
	src, problems := source.Compile(cfg, "source[0]", func(string) (string, bool) { return "", false })
	if err := problems.Err(); err != nil {
		t.Fatalf("compile %s: %v", cfg.Name, err)
	}
	return src
}

// shaking are senders with handshakes, described as an owner would.
func shaking(t testing.TB) map[string]receiver.Source {
	t.Helper()
	secret := []config.Secret{config.NewSecret("slack-test-secret")}
	graph := genScheme("body.id", "")
	graph.Challenge = []config.Challenge{{
		When: map[string]string{"query.validationToken": "*"}, After: "before",
		Answer: config.Answer{Status: 200, Type: "text/plain", Body: "{query.validationToken}"},
	}}
	meta := genScheme("body.id", "")
	meta.Challenge = []config.Challenge{{
		Method: "GET", When: map[string]string{"query.hub\\.mode": "subscribe"}, After: "before",
		Require: map[string]string{"query.hub\\.verify_token": "{setting.verify_token}"},
		Answer:  config.Answer{Status: 200, Type: "text/plain", Body: "{query.hub\\.challenge}"},
	}}
	never := config.Duration(0)
	slack := &config.Scheme{Late: &never, Early: &never}
	return map[string]receiver.Source{
		"graph": compile(t, config.Source{Name: "graph", Secrets: secret, Verify: graph}),
		"meta":  compile(t, config.Source{Name: "meta", Secrets: secret, Verify: meta, Settings: map[string]string{"verify_token": "vt"}}),
		"slack": compile(t, config.Source{Name: "slack", Provider: "slack", Secrets: secret, Verify: slack}),
	}
}

func TestBugSHAKE01MetaChallenge(t *testing.T) {
	t.Parallel()
	r := openReal(t, store.Options{}, deskOptions{sources: shaking(t)})
	ask := func(token, challenge string) reply {
		return r.do(t, "GET", "/in/meta?hub.mode=subscribe&hub.verify_token="+token+"&hub.challenge="+challenge, nil, nil)
	}
	got := ask("vt", "1158201444")
	if got.status != 200 || got.body != "1158201444" || !plainText(got) {
		t.Errorf("%+v", got)
	}
	wantStatus(t, ask("wrong", "1158201444"), 403)
	if got := ask("vt", "%3Cscript%3E1%3C%2Fscript%3E"); !plainText(got) {
		t.Errorf("%+v", got)
	}
}

func plainText(got reply) bool {
	return strings.HasPrefix(got.header.Get("Content-Type"), "text/plain") && got.header.Get("X-Content-Type-Options") == "nosniff"
}

func TestBugSHAKE02SlackChallenge(t *testing.T) {
	t.Parallel()
	r := openReal(t, store.Options{}, deskOptions{sources: shaking(t)})
	body := `{"type":"url_verification","challenge":"3eZbrw1aBm"}`
	header := http.Header{
		"X-Slack-Request-Timestamp": {"1700000000"},
		"X-Slack-Signature":         {"v0=f27a38cbcdac564e09075d2d0a7fed80c504c88c2985bb0fb20746fc0d4d83dd"},
	}
	got := r.do(t, "POST", "/in/slack", header, []byte(body))
	if got.status != 200 || !strings.Contains(got.body, "3eZbrw1aBm") {
		t.Errorf("%+v", got)
	}
	header.Set("X-Slack-Signature", "v0="+strings.Repeat("0", 64))
	wantStatus(t, r.do(t, "POST", "/in/slack", header, []byte(body)), 401)
	if n := len(r.events(t)); n != 0 {
		t.Errorf("%d events are stored", n)
	}
}

func TestBugSHAKE04GraphValidation(t *testing.T) {
	t.Parallel()
	r := openReal(t, store.Options{}, deskOptions{sources: shaking(t)})
	got := r.do(t, "POST", "/in/graph?validationToken=Validation%3A%20Testing%20client%20application", nil, nil)
	if got.status != 200 || got.body != "Validation: Testing client application" || !plainText(got) {
		t.Errorf("%+v", got)
	}
	if n := len(r.events(t)); n != 0 {
		t.Errorf("%d events are stored", n)
	}
}

// TestBugSHAKE05HandshakeWithoutTheStore: a handshake is answered while the
// database is locked.
func TestBugSHAKE05HandshakeWithoutTheStore(t *testing.T) {
	t.Parallel()
	r := openReal(t, store.Options{}, deskOptions{sources: shaking(t)})
	unlock := lock(t, r.path)
	defer unlock()
	start := time.Now()
	wantStatus(t, r.do(t, "POST", "/in/graph?validationToken=x", nil, nil), 200)
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("the handshake took %v", took)
	}
}

// lock holds the write lock of the database as another program would.
func lock(t testing.TB, path string) (unlock func()) {
	t.Helper()
	outside, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = outside.Close() })
	conn, err := outside.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(context.Background(), "BEGIN EXCLUSIVE"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := conn.ExecContext(context.Background(), "ROLLBACK"); err != nil {
			t.Error(err)
		}
		_ = conn.Close()
	}
}

// TestBugACK01NoSuccessWithoutStoring: the sender is told to come again, in
// bounded time, and is taken when the store is back.
func TestBugACK01NoSuccessWithoutStoring(t *testing.T) {
	t.Parallel()
	r := openReal(t, store.Options{BusyTimeout: 200 * time.Millisecond}, deskOptions{
		receiver: receiver.Options{StoreWait: time.Second},
	})
	unlock := lock(t, r.path)
	start := time.Now()
	got := r.sendGen(t, "gen", `{"id":"1"}`)
	if took := time.Since(start); got.status != 503 || got.header.Get("Retry-After") == "" || took > 5*time.Second {
		t.Errorf("%+v after %v", got, took)
	}
	unlock()
	testkit.Poll(t, 10*time.Second, "the store to be back", func() bool {
		return r.sendGen(t, "gen", `{"id":"1"}`).status == 200
	})
}

// TestGateR3RotationUnderLoad: sources are swapped while both secrets are in
// use; no request by a live secret is refused at any time.
func TestGateR3RotationUnderLoad(t *testing.T) {
	t.Parallel()
	old, fresh := "the old secret, 16 or more", "the new secret, 16 or more"
	var live atomic.Pointer[map[string]receiver.Source]
	use := func(secrets ...string) {
		live.Store(&map[string]receiver.Source{"gen": withSecrets(t, secrets...)})
	}
	use(old)
	r := openReal(t, store.Options{}, deskOptions{lookup: func(name string) (receiver.Source, bool) {
		src, ok := (*live.Load())[name]
		return src, ok
	}})
	var sent atomic.Int64
	deliver := func(secret string) int {
		body := fmt.Sprintf(`{"id":"e-%d"}`, sent.Add(1))
		header := http.Header{}
		testkit.SignPlain(header, secret, "", []byte(body), time.Time{})
		header["X-Signature-256"] = []string{"sha256=" + header.Get("X-Signature")}
		return r.do(t, "POST", "/in/gen", header, []byte(body)).status
	}
	during := func(secret string, rotate func()) {
		stop := make(chan struct{})
		var load sync.WaitGroup
		for range 4 {
			load.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					if status := deliver(secret); status != 200 {
						t.Errorf("a request by a live secret got %d", status)
					}
				}
			})
		}
		for range 50 {
			rotate()
			if status := deliver(secret); status != 200 {
				t.Errorf("a request by a live secret got %d", status)
			}
		}
		close(stop)
		load.Wait()
	}
	during(old, func() { use(old); use(old, fresh); use(fresh, old) })
	during(fresh, func() { use(fresh); use(old, fresh); use(fresh) })
	if status := deliver(old); status != 401 {
		t.Errorf("the secret that was taken out got %d", status)
	}
}

// TestThreatS10Bomb: a body that inflates beyond the cap of its source is
// refused, and never inflated as a whole.
func TestThreatS10Bomb(t *testing.T) {
	t.Parallel()
	scheme := genScheme("body.id", "")
	scheme.Encodings, scheme.Compressed = []string{"gzip"}, "sent"
	src := compile(t, config.Source{Name: "gen", Secrets: []config.Secret{config.NewSecret(bugSecret)}, Verify: scheme})
	r := openReal(t, store.Options{}, deskOptions{sources: map[string]receiver.Source{"gen": src}})
	post := func(plain string, repeat int) reply {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		for range repeat {
			_, _ = w.Write([]byte(plain))
		}
		_ = w.Close()
		header := genHeader(packed.String())
		header.Set("Content-Encoding", "gzip")
		return r.do(t, "POST", "/in/gen", header, packed.Bytes())
	}
	wantStatus(t, post(`{"id":"small"}`, 1), 200)
	wantStatus(t, post(strings.Repeat("0", 1<<20), 200), 413)
	if all := r.events(t); len(all) != 1 {
		t.Errorf("events %+v", all)
	}
	if got := r.detail(t, event.Key{Source: "gen", ID: "small"}); string(got.Body) != `{"id":"small"}` {
		t.Errorf("stored %q", got.Body)
	}
	if r.Memory() != 0 {
		t.Errorf("%d bytes are still charged", r.Memory())
	}
}
