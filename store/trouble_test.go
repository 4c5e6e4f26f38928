package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"creel/event"
)

// eventually polls for what the writer does by itself.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	for {
		if ok() {
			return
		}
		again := time.NewTimer(5 * time.Millisecond)
		select {
		case <-deadline.C:
			t.Fatalf("not within 30 s: %s", what)
		case <-again.C:
		}
	}
}

// refused writes once and wants ErrUnavailable within the limit.
func refused(t *testing.T, s *Store, limit time.Duration) {
	t.Helper()
	start := time.Now()
	err := s.write(t.Context(), intake, 1, put("never", nil))
	if took := time.Since(start); took > limit {
		t.Errorf("answered after %v, limit %v", took, limit)
	}
	if !errors.Is(err, event.ErrUnavailable) {
		t.Errorf("answered %v, want ErrUnavailable", err)
	}
}

// comesBack wants the store healthy by itself, with just the rows named.
func comesBack(t *testing.T, s *Store, want ...string) {
	t.Helper()
	eventually(t, "healthy again", func() bool { return s.Healthy() == nil })
	must(t, s.write(t.Context(), intake, 1, put("after", nil)))
	if got := names(t, s); strings.Join(got, " ") != strings.Join(append([]string{"after"}, want...), " ") {
		t.Errorf("stored %v, want after and %v", got, want)
	}
}

func TestGateR4LockedByAnOutsideWriter(t *testing.T) {
	t.Parallel()
	s := newStore(t, func(o *Options) { o.BusyTimeout = 100 * time.Millisecond })
	must(t, s.write(t.Context(), intake, 1, put("before", nil)))
	outside, err := connect(s.dsn)
	must(t, err)
	defer outside.close()
	_, err = outside.exec(sqlBegin, nil)
	must(t, err)
	refused(t, s, 5*time.Second)
	if s.Healthy() == nil {
		t.Error("healthy while an outside writer has the lock")
	}
	if err := s.submit(intake, &unit{}); !errors.Is(err, event.ErrUnavailable) {
		t.Errorf("the second write must not even be tried: %v", err)
	}
	_, err = outside.exec(sqlRollback, nil)
	must(t, err)
	comesBack(t, s, "before")
}

func TestGateR4ShortOutsideWriterOnlyDelays(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	outside, err := connect(s.dsn)
	must(t, err)
	defer outside.close()
	_, err = outside.exec(sqlBegin, nil)
	must(t, err)
	answer := make(chan error, 1)
	must(t, s.submit(intake, &unit{run: put("a", nil), done: func(err error) { answer <- err }}))
	_, err = outside.exec(sqlCommit, nil)
	must(t, err)
	must(t, <-answer)
}

func TestGateR4FailingDisk(t *testing.T) {
	t.Parallel()
	codes := map[string]int32{
		"full":       sqlite3.SQLITE_FULL,
		"write":      sqlite3.SQLITE_IOERR_WRITE,
		"out of fds": sqlite3.SQLITE_CANTOPEN,
		"read-only":  sqlite3.SQLITE_READONLY,
	}
	for name, code := range codes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDisk(t)
			s := newStore(t, func(o *Options) { o.vfs = d.name })
			must(t, s.write(t.Context(), intake, 1, put("before", nil)))
			d.set(func(_ int, op operation) int32 {
				if op.kind == "write" {
					return code
				}
				return 0
			})
			refused(t, s, 5*time.Second)
			refused(t, s, 5*time.Second)
			if s.Healthy() == nil {
				t.Error("healthy on a failing disk")
			}
			d.set(nil)
			comesBack(t, s, "before")
		})
	}
}

func TestGateR4BatchOnAFailingDisk(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	s := newStore(t, func(o *Options) { o.vfs = d.name })
	d.set(func(_ int, op operation) int32 {
		if op.kind == "write" && strings.HasSuffix(op.file, "-wal") {
			return sqlite3.SQLITE_IOERR_WRITE
		}
		return 0
	})
	runs := make([]func(*tx) error, 50)
	for i := range runs {
		runs[i] = put(fmt.Sprint(i), nil)
	}
	for i, err := range batch(t, s, runs...) {
		if !errors.Is(err, event.ErrUnavailable) {
			t.Errorf("unit %d answered %v", i, err)
		}
	}
	d.set(nil)
	comesBack(t, s)
}

func TestGateR4FailedSyncIsFinal(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"creel.db-wal", "creel.db"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			d := newDisk(t)
			s := newStore(t, func(o *Options) { o.vfs = d.name })
			failed := false // one sync fails, later ones would "succeed"
			d.set(func(_ int, op operation) int32 {
				if op.kind == "sync" && op.file == file && !failed {
					failed = true
					return sqlite3.SQLITE_IOERR_FSYNC
				}
				return 0
			})
			for i := 0; s.Healthy() == nil; i++ {
				if i > 1000 {
					t.Fatal("a failed sync went unseen")
				}
				err := s.write(t.Context(), intake, 1, put(fmt.Sprint(i), make([]byte, 64<<10)))
				if file == "creel.db-wal" && !errors.Is(err, event.ErrUnavailable) {
					t.Fatalf("answered %v although the sync failed", err)
				}
			}
			select {
			case err := <-s.Fatal():
				if damageOf(err) != beyondTrust {
					t.Errorf("fatal: %v", err)
				}
			case <-t.Context().Done():
				t.Error("nobody was told to end the process")
			}
			refused(t, s, 5*time.Second)
		})
	}
}

func TestFreeSpaceFloor(t *testing.T) {
	t.Parallel()
	var now atomic.Int64 // milliseconds
	now.Store(1_764_500_000_000)
	s := newStore(t, func(o *Options) {
		o.MinFree = 1000
		o.Clock = func() time.Time { return time.UnixMilli(now.Load()) }
	})
	var free atomic.Int64
	free.Store(999)
	s.space.free = func(string) (int64, error) { return free.Load(), nil }
	s.space.looked.Store(0)
	refused(t, s, 5*time.Second)
	if !errors.Is(s.Healthy(), errLittleSpace) {
		t.Errorf("healthy: %v", s.Healthy())
	}
	must(t, s.write(t.Context(), work, 1, put("work goes on", nil)))
	free.Store(1000)
	refused(t, s, 5*time.Second) // within the second the answer stands
	now.Add(1000)
	must(t, s.write(t.Context(), intake, 1, put("space", nil)))
}

func TestReadOnlyDirectoryWhileRunning(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Log("root may write everywhere: TestGateR4FailingDisk covers SQLITE_READONLY")
		return
	}
	s := newStore(t)
	dir := filepath.Dir(s.Path())
	must(t, os.Chmod(dir, 0o500))
	defer os.Chmod(dir, 0o700)
	if err := s.write(context.Background(), intake, 1, put("a", nil)); err != nil && !errors.Is(err, event.ErrUnavailable) {
		t.Errorf("answered %v", err)
	}
}
