package jobs

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"creel/internal/testkit"
)

// A call whose answer is lost was heard: it is told once, and the next one goes
// out in its own time, not at once.
func TestHeartbeatAnswerLost(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if calls.Add(1) <= 2 {
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(server.Close)
	logs := &testkit.Log{}
	h := NewHeartbeat(func() error { return nil }, zerolog.New(logs))
	h.Configure(server.URL+"/secret-uuid", 7*time.Second)
	for n := range int64(3) {
		if wait := h.Step(context.Background()); wait != 7*time.Second || calls.Load() != n+1 {
			t.Errorf("call %d: %d were made, the next after %v", n+1, calls.Load(), wait)
		}
	}
	if text := logs.String(); strings.Count(text, "no heartbeat") != 1 || strings.Contains(text, "secret-uuid") {
		t.Errorf("the log says\n%s", text)
	}
}

// A redirect is followed by nobody here: it is no answer.
func TestHeartbeatFollowsNothing(t *testing.T) {
	t.Parallel()
	var followed atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Store(true) }))
	defer elsewhere.Close()
	watcher := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusFound))
	defer watcher.Close()
	err := NewHeartbeat(func() error { return nil }, zerolog.Nop()).call(t.Context(), watcher.URL)
	if err == nil || followed.Load() {
		t.Errorf("the call ended with %v, followed: %t", err, followed.Load())
	}
}
