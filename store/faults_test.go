package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rs/zerolog"
	sqlite3 "modernc.org/sqlite/lib"

	"creel/event"
)

// testTable is what the disk tests write to.
const testTable = "CREATE TABLE IF NOT EXISTS app_test (id INTEGER PRIMARY KEY, name TEXT UNIQUE, body BLOB) STRICT"

// faultRun opens a store on a disk, writes in batches and returns what was
// acknowledged.
func faultRun(t *testing.T, d *disk, path string, batches int) []string {
	t.Helper()
	s, err := Open(t.Context(), Options{Path: path, Log: zerolog.Nop(), vfs: d.name, quietPages: 12})
	if err != nil {
		return nil
	}
	var acked []string
	for b := range batches {
		var names []string
		answers := make(chan error, 3)
		for i := range 3 {
			name := fmt.Sprintf("%d-%d", b, i)
			if err := s.submit(intake, &unit{run: put(name, make([]byte, 3000)), rows: 1, done: func(err error) {
				if err == nil {
					acked = append(acked, name) // the writer's goroutine alone
				} else if !errors.Is(err, event.ErrUnavailable) {
					t.Errorf("%s answered %v", name, err)
				}
				answers <- err
			}}); err == nil {
				names = append(names, name)
			}
		}
		for range names {
			<-answers
		}
	}
	d.set(nil)
	select {
	case <-s.Fatal():
	default:
		eventually(t, "healthy after the fault", func() bool { return s.Healthy() == nil || s.broken.Load() })
	}
	_ = s.Close()
	return acked
}

// onDisk opens a database without its server, checks it whole and returns the
// names in it.
func onDisk(t *testing.T, path string) []string {
	t.Helper()
	c, err := connect(dataSource(path, shared(0)))
	must(t, err)
	defer func() { must(t, c.close()) }()
	if ok, err := c.value("PRAGMA integrity_check"); err != nil || ok != "ok" {
		t.Fatalf("integrity_check: %v, %v", ok, err)
	}
	var all []string
	tx := tx{c: c}
	must(t, tx.query("SELECT name FROM app_test ORDER BY id", nil, func(r row) error {
		all = append(all, r.text(0))
		return nil
	}))
	return all
}

func missing(have, want []string) []string {
	var lost []string
	for _, name := range want {
		if !slices.Contains(have, name) {
			lost = append(lost, name)
		}
	}
	return lost
}

// TestGateF3NthOperationFails refuses the first, second, third … operation of
// a run, once or from then on, until a run needs fewer.
func TestGateF3NthOperationFails(t *testing.T) {
	t.Parallel()
	codes := map[string]int32{"full": sqlite3.SQLITE_FULL, "write": sqlite3.SQLITE_IOERR_WRITE, "sync": sqlite3.SQLITE_IOERR_FSYNC}
	for name, code := range codes {
		for _, lasting := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/lasting=%v", name, lasting), func(t *testing.T) {
				t.Parallel()
				runs := 0
				for n := 1; nthFails(t, n, code, lasting); n += stride(3) {
					runs++
				}
				if runs < 20 {
					t.Fatalf("only %d operations were refused: the test tests nothing", runs)
				}
			})
		}
	}
}

// stride is how many operations a disk test goes on at once: all of them in the
// long form, CREEL_LONG=1.
func stride(short int) int {
	if os.Getenv("CREEL_LONG") != "" {
		return 1
	}
	return short
}

// oneAtATime leaves a long test out of a short run, which is the race
// detector's: nothing in it happens beside anything else.
func oneAtATime(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("long, and nothing in it happens at once")
	}
}

// nthFails is one run whose n-th operation fails; false when it had fewer.
func nthFails(t *testing.T, n int, code int32, lasting bool) bool {
	t.Helper()
	path := filepath.Join(t.TempDir(), "creel.db")
	prepared(t, path)
	d := newDisk(t)
	hit := false
	d.set(func(i int, op operation) int32 {
		if code == sqlite3.SQLITE_IOERR_FSYNC && op.kind != "sync" {
			return sqlite3.SQLITE_OK
		}
		if i == n || i > n && lasting {
			hit = true
			return code
		}
		return sqlite3.SQLITE_OK
	})
	acked := faultRun(t, d, path, 6)
	if lost := missing(onDisk(t, path), acked); len(lost) > 0 {
		t.Errorf("operation %d: acknowledged but lost: %v", n, lost)
	}
	// Past the end: no operation had that number (a sync that is not the n-th
	// is no hit, but not the end either).
	return hit || d.most >= n
}

// prepared makes a database with the test's table, closed and synced.
func prepared(t *testing.T, path string) {
	t.Helper()
	s, err := Open(t.Context(), Options{Path: path, Log: zerolog.Nop()})
	must(t, err)
	must(t, s.write(t.Context(), work, 1, func(tx *tx) error {
		_, err := tx.exec(testTable)
		return err
	}))
	must(t, s.Close())
}
