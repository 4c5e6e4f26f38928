package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"creel/event"
	"creel/internal/testkit"
)

// removals are the ways in which a file loses its place under a running
// server. Each gives back how it is undone, nil where it can not be.
var removals = map[string]func(t *testing.T, path string) (undo func()){
	"deleted": func(t *testing.T, path string) func() {
		must(t, os.Remove(path))
		must(t, os.Remove(path+"-wal"))
		return nil
	},
	"renamed": func(t *testing.T, path string) func() {
		must(t, os.Rename(path, path+".old"))
		return func() { must(t, os.Rename(path+".old", path)) }
	},
	"folder moved": func(t *testing.T, path string) func() {
		dir := filepath.Dir(path)
		must(t, os.Rename(dir, dir+".old"))
		return func() { must(t, os.Rename(dir+".old", dir)) }
	},
	"replaced": func(t *testing.T, path string) func() {
		must(t, os.Rename(path, path+".old"))
		whole, err := os.ReadFile(path + ".old")
		must(t, err)
		must(t, os.WriteFile(path, whole, 0o600))
		return func() { must(t, os.Rename(path+".old", path)) }
	},
	"WAL moved": func(t *testing.T, path string) func() {
		must(t, os.Rename(path+"-wal", path+".old"))
		return func() { must(t, os.Rename(path+".old", path+"-wal")) }
	},
}

// inFolder is a store in a folder that a test may move.
func inFolder(t *testing.T, log *testkit.Log) *Store {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	must(t, os.Mkdir(dir, 0o700))
	return newStore(t, func(o *Options) {
		o.Path = filepath.Join(dir, "creel.db")
		o.Log = zerolog.New(log)
	})
}

// TestBugDisplacedDatabase takes the files away: nothing is acknowledged that
// nobody would find, no other file is made, and the same file's return ends it.
func TestBugDisplacedDatabase(t *testing.T) {
	t.Parallel()
	for name, remove := range removals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &testkit.Log{}
			s := inFolder(t, log)
			must(t, s.write(t.Context(), intake, 1, put("before", nil)))
			undo := remove(t, s.Path())
			there := exists(s.Path())
			refused(t, s, 5*time.Second)
			refused(t, s, 5*time.Second)
			if err := s.Healthy(); !errors.Is(err, event.ErrUnavailable) || !strings.Contains(err.Error(), fmt.Sprintf("/proc/%d/fd", os.Getpid())) {
				t.Errorf("healthy: %v", err)
			}
			if n := log.Count("store cannot write"); n != 1 {
				t.Errorf("%d log lines", n)
			}
			if undo == nil {
				if exists(s.Path()) != there {
					t.Error("another file was made")
				}
				return
			}
			undo()
			comesBack(t, s, "before")
			if n := log.Count("store writes again"); n != 1 {
				t.Errorf("%d log lines of the end", n)
			}
		})
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestBugDisplacedDuringTheCommit takes the files away between BEGIN and COMMIT:
// nobody of the batch is acknowledged, whichever way its units run, but for one
// whose own commit came before.
func TestBugDisplacedDuringTheCommit(t *testing.T) {
	t.Parallel()
	spoilers := map[string]func(*tx) error{
		"together":  put("second", nil),
		"savepoint": put("first", nil), // a duplicate
		"alone": func(tx *tx) error { // takes the transaction with it
			_, err := tx.exec(sqlRollback)
			return errors.Join(err, errors.New("rolled back"))
		},
	}
	for name, remove := range removals {
		for way, spoiler := range spoilers {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				s := inFolder(t, &testkit.Log{})
				insert := put("last", nil)
				away := sync.OnceFunc(func() { remove(t, s.Path()) })
				for i, err := range batch(t, s, put("first", nil), spoiler, func(tx *tx) error {
					away()
					return insert(tx)
				}) {
					own := i == 1 && way != "together"
					before := i == 0 && way == "alone" && err == nil
					if !before && (err == nil || !own && !errors.Is(err, event.ErrUnavailable)) {
						t.Errorf("unit %d answered %v", i, err)
					}
				}
			})
		}
	}
}

// TestBugDisplacedShowsWithoutTraffic asks for health alone, and wants the
// writer to watch for the file's return although nobody writes.
func TestBugDisplacedShowsWithoutTraffic(t *testing.T) {
	t.Parallel()
	log := &testkit.Log{}
	s := inFolder(t, log)
	must(t, s.Healthy())
	undo := removals["renamed"](t, s.Path())
	if err := s.Healthy(); !errors.Is(err, errDisplaced) {
		t.Errorf("healthy: %v", err)
	}
	if log.Count("store cannot write") != 1 {
		t.Error("nothing was logged")
	}
	if err := s.submit(intake, &unit{}); !errors.Is(err, event.ErrUnavailable) {
		t.Errorf("an intake was taken: %v", err)
	}
	undo()
	comesBack(t, s)
}

// TestDisplacedWhileTheDiskFails must not open another file in its place.
func TestDisplacedWhileTheDiskFails(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	log := &testkit.Log{}
	s := newStore(t, func(o *Options) { o.vfs, o.Log = d.name, zerolog.New(log) })
	d.set(func(_ int, op operation) int32 {
		if op.kind == "write" {
			return 13 // SQLITE_FULL
		}
		return 0
	})
	refused(t, s, 5*time.Second)
	undo := removals["renamed"](t, s.Path())
	d.set(nil)
	eventually(t, "the loss logged", func() bool { return log.Count(errDisplaced.Error()) > 0 })
	if exists(s.Path()) {
		t.Error("another file was made")
	}
	undo()
	comesBack(t, s)
}

// TestStopWithoutItsWAL: a clean stop copies what a deleted WAL held into the
// database, which is still there.
func TestStopWithoutItsWAL(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	must(t, s.write(t.Context(), intake, 1, put("acknowledged", nil)))
	must(t, os.Remove(s.Path()+"-wal"))
	refused(t, s, 5*time.Second)
	must(t, s.Close())
	again := newStore(t, func(o *Options) { o.Path = s.Path() })
	if got := strings.Join(names(t, again), " "); !strings.Contains(got, "acknowledged") {
		t.Errorf("stored %q", got)
	}
}

func TestHealthyAfterClose(t *testing.T) {
	t.Parallel()
	log := &testkit.Log{}
	s := inFolder(t, log)
	must(t, s.Close())
	if err := s.Healthy(); !errors.Is(err, ErrClosed) {
		t.Errorf("healthy: %v", err)
	}
	if log.Count("error") != 0 {
		t.Error("a stop was logged as trouble")
	}
}

// TestNewDatabaseIsLogged once, with its path.
func TestNewDatabaseIsLogged(t *testing.T) {
	t.Parallel()
	log := &testkit.Log{}
	s := inFolder(t, log)
	want := func(n int) {
		t.Helper()
		if got := log.Count(`"message":"database created"`); got != n {
			t.Errorf("%d log lines, want %d", got, n)
		}
	}
	want(1)
	if log.Count(s.Path()) != 1 {
		t.Error("without its path")
	}
	must(t, s.Close())
	again, err := Open(t.Context(), Options{Path: s.Path(), Log: zerolog.New(log)})
	must(t, err)
	must(t, again.Close())
	want(1)
}

// TestGateF6SecondServerByHardLink opens the file by a second name, beside a
// server and without one.
func TestGateF6SecondServerByHardLink(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	link := filepath.Join(t.TempDir(), "link.db")
	must(t, os.Link(s.Path(), link))
	refusesToOpen(t, link, ErrLinked, "find -samefile")
	if exists(LockPath(link)) {
		t.Error("a refused open left files behind")
	}
	must(t, s.Close())
	refusesToOpen(t, link, ErrLinked, "find -samefile")
	must(t, os.Remove(link))
	again := newStore(t, func(o *Options) { o.Path = s.Path() })
	must(t, again.Close())
}

// TestGateF6SecondServerByAnotherName opens the running server's file by its
// only name, which is not the one that the server knows.
func TestGateF6SecondServerByAnotherName(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	renamed := filepath.Join(t.TempDir(), "renamed.db")
	must(t, os.Rename(s.Path(), renamed))
	refusesToOpen(t, renamed, ErrRunning, "bind mount")
	must(t, os.Rename(renamed, s.Path()))
	comesBack(t, s)
}

// TestGateF6SecondServerByBindMount needs the right to mount.
func TestGateF6SecondServerByBindMount(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	other := filepath.Join(t.TempDir(), "mounted.db")
	must(t, os.WriteFile(other, nil, 0o600))
	if err := syscall.Mount(s.Path(), other, "", syscall.MS_BIND, ""); err != nil {
		t.Logf("no mount here (%v): TestGateF6SecondServerByAnotherName covers the lock", err)
		return
	}
	defer syscall.Unmount(other, syscall.MNT_DETACH)
	refusesToOpen(t, other, ErrRunning, "bind mount")
	must(t, s.write(t.Context(), intake, 1, put("unharmed", nil)))
}
