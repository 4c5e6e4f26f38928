package crash

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"creel/internal/testkit"
)

// slowly notes each run, and ends only where it finds a file. Nothing ends it
// with the server: the test has to.
const slowly = `echo "$CREEL_DELIVERY $CREEL_ATTEMPT $(cat)" >> runs
echo "$$" > pid
while [ ! -e go ]; do sleep 0.02; done
`

// TestGateD8ACommandThatTheServerDidNotSurviveIsInDoubt kills the server while
// a command runs: nobody knows what it did, so it is not run again by itself.
func TestGateD8ACommandThatTheServerDidNotSurviveIsInDoubt(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	script := filepath.Join(folder, "slowly.sh")
	if err := os.WriteFile(script, []byte(slowly), 0o600); err != nil {
		t.Fatal(err)
	}
	destination := testkit.NewDestination(t)
	p, canary := serve(t, destination.URL, fmt.Sprintf(`
[[rule]]
name = "job"
  [rule.run]
  to = "job"
[destination.job]
command = ["/bin/sh", %q]
working_folder = %q
`, script, folder))
	p.Start(t)
	t.Cleanup(func() {
		text, _ := os.ReadFile(filepath.Join(folder, "pid"))
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
	})
	sender := testkit.Sender{URL: p.URL("/in/load"), Secret: canary.Secret, Sign: testkit.SignPlain}
	body := `{"id":"evt_1","type":"order.paid","note":"` + canary.Payload + `"}`
	if status, answer := sender.Send(t, "", []byte(body)); status != 200 {
		t.Fatalf("answered %d %q", status, answer)
	}
	runs := func() []string {
		text, _ := os.ReadFile(filepath.Join(folder, "runs"))
		return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	}
	testkit.Poll(t, 10*time.Second, "the command to run", func() bool { return strings.Contains(runs()[0], "evt_1") })
	p.Kill()

	p.Start(t)
	testkit.Poll(t, 20*time.Second, "the delivery to be in doubt", func() bool {
		return look(t, p.Dir, `SELECT count(*) FROM delivery WHERE destination = 'job' AND state = 'in_doubt'`) == 1
	})
	if got := runs(); len(got) != 1 {
		t.Fatalf("it ran %d times", len(got))
	}
	if err := os.WriteFile(filepath.Join(folder, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	number := strconv.Itoa(look(t, p.Dir, `SELECT id FROM delivery WHERE destination = 'job'`))
	if code, _, stderr := p.Run(t, "resolve", "again", number, "--reason", "nothing was printed"); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	testkit.Poll(t, 20*time.Second, "the delivery to be sent", func() bool {
		return look(t, p.Dir, `SELECT count(*) FROM delivery WHERE destination = 'job' AND state = 'sent'`) == 1
	})
	if exit := p.Terminate(); exit.Code != 0 {
		t.Errorf("stop: %+v", exit)
	}
	got := runs()
	if len(got) != 2 || got[0] != got[1] || !strings.HasSuffix(got[0], " 1 "+body) {
		t.Errorf("the runs were %q", got)
	}
	sound(t, p.Dir)
}
