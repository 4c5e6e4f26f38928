package store

import (
	"fmt"
	"os"
	"time"

	"modernc.org/sqlite"
)

const (
	// quietPages is how many pages the writer lets into the WAL before it
	// copies them back while little happens (1 MB), busyPages under load (12
	// MB). Small checkpoints keep a steady stream's worst answers short: with a
	// million rows and random ids at 1,000/s, 250 pages halved the p99 of
	// 1,000. Under load one large one is cheaper than many small ones, because
	// pages that were written again are copied once. Both come after the batch
	// was answered, so a checkpoint delays the next batch alone.
	quietPages = 250
	busyPages  = 3000
	// quietBatch is the average batch, in units, up to which little happens.
	// The queue does not tell: it is empty for a moment after every batch, and
	// a small batch follows a large one.
	quietBatch = 8
	// truncateWait bounds how long a truncation waits for readers, with
	// intake behind it.
	truncateWait = 20 * time.Millisecond
)

// Checkpoint is the result of the last time that the writer copied the WAL
// back into the database.
type Checkpoint struct {
	At       time.Time
	Duration time.Duration
	Busy     bool  // a reader or an outside writer was in the way; normal
	Pages    int   // in the WAL
	Copied   int   // of those, so far
	Error    error // nil, or why it failed
	Truncate bool  // it also asked to cut the WAL file
}

// truncation is how the writer gets an overgrown WAL file back under its
// limit: only TRUNCATE shrinks a file while nobody writes, and readers keep it
// from it, so it is tried for a short time, again and again, ever less often.
type truncation struct {
	tries int
	after time.Time // not before
}

// pause grows from 100 ms to 30 s.
func (t *truncation) pause() time.Duration {
	return min(100*time.Millisecond<<min(t.tries, 10), 30*time.Second)
}

// keepWAL is the writer's housekeeping after a batch was answered: a passive
// checkpoint when enough pages were written, a truncation when the file is
// over its limit although it could start over.
func (w *writer) keepWAL() {
	if w.store.refusal() != nil {
		return
	}
	pages := w.pagesWritten()
	if pages >= busyPages || pages >= w.store.options.quietPages && w.pace <= quietBatch {
		w.checkpoint("PRAGMA wal_checkpoint(PASSIVE)", false)
		w.measureWAL()
	} else if w.walPages+pages > walLimit/pageSize {
		w.measureWAL()
	}
	if w.walOvergrown() && !w.store.options.Clock().Before(w.truncation.after) {
		w.truncate()
	}
}

// pagesWritten is how many pages this connection put into the WAL since the
// last checkpoint.
func (w *writer) pagesWritten() int {
	status, ok := w.conn.conn.(sqlite.DBStatus)
	if !ok {
		return busyPages
	}
	written, _, err := status.Status(sqlite.DBStatusCacheWrite, false)
	if err != nil {
		return busyPages
	}
	return written
}

// truncate waits a little for readers and cuts the WAL file.
func (w *writer) truncate() {
	busy := w.store.options.BusyTimeout
	if _, err := w.conn.value(fmt.Sprintf("PRAGMA busy_timeout = %d", min(busy, truncateWait).Milliseconds())); err != nil {
		w.store.note(err)
		return
	}
	w.checkpoint("PRAGMA wal_checkpoint(TRUNCATE)", true)
	if _, err := w.conn.value(fmt.Sprintf("PRAGMA busy_timeout = %d", busy.Milliseconds())); err != nil {
		w.store.note(err)
	}
	w.measureWAL()
	if !w.walOvergrown() {
		w.truncation = truncation{}
		return
	}
	w.truncation.tries++
	w.truncation.after = w.store.options.Clock().Add(w.truncation.pause())
}

// checkpoint runs one and keeps its result. A failed sync of the database file
// is beyond trust like that of the WAL: the next one would report a success
// for pages that the kernel has dropped.
//
// A crash in the middle leaves a WAL that is complete: the next open copies
// the same pages again.
func (w *writer) checkpoint(sql string, truncate bool) {
	result := Checkpoint{At: w.store.options.Clock(), Truncate: truncate}
	start := time.Now()
	t := tx{c: w.conn}
	result.Error = t.query(sql, nil, func(r row) error {
		result.Busy, result.Pages, result.Copied = r.bool(0), r.int(1), r.int(2)
		return nil
	})
	result.Duration = time.Since(start)
	w.store.checkpointed.Store(&result)
	w.walPages = result.Pages
	if result.Copied == result.Pages {
		w.walPages = 0 // the next write starts the WAL over, unless a reader still uses it
	}
	w.store.counts.checkpoints.Add(1)
	w.store.counts.checkpointTime.Observe(result.Duration)
	if result.Busy || result.Copied < result.Pages || result.Error != nil && damageOf(result.Error) <= outsideLock {
		w.store.counts.checkpointsPartial.Add(1)
	}
	if status, ok := w.conn.conn.(sqlite.DBStatus); ok {
		_, _, _ = status.Status(sqlite.DBStatusCacheWrite, true)
	}
	if damageOf(result.Error) > outsideLock {
		w.store.counts.checkpointErrors.Add(1)
		w.store.note(result.Error)
	}
}

// measureWAL looks at the size of the WAL file by its name: opening it would
// be SQLite's business.
func (w *writer) measureWAL() {
	var size int64
	if stat, err := os.Stat(w.store.path + "-wal"); err == nil {
		size = stat.Size()
	}
	w.store.counts.walBytes.Store(size)
}

// walOvergrown tells whether the WAL file was over its limit when it was last
// measured.
func (w *writer) walOvergrown() bool {
	return w.store.counts.walBytes.Load() > walLimit
}
