package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What a command says where a server has the database and can not be asked: no
// command waits for ever, and none says that no server runs.
func TestAServerThatCanNotBeAsked(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	s.Start(t)
	says := func(code int, want string, args ...string) {
		t.Helper()
		got, _, stderr := s.Run(t, args...)
		if got != code || !strings.Contains(string(stderr), want) || strings.Contains(string(stderr), "creel serve") {
			t.Errorf("%v: exit %d, want %d with %q:\n%s", args, got, code, want, stderr)
		}
	}
	if err := s.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	says(1, "the server does not answer", "health")
	if err := s.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(s.Dir, "creel.db.sock")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"health"}, {"stats"}, {"tail"}, {"rejects"}, {"reload"}, {"replay", "--all"}, {"pause", "app"}} {
		says(1, "nobody listens on its control socket", args...)
	}
	s.Terminate()

	socket := filepath.Join(s.Dir, "creel.db.sock")
	if err := os.WriteFile(socket, []byte("notes"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := s.Run(t, "serve"); code != 1 || !strings.Contains(string(stderr), "is no socket") {
		t.Errorf("a file in the socket's place: exit %d\n%s", code, stderr)
	}
	if text, err := os.ReadFile(socket); err != nil || string(text) != "notes" {
		t.Errorf("the file is %q, %v", text, err)
	}
}
