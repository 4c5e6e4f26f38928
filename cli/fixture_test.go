package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"creel/internal/testkit"
)

// soon is how long anything that the tests wait for may take on a busy
// machine.
const soon = 20 * time.Second

// frame is the head of every configuration here: ports that the kernel
// chooses, and a policy that is over in a moment.
const frame = `
listen   = "127.0.0.1:0"
database = "creel.db"

[admin]
listen = "127.0.0.1:0"

[log]
format = "json"

[retry.brief]
delays = ["20ms", "20ms"]
`

// site is the real binary with one plain source that forwards to a real
// destination.
type site struct {
	*testkit.Process
	app    *testkit.Destination
	canary *testkit.Canary
}

// plain is the configuration of a site. More goes to the destination's table.
func plain(destination, more string) string {
	return frame + fmt.Sprintf(`
[[source]]
name    = "shop"
secrets = ["env:SHOP_SECRET"]
forward = "app"
%s
[destination.app]
url    = %q
secret = "env:APP_SECRET"
%s
`, testkit.PlainVerify, destination, more)
}

const appSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// newSite is a site with a canary as its secret, not started.
func newSite(t *testing.T, more string) *site {
	t.Helper()
	app := testkit.NewDestination(t)
	s := &site{app: app, canary: testkit.NewCanary(t)}
	s.Process = testkit.NewProcess(t, plain(app.URL, more), "SHOP_SECRET="+s.canary.Secret, "APP_SECRET="+appSecret)
	s.canary.Watch("the standard output", s.Stdout)
	s.canary.Watch("the log", s.Stderr)
	return s
}

// send posts one signed event and wants it acknowledged.
func (s *site) send(t *testing.T, body string) {
	t.Helper()
	sender := testkit.Sender{URL: s.URL("/in/shop"), Secret: s.canary.Secret, Sign: testkit.SignPlain}
	if status, answer := sender.Send(t, "", []byte(body)); status != 200 {
		t.Fatalf("answered %d %q", status, answer)
	}
}

// configure replaces the configuration file.
func (s *site) configure(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.Dir, "creel.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// command runs the binary and wants an exit code.
func command(t *testing.T, p *testkit.Process, want int, args ...string) string {
	t.Helper()
	code, stdout, stderr := p.Run(t, args...)
	if code != want {
		t.Fatalf("creel %s: exit %d, want %d\nstdout: %s\nstderr: %s", strings.Join(args, " "), code, want, stdout, stderr)
	}
	return string(stdout) + string(stderr)
}

// lines runs a command that prints JSON lines and decodes each.
func lines[T any](t *testing.T, p *testkit.Process, args ...string) []T {
	t.Helper()
	code, stdout, stderr := p.Run(t, args...)
	if code != 0 && code != 4 {
		t.Fatalf("creel %s: exit %d\nstdout: %s\nstderr: %s", strings.Join(args, " "), code, stdout, stderr)
	}
	var all []T
	for decoder := json.NewDecoder(bytes.NewReader(stdout)); decoder.More(); {
		var one T
		if err := decoder.Decode(&one); err != nil {
			t.Fatalf("creel %s: %v\n%s", strings.Join(args, " "), err, stdout)
		}
		all = append(all, one)
	}
	return all
}

// The documented fields that these tests read.
type (
	eventLine struct {
		Source, Account, ID, Type, State, Error string
		Attempts, Duplicates                    int
		Object, Version                         string
	}
	deliveryLine struct {
		ID                                    int64
		Event, Destination, Key, State, Error string
		Attempts, Status                      int
	}
	actionLine struct {
		ID                      int64
		Action, Actor, Reason   string
		Target                  string
		Selected, Done, Refused int
	}
	itemLine struct{ Event, Result string }
)

// await waits until a list has n lines.
func await(t *testing.T, p *testkit.Process, n int, args ...string) {
	t.Helper()
	testkit.Poll(t, soon, fmt.Sprintf("%d lines of creel %s", n, strings.Join(args, " ")), func() bool {
		return len(lines[map[string]any](t, p, args...)) == n
	})
}

// logged waits until the log has a text n times.
func logged(t *testing.T, p *testkit.Process, n int, text string) {
	t.Helper()
	testkit.Poll(t, soon, fmt.Sprintf("%q %d times in the log", text, n), func() bool {
		return bytes.Count(p.Stderr(), []byte(text)) >= n
	})
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var one T
	if err := json.Unmarshal([]byte(text), &one); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return one
}
