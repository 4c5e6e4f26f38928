package cli_test

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"creel/internal/testkit"
)

// follower is a creel tail that runs beside a server.
type follower struct {
	cmd   *exec.Cmd
	lines chan string
}

// follow starts creel tail and waits until it listens.
func follow(t *testing.T, p *testkit.Process, args ...string) *follower {
	t.Helper()
	cmd := exec.Command(testkit.Binary(t), append([]string{"tail"}, args...)...)
	cmd.Dir = p.Dir
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	f := &follower{cmd, make(chan string, 1000)}
	go func() {
		defer close(f.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			f.lines <- lines.Text()
		}
	}()
	if line, err := bufio.NewReader(said).ReadString('\n'); err != nil || !strings.HasPrefix(line, "Following") {
		t.Fatalf("tail says %q, %v", line, err)
	}
	return f
}

// expect waits for lines that have these words in them, in this order, and
// gives all lines that came.
func (f *follower) expect(t *testing.T, wanted ...string) (seen []string) {
	t.Helper()
	deadline := time.After(soon)
	for len(wanted) > 0 {
		select {
		case line, ok := <-f.lines:
			if !ok {
				t.Fatalf("tail ended before %q; it said\n%s", wanted[0], strings.Join(seen, "\n"))
			}
			seen = append(seen, line)
			if hasWords(line, wanted[0]) {
				wanted = wanted[1:]
			}
		case <-deadline:
			t.Fatalf("no line with %q; tail said\n%s", wanted[0], strings.Join(seen, "\n"))
		}
	}
	return seen
}

func hasWords(line, words string) bool {
	for _, word := range strings.Fields(words) {
		if !strings.Contains(line, word) {
			return false
		}
	}
	return true
}

// What happens is told as it happens, in the terminal's form and in JSON, and
// Ctrl-C ends it well.
func TestTail(t *testing.T) {
	t.Parallel()
	s := newSite(t, `retry = "brief"`)
	s.app.Script(testkit.Answer{Status: 503}, testkit.Answer{Status: 200})
	s.Start(t)
	all, ofDead := follow(t, s.Process), follow(t, s.Process, "--state", "dead")
	note := s.canary.Payload
	s.send(t, `{"id":"e1","type":"order.paid","note":"`+note+`"}`)
	seen := all.expect(t, "received shop//e1 order.paid", "ready shop//e1 app attempt 503 next", "sent shop//e1 app attempt 2 200")
	if !strings.Contains(strings.Join(seen, "\n"), "done ") {
		t.Errorf("no decision in\n%s", strings.Join(seen, "\n"))
	}
	s.send(t, `{"id":"e1","type":"order.paid","note":"`+note+`"}`)
	all.expect(t, "duplicate shop//e1")
	command(t, s.Process, 1, "send", "shop", "--flaw", "body")
	all.expect(t, "rejected shop wrong_signature 127.0.0.1 --drawer")
	command(t, s.Process, 0, "pause", "app", "--reason", "deploy")
	all.expect(t, "action pause by cli:")
	s.send(t, `{"type":"order.paid","note":"`+note+`"}`) // no id
	dead := ofDead.expect(t, "received shop sha256")
	if len(dead) != 1 {
		t.Errorf("not only what is dead: %q", dead)
	}
	if err := all.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for line := range all.lines {
		seen = append(seen, line)
	}
	if err := all.cmd.Wait(); err != nil {
		t.Errorf("tail ended with %v", err)
	}
	for _, hidden := range []string{s.canary.Payload, s.canary.Secret} {
		if strings.Contains(strings.Join(append(seen, dead...), "\n"), hidden) {
			t.Errorf("tail shows %q", hidden)
		}
	}
	// The server's stop ends who follows, and does not wait for it.
	if exit := s.Terminate(); exit.Code != 0 || exit.After > 8*time.Second {
		t.Errorf("stop: %+v", exit)
	}
	for range ofDead.lines {
	}
	if err := ofDead.cmd.Wait(); codeOf(err) != 1 {
		t.Errorf("tail of a stopped server ended with %v", err)
	}
}

// One who stopped reading does not hold the server's stop, and what it misses
// is counted.
func TestTailOfWhoStoppedReading(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	s.Start(t)
	stuck := follow(t, s.Process)
	if err := stuck.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for range 300 {
		s.send(t, `{"id":"e1","type":"order.paid"}`)
	}
	if exit := s.Terminate(); exit.Code != 0 || exit.After > 8*time.Second {
		t.Errorf("stop: %+v", exit)
	}
}

func TestTailIsJSON(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	s.Start(t)
	type line struct {
		At, What, Event, Type, State, Destination, Outcome string
		Attempt, Status                                    int
	}
	cmd := exec.Command(testkit.Binary(t), "tail", "--json", "--source", "shop", "--type", "order.*")
	cmd.Dir = s.Dir
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	stop := make(chan struct{})
	sent := make(chan struct{})
	go func() { // until it listens
		defer close(sent)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
				s.send(t, `{"id":"e`+string(rune('0'+i%10))+`","type":"order.paid"}`)
				s.send(t, `{"id":"other`+string(rune('0'+i%10))+`","type":"other"}`)
			}
		}
	}()
	seen := map[string]line{}
	for lines := json.NewDecoder(out); len(seen) < 2; {
		var one line
		if err := lines.Decode(&one); err != nil {
			t.Fatal(err)
		}
		if one.Type != "order.paid" || one.At == "" || !strings.HasPrefix(one.Event, "shop//e") {
			t.Errorf("line %+v", one)
		}
		if one.What == "duplicate" || one.What == "attempt" {
			seen[one.What] = one
		}
	}
	close(stop)
	<-sent
	if a := seen["attempt"]; a.Destination != "app" || a.State != "sent" || a.Outcome != "ok" || a.Status != 200 || a.Attempt != 1 {
		t.Errorf("attempt %+v", a)
	}
	command(t, s.Process, 2, "tail", "--state", "lost")
	s.Terminate()
	if said := command(t, s.Process, 1, "tail"); !strings.Contains(said, "no server runs") {
		t.Errorf("without a server: %s", said)
	}
}
