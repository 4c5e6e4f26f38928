package drill_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"creel/app"
	"creel/config"
	"creel/drill"
	"creel/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// configuration is three rules that send, and one that counts. NOWHERE is a
// destination that must never hear of anything.
const configuration = `
database = "creel.db"

[sql]
migrations = "sql"

[[source]]
name     = "shop"
provider = "stripe"
secrets  = ["env:SHOP_SECRET"]
forward  = "app"

[destination.app]
url    = "NOWHERE"
secret = "env:APP_SECRET"

[destination.touch]
command = ["/bin/sh", "-c", "touch FOLDER/ran"]

[destination.folder]
folder = "FOLDER/out"

[[rule]]
name = "runs"
  [rule.run]
  to = "touch"

[[rule]]
name = "writes"
  [rule.file]
  to   = "folder"
  path = "{id}.json"

[[rule]]
name = "counts"
key  = "{body.data.object.id}/count"
  [rule.sql]
  statements = "UPDATE app_total SET n = n + 1"
`

const (
	secret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	migration = "CREATE TABLE app_total (n INTEGER NOT NULL) STRICT; INSERT INTO app_total VALUES (0);"
)

// site is a configuration in a folder of the test, with what it may not touch.
type site struct {
	folder string
	app    *testkit.Destination
	opt    drill.Options
	mu     sync.Mutex
	lives  []*exec.Cmd
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{folder: t.TempDir(), app: testkit.NewDestination(t)}
	for _, name := range []string{"out", "sql"} {
		if err := os.Mkdir(filepath.Join(s.folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(s.folder, "creel.toml")
	text := strings.NewReplacer("NOWHERE", s.app.URL, "FOLDER", s.folder).Replace(configuration)
	for name, content := range map[string]string{file: text, filepath.Join(s.folder, "sql", "0001-total.sql"): migration} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := func(name string) (string, bool) {
		return secret, name == "SHOP_SECRET" || name == "APP_SECRET"
	}
	cfg, source, problems := config.Load(file, env)
	snapshot, problems := app.Judge(cfg, source, problems, app.Meaning{Env: env, Clock: time.Now})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	binary := testkit.Binary(t)
	s.opt = drill.Options{Snapshot: snapshot, Events: 20, Orders: 1, Kills: 4, Seed: 1, Now: time.Now, Progress: func(string) {},
		Child: func(ctx context.Context, folder string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, binary, "-c", file, "drill-life", folder)
			cmd.Env = []string{"SHOP_SECRET=" + secret, "APP_SECRET=" + secret}
			s.mu.Lock()
			s.lives = append(s.lives, cmd)
			s.mu.Unlock()
			return cmd
		}}
	return s
}

// TestNothingGoesOut drills rules that send, run and write, and looks whether
// any of it happened, and whether the processes were killed that it says.
func TestNothingGoesOut(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	report, err := drill.Run(t.Context(), s.opt)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]drill.Verdict{"runs": drill.Warning, "writes": drill.Warning, "forward shop": drill.Warning, "counts": drill.Sound}
	for _, r := range report.Rules {
		if r.Verdict != want[r.Name] || r.Events != 3 {
			t.Errorf("%s: %s of %d events, want %s: %+v", r.Name, r.Verdict, r.Events, want[r.Name], r)
		}
	}
	if len(report.Rules) != len(want) {
		t.Errorf("%d rules", len(report.Rules))
	}
	killed := 0
	for _, cmd := range s.lives {
		if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() && status.Signal() == syscall.SIGKILL {
			killed++
		}
	}
	if killed != 4 || report.Kills != 4 || len(s.lives) <= killed {
		t.Errorf("%d of %d processes were killed, the report says %d", killed, len(s.lives), report.Kills)
	}
	if got := len(s.app.Counts()); got != 0 {
		t.Errorf("%d deliveries went out", got)
	}
	var left []string
	for _, pattern := range []string{"*", "out/*"} {
		found, err := filepath.Glob(filepath.Join(s.folder, pattern))
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, found...)
	}
	if len(left) != 3 { // creel.toml, out, sql
		t.Errorf("the folder of the configuration has %v", left)
	}
}

// TestScratchFolder keeps the scratch folder where that is asked for, for its
// owner alone; else it is gone, also when the drill fails.
func TestScratchFolder(t *testing.T) {
	testkit.Binary(t) // elsewhere: others use it too
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	s := newSite(t)
	s.opt.Kills = 0
	s.opt.Keep = true
	report, err := drill.Run(t.Context(), s.opt)
	if err != nil {
		t.Fatal(err)
	}
	if stat, err := os.Stat(report.Folder); err != nil || stat.Mode().Perm() != 0o700 {
		t.Errorf("the folder that was kept: %v %v", stat, err)
	}
	if err := os.RemoveAll(report.Folder); err != nil {
		t.Fatal(err)
	}
	s.opt.Keep, s.opt.Kills = false, 1
	s.opt.Child = func(ctx context.Context, _ string) *exec.Cmd { return exec.CommandContext(ctx, "false") }
	var exit *exec.ExitError
	if _, err = drill.Run(t.Context(), s.opt); !errors.As(err, &exit) {
		t.Errorf("a child that fails: %v", err)
	}
	left, err := os.ReadDir(temporary)
	for _, entry := range left {
		if strings.HasPrefix(entry.Name(), "creel-drill-") {
			t.Errorf("%s was left behind (%v)", entry.Name(), err)
		}
	}
}
