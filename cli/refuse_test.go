package cli_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the driver, to make files that the product must refuse

	"creel/internal/testkit"
)

// TestGateF6 starts the server on files that it must not take: each is
// refused with what is wrong and what to do, and none is touched.
func TestGateF6(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(t *testing.T, file string)
		want  []string
	}{
		"newer schema": {func(t *testing.T, file string) {
			script(t, file, `INSERT INTO schema_step (number, applied_at) VALUES (9999, 0)`)
		}, []string{"written by a newer creel", "9999"}},
		"another program's database": {func(t *testing.T, file string) {
			remove(t, file)
			script(t, file, `CREATE TABLE orders (id INTEGER PRIMARY KEY)`)
		}, []string{"tables of another program", "set database to another path"}},
		"not a database": {func(t *testing.T, file string) {
			remove(t, file)
			write(t, file, []byte(strings.Repeat("this is a letter\n", 1000)))
		}, []string{"not a creel database"}},
		"corrupt file": {func(t *testing.T, file string) {
			data := read(t, file)
			write(t, file, append(data[:100:100], bytes.Repeat([]byte{0xff}, len(data)-100)...))
		}, []string{"damaged"}},
		"a folder": {func(t *testing.T, file string) {
			remove(t, file)
			if err := os.Mkdir(file, 0o700); err != nil {
				t.Fatal(err)
			}
		}, []string{"creel.db"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := used(t)
			file := filepath.Join(s.Dir, "creel.db")
			c.spoil(t, file)
			before := digest(t, file)
			for _, args := range [][]string{{"serve"}, {"replay", "--all"}, {"events"}} {
				code, _, stderr := s.Run(t, args...)
				if code != 1 {
					t.Errorf("%v: exit %d", args, code)
				}
				for _, want := range c.want {
					if !strings.Contains(string(stderr), want) && (args[0] == "serve" || want == c.want[0] && name != "another program's database") {
						t.Errorf("%v: %q is not in: %s", args, want, stderr)
					}
				}
			}
			if digest(t, file) != before {
				t.Error("a refused file was changed")
			}
		})
	}
}

// TestGateF6SecondServer starts a second server on the file of the first.
func TestGateF6SecondServer(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	s.Start(t)
	said := command(t, s.Process, 1, "serve")
	for _, want := range []string{"another creel server has this database open", fmt.Sprintf("process %d", s.PID()), "stop it first"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in: %s", want, said)
		}
	}
	s.send(t, `{"id":"after","type":"order.paid"}`)
	await(t, s.Process, 1, "deliveries", "--state", "sent", "--json")

	// A server that was killed leaves its lock file and its socket behind, and
	// neither stops the next one.
	s.Kill()
	if said := command(t, s.Process, 1, "health"); !strings.Contains(said, "no server runs on this database") {
		t.Errorf("health of a dead server: %q", said)
	}
	s.Start(t)
	command(t, s.Process, 0, "health", "--wait", "10s")
}

// TestGateF6UnwritableFolder names folders in which nothing can be made.
func TestGateF6UnwritableFolder(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	write(t, filepath.Join(s.Dir, "file"), nil)
	closed := filepath.Join(s.Dir, "closed")
	if err := os.Mkdir(closed, 0o500); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		closed = "/proc" // root writes into every folder but those of the kernel
	}
	for name, c := range map[string]struct{ path, want string }{
		"closed folder":  {filepath.Join(closed, "creel.db"), closed},
		"no such folder": {filepath.Join(s.Dir, "missing", "creel.db"), "create it"},
		"below a file":   {filepath.Join(s.Dir, "file", "creel.db"), "set database to a path inside one"},
		"a folder":       {s.Dir, "set database to the path of a file"},
	} {
		s.configure(t, strings.Replace(plain(s.app.URL, ""), `"creel.db"`, fmt.Sprintf("%q", c.path), 1))
		if said := command(t, s.Process, 1, "serve"); !strings.Contains(said, c.want) {
			t.Errorf("%s: %s", name, said)
		}
	}
}

// used is a site that has served and stopped: its database holds an event.
func used(t *testing.T) *site {
	t.Helper()
	s := newSite(t, "")
	s.Start(t)
	s.send(t, `{"id":"before","type":"order.paid"}`)
	await(t, s.Process, 1, "deliveries", "--state", "sent", "--json")
	if exit := s.Terminate(); exit.Code != 0 {
		t.Fatalf("stop: %+v", exit)
	}
	return s
}

func script(t *testing.T, file, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Exec(text); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`PRAGMA wal_checkpoint(TRUNCATE)`); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, file string) {
	t.Helper()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(file + suffix); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
}

func write(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// digest is the content of a file, or what else it is.
func digest(t *testing.T, file string) string {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if info.IsDir() {
		return "folder"
	}
	return string(read(t, file))
}

// TestActionsWithAndWithoutAServer does every action through the control
// socket and on the file itself: both ways leave the same trail.
func TestActionsWithAndWithoutAServer(t *testing.T) {
	t.Parallel()
	for name, running := range map[string]bool{"through the server": true, "on the file": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, "")
			s.app.Script(testkit.Answer{Status: 422})
			s.Start(t)
			for _, id := range []string{"a", "b"} {
				s.send(t, fmt.Sprintf(`{"id":%q,"type":"order.paid"}`, id))
			}
			await(t, s.Process, 2, "deliveries", "--state", "dead", "--json")
			if !running {
				s.Terminate()
			}
			command(t, s.Process, 0, "pause", "app", "--reason", "deploy")
			command(t, s.Process, 0, "replay", "shop//a", "--reason", "one")
			command(t, s.Process, 0, "discard", "shop//b", "--reason", "test data")
			command(t, s.Process, 0, "resume", "app")
			command(t, s.Process, 2, "pause", "nobody")
			if missing := command(t, s.Process, 4, "replay", "shop//missing"); !strings.Contains(missing, "no event has that key") {
				t.Errorf("an unknown key: %q", missing)
			}
			partly := command(t, s.Process, 3, "discard", "shop//b", "shop//missing")
			if !strings.Contains(partly, "1 event was not: creel audit 5 says why") || !strings.Contains(partly, "1 key names no event") {
				t.Errorf("refused keys: %q", partly)
			}
			var got []string
			for _, a := range lines[actionLine](t, s.Process, "audit", "--json") {
				if !strings.HasPrefix(a.Actor, "cli:") {
					t.Errorf("actor %q", a.Actor)
				}
				got = append(got, fmt.Sprint(a.Action, " ", a.Target, " ", a.Reason, " ", a.Done, "/", a.Selected))
			}
			want := []string{"discard   0/1", "resume app  1/1", "discard  test data 1/1", "replay  one 1/1", "pause app deploy 1/1"}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("audited\n%q, want\n%q", got, want)
			}
			if given := lines[deliveryLine](t, s.Process, "deliveries", "--state", "discarded", "--json"); len(given) != 1 || given[0].Event != "shop//b" {
				t.Errorf("discarded: %+v", given)
			}
		})
	}
}
