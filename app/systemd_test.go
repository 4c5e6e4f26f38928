package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"creel/internal/testkit"
)

const (
	soon   = 20 * time.Second
	secret = "a-secret-that-the-shop-knows"
)

// configuration is one plain source; nothing is forwarded.
const configuration = `
listen   = "127.0.0.1:0"
database = "creel.db"

[admin]
listen = "127.0.0.1:0"

[log]
format = "json"

[[source]]
name    = "shop"
secrets = ["env:SHOP_SECRET"]
` + testkit.PlainVerify

// supervised starts the real binary as systemd does: with variables that name
// its own process, and with open sockets from descriptor 3 on.
func supervised(t *testing.T, dir string, sockets []*os.File, env ...string) (*exec.Cmd, *journal) {
	t.Helper()
	cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ WATCHDOG_PID=$$ exec "$0" serve -c creel.toml`, testkit.Binary(t))
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "SHOP_SECRET=" + secret}, env...)
	cmd.ExtraFiles = sockets
	log := &journal{}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, log
}

// journal is what a process writes.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

// stop ends a process and wants a clean exit.
func stop(t *testing.T, cmd *exec.Cmd, log *journal) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("stop: %v\n%s", err, log.text())
	}
}

// TestSocketActivation gives the server its listeners. Connections that come
// before it has started, and while it restarts, wait in them and are answered.
func TestSocketActivation(t *testing.T) {
	t.Parallel()
	dir := testkit.Folder(t, configuration)
	intake, intakeFile := socket(t)
	operator, operatorFile := socket(t)
	for life := range 2 {
		answers := make(chan string, 1)
		go func() { answers <- post(t, intake, fmt.Sprintf("evt_%d", life)) }()
		cmd, log := supervised(t, dir, []*os.File{operatorFile, intakeFile}, "LISTEN_FDS=2", "LISTEN_FDNAMES=creel-admin:creel")
		select {
		case answer := <-answers:
			if answer != "200 OK ok\n" {
				t.Errorf("life %d: a request that waited: %q", life, answer)
			}
		case <-time.After(soon):
			t.Fatalf("life %d: a request that waited is not answered\n%s", life, log.text())
		}
		response, err := http.Get("http://" + operator + "/readyz")
		if err != nil || response.StatusCode != http.StatusOK {
			t.Errorf("life %d: the operator's listener: %v %v", life, response, err)
		} else {
			_ = response.Body.Close()
		}
		stop(t, cmd, log)
		var told struct{ Listen, Admin string }
		for line := range strings.Lines(log.text()) {
			if strings.Contains(line, `"listening"`) {
				line = strings.Replace(line, "admin_listen", "admin", 1)
				if err := json.Unmarshal([]byte(line), &told); err != nil {
					t.Fatal(err)
				}
			}
		}
		if told.Listen != intake || told.Admin != operator {
			t.Errorf("life %d: listens on %+v, was given %s and %s", life, told, intake, operator)
		}
	}
}

// TestSocketActivationForAnother leaves sockets alone that are another
// process's or have another name.
func TestSocketActivationForAnother(t *testing.T) {
	t.Parallel()
	given, file := socket(t)
	for name, env := range map[string][]string{
		"another name": {"LISTEN_FDS=1", "LISTEN_FDNAMES=web"},
		"no number":    {"LISTEN_FDS=many"},
		"no socket":    {"LISTEN_FDS=0", "LISTEN_FDNAMES=creel"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd, log := supervised(t, testkit.Folder(t, configuration), []*os.File{file}, env...)
			testkit.Poll(t, soon, "the server to listen", func() bool { return strings.Contains(log.text(), `"listening"`) })
			stop(t, cmd, log)
			if strings.Contains(log.text(), given) {
				t.Errorf("it took a socket that was not for it:\n%s", log.text())
			}
		})
	}
}

// TestSocketActivationWithoutName takes a single socket as the senders'.
func TestSocketActivationWithoutName(t *testing.T) {
	t.Parallel()
	given, file := socket(t)
	cmd, log := supervised(t, testkit.Folder(t, configuration), []*os.File{file}, "LISTEN_FDS=1")
	if answer := post(t, given, "evt_1"); answer != "200 OK ok\n" {
		t.Errorf("answered %q", answer)
	}
	stop(t, cmd, log)
}

// socket is an open listener, as a socket unit holds it.
func socket(t *testing.T) (address string, file *os.File) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	file, err = listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return listener.Addr().String(), file
}

func post(t *testing.T, address, id string) string {
	sender := testkit.Sender{URL: "http://" + address + "/in/shop", Secret: secret, Sign: testkit.SignPlain}
	client := &http.Client{Timeout: soon, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(sender.Request(t, "", fmt.Appendf(nil, `{"id":%q}`, id), time.Now()))
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return response.Status + " " + string(body)
}

// TestNotify listens as systemd does: ready once it is, alive as often as the
// unit asks, and stopping at the end.
func TestNotify(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{
		"a file":             filepath.Join(t.TempDir(), "notify"),
		"an abstract socket": fmt.Sprintf("@creel-test-%d", os.Getpid()),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			next := func() string {
				t.Helper()
				if err := conn.SetReadDeadline(time.Now().Add(soon)); err != nil {
					t.Fatal(err)
				}
				text := make([]byte, 256)
				n, err := conn.Read(text)
				if err != nil {
					t.Fatalf("systemd hears nothing: %v", err)
				}
				return string(text[:n])
			}
			cmd, log := supervised(t, testkit.Folder(t, configuration), nil, "NOTIFY_SOCKET="+path, "WATCHDOG_USEC=100000")
			if got := next(); got != "READY=1" {
				t.Errorf("first heard %q", got)
			}
			testkit.Poll(t, soon, "the line that tells the addresses", func() bool { return strings.Contains(log.text(), `"listening"`) })
			for range 3 {
				if got := next(); got != "WATCHDOG=1" {
					t.Errorf("heard %q, want a sign of life", got)
				}
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			last := next()
			for last == "WATCHDOG=1" {
				last = next()
			}
			if last != "STOPPING=1" {
				t.Errorf("at the end heard %q", last)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("stop: %v", err)
			}
		})
	}
}
