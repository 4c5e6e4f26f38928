package drill

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const (
	// folderPattern names the scratch folders.
	folderPattern = "creel-drill-*"
	// inUse is the file in a scratch folder whose flock says that its drill goes
	// on. The kernel drops it when the process ends, however it ends. A folder
	// without it is somebody's to keep.
	inUse = "drill.lock"
)

// scratchFolder is where a drill writes.
type scratchFolder struct {
	path string
	lock *os.File
}

// makeFolder makes a scratch folder, and removes those that killed drills left:
// they hold copies of events.
func makeFolder() (*scratchFolder, error) {
	sweep(os.TempDir())
	path, err := os.MkdirTemp("", folderPattern) // mode 0700
	if err != nil {
		return nil, fmt.Errorf("make a scratch folder: %w", err)
	}
	// Locked before it has its name: nobody finds it without its lock.
	unnamed := filepath.Join(path, inUse+".new")
	lock, err := os.OpenFile(unnamed, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make a scratch folder: %w", errors.Join(err, os.RemoveAll(path)))
	}
	if err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		err = os.Rename(unnamed, filepath.Join(path, inUse))
	}
	if err != nil {
		return nil, fmt.Errorf("make a scratch folder: %w", errors.Join(err, lock.Close(), os.RemoveAll(path)))
	}
	return &scratchFolder{path, lock}, nil
}

// leave ends the use of the folder, which is removed unless it is to be kept.
func (f *scratchFolder) leave(keep bool) error {
	if keep {
		return errors.Join(os.Remove(filepath.Join(f.path, inUse)), f.lock.Close())
	}
	return errors.Join(os.RemoveAll(f.path), f.lock.Close())
}

// sweep removes the scratch folders of ours in which nobody works any more. What
// can not be removed now is left to the next drill.
func sweep(in string) {
	paths, _ := filepath.Glob(filepath.Join(in, folderPattern)) // the pattern is a constant
	for _, path := range paths {
		stat, err := os.Lstat(path)
		if err != nil || !stat.IsDir() {
			continue
		}
		if owner, is := stat.Sys().(*syscall.Stat_t); !is || int(owner.Uid) != os.Getuid() {
			continue
		}
		lock, err := os.OpenFile(filepath.Join(path, inUse), os.O_RDWR|syscall.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(path)
		}
		_ = lock.Close()
	}
}
