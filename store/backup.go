package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
)

var (
	// ErrExists says that a backup or a restore would replace a file.
	ErrExists = errors.New("a file of that name exists")
	// errDamaged says that a copy is no whole database.
	errDamaged = errors.New("the copy is damaged")
)

// partial is what a copy is called until it is whole and on disk.
const partial = ".partial"

// Copied tells of a copy of a database.
type Copied struct {
	Path   string        `json:"path"`
	Bytes  int64         `json:"bytes"`
	Events int64         `json:"events"`
	Took   time.Duration `json:"-"`
}

// Backup writes a copy of the database as it stands when it begins: every
// event that was acknowledged by then is in it, and nothing of what comes
// later. The server goes on beside it; its WAL can not start over meanwhile.
// The copy is checked whole, synced, and only then gets its name; it replaces
// no file. ctx ends it early and leaves nothing.
func (r *Reader) Backup(ctx context.Context, path string) (Copied, error) {
	began := time.Now()
	full, temporary, err := reserveCopy(path)
	if err != nil {
		return Copied{}, fmt.Errorf("back up: %w", err)
	}
	copied, err := r.vacuumInto(ctx, temporary, full)
	if err != nil {
		return Copied{}, fmt.Errorf("back up: %w", errors.Join(damagedBackup{err}, removeCopy(temporary)))
	}
	copied.Took = time.Since(began)
	return copied, nil
}

// reserveCopy makes the empty file that a copy is written into, for its owner
// alone, where nothing has that name.
func reserveCopy(path string) (full, temporary string, err error) {
	if path == "" || path == "-" || strings.HasSuffix(path, string(filepath.Separator)) {
		return "", "", fmt.Errorf("%q names no file", path)
	}
	if full, err = filepath.Abs(path); err != nil {
		return "", "", err
	}
	if about, err := os.Stat(filepath.Dir(full)); err != nil || !about.IsDir() {
		return "", "", fmt.Errorf("there is no folder %s: make it, or name another", filepath.Dir(full))
	}
	if _, err := os.Lstat(full); err == nil {
		return "", "", fmt.Errorf("%s: %w: give the copy another name", full, ErrExists)
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", "", err
	}
	temporary = full + partial
	file, err := os.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return "", "", fmt.Errorf("%s: %w: another copy is under way, or one was cut short: remove it then", temporary, ErrExists)
	}
	if err != nil {
		return "", "", err
	}
	return full, temporary, file.Close()
}

// vacuumInto reads on a connection of its own: it takes as long as the file is
// large, which no read of the pool may.
func (r *Reader) vacuumInto(ctx context.Context, temporary, full string) (Copied, error) {
	if err := copyDatabase(ctx, r.path, temporary); err != nil {
		return Copied{}, err
	}
	events, err := inspectCopy(ctx, temporary)
	if err != nil {
		return Copied{}, err
	}
	return settleCopy(temporary, full, events)
}

// copyDatabase copies by SQLite's own means, so that what stands in the WAL
// comes along.
func copyDatabase(ctx context.Context, from, to string) error {
	// A connection that may only query can not be asked for a VACUUM; mode=ro
	// keeps this one from writing to the file that it reads.
	connector, err := sqlite.NewConnector(dataSource(from, shared(2*time.Second), "mode=ro"))
	if err != nil {
		return fmt.Errorf("name the copying connection: %w", err)
	}
	db := sql.OpenDB(connector)
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", to)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return whatToDo(to, err)
	}
	return nil
}

// inspectCopy reads a copy whole, and counts its events.
func inspectCopy(ctx context.Context, path string) (events int64, err error) {
	r, err := newReader(ctx, path, time.Second)
	if err != nil {
		return 0, whatToDo(path, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	var answer string
	if err := r.db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&answer); err != nil {
		return 0, whatToDo(path, err)
	}
	if answer != "ok" {
		return 0, fmt.Errorf("%s: %w: %s", path, errDamaged, answer)
	}
	if err := r.db.QueryRowContext(ctx, "SELECT count(*) FROM event").Scan(&events); err != nil {
		return 0, whatToDo(path, err)
	}
	return events, nil
}

// settleCopy syncs a copy and gives it its name.
func settleCopy(temporary, full string, events int64) (Copied, error) {
	file, err := os.OpenFile(temporary, os.O_RDWR, 0)
	if err != nil {
		return Copied{}, err
	}
	about, err := file.Stat()
	if err = errors.Join(err, file.Chmod(0o600), file.Sync(), file.Close()); err != nil {
		return Copied{}, err
	}
	// A link refuses to replace what came there meanwhile; a rename would not.
	if err := os.Link(temporary, full); err != nil {
		return Copied{}, err
	}
	if err := errors.Join(os.Remove(temporary), syncDirectory(filepath.Dir(full))); err != nil {
		return Copied{}, err
	}
	return Copied{Path: full, Bytes: about.Size(), Events: events}, nil
}

// Restored tells of a restore.
type Restored struct {
	Copied
	Aside string `json:"aside,omitempty"` // where the database that was there lies now
}

// Restore puts a backup in the place of a database. The backup is checked
// whole before anything is touched. A database that a server has open is
// refused (ErrRunning); one that is there is refused too (ErrExists), unless
// replace moves it aside first, with its WAL: it is never deleted.
//
// A crash in between leaves the old files aside and the new one under its
// temporary name; nothing is lost, and the restore can be done again.
func Restore(ctx context.Context, backup, database string, replace bool, now time.Time) (done Restored, err error) {
	if err := prepareLibrary(); err != nil {
		return done, fmt.Errorf("restore: %w", err)
	}
	full, err := locate(database, true)
	if err != nil {
		return done, fmt.Errorf("restore: %w", err)
	}
	if err := knownCopy(ctx, backup); err != nil {
		return done, fmt.Errorf("restore: %w", damagedBackup{err})
	}
	held, err := acquire(full)
	if err != nil {
		return done, fmt.Errorf("restore: %w", err)
	}
	defer func() { err = errors.Join(err, held.release()) }()
	if inTheWay := firstOf(full); inTheWay != "" && !replace {
		return done, fmt.Errorf("restore: %s: %w: --replace moves it aside first", inTheWay, ErrExists)
	}
	temporary := full + partial
	if err := removeCopy(temporary); err != nil { // of a restore that was cut short
		return done, fmt.Errorf("restore: %w", err)
	}
	if done, err = putInPlace(ctx, backup, temporary, full, now); err != nil {
		return done, fmt.Errorf("restore: %w", errors.Join(err, removeCopy(temporary)))
	}
	return done, nil
}

func putInPlace(ctx context.Context, backup, temporary, full string, now time.Time) (done Restored, err error) {
	// By SQLite's means: a database that was moved aside or copied by hand has
	// its newest events in the WAL beside it.
	if err := copyDatabase(ctx, backup, temporary); err != nil {
		return done, err
	}
	events, err := inspectCopy(ctx, temporary)
	if err != nil {
		return done, err
	}
	if done.Aside, err = moveAside(full, now); err != nil {
		return done, err
	}
	done.Copied, err = settleCopy(temporary, full, events)
	return done, err
}

// ends are what the files of a database are called beside it, the database
// itself last: a WAL without it is nothing, and it would look whole without its
// WAL.
func ends() []string { return []string{"-wal", "-shm", "-journal", ""} }

// firstOf is a file of a database that is there; "" where there is none. A WAL
// that was left alone counts: SQLite would write it into the next database of
// that name.
func firstOf(full string) string {
	for i := range ends() {
		name := full + ends()[len(ends())-1-i]
		if _, err := os.Lstat(name); err == nil {
			return name
		}
	}
	return ""
}

// removeCopy removes a copy that did not get its name, and what SQLite made
// beside it.
func removeCopy(temporary string) (err error) {
	for _, end := range ends() {
		if failed := os.Remove(temporary + end); !errors.Is(failed, os.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// knownCopy refuses what is no backup that this program can run on. An older
// one is brought forward by the next start.
func knownCopy(ctx context.Context, path string) error {
	about, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !about.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file: name one that creel backup wrote", path)
	}
	r, err := newReader(ctx, path, time.Second)
	if err != nil {
		return whatToDo(path, err)
	}
	err = r.known(ctx)
	switch {
	case errors.Is(err, ErrOlder):
		err = nil
	case errors.Is(err, ErrForeign):
		err = fmt.Errorf("%s: %w: name one that creel backup wrote", path, ErrForeign)
	case err != nil:
		err = whatToDo(path, err)
	}
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	_, err = inspectCopy(ctx, path)
	return err
}

// moveAside renames a database and what belongs to it; "" where there is none.
func moveAside(full string, now time.Time) (aside string, err error) {
	if firstOf(full) == "" {
		return "", nil
	}
	name := full + ".before-restore-" + now.UTC().Format("20060102T150405Z")
	aside = name
	for n := 2; firstOf(aside) != ""; n++ {
		aside = fmt.Sprintf("%s-%d", name, n)
	}
	for _, end := range ends() {
		if err := os.Rename(full+end, aside+end); err != nil && !errors.Is(err, os.ErrNotExist) {
			return aside, err
		}
	}
	return aside, nil
}
