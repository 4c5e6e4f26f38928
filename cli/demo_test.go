package cli_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"creel/internal/testkit"
)

// firstMinute is how long a newcomer waits between the first command, once it
// is compiled, and a processed event.
const firstMinute = time.Minute

// TestGateO12 is a newcomer: no configuration, the commands of the README, and
// the command that serve prints.
func TestGateO12(t *testing.T) {
	t.Parallel()
	root, err := testkit.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("the binary in an empty folder", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		newcomer(t, dir, []string{testkit.Binary(t)}, dir, nil)
	})
	t.Run("go run", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		newcomer(t, root, []string{"go", "run", "."}, dir, []string{"CREEL_DATABASE=" + filepath.Join(dir, "creel.db")})
	})
	t.Run("the README", func(t *testing.T) {
		t.Parallel()
		readme, err := os.ReadFile(filepath.Join(root, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		_, block, _ := strings.Cut(string(readme), "```sh\n")
		block, _, _ = strings.Cut(block, "```")
		var commands []string
		for line := range strings.Lines(block) {
			text, _, _ := strings.Cut(line, "#")
			commands = append(commands, strings.TrimSpace(text))
		}
		if fmt.Sprint(commands) != fmt.Sprint([]string{"go run . serve", "go test ./..."}) {
			t.Errorf("the README begins with %q", commands)
		}
	})
}

// newcomer starts creel in a folder and does what it says.
func newcomer(t *testing.T, folder string, creel []string, files string, env []string) {
	t.Helper()
	env = append(os.Environ(), append(env, "CGO_ENABLED=0", "CREEL_LISTEN=127.0.0.1:0", "CREEL_ADMIN_LISTEN=127.0.0.1:0")...)
	run := func(args ...string) *exec.Cmd {
		command := append(append([]string{}, creel...), args...)
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Dir, cmd.Env = folder, env
		return cmd
	}
	server := run("serve")
	out := &screen{}
	server.Stdout, server.Stderr = out, out
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // go run starts a child
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	t.Cleanup(func() { _ = syscall.Kill(-server.Process.Pid, syscall.SIGKILL) })

	printed := regexp.MustCompile(`(?m)^  (curl .*)$`)
	testkit.Poll(t, 2*time.Minute, "the command that sends an event", func() bool {
		return printed.MatchString(out.text()) && strings.Contains(out.text(), "listening")
	})
	began := time.Now()
	paste(t, printed.FindStringSubmatch(out.text())[1])
	list := func(args ...string) string {
		text, err := run(args...).Output()
		if err != nil {
			return fmt.Sprintf("%v: %s", err, text)
		}
		return string(text)
	}
	testkit.Poll(t, firstMinute, "the event to be done", func() bool {
		return strings.Contains(list("events", "--json"), `"state":"done"`)
	})
	testkit.Poll(t, firstMinute, "its delivery to be sent", func() bool {
		return strings.Contains(list("deliveries", "--json"), `"state":"sent"`)
	})
	if took := time.Since(began); took > firstMinute {
		t.Errorf("it took %v", took)
	}
	paste(t, printed.FindStringSubmatch(out.text())[1])
	if text := list("events", "--json"); !strings.Contains(text, `"duplicates":1`) || strings.Count(text, "\n") != 1 {
		t.Errorf("after the second time: %s", text)
	}
	if text := list("send", "demo"); !strings.HasPrefix(text, "200 in ") {
		t.Errorf("creel send demo: %s", text)
	}
	if _, err := os.Stat(filepath.Join(files, "creel.db")); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(-server.Process.Pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(soon):
		t.Errorf("it does not stop:\n%s", out.text())
	}
	if strings.Count(out.text(), "the demo app received a delivery") < 1 || !strings.Contains(out.text(), `"message":"stopped"`) {
		t.Errorf("the server wrote:\n%s", out.text())
	}
}

// paste runs the printed command in a shell, or does what it says where there
// is no curl.
func paste(t *testing.T, command string) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err == nil {
		text, err := exec.Command("sh", "-c", command).CombinedOutput()
		if err != nil || !strings.Contains(string(text), "200 OK") {
			t.Fatalf("%s: %v\n%s", command, err, text)
		}
		return
	}
	said := regexp.MustCompile(`^curl -i (\S+) -H '([^:]+): ([^']+)' -H '([^:]+): ([^']+)' -d '([^']+)'$`).FindStringSubmatch(command)
	if said == nil {
		t.Fatalf("the command has another form: %s", command)
	}
	request, err := http.NewRequest(http.MethodPost, said[1], strings.NewReader(said[6]))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set(said[2], said[3])
	request.Header.Set(said[4], said[5])
	if answer := exchange(t, request); !strings.HasPrefix(answer, "200 OK") {
		t.Fatalf("%s: %s", command, answer)
	}
}

// screen is what a terminal would show.
type screen struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
