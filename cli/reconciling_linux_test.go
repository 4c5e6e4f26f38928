package cli_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"creel/internal/testkit"
)

// halfList lists one event on its first page, and never answers for the second.
func halfList(t *testing.T) (url string, waits <-chan struct{}) {
	t.Helper()
	asked := make(chan struct{}, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("page") == "2" {
			asked <- struct{}{}
			<-r.Context().Done()
			return
		}
		w.Header().Set("Link", `</events?page=2>; rel="next"`)
		fmt.Fprintf(w, `{"data":[{"id":"evt_1","type":"order.paid","at":%q}]}`, time.Now().Add(-2*time.Hour).UTC().Format(time.RFC3339))
	}))
	t.Cleanup(server.CloseClientConnections)
	t.Cleanup(server.Close)
	return server.URL, asked
}

func halfSite(t *testing.T) (*site, <-chan struct{}) {
	t.Helper()
	s := newSite(t, "")
	url, waits := halfList(t)
	s.configure(t, strings.Replace(plain(s.app.URL, ""), "[destination.app]", fmt.Sprintf(`
  [source.reconcile]
  url   = "%s/events"
  token = "env:APP_SECRET"
  items = "body.data"
  at    = "body.at"
  unit  = "rfc3339"
  next  = "link"
[destination.app]`, url), 1))
	return s, waits
}

// Ctrl-C ends a comparison, and what was found till then is told, and whether it
// was used: with a server and without one.
func TestReconcileInterrupted(t *testing.T) {
	t.Parallel()
	s, waits := halfSite(t)
	interrupt := func(code int, says string, args ...string) {
		t.Helper()
		c := s.Begin(t, append([]string{"reconcile", "shop", "--since", "24h"}, args...)...)
		<-waits
		if err := c.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if exit := c.Wait(); exit.Code != code || !strings.Contains(c.Stderr(), "Error: interrupted; read so far: pages 1, events 1, missing 1"+says) || strings.Contains(c.Stderr(), "\r") {
			t.Errorf("%v: %+v\n%s", args, exit, c.Stderr())
		}
		if c.Stdout() != "" {
			t.Errorf("%v: it prints %q", args, c.Stdout())
		}
	}
	s.Start(t)
	interrupt(1, ". None of it was used")
	interrupt(1, ". None of it was used", "--json")
	if exit := s.Terminate(); exit.Code != 0 {
		t.Fatalf("%+v", exit)
	}
	interrupt(1, ". None of it was used")
	interrupt(3, ", recovered 1. These stay", "--import")
	if audit := command(t, s.Process, 0, "audit"); !strings.Contains(audit, "1 recovered, 0 asked for, 0 failed, broken off") {
		t.Errorf("%s", audit)
	}
}

// terminal makes a terminal of the kernel's, and gives both ends.
func terminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { ours.Close() })
	var number, unlocked int32
	for call, at := range map[uintptr]*int32{syscall.TIOCGPTN: &number, syscall.TIOCSPTLCK: &unlocked} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, ours.Fd(), call, uintptr(unsafe.Pointer(at))); errno != 0 {
			t.Skip(errno)
		}
	}
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { theirs.Close() })
	return ours, theirs
}

// On a terminal it is shown how far a comparison is; not with --json.
func TestReconcileShowsHowFar(t *testing.T) {
	t.Parallel()
	s, waits := halfSite(t)
	s.Start(t)
	ours, theirs := terminal(t)
	cmd := exec.Command(testkit.Binary(t), "reconcile", "shop", "--since", "24h")
	cmd.Dir, cmd.Stderr = s.Dir, theirs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	<-waits
	var said testkit.Log
	go func() {
		for piece := make([]byte, 1024); ; {
			n, err := ours.Read(piece)
			_, _ = said.Write(piece[:n])
			if err != nil {
				return
			}
		}
	}()
	if !testkit.Await(soon, func() bool {
		return bytes.Contains([]byte(said.String()), []byte("\r\x1b[K1 page, 1 event, 1 missing, now at 20"))
	}) {
		t.Errorf("it says %q", said.String())
	}
}
