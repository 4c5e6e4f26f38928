package store

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// copyByHand copies a database as cp would, with what stands in its WAL.
func copyByHand(t *testing.T, from, to string, ends ...string) {
	t.Helper()
	for _, end := range ends {
		text, err := os.ReadFile(from + end)
		must(t, err)
		must(t, os.WriteFile(to+end, text, 0o600))
	}
}

func restoredEvents(t *testing.T, path string) int64 {
	t.Helper()
	n, err := inspectCopy(t.Context(), path)
	must(t, err)
	return n
}

// A database that was moved aside, or copied by hand, has its newest events in
// its WAL: a restore of it brings those too.
func TestGateO10RestoreBringsWhatStandsInTheWAL(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	folder := t.TempDir()
	for i := range 20 {
		sc.receive(fmt.Sprintf("e%d", i))
	}
	killed := filepath.Join(folder, "creel.db.before-restore")
	copyByHand(t, sc.path, killed, "", "-wal")
	restored, err := Restore(t.Context(), killed, filepath.Join(folder, "creel.db"), false, sc.now)
	must(t, err)
	if restored.Events != 20 || restoredEvents(t, restored.Path) != 20 {
		t.Errorf("restored %+v, of 20 events", restored)
	}
	noneLeft(t, folder)
}

// A WAL that lies without its database where a backup goes belongs to another
// state of it: SQLite would write it into what was restored.
func TestGateO10RestoreBesideALeftWAL(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	folder := t.TempDir()
	sc.receive("in the backup")
	backup := filepath.Join(folder, "backup.db")
	_, err := sc.Backup(t.Context(), backup)
	must(t, err)
	for i := range 200 {
		sc.receive(fmt.Sprintf("e%d", i))
	}
	target := filepath.Join(folder, "creel.db")
	copyByHand(t, sc.path, target, "-wal", "-shm")
	if _, err := Restore(t.Context(), backup, target, false, sc.now); !errors.Is(err, ErrExists) {
		t.Errorf("a restore beside a WAL: %v", err)
	}
	restored, err := Restore(t.Context(), backup, target, true, sc.now)
	must(t, err)
	if n := restoredEvents(t, target); n != 1 {
		t.Errorf("%d events, the backup had 1", n)
	}
	if about, err := os.Stat(restored.Aside + "-wal"); err != nil || about.Size() == 0 {
		t.Errorf("the WAL is not kept: %v", err)
	}
}

func TestGateO10RestoreAgainAtOnce(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	folder := t.TempDir()
	sc.receive("one")
	backup, target := filepath.Join(folder, "backup.db"), filepath.Join(folder, "creel.db")
	_, err := sc.Backup(t.Context(), backup)
	must(t, err)
	asides := map[string]bool{}
	for i := range 3 {
		restored, err := Restore(t.Context(), backup, target, i > 0, sc.now)
		must(t, err)
		asides[restored.Aside] = true
	}
	if len(asides) != 3 {
		t.Errorf("moved aside: %v", asides)
	}
	noneLeft(t, folder)
}

func noneLeft(t *testing.T, folder string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(folder, "*.partial*"))
	must(t, err)
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestGateO10WhatIsNoBackupIsNamed(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	other := filepath.Join(folder, "other.db")
	db, err := sql.Open("sqlite", other)
	must(t, err)
	_, err = db.ExecContext(t.Context(), "CREATE TABLE mine (a)")
	must(t, errors.Join(err, db.Close()))
	target := filepath.Join(folder, "creel.db")
	if _, err := Restore(t.Context(), other, target, false, time.Unix(1_800_000_000, 0)); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "other.db") {
		t.Errorf("another program's database: %v", err)
	}
	if _, err := Restore(t.Context(), folder, target, false, time.Unix(1_800_000_000, 0)); err == nil || !strings.Contains(err.Error(), "is not a file") {
		t.Errorf("a folder: %v", err)
	}
	sc := newScene(t)
	for name, want := range map[string]string{"": "names no file", folder + "/copy/": "names no file", "-": "names no file",
		filepath.Join(folder, "none", "copy.db"): "there is no folder"} {
		if _, err := sc.Backup(t.Context(), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a backup to %q: %v", name, err)
		}
	}
	noneLeft(t, folder)
}
