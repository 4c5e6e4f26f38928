package store

import (
	"fmt"
	"time"

	"creel/event"
)

const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// trouble is why the store can not write now. While it stands, writes are
// refused at once, and the writer tries by itself, with growing pauses, until
// one write succeeds.
type trouble struct {
	err    error
	damage damage
}

// errBroken says why a store that saw a failed sync answers nothing any more.
var errBroken = fmt.Errorf("a sync to disk failed, restart after checking the disk: %w", event.ErrUnavailable)

// note remembers an error that is the store's, not the unit's. A failed sync
// is final (the kernel may have dropped the pages and will call the next sync
// a success): the store is told to be left, once, through Fatal.
func (s *Store) note(err error) {
	if d := damageOf(err); d > unitOnly {
		s.fail(err, d)
	}
}

// fail is note for an error that is the store's whatever its code says.
func (s *Store) fail(err error, d damage) {
	if s.broken.Load() {
		return
	}
	before := s.trouble.Swap(&trouble{err: err, damage: d})
	if before == nil {
		s.counts.troubles.Add(1)
	}
	if before == nil || d == displaced && before.damage != d { // a new task for the operator
		s.log.Error().Err(err).Str(event.FieldPath, s.path).Str(event.FieldHint, hintFor(d)).Msg("store cannot write")
	}
	if d == beyondTrust {
		s.broken.Store(true)
		s.fatal <- err
	}
}

// recovered forgets the trouble after a write that succeeded.
func (s *Store) recovered() {
	if s.trouble.Load() == nil || s.broken.Load() {
		return
	}
	s.trouble.Store(nil)
	s.desk.actions.running.Go(s.regain)
	s.log.Info().Str(event.FieldPath, s.path).Msg("store writes again")
}

// refusal is the error for a write that is not even tried.
func (s *Store) refusal() error {
	if s.broken.Load() {
		return errBroken
	}
	if t := s.trouble.Load(); t != nil {
		return unavailable("write", t.err)
	}
	return nil
}

func hintFor(d damage) string {
	switch d {
	case outsideLock:
		return "another program holds a write transaction on the database: find it with fuser"
	case displaced:
		return displacedHint()
	case beyondTrust:
		return "a sync to disk failed: check the disk and its logs, then restart"
	}
	return "check free space, permissions and the disk; writing is tried again by itself"
}

// attention tells whether the writer has to wake by itself, and when.
func (w *writer) attention() (time.Duration, bool) {
	s := w.store
	if s.broken.Load() {
		return 0, false
	}
	if s.trouble.Load() != nil {
		w.retry = min(max(2*w.retry, firstRetry), lastRetry)
		return w.retry, true
	}
	if w.walOvergrown() {
		return w.truncation.pause(), true
	}
	return 0, false
}

// attend is what attention asked for.
func (w *writer) attend() {
	switch {
	case w.store.trouble.Load() != nil:
		w.tryAgain()
	case w.walOvergrown():
		w.truncate()
	}
}

// tryAgain opens the connection anew, unless only the lock or the names of the
// files were missing, and writes something that has to reach the disk. It opens
// no file but the one that it had: another one has none of what was stored, and
// with another WAL it would be damaged.
func (w *writer) tryAgain() {
	if w.seePlace() != nil {
		return
	}
	if d := w.store.trouble.Load().damage; d != outsideLock && d != displaced {
		if err := w.reopen(); err != nil {
			w.store.fail(err, max(storeWide, damageOf(err)))
			return
		}
	}
	_ = w.transact(touch) // it notes its own failure and its success
}

// touch writes the header page as it is.
func touch(t *tx) error {
	version, err := t.c.value("PRAGMA user_version")
	if err != nil {
		return t.note(err)
	}
	v, _ := version.(int64)
	_, err = t.exec(fmt.Sprintf("PRAGMA user_version = %d", v))
	return err
}

// reopen replaces the connection. What SQLite keeps of a failed one (locks, a
// half-written WAL index) goes with it.
func (w *writer) reopen() error {
	conn, err := openWriter(w.store.dsn, w.store.options)
	if err != nil {
		return err
	}
	old := w.conn
	w.conn = conn
	if err := old.close(); err != nil {
		w.store.log.Warn().Err(err).Msg("closing the failed connection")
	}
	return nil
}
