package store

import (
	"errors"
	"fmt"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"creel/event"
)

// The sentinels of opening a store. Their texts are completed by the path and
// by what to do next.
var (
	// ErrRunning says that another server has the database.
	ErrRunning = errors.New("another creel server has this database open")
	// ErrLinked says that the file has more than one name.
	ErrLinked = errors.New("the database file has more than one hard link")
	// ErrNewer says that a newer Creel wrote the schema.
	ErrNewer = errors.New("the database was written by a newer creel")
	// ErrOlder says that the schema is not migrated yet, and a reader can not
	// do it.
	ErrOlder = errors.New("the database has the schema of an older creel")
	// ErrForeign says that the file is a database of something else.
	ErrForeign = errors.New("the file is not a creel database")
	// ErrCorrupt says that the file is damaged.
	ErrCorrupt = errors.New("the database file is damaged")
	// ErrNetworkFilesystem says that the file lies where locks and shared
	// memory do not hold.
	ErrNetworkFilesystem = errors.New("the database lies on a network file system")
	// ErrSettings says that a connection does not run with the settings that
	// durability rests on.
	ErrSettings = errors.New("the database connection has other settings than asked for")
	// ErrClosed says that the store was closed. It wraps event.ErrUnavailable.
	ErrClosed = fmt.Errorf("the store is closed: %w", event.ErrUnavailable)
)

// damage says how far an error reaches.
type damage int

const (
	unharmed    damage = iota // no error
	unitOnly                  // the unit's own: a constraint, an error of its function
	outsideLock               // another writer has the lock for longer than we wait
	storeWide                 // full, I/O error, corrupt, read-only, out of memory
	displaced                 // the files are not at their paths any more
	beyondTrust               // a sync failed: what is on disk is not known any more
)

// damageOf reads an error of the driver, or of a unit's function. This is the
// only place that knows result codes (https://www.sqlite.org/rescode.html).
func damageOf(err error) damage {
	if err == nil {
		return unharmed
	}
	if errors.Is(err, errDisplaced) {
		return displaced
	}
	code := resultCode(err)
	switch code {
	case sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC:
		return beyondTrust
	}
	switch code & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return outsideLock
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB,
		sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL,
		sqlite3.SQLITE_PERM, sqlite3.SQLITE_INTERNAL, sqlite3.SQLITE_MISUSE, sqlite3.SQLITE_NOLFS:
		return storeWide
	}
	return unitOnly
}

// refusesNesting tells whether BEGIN failed because a transaction is open.
func refusesNesting(err error) bool { return resultCode(err) == sqlite3.SQLITE_ERROR }

// resultCode is the extended result code of a driver error, 0 for any other.
func resultCode(err error) int {
	var driver *sqlite.Error
	if errors.As(err, &driver) {
		return driver.Code()
	}
	return 0
}

func isConstraint(err error) bool { return resultCode(err)&0xff == sqlite3.SQLITE_CONSTRAINT }

// unavailable is what the caller gets for trouble of the store: it wraps
// event.ErrUnavailable and the cause.
func unavailable(doing string, err error) error {
	if errors.Is(err, event.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%s: %w: %w", doing, event.ErrUnavailable, err)
}

// answerOf turns the error of one unit into what its caller gets: trouble of
// the store is ErrUnavailable, everything else stays as it is.
func answerOf(err error) error {
	if damageOf(err) > unitOnly {
		return unavailable("write", err)
	}
	return err
}

// keepCopy is what to do about a database that is damaged.
const keepCopy = ": keep a copy of it and of its -wal file, then restore a backup"

// damagedBackup is a backup that can not be restored: nothing is told of a
// backup of it.
type damagedBackup struct{ error }

func (d damagedBackup) Error() string { return strings.ReplaceAll(d.error.Error(), keepCopy, "") }
func (d damagedBackup) Unwrap() error { return d.error }
