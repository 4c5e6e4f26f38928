package admin

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// serverAt serves a handler on a control socket.
func serverAt(t *testing.T, handler http.Handler) *Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "creel.db.sock")
	listener, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close(); <-ended })
	client, err := Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	client.patience = 20 * time.Millisecond
	return client
}

// A server that is stopped, or hangs, keeps its socket: connections are made and
// nothing comes back.
func TestAServerThatHangsIsToldFromOneThatIsBusy(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "creel.db.sock")
	mute, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	client, err := Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	client.patience = 20 * time.Millisecond
	if _, err := client.Reload(t.Context()); !errors.Is(err, ErrHung) || errors.Is(err, ErrLost) {
		t.Errorf("reload: %v", err)
	}
	if err := client.Follow(t.Context(), TailFilter{}, func() {}, nil); !errors.Is(err, ErrHung) {
		t.Errorf("follow: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := client.Ready(ctx); !errors.Is(err, ErrHung) {
		t.Errorf("ready within a time: %v", err)
	}

	asked := make(chan struct{}, 100)
	busy := http.NewServeMux()
	busy.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) { asked <- struct{}{} })
	busy.HandleFunc("POST /api/v1/reload", func(w http.ResponseWriter, _ *http.Request) {
		<-asked
		<-asked
		<-asked
		_, _ = w.Write([]byte("{}"))
	})
	if _, err := serverAt(t, busy).Reload(t.Context()); err != nil {
		t.Errorf("a server that is busy for long: %v", err)
	}
}

func TestAServerOfAnotherVersionIsNamed(t *testing.T) {
	t.Parallel()
	_, err := serverAt(t, http.NotFoundHandler()).Reload(t.Context())
	if err == nil || !strings.Contains(err.Error(), "another version") {
		t.Errorf("%v", err)
	}
}
