package app_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"creel/app"
	"creel/config"
	"creel/internal/testkit"
)

// TestGateF8NothingLeaks runs the whole app through good, refused and failing
// work and stops it: no goroutine and no file descriptor is left. It counts
// those of the process, so nothing may run beside it.
func TestGateF8NothingLeaks(t *testing.T) {
	site := testkit.NewDestination(t)
	var answers atomic.Int64
	site.Answer(func(testkit.Received) testkit.Answer {
		return testkit.Answer{Status: []int{204, 500, 422}[answers.Add(1)%3]}
	})
	round(t, site.URL) // what is made once in a process is made now
	http.DefaultClient.CloseIdleConnections()
	goroutines := goleak.IgnoreCurrent()
	before := descriptors(t)
	for range 3 {
		round(t, site.URL)
	}
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(goroutines); err != nil {
		t.Errorf("goroutines are left: %v", err)
	}
	if !testkit.Await(5*time.Second, func() bool { return descriptors(t) <= before }) {
		t.Errorf("%d file descriptors before, %d after three rounds", before, descriptors(t))
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

// round is one life of the app.
func round(t *testing.T, url string) {
	t.Helper()
	text := fmt.Sprintf(`
listen   = "127.0.0.1:0"
database = %q
[admin]
listen = "127.0.0.1:0"
[[source]]
name    = "shop"
secrets = ["a secret of more than sixteen bytes"]
forward = "app"
%s
[destination.app]
url = %q
`, filepath.Join(t.TempDir(), "creel.db"), testkit.PlainVerify, url)
	env := func(string) (string, bool) { return "", false }
	cfg, problems := config.Parse("creel.toml", []byte(text), env)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	a, err := app.New(context.Background(), app.Options{Config: cfg, Env: env, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	sender := testkit.Sender{URL: "http://" + a.Listen + "/in/shop", Secret: "a secret of more than sixteen bytes", Sign: testkit.SignPlain}
	for i := range 30 {
		id := fmt.Sprintf("evt_%d", i)
		if status, _ := sender.Send(t, id, []byte(fmt.Sprintf(`{"id":%q,"type":"t"}`, id))); status != http.StatusOK {
			t.Fatalf("%s: %d", id, status)
		}
	}
	response, err := http.Post(sender.URL, "application/json", bytes.NewReader([]byte(`{}`)))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := a.Stop(ctx); err != nil {
		t.Errorf("the stop was not clean: %v", err)
	}
}
