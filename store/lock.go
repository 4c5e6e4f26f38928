package store

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
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
type lock struct{ file *os.File }

// acquire takes the lock or says ErrRunning with who has it.
func acquire(database string) (*lock, error) {
	path := LockPath(database)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, whatToDo(database, fmt.Errorf("open the lock file %s: %w", path, err))
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
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
	return &lock{file}, nil
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

// release gives the lock back.
func (l *lock) release() error { return l.file.Close() }

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
