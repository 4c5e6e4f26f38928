package cli_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"creel/internal/testkit"
)

// TestScripts runs the scripts of testdata/script, one behaviour each, with
// the two commands below. In their configurations http://app.test is a
// destination that takes everything and http://broken.test one that refuses
// everything for good, with a reason of its own; /here.test is the folder of the script.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			tb := env.T().(testing.TB)
			app, broken := testkit.NewDestination(tb), testkit.NewDestination(tb)
			broken.Script(testkit.Answer{Status: 422, Body: "\n{\"error\":\"unknown plan gold\"} \x1b[2J\nmore"})
			env.Setenv("CREEL_LISTEN", "127.0.0.1:0")
			env.Setenv("CREEL_ADMIN_LISTEN", "127.0.0.1:0")
			env.Setenv("SECRET", "0123456789abcdef0123456789abcdef")
			env.Setenv("STANDARD", appSecret)
			return point(env.WorkDir, "http://app.test", app.URL, "http://broken.test", broken.URL, "/here.test", env.WorkDir)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "eventually": eventually},
	})
}

// point puts the addresses of this run into the configurations of a script.
func point(folder string, replace ...string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.toml"))
	for _, file := range files {
		text, readErr := os.ReadFile(file)
		err = errors.Join(err, readErr, os.WriteFile(file, []byte(strings.NewReplacer(replace...).Replace(string(text))), 0o600))
	}
	return err
}

// exits CODE creel ARG... runs a command that has to end with an exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := codeOf(ts.Exec(args[1], args[2:]...)); got != want {
		ts.Fatalf("exit %d, want %d", got, want)
	}
}

// eventually PATTERN creel ARG... runs a command again and again until its
// standard output matches.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: eventually PATTERN COMMAND ARG...")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	if !testkit.Await(soon, func() bool {
		_ = ts.Exec(args[1], args[2:]...) // what it prints is what counts
		return pattern.MatchString(ts.ReadFile("stdout"))
	}) {
		ts.Fatalf("the output never matched %s", args[0])
	}
}

func codeOf(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}
