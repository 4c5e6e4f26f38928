package store

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"modernc.org/sqlite"
)

// errReadOnlyDisk is what the kernel says on a read-only mount.
var errReadOnlyDisk error = syscall.EROFS

// LockPath and SocketPath are the files beside a database that belong to the
// running server: the lock that says that it runs, and its control socket.
func LockPath(database string) string   { return database + ".lock" }
func SocketPath(database string) string { return database + ".sock" }

// lock is the flock of a running server. It lies on a file of its own: a lock
// on the database itself would be SQLite's business. The kernel drops it when
// the process ends, however it ends; the file stays.
//
// The database's inode is locked too, against a server that has the same file
// by another name (a bind mount, a rename): its lock file is another one.
type lock struct {
	file  *os.File
	inode *os.File // nil where it could not be opened without harm
}

// acquire takes the lock or says ErrRunning with who has it.
func acquire(database string) (*lock, error) {
	path := LockPath(database)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, whatToDo(database, fmt.Errorf("open the lock file %s: %w", path, err))
	}
	if err := flock(file); err != nil {
		defer file.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		return nil, fmt.Errorf("%s: %w (process %s): stop it first, or give this one another database", database, ErrRunning, holder(file))
	}
	sameOwner(file, database)
	// The number is for people who read the file; the lock is what counts.
	if err := file.Truncate(0); err == nil {
		_, _ = file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &lock{file: file}, nil
}

// lockTries and lockPause are how long a lock that somebody has is waited for:
// Running has it for a moment.
const (
	lockTries = 100
	lockPause = 5 * time.Millisecond
)

func flock(file *os.File) (err error) {
	for range lockTries {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		time.Sleep(lockPause)
	}
	return err
}

// sameOwner gives the lock file to the owner of the database, where root took
// it first: the server, which runs as that owner, must be able to open it.
func sameOwner(file *os.File, database string) {
	if os.Geteuid() != 0 {
		return
	}
	about, err := os.Stat(database)
	if err != nil {
		return // it is made later, by whoever is here
	}
	if owner, ok := about.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 {
		_ = file.Chown(int(owner.Uid), int(owner.Gid)) // an owner who can not open it is told
	}
}

func holder(file *os.File) string {
	text := make([]byte, 20)
	n, _ := file.ReadAt(text, 0)
	if pid := strings.TrimSpace(string(text[:n])); pid != "" {
		return pid
	}
	return "unknown"
}

// holdInode takes the lock on the database file itself. flock(2) and the locks
// of SQLite do not see each other, but closing a second descriptor would drop
// POSIX ones of SQLite: without open file description locks it does nothing.
// The library knows which it has once it has locked a file.
func (l *lock) holdInode(database string) error {
	if !sqlite.OFDLockingEnabled() {
		return nil
	}
	file, err := os.Open(database)
	if err != nil {
		return fmt.Errorf("open %s to lock it: %w", database, err)
	}
	switch err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return errors.Join(fmt.Errorf("%s: %w by another name of the same file (a bind mount, or it was renamed while open): stop it first, or give this one another database",
			database, ErrRunning), file.Close())
	case err != nil:
		return errors.Join(fmt.Errorf("lock %s: %w", database, err), file.Close())
	}
	l.inode = file
	return nil
}

// linksOf is how many names a file has, 0 where there is none.
func linksOf(path string) (uint64, error) {
	about, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look at %s: %w", path, err)
	}
	if stat, ok := about.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink), nil
	}
	return 1, nil
}

// release gives the locks back, after the last connection was closed. Closing
// alone would leave them to a child that another goroutine is about to start:
// until its exec it has copies of all descriptors.
func (l *lock) release() error {
	var failed error
	for _, file := range []*os.File{l.inode, l.file} {
		if file != nil {
			failed = errors.Join(failed, syscall.Flock(int(file.Fd()), syscall.LOCK_UN), file.Close())
		}
	}
	return failed
}

// Running tells whether a server has the database open, without waiting and
// without creating anything.
func Running(database string) (bool, error) {
	full, err := locate(database, false)
	if err != nil {
		return false, err
	}
	file, err := os.Open(LockPath(full))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open the lock file: %w", err)
	}
	defer file.Close()
	switch err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("ask for the lock: %w", err)
	}
	return false, nil
}
