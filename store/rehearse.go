package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/rs/zerolog"

	"creel/event"
)

// Rehearsed tells what a start of this program made of a copy of a database.
type Rehearsed struct {
	Path   string        `json:"database"`
	From   int64         `json:"schema_from"` // its last step before
	To     int64         `json:"schema_to"`   // and now
	Events int64         `json:"events"`
	Bytes  int64         `json:"bytes"`  // of the file now
	Before int64         `json:"before"` // bytes of the file before
	Took   time.Duration `json:"-"`      // of bringing it forward
	Whole  time.Duration `json:"-"`      // of reading it whole, twice
}

const sqlOpenSources = `SELECT source, count(*) FROM event INDEXED BY event_open
	WHERE state <> 'done' AND (state = 'pending' OR state = 'claimed') GROUP BY source ORDER BY source`

// errDangling says that a row refers to one that is not there.
var errDangling = errors.New("a row refers to one that is not there")

// Rehearse does to a copy of a database what a start does first, and reads it
// whole before and after: it is brought forward, so it is to be a copy. One that
// a server has open is ErrRunning.
//
// A crash leaves the copy between two steps; another rehearsal goes on there.
func Rehearse(ctx context.Context, path string, now func() time.Time) (done Rehearsed, err error) {
	if err := prepareLibrary(); err != nil {
		return done, fmt.Errorf("rehearse: %w", err)
	}
	if done.Path, err = locate(path, true); err == nil {
		_, err = os.Stat(done.Path) // Open would make one
	}
	if err != nil {
		return done, fmt.Errorf("rehearse: %w", err)
	}
	if running, err := Running(done.Path); err != nil || running {
		return done, fmt.Errorf("rehearse: %s: %w", done.Path, errors.Join(err, ErrRunning))
	}
	began := time.Now()
	if done.From, done.Before, err = inspectWhole(ctx, done.Path); err == nil {
		err = comes(done.From)
	}
	if err != nil {
		return done, fmt.Errorf("rehearse: %w", err)
	}
	read := time.Since(began)
	began = time.Now()
	s, err := Open(ctx, Options{Path: done.Path, Log: zerolog.Nop(), Clock: now})
	if err != nil {
		return done, fmt.Errorf("rehearse: %w", err)
	}
	if err := s.Close(); err != nil {
		return done, fmt.Errorf("rehearse: %w", err)
	}
	done.Took = time.Since(began)
	began = time.Now()
	if done.To, done.Bytes, err = inspectWhole(ctx, done.Path); err == nil {
		done.Events, err = inspectCopy(ctx, done.Path)
	}
	done.Whole = read + time.Since(began)
	if err != nil {
		return done, fmt.Errorf("rehearse, after the schema was brought forward: %w", err)
	}
	return done, nil
}

// comes tells whether a schema is one that this program can bring forward; an
// empty file would become a database.
func comes(schema int64) error {
	all, err := steps()
	switch {
	case err != nil:
		return err
	case schema == 0:
		return ErrForeign
	case schema > int64(len(all)):
		return newer(schema, int64(len(all)))
	}
	return nil
}

// inspectWhole reads a file whole: its pages and indexes, and what rows refer to.
func inspectWhole(ctx context.Context, path string) (schema, bytes int64, err error) {
	r, err := newReader(ctx, path, time.Second)
	if err != nil {
		return 0, 0, whatToDo(path, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	answer := ""
	if err := r.db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&answer); err != nil {
		return 0, 0, whatToDo(path, err)
	}
	if answer != "ok" {
		return 0, 0, fmt.Errorf("%s: %w: %s", path, errDamaged, answer)
	}
	table := ""
	switch err := r.db.QueryRowContext(ctx, `SELECT "table" FROM pragma_foreign_key_check LIMIT 1`).Scan(&table); {
	case err == nil:
		return 0, 0, fmt.Errorf("%s: %w: in the table %s", path, errDangling, table)
	case !errors.Is(err, sql.ErrNoRows):
		return 0, 0, whatToDo(path, err)
	}
	var steps int64
	if err := r.db.QueryRowContext(ctx, sqlHasSteps).Scan(&steps); err != nil {
		return 0, 0, whatToDo(path, err)
	}
	if steps > 0 {
		if err := r.db.QueryRowContext(ctx, sqlLastStep).Scan(&schema); err != nil {
			return 0, 0, whatToDo(path, err)
		}
	}
	about, err := os.Stat(path)
	if err != nil {
		return 0, 0, err
	}
	return schema, about.Size(), nil
}

// OpenSources counts the events that are not decided yet, by source, in order of
// their names.
func (r *Reader) OpenSources(ctx context.Context) (names []string, counts map[string]int64, err error) {
	counts = map[string]int64{}
	err = r.list(ctx, sqlOpenSources, nil, func(r row) error {
		names = append(names, r.text(0))
		counts[r.text(0)] = r.int64(1)
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("count open events by source: %w", err)
	}
	return names, counts, nil
}

// Waiting counts what waits for a destination or is in doubt, and what is dead.
func (c *Census) Waiting(destination string) (waiting, dead int64) {
	of := c.Deliveries[destination]
	return of[event.DeliveryReady] + of[event.DeliveryWaiting] + of[event.DeliveryInDoubt], of[event.DeliveryDead]
}
