package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	sqlite3 "modernc.org/sqlite/lib"
)

// locate makes the path absolute and sees that its directory can hold a
// database: it exists, is on a local disk, and is writable where write is
// asked for.
func locate(path string, write bool) (string, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", path, err)
	}
	if real, err := filepath.EvalSymlinks(full); err == nil {
		full = real // the WAL and the lock lie beside the file itself
	} else if to, failed := os.Readlink(full); failed == nil {
		return "", fmt.Errorf("%s is a link to %s, which is not there: make the folder and an empty file, or set database to the file itself", full, to)
	}
	dir := filepath.Dir(full)
	switch stat, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("directory %s does not exist: create it, writable for the server's user alone (mode 0700)", dir)
	case err != nil:
		return "", fmt.Errorf("look at directory %s: %w", dir, err)
	case !stat.IsDir():
		return "", fmt.Errorf("%s is not a directory: set database to a path inside one", dir)
	}
	if stat, err := os.Stat(full); err == nil && !stat.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a file: set database to the path of a file", full)
	}
	if write {
		return full, localDisk(dir)
	}
	return full, nil
}

// create makes an empty database file that nobody else may read; SQLite gives
// its WAL and index the same mode. The directory is synced, so that the name
// outlives a power loss. An existing file is left as it is. It tells whether
// the file is new.
func create(path string) (bool, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, whatToDo(path, fmt.Errorf("create %s: %w", path, err))
	}
	if err := file.Close(); err != nil {
		return false, fmt.Errorf("create %s: %w", path, err)
	}
	return true, syncDirectory(filepath.Dir(path))
}

func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("open directory %s: %w", dir, err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync directory %s: %w", dir, err)
	}
	return nil
}

// recognise refuses a database of something else before the first writing
// connection would change its journal. It only reads; trouble of any other
// kind is left to the writing connection, which tells it better.
func recognise(path string, o Options, extra []string) error {
	c, err := connect(dataSource(path, readerSettings(o.BusyTimeout), append(slices.Clone(extra), "mode=ro")...))
	if err != nil {
		return nil
	}
	_, err = schemaOf(c)
	if closed := c.close(); err == nil {
		err = closed
	}
	if errors.Is(err, ErrForeign) {
		return err
	}
	return nil
}

// openWriter opens the write connection and reads its settings back.
func openWriter(dsn string, o Options) (*connection, error) {
	c, err := connect(dsn)
	if err != nil {
		return nil, err
	}
	if err = verify(c, writerSettings(o.BusyTimeout)); err == nil {
		err = verifyVersion(c)
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// whatToDo completes an error of opening with the path and a next step.
func whatToDo(path string, err error) error {
	dir := filepath.Dir(path)
	switch resultCode(err) & 0xff {
	case sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%s: %w: %w: set database to another path, or restore a backup", path, ErrForeign, err)
	case sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("%s: %w: %w%s", path, ErrCorrupt, err, keepCopy)
	case sqlite3.SQLITE_BUSY:
		return fmt.Errorf("%s: %w: another program holds it: find it with fuser", path, err)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		return fmt.Errorf("%s: %w: %s needs to write the file, its -wal and -shm, and directory %s", path, err, whoseIs(path), dir)
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("%s: %w: make room on the disk of %s", path, err, dir)
	}
	if errors.Is(err, ErrForeign) || errors.Is(err, ErrNewer) || errors.Is(err, ErrOlder) {
		return fmt.Errorf("%s: %w", path, err)
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errReadOnlyDisk) {
		return fmt.Errorf("%w: %s needs to write directory %s", err, whoseIs(path), dir)
	}
	return err
}

// whoseIs names who runs this, and whose the file is where it is another's: a
// command is run as the server's user.
func whoseIs(path string) string {
	me := os.Getuid()
	for _, at := range []string{path, filepath.Dir(path)} {
		about, err := os.Stat(at)
		if err != nil {
			continue
		}
		if stat, ok := about.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != me {
			return fmt.Sprintf("this process runs as uid %d, and %s belongs to uid %d: run it as that user or as root, who", me, at, stat.Uid)
		}
		break
	}
	return fmt.Sprintf("the user of this process (uid %d)", me)
}
