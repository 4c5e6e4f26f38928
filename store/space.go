package store

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"creel/event"
)

// spaceAge is how old the answer of the last look at the disk may be.
const spaceAge = time.Second

// errLittleSpace says that intake stopped before the disk is full.
var errLittleSpace = errors.New("free disk space is under its floor")

// space is the free-space floor. It looks at the disk at most once a second,
// and only when somebody asks.
type space struct {
	dir   string
	floor int64
	clock func() time.Time
	free  func(dir string) (int64, error)

	looked atomic.Int64 // UnixNano of the last look
	low    atomic.Bool
	last   atomic.Int64 // bytes that were free then
}

func newSpace(dir string, floor int64, clock func() time.Time) *space {
	return &space{dir: dir, floor: floor, clock: clock, free: freeBytes}
}

// check is nil, or says that there is too little space for intake. Where the
// disk can not be asked it is nil: a write will tell.
func (s *space) check() error {
	if s.floor <= 0 {
		return nil
	}
	now, then := s.clock().UnixNano(), s.looked.Load()
	// Also when the clock was set back.
	if age := time.Duration(now - then); age >= spaceAge || age < 0 {
		if s.looked.CompareAndSwap(then, now) {
			s.look()
		}
	}
	if !s.low.Load() {
		return nil
	}
	return fmt.Errorf("%w: %w: %d bytes are free in %s, the floor is %d", event.ErrUnavailable, errLittleSpace, s.last.Load(), s.dir, s.floor)
}

func (s *space) look() {
	free, err := s.free(s.dir)
	if err != nil {
		return
	}
	s.last.Store(free)
	s.low.Store(free < s.floor)
}

// freeBytes is what a user who is not root may still write.
func freeBytes(dir string) (int64, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return 0, fmt.Errorf("ask for the free space of %s: %w", dir, err)
	}
	return int64(stat.Bavail) * int64(stat.Bsize), nil
}

// FreeBytes is the free space on the disk of the database; below 0 where it can
// not be asked.
func (s *Store) FreeBytes() int64 {
	free, err := s.space.free(s.space.dir)
	if err != nil {
		return -1
	}
	return free
}
