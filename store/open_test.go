package store

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// refusesToOpen wants an error of the kind that names the path and what to do.
func refusesToOpen(t *testing.T, path string, kind error, advice string) {
	t.Helper()
	s, err := Open(t.Context(), Options{Path: path, Log: zerolog.Nop()})
	if err == nil {
		_ = s.Close()
		t.Fatal("opened")
	}
	if kind != nil && !errors.Is(err, kind) {
		t.Errorf("error %q is not %q", err, kind)
	}
	if !strings.Contains(err.Error(), filepath.Dir(path)) || !strings.Contains(err.Error(), advice) {
		t.Errorf("error %q must name the path and say %q", err, advice)
	}
}

// closed makes a database, changes it by SQL and closes it.
func closed(t *testing.T, change string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "creel.db")
	s, err := Open(t.Context(), Options{Path: path, Log: zerolog.Nop()})
	must(t, err)
	if change != "" {
		must(t, s.write(t.Context(), work, 1, func(tx *tx) error {
			_, err := tx.exec(change)
			return err
		}))
	}
	must(t, s.Close())
	return path
}

func TestGateF6SecondServer(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	refusesToOpen(t, s.Path(), ErrRunning, "stop it first")
	running, err := Running(s.Path())
	if err != nil || !running {
		t.Errorf("running: %v, %v", running, err)
	}
	must(t, s.Close())
	if running, err := Running(s.Path()); err != nil || running {
		t.Errorf("running after close: %v, %v", running, err)
	}
	again, err := Open(t.Context(), Options{Path: s.Path(), Log: zerolog.Nop()})
	must(t, err)
	must(t, again.Close())
}

func TestGateF6SecondServerBySymlink(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	link := filepath.Join(t.TempDir(), "link.db")
	must(t, os.Symlink(s.Path(), link))
	if _, err := Open(t.Context(), Options{Path: link, Log: zerolog.Nop()}); !errors.Is(err, ErrRunning) {
		t.Errorf("the same file by another name: %v", err)
	}
}

func TestGateF6Schemas(t *testing.T) {
	t.Parallel()
	refusesToOpen(t, closed(t, "INSERT INTO schema_step VALUES (9999, 0)"), ErrNewer, "restore a backup from before the upgrade")
	if _, err := OpenRead(t.Context(), closed(t, "INSERT INTO schema_step VALUES (9999, 0)")); !errors.Is(err, ErrNewer) {
		t.Errorf("reading a newer schema: %v", err)
	}
	if _, err := OpenRead(t.Context(), closed(t, "DELETE FROM schema_step")); !errors.Is(err, ErrOlder) {
		t.Errorf("reading an older schema: %v", err)
	}
}

func TestGateF6ForeignDatabase(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "creel.db")
	c, err := connect(dataSource(path, nil))
	must(t, err)
	must(t, c.script("CREATE TABLE orders (id INTEGER PRIMARY KEY)"))
	must(t, c.close())
	refusesToOpen(t, path, ErrForeign, "set database to another path")
	if _, err := OpenRead(t.Context(), path); !errors.Is(err, ErrForeign) {
		t.Errorf("reading a foreign database: %v", err)
	}
}

func TestAppTablesMayBeThereFirst(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "creel.db")
	c, err := connect(dataSource(path, nil))
	must(t, err)
	must(t, c.script("CREATE TABLE app_orders (id INTEGER PRIMARY KEY); PRAGMA user_version = 7"))
	must(t, c.close())
	s, err := Open(t.Context(), Options{Path: path, Log: zerolog.Nop()})
	must(t, err)
	must(t, s.Close())
}

func TestGateF6NotADatabase(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "creel.db")
	text := strings.Repeat("this is a letter to my aunt\n", 400)
	must(t, os.WriteFile(path, []byte(text), 0o600))
	refusesToOpen(t, path, ErrForeign, "restore a backup")
	if after, err := os.ReadFile(path); err != nil || string(after) != text {
		t.Error("the file was changed")
	}
}

func TestGateF6CorruptFile(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func([]byte) []byte{
		"page 2": func(b []byte) []byte {
			for i := range 600 {
				b[pageSize+i] ^= 0xff
			}
			return b
		},
		"schema page": func(b []byte) []byte {
			for i := range 600 {
				b[100+i] ^= 0xff
			}
			return b
		},
		"cut short": func(b []byte) []byte { return b[:len(b)/2/pageSize*pageSize] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := closed(t, "")
			whole, err := os.ReadFile(path)
			must(t, err)
			spoiled := string(spoil(whole))
			must(t, os.WriteFile(path, []byte(spoiled), 0o600))
			refusesToOpen(t, path, ErrCorrupt, "restore a backup")
			if after, err := os.ReadFile(path); err != nil || string(after) != spoiled {
				t.Error("the damaged file was changed")
			}
		})
	}
}

func TestBugSQL04NetworkFileSystem(t *testing.T) {
	t.Parallel()
	for _, magic := range []uint32{0x6969, 0xFF534D42, 0xFE534D42} {
		if err := refuseNetwork("/mnt/share", networkFilesystems[magic]); !errors.Is(err, ErrNetworkFilesystem) || !strings.Contains(err.Error(), "local disk") {
			t.Errorf("%#x: %v", magic, err)
		}
	}
	for mount, refused := range map[string]bool{"fuse.sshfs": true, "fuse.s3fs": true, "fuseblk": false, "fuse.mergerfs": false, "": false} {
		if err := refuseNetwork("/mnt", networkFuseName(mount)); (err != nil) != refused {
			t.Errorf("%s: %v", mount, err)
		}
	}
	must(t, localDisk(t.TempDir()))
	if kind := mountType("/proc/self"); kind != "proc" {
		t.Errorf("/proc is of type %q", kind)
	}
}

func TestBugACK06NoRightToWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	refusesToOpen(t, filepath.Join(dir, "missing", "creel.db"), nil, "create it")
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	refusesToOpen(t, filepath.Join(dir, "file", "creel.db"), nil, "not a directory")
	refusesToOpen(t, dir, nil, "path of a file")
}

// TestBugACK06ReadOnlyDirectory runs itself as another user where it is root.
func TestBugACK06ReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if os.Getuid() == 0 {
		// /sys is a directory where not even root may create a file.
		refusesToOpen(t, "/sys/kernel/creel.db", nil, "needs to write directory")
		return
	}
	must(t, os.Chmod(dir, 0o500))
	refusesToOpen(t, filepath.Join(dir, "creel.db"), os.ErrPermission, "needs to write directory")
}

func TestFilesAreOurUsersAlone(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		stat, err := os.Stat(s.Path() + suffix)
		must(t, err)
		if mode := stat.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o", filepath.Base(s.Path())+suffix, mode)
		}
	}
}

func TestPathsWithSpecialCharacters(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a b%41?mode=memory#x")
	must(t, os.Mkdir(dir, 0o700))
	path := filepath.Join(dir, "c%20r?.db")
	s, err := Open(t.Context(), Options{Path: path, Log: zerolog.Nop()})
	must(t, err)
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	must(t, s.Close())
}

func TestOpenReadWithAndWithoutServer(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	must(t, s.write(t.Context(), intake, 1, put("a", nil)))
	read := func(want int) {
		t.Helper()
		r, err := OpenRead(t.Context(), s.Path())
		must(t, err)
		var n int
		must(t, r.row(t.Context(), "SELECT count(*) FROM app_test", nil, &n))
		if n != want {
			t.Errorf("%d rows, want %d", n, want)
		}
		if err := r.rows(t.Context(), "DELETE FROM app_test RETURNING id", nil, nil); err == nil {
			t.Error("a reader wrote")
		}
		must(t, r.Close())
	}
	read(1)
	must(t, s.write(t.Context(), intake, 1, put("b", nil)))
	read(2)
	must(t, s.Close())
	read(2)
	if _, err := OpenRead(t.Context(), filepath.Join(t.TempDir(), "none.db")); err == nil || !strings.Contains(err.Error(), "creel serve") {
		t.Errorf("a missing file: %v", err)
	}
}

func TestBugSQL02SettingsOnEveryConnection(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	check := func() {
		t.Helper()
		var group errGroup
		hold := make(chan struct{})
		var taken = make(chan struct{}, readers)
		for range readers { // all connections of the pool at once
			group.goes(func() error {
				return s.snapshot(t.Context(), func(snap snapshot) error {
					taken <- struct{}{}
					<-hold
					for _, want := range append(readerSettings(2*time.Second), setting{"journal_mode", "", "wal"}) {
						var got string
						if err := snap.row("PRAGMA "+want.pragma, nil, &got); err != nil {
							return err
						}
						if got != want.reads {
							return errors.New(want.pragma + " is " + got)
						}
					}
					return nil
				})
			})
		}
		for range readers {
			<-taken
		}
		close(hold)
		must(t, group.wait())
	}
	check()
	// An interrupted connection is thrown away by the pool: its successor must
	// be as strict.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	var n int
	if err := s.row(ctx, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 10000000) SELECT count(*) FROM n", nil, &n); err == nil {
		t.Fatal("a read outlived its context")
	}
	s.db.SetConnMaxLifetime(1)
	s.db.SetConnMaxLifetime(0)
	check()
}

// errGroup waits for goroutines and keeps their first error.
type errGroup struct{ waits []chan error }

func (g *errGroup) goes(f func() error) {
	done := make(chan error, 1)
	g.waits = append(g.waits, done)
	go func() { done <- f() }()
}

func (g *errGroup) wait() error {
	var all error
	for _, w := range g.waits {
		all = errors.Join(all, <-w)
	}
	return all
}

// TestGateT21 changes each setting to what durability does not survive and
// wants the opening to see it.
func TestGateT21SettingsAreReadBack(t *testing.T) {
	t.Parallel()
	path := closed(t, "")
	wrong := map[string]string{
		"busy_timeout": "0", "foreign_keys": "0", "trusted_schema": "1", "cell_size_check": "0", "mmap_size": "65536",
		"temp_store": "1", "page_size": "", "journal_mode": "DELETE", "synchronous": "NORMAL", "wal_autocheckpoint": "1000",
		"journal_size_limit": "-1", "secure_delete": "0",
	}
	busy := 2 * time.Second
	for i, s := range writerSettings(busy) {
		value, known := wrong[s.pragma]
		if !known {
			t.Errorf("%s has no wrong value in this test", s.pragma)
		}
		if value == "" { // can not be changed on an existing file
			continue
		}
		mutated := writerSettings(busy)
		mutated[i].set = value
		c, err := connect(dataSource(path, mutated))
		must(t, err)
		if err := verify(c, writerSettings(busy)); !errors.Is(err, ErrSettings) || !strings.Contains(err.Error(), s.pragma) {
			t.Errorf("%s = %s was seen as %v", s.pragma, value, err)
		}
		must(t, c.close())
	}
	c, err := connect(strings.Replace(dataSource(path, writerSettings(busy)), "_defensive=1", "_defensive=0", 1))
	must(t, err)
	if err := verify(c, writerSettings(busy)); !errors.Is(err, ErrSettings) {
		t.Errorf("defensive mode off was seen as %v", err)
	}
	must(t, c.close())
	for version, good := range map[string]bool{"3.51.3": true, "3.54.1": true, "4.0": true, "3.51.2": false, "3.9.9": false, "": false} {
		if atLeast(version, minSQLite) != good {
			t.Errorf("version %q", version)
		}
	}
}

// TestLibcPin keeps modernc.org/libc at the version that the driver was made
// for: its own go.mod says which.
func TestLibcPin(t *testing.T) {
	t.Parallel()
	list := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), "go", append([]string{"list", "-m"}, args...)...).Output()
		must(t, err)
		return strings.TrimSpace(string(out))
	}
	theirs, err := os.ReadFile(filepath.Join(list("-f", "{{.Dir}}", "modernc.org/sqlite"), "go.mod"))
	must(t, err)
	ours := list("-f", "{{.Version}}", "modernc.org/libc")
	if !strings.Contains(string(theirs), "modernc.org/libc "+ours+"\n") {
		t.Errorf("modernc.org/libc is %s, which is not what modernc.org/sqlite's go.mod names", ours)
	}
}

// A link that leads nowhere is told of before anything is made of it.
func TestADatabaseThatIsALinkToNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "creel.db")
	must(t, os.Symlink(filepath.Join("volume", "creel.db"), path))
	if _, err := Open(t.Context(), Options{Path: path}); err == nil || !strings.Contains(err.Error(), "is a link to volume/creel.db, which is not there") {
		t.Errorf("%v", err)
	}
	if left, err := filepath.Glob(path + "*"); err != nil || len(left) != 1 {
		t.Errorf("%v: left behind %v", err, left)
	}
}
