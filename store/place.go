package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"creel/event"
)

// errDisplaced says that commits go into files that nobody finds any more: a
// process keeps writing to what it has open, whatever becomes of its name.
var errDisplaced = errors.New("the database file was removed, moved or replaced while it was open")

// place is where the files of the open connection stand. SQLite makes the WAL
// when it opens the first connection and removes it with the last, so that it
// is one and the same file while the store is open
// (https://www.sqlite.org/walformat.html section 1.1).
type place []placed

type placed struct {
	path string
	file fs.FileInfo
}

// placeOf looks at the files of a database that has just been opened.
func placeOf(path string) (place, error) {
	var p place
	for _, name := range []string{path, path + "-wal"} {
		file, err := os.Stat(name)
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", name, err)
		}
		p = append(p, placed{name, file})
	}
	return p, nil
}

// check is nil while the same files stand at their paths, by device and inode.
// One that can not be looked at is not known to be there.
func (p place) check() error {
	for _, f := range p {
		now, err := os.Stat(f.path)
		if err != nil {
			return fmt.Errorf("%w: %w: %s", errDisplaced, err, displacedHint())
		}
		if !os.SameFile(now, f.file) {
			return fmt.Errorf("%w: %s is another file: %s", errDisplaced, f.path, displacedHint())
		}
	}
	return nil
}

func displacedHint() string {
	return fmt.Sprintf("put the same file back (a copy is another file) and writing goes on by itself; if that can not be, "+
		"copy it and its -wal from /proc/%d/fd to another folder while this process runs, stop the server, put the copies in place and start it",
		os.Getpid())
}

// seePlace is the writer's look at its files. While they are not where they
// were, writes are refused.
func (w *writer) seePlace() error {
	err := w.store.place.check()
	if err == nil {
		return nil
	}
	w.store.fail(err, displaced)
	return unavailable("write", err)
}

// seePlace is the look beside the writer, which is woken to watch for the
// files' return.
func (s *Store) seePlace() error {
	err := s.place.check()
	if err == nil {
		return nil
	}
	if s.queue.isClosed() {
		return ErrClosed // the last connection has removed the WAL itself
	}
	s.fail(err, displaced)
	s.queue.ring()
	return unavailable("write", err)
}

// lonely refuses a file that has further names: each would have a WAL and a
// lock of its own, and two servers would damage it.
func lonely(path string) error {
	links, err := linksOf(path)
	if err != nil || links <= 1 {
		return err
	}
	return fmt.Errorf("%s: %w (%d): keep one, by which everybody opens it; find the others with find -samefile and delete them, or start on a copy",
		path, ErrLinked, links)
}

// logCreated tells of a new database: an empty one where a full one was
// expected must be seen.
func logCreated(o Options, path string) {
	o.Log.Info().Str(event.FieldPath, path).Msg("database created")
}
