package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Sizes is what the database takes of its disk, in bytes.
type Sizes struct {
	Database, WAL int64
	Free          int64 // what a user who is not root may still write there
}

// Sizes asks the file system; it reads nothing of the database.
func (s *Store) Sizes() (Sizes, error) {
	var sizes Sizes
	main, err := os.Stat(s.path)
	if err != nil {
		return Sizes{}, fmt.Errorf("ask for the size of the database: %w", err)
	}
	sizes.Database = main.Size()
	switch wal, err := os.Stat(s.path + "-wal"); {
	case err == nil:
		sizes.WAL = wal.Size()
	case !errors.Is(err, fs.ErrNotExist):
		return Sizes{}, fmt.Errorf("ask for the size of the WAL: %w", err)
	}
	sizes.Free, err = freeBytes(filepath.Dir(s.path))
	return sizes, err
}
