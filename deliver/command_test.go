package deliver

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"creel/config"
	"creel/event"
	"creel/internal/testkit"
)

// shell is a command whose program is a script of the test's. It is an
// argument of sh: a file that was just written may not be executable yet.
func shell(t testing.TB, script string, change ...func(*config.Destination)) *Command {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.sh")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := config.Destination{Command: []string{"/bin/sh", file}, WorkingFolder: t.TempDir()}
	for _, f := range change {
		f(&cfg)
	}
	return command(t, cfg, noEnv)
}

func command(t testing.TB, cfg config.Destination, env config.Environment) *Command {
	t.Helper()
	d, problems := NewCommand("job", cfg, "destination.job", Options{Env: env, Clock: time.Now})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return d
}

// order is a delivery to a command with fields.
func order(body []byte, fields ...event.Field) event.Shipment {
	s := shipment()
	s.Destination, s.Payload.Body = "job", body
	s.Message = event.Run{Fields: fields}.Message()
	return s
}

func attempt(t testing.TB, d *Command, s event.Shipment) Result {
	t.Helper()
	return d.Attempt(t.Context(), s, time.Now())
}

// largeBody is longer than what fits into one variable or one pipe.
func largeBody() []byte {
	return append(bytes.Repeat([]byte(`{"note":"`+"x"+`"}`+"\n"), 300<<10/13), "the end\x00\xff"...)
}

func readFile(t testing.TB, d *Command, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(d.folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestGateD8TheBodyIsOnStandardInput(t *testing.T) {
	t.Parallel()
	d := shell(t, "cat > body; echo done")
	got := attempt(t, d, order(largeBody()))
	if got.Attempt.Outcome != event.OK || got.Attempt.Answer != "done\n" || got.Attempt.Status != 0 {
		t.Errorf("%+v", got.Attempt)
	}
	if !bytes.Equal(readFile(t, d, "body"), largeBody()) {
		t.Error("the command read another body")
	}
}

func TestGateD8TheBodyIsInAFile(t *testing.T) {
	t.Parallel()
	d := shell(t, `cat > stdin; cp -p "$CREEL_PAYLOAD_FILE" body; printf %s "$CREEL_PAYLOAD_FILE" > name`,
		func(c *config.Destination) { c.Payload = "file" })
	if got := attempt(t, d, order(largeBody())); got.Attempt.Outcome != event.OK {
		t.Fatalf("%+v", got.Attempt)
	}
	if !bytes.Equal(readFile(t, d, "body"), largeBody()) || len(readFile(t, d, "stdin")) != 0 {
		t.Error("the command read another body")
	}
	about, err := os.Stat(filepath.Join(d.folder, "body"))
	if err != nil || about.Mode().Perm() != 0o600 {
		t.Errorf("others may read the file: %v %v", about.Mode(), err)
	}
	if _, err := os.Stat(string(readFile(t, d, "name"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}

// One event of a batch is the body, not the batch.
func TestGateD8AnElementOfABatch(t *testing.T) {
	t.Parallel()
	d := shell(t, "cat")
	s := order([]byte(`[{"a":1},{"b":2}]`))
	s.Payload.Part = "body.1"
	if got := attempt(t, d, s); got.Attempt.Answer != `{"b":2}` {
		t.Errorf("%+v", got.Attempt)
	}
}

// TestGateD8TheEnvironmentIsClean is not parallel: the canary stands in the
// environment of the test.
func TestGateD8TheEnvironmentIsClean(t *testing.T) {
	canary := testkit.NewCanary(t)
	t.Setenv("CREEL_ADMIN_PASSWORD", canary.Secret)
	t.Setenv("STRIPE_WEBHOOK_SECRET", canary.Secret)
	d := command(t, config.Destination{
		Command: []string{"/usr/bin/env"},
		Env:     map[string]config.Secret{"TOKEN": config.NewSecret("env:PRINTER"), "KIND": config.NewSecret("label")},
	}, func(name string) (string, bool) { return "0123456789", name == "PRINTER" })
	s := order(nil, event.Field{Name: "order", Value: "17"}, event.Field{Name: "note", Value: "a\x00b\xff=c\nd%"})
	s.Event.Account, s.Tries = "acct/1", 3
	got := attempt(t, d, s)
	canary.Watch("the output of the command", func() []byte { return []byte(got.Attempt.Answer) })
	want := []string{
		"CREEL_ACCOUNT=acct/1", "CREEL_ATTEMPT=3", "CREEL_DELIVERY=" + event.WebhookID(s.Key, "job"), "CREEL_EVENT=stripe/acct%2F1/evt_1",
		"CREEL_FIELD_NOTE=a%00b%FF=c", "d%", "CREEL_FIELD_ORDER=17", "CREEL_ID=evt_1", "CREEL_SOURCE=stripe", "CREEL_TYPE=invoice.paid",
		"KIND=label", "PATH=" + safePath, "TOKEN=[secret]",
	}
	lines := strings.Split(strings.TrimSuffix(got.Attempt.Answer, "\n"), "\n")
	slices.Sort(lines)
	slices.Sort(want)
	if !slices.Equal(lines, want) {
		t.Errorf("the environment is\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

// TestBugOUT15PayloadTextReachesNoShell gives a command a field that a shell
// would run.
func TestBugOUT15PayloadTextReachesNoShell(t *testing.T) {
	t.Parallel()
	const evil = "x$(touch pwned);`touch pwned`;echo\n-rf *"
	d := shell(t, `printf %s "$CREEL_FIELD_NAME" > name; for a; do printf '%s\n' "$a"; done`, func(c *config.Destination) {
		c.Command = append(c.Command, "$(touch pwned)", "a b;touch pwned", "$CREEL_FIELD_NAME")
	})
	got := attempt(t, d, order([]byte(evil), event.Field{Name: "name", Value: evil}))
	if got.Attempt.Answer != "$(touch pwned)\na b;touch pwned\n$CREEL_FIELD_NAME\n" {
		t.Errorf("%+v", got.Attempt)
	}
	if string(readFile(t, d, "name")) != evil {
		t.Errorf("the field is %q", readFile(t, d, "name"))
	}
	if _, err := os.Stat(filepath.Join(d.folder, "pwned")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a shell read the payload")
	}
}

// TestBugOUT14ACommandThatCanNotBeStartedHasFailed gives a command more than
// an environment can hold, and a program that is gone.
func TestBugOUT14ACommandThatCanNotBeStartedHasFailed(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300<<10)
	ran := shell(t, "touch ran")
	many := make([]event.Field, 5)
	for i := range many {
		many[i] = event.Field{Name: "f" + strconv.Itoa(i), Value: long[:mostVariable-1]}
	}
	gone := shell(t, "")
	gone.argv = []string{filepath.Join(t.TempDir(), "gone")}
	nowhere := shell(t, "")
	nowhere.folder = filepath.Join(t.TempDir(), "gone")
	folder := shell(t, "")
	folder.argv = []string{t.TempDir()}
	for name, test := range map[string]struct {
		d       *Command
		fields  []event.Field
		outcome event.Outcome
		told    string
	}{
		"a long field":   {ran, []event.Field{{Name: "note", Value: long}}, event.Permanent, "CREEL_FIELD_NOTE has a value that is too long"},
		"many fields":    {ran, many, event.Permanent, "more than 98304 bytes together"},
		"no program":     {gone, nil, event.Transient, "gone was not started: "},
		"no folder":      {nowhere, nil, event.Transient, "its working folder"},
		"not executable": {folder, nil, event.Transient, "may not execute"},
	} {
		got := attempt(t, test.d, order(largeBody(), test.fields...))
		if got.Attempt.Outcome != test.outcome || !strings.Contains(got.Attempt.Error, test.told) || got.Wrote || got.Answered() {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if _, err := os.Stat(filepath.Join(ran.folder, "ran")); err == nil {
		t.Error("a command ran without its fields")
	}
	// The same event without them runs.
	if got := attempt(t, ran, order(largeBody())); got.Attempt.Outcome != event.OK {
		t.Errorf("%+v", got.Attempt)
	}
}

func TestGateD8ExitCodes(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]struct {
		outcome event.Outcome
		status  int
		told    string
	}{
		"exit 0":                 {event.OK, 0, ""},
		"exit 1":                 {event.Transient, 1, "sh ended with exit code 1"},
		"exit 64":                {event.Permanent, 64, "64"},
		"exit 65":                {event.Permanent, 65, "65"},
		"exit 75":                {event.Transient, 75, "75"},
		"exit 127":               {event.Transient, 127, "127"},
		"kill -9 $$":             {event.Unknown, 0, `was ended by the signal "killed"`},
		"exec <&-; exit 0":       {event.OK, 0, ""}, // and reads nothing of a long body
		"exec <&- >&- 2>&-":      {event.OK, 0, ""},
		"head -c 10; exit 65":    {event.Permanent, 65, "65"},
		"sleep 0; kill -TERM $$": {event.Unknown, 0, `"terminated"`},
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			got := attempt(t, shell(t, script), order(largeBody()))
			if got.Attempt.Outcome != want.outcome || got.Attempt.Status != want.status || !strings.Contains(got.Attempt.Error, want.told) ||
				(want.told == "") != (got.Attempt.Error == "") || !got.Wrote {
				t.Errorf("%+v", got.Attempt)
			}
		})
	}
}

func TestGateD8TheOutputIsCapped(t *testing.T) {
	t.Parallel()
	d := shell(t, "echo begin; head -c 20000000 /dev/zero >&2; echo $? > end")
	got := attempt(t, d, order(nil))
	if got.Attempt.Outcome != event.OK || len(got.Attempt.Answer) > mostKept || !strings.HasPrefix(got.Attempt.Answer, "begin\n\uFFFD") {
		t.Errorf("%+v", got.Attempt)
	}
	if string(readFile(t, d, "end")) != "0\n" {
		t.Error("its output broke the command")
	}
}

func TestGateD8SecretsDoNotShow(t *testing.T) {
	t.Parallel()
	canary := testkit.NewCanary(t)
	d := shell(t, `echo "token $TOKEN"; exit 1`)
	cut := shell(t, `head -c 1000 /dev/zero | tr '\0' x; echo "$TOKEN"`)
	for _, d := range []*Command{d, cut} {
		d.own = append(d.own, "TOKEN="+canary.Secret)
		d.hide(canary.Secret)
		got := attempt(t, d, order(nil))
		canary.Watch("an attempt", func() []byte { return []byte(got.Attempt.Answer + got.Attempt.Error) })
		if !strings.Contains(got.Attempt.Answer, shownSecret) && strings.Contains(got.Attempt.Answer, canary.Secret[:8]) {
			t.Errorf("%q", got.Attempt.Answer)
		}
	}
}

// alive tells whether a process runs. One that has ended and that nobody has
// asked for since does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	_, rest, _ := strings.Cut(string(status), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// pids reads the process numbers that a script wrote.
func pids(d *Command) []int {
	text, err := os.ReadFile(filepath.Join(d.folder, "pids"))
	if err != nil || !strings.HasSuffix(string(text), "all\n") {
		return nil
	}
	var out []int
	for word := range strings.FieldsSeq(string(text)) {
		if pid, err := strconv.Atoi(word); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// stubborn starts a child and a grandchild, none of which ends when it is
// asked to.
const stubborn = `trap "" TERM
echo "$$" > numbers
sh -c 'trap "" TERM; echo "$$" >> numbers; sh -c "trap \"\" TERM; echo \$\$ >> numbers; sleep 60; sleep 60" & sleep 60; sleep 60' &
while [ "$(wc -l < numbers)" -lt 3 ]; do sleep 0.02; done
echo all >> numbers; mv numbers pids
while :; do sleep 60; done`

func TestGateD8TheTimeoutEndsGrandchildren(t *testing.T) {
	t.Parallel()
	d := shell(t, stubborn, func(c *config.Destination) { c.Timeout = config.Duration(5 * time.Second) })
	began := time.Now()
	got := attempt(t, d, order(largeBody()))
	if got.Attempt.Outcome != event.Unknown || got.Answered() || !got.Wrote ||
		!strings.Contains(got.Attempt.Error, "did not end within 5s and was ended; what it did until then is not known") {
		t.Errorf("%+v", got.Attempt)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
	family := pids(d)
	if len(family) != 3 {
		t.Fatalf("the script had not started its children: %v", family)
	}
	for _, pid := range family {
		testkit.Poll(t, 5*time.Second, "the end of process "+strconv.Itoa(pid), func() bool { return !alive(pid) })
	}
}

// A stop of the server ends a command politely, and nothing is known of it.
func TestGateD8TheStopOfTheServerEndsACommand(t *testing.T) {
	t.Parallel()
	d := shell(t, `trap 'echo cleaned up; exit 0' TERM; echo "$$ all" > pids; while :; do sleep 0.05; done`)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan Result, 1)
	go func() { done <- d.Attempt(ctx, order(nil), time.Now()) }()
	testkit.Poll(t, 20*time.Second, "the command to run", func() bool { return len(pids(d)) == 1 })
	stop()
	got := <-done
	if got.Attempt.Outcome != event.Unknown || !strings.HasSuffix(got.Attempt.Answer, "cleaned up\n") || !strings.Contains(got.Attempt.Error, "was ended by the stop of the server") {
		t.Errorf("%+v", got.Attempt)
	}
	// One that had not begun is not in doubt.
	if got := d.Attempt(ctx, order(nil), time.Now()); got.Attempt.Outcome != event.Transient || got.Wrote {
		t.Errorf("%+v", got.Attempt)
	}
}

// What a command leaves running may hold its pipes for ever.
func TestGateD8AHeldPipeDoesNotHang(t *testing.T) {
	t.Parallel()
	d := shell(t, `exec 3<&0; sleep 60 <&3 & echo $! all > numbers; mv numbers pids; echo done`)
	began := time.Now()
	got := attempt(t, d, order(largeBody()))
	if got.Attempt.Outcome != event.OK || got.Attempt.Answer != "done\n" || time.Since(began) > 20*time.Second {
		t.Errorf("after %s: %+v", time.Since(began), got.Attempt)
	}
	for _, pid := range pids(d) {
		if !alive(pid) {
			t.Errorf("process %d was ended with its parent", pid)
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func TestCommandProblems(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	plain := filepath.Join(folder, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, cfg := range map[string]config.Destination{
		"destination.job.command[0]: the program can not be found: no such file or directory": {Command: []string{filepath.Join(folder, "gone")}},
		"destination.job.command[0]: it is not a file":                                        {Command: []string{folder}},
		"may not execute it (chmod +x " + plain:                                               {Command: []string{plain}},
		"destination.job.command: does not begin with the absolute path":                      {Command: []string{"sh"}},
		"destination.job.working_folder: it is not a folder":                                  {Command: []string{"/bin/sh"}, WorkingFolder: plain},
		"destination.job.timeout: the time is over 24h":                                       {Command: []string{"/bin/sh"}, Timeout: config.Duration(48 * time.Hour)},
	} {
		d, problems := NewCommand("job", cfg, "destination.job", Options{Env: noEnv, Clock: time.Now})
		if len(problems.Faults()) != 1 || d != nil || !strings.Contains(problems.Error(), want) {
			t.Errorf("want %q, got %v", want, problems)
		}
	}
}
