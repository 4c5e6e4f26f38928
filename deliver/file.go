package deliver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"creel/event"
)

// write makes the file of a shipment: a temporary file beside its place, then
// its name. Everything goes through os.Root, which follows no link out of the
// folder.
//
// A crash before the name leaves a temporary file, which the next attempt
// replaces; one after it leaves the whole file, which that one finds equal.
func (d *Folder) write(s *event.Shipment) error {
	body, err := partOf(s.Payload)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnwritable, err)
	}
	if s.Target == "" {
		return fmt.Errorf("%w: its path: there is none, because its destination was no folder then", errUnwritable)
	}
	if err := event.CheckPath(s.Target); err != nil {
		return fmt.Errorf("%w: its path: %w", errUnwritable, err)
	}
	root, err := os.OpenRoot(d.folder)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoFolder, err)
	}
	defer root.Close()
	there, err := isThere(root, s.Target, body)
	if err != nil {
		return err
	}
	folder := path.Dir(s.Target)
	if !there {
		if err := d.makeFolders(root, folder); err != nil {
			return err
		}
		temporary := path.Join(folder, event.TemporaryFile+event.WebhookID(s.Key, d.name+"\x00"+s.Target))
		if err := d.place(root, temporary, s.Target, body); err != nil {
			return err
		}
	}
	// Also for a file that was there: the attempt that made it may have ended
	// before this.
	return syncFolder(root, folder)
}

// isThere tells whether the file stands there already, with this very content.
func isThere(root *os.Root, name string, body []byte) (bool, error) {
	about, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case errors.Is(err, syscall.ENOTDIR):
		return false, fmt.Errorf("a part of %s is a file: %w", name, errTaken)
	case err != nil:
		return false, fmt.Errorf("looking for the file: %w", err)
	case !about.Mode().IsRegular(), about.Size() != int64(len(body)):
		return false, fmt.Errorf("%s: %w", name, errTaken)
	}
	f, err := root.Open(name)
	if err != nil {
		return false, fmt.Errorf("reading the file that is there: %w", err)
	}
	defer f.Close()
	have, err := io.ReadAll(io.LimitReader(f, int64(len(body))+1))
	if err != nil {
		return false, fmt.Errorf("reading the file that is there: %w", err)
	}
	if !bytes.Equal(have, body) {
		return false, fmt.Errorf("%s: %w", name, errTaken)
	}
	return true, nil
}

// folderMode lets those into a folder who may read the files in it.
func (d *Folder) folderMode() fs.FileMode { return d.mode | 0o700 | (d.mode&0o044)>>2 }

// makeFolders makes the folders that a path leads through, and syncs the one
// around each: a file that is on the disk must be found there.
func (d *Folder) makeFolders(root *os.Root, folder string) error {
	if folder == "." {
		return nil
	}
	around, name := ".", ""
	for segment := range strings.SplitSeq(folder, "/") {
		name = path.Join(name, segment)
		err := root.Mkdir(name, 0o700)
		switch {
		case err == nil:
			if err := root.Chmod(name, d.folderMode()); err != nil { // whatever the umask
				return fmt.Errorf("making a folder: %w", err)
			}
			if err := syncFolder(root, around); err != nil {
				return err
			}
		case !errors.Is(err, fs.ErrExist):
			return fmt.Errorf("making a folder: %w", err)
		}
		around = name
	}
	return nil
}

// place writes the body under the delivery's own temporary name and then gives
// it its path, unless something stands there by then: a link, in contrast to a
// rename, replaces nothing.
func (d *Folder) place(root *os.Root, temporary, name string, body []byte) error {
	if err := removed(root, temporary); err != nil { // of an attempt that was cut off
		return err
	}
	if err := d.fill(root, temporary, body); err != nil {
		return errors.Join(err, removed(root, temporary))
	}
	err := root.Link(temporary, name)
	if errors.Is(err, fs.ErrExist) {
		_, err = isThere(root, name, body)
		return errors.Join(err, removed(root, temporary))
	}
	if err == nil {
		return removed(root, temporary)
	}
	if !hasNoLinks(err) {
		return errors.Join(fmt.Errorf("naming the file: %w", err), removed(root, temporary))
	}
	if err := root.Rename(temporary, name); err != nil {
		return errors.Join(fmt.Errorf("naming the file: %w", err), removed(root, temporary))
	}
	return nil
}

// hasNoLinks tells whether a file system knows no second name of a file (FAT,
// some network file systems).
func hasNoLinks(err error) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.EOPNOTSUPP) ||
		errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.EMLINK)
}

// fill writes the body and waits until it is on the disk.
func (d *Folder) fill(root *os.Root, name string, body []byte) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, d.mode)
	if err != nil {
		return fmt.Errorf("making the file: %w", err)
	}
	_, err = f.Write(body)
	if err == nil {
		err = f.Chmod(d.mode) // whatever the umask
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing the file: %w", err)
	}
	return nil
}

// removed removes a temporary file, which may not have been made.
func removed(root *os.Root, name string) error {
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the temporary file: %w", err)
	}
	return nil
}

// syncFolder waits until the names in a folder are on the disk.
func syncFolder(root *os.Root, name string) error {
	f, err := root.Open(name)
	if err != nil {
		return fmt.Errorf("opening the folder: %w", err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) { // some file systems sync no folder
		return fmt.Errorf("syncing the folder: %w", err)
	}
	return nil
}
