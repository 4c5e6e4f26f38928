package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"creel/meter"
)

// Options says how a store is opened. Zero values take the defaults.
type Options struct {
	Path string
	Log  zerolog.Logger
	// Boot marks the claims of this run; random if empty.
	Boot string
	// MinFree is the free disk space in bytes under which intake stops; 0 is
	// no floor.
	MinFree int64
	// MaxQueue is how many units may wait, intake and work each. Default 4096.
	MaxQueue int
	// BusyTimeout is how long a write waits for an outside writer. Default 2 s.
	BusyTimeout time.Duration
	// Clock tells the time. Default time.Now.
	Clock func() time.Time

	vfs        string // tests put a failing disk here
	quietPages int    // and come to a checkpoint sooner
}

func (o Options) withDefaults() Options {
	if o.Boot == "" {
		o.Boot = rand.Text()[:8]
	}
	if o.MaxQueue <= 0 {
		o.MaxQueue = 4096
	}
	if o.BusyTimeout <= 0 {
		o.BusyTimeout = 2 * time.Second
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.quietPages <= 0 {
		o.quietPages = quietPages
	}
	return o
}

// Store is the database of one running server: one writer and the readers. Its
// methods may be called by any goroutine.
type Store struct {
	*Reader

	path    string
	dsn     string
	options Options
	log     zerolog.Logger
	lock    *lock
	place   place
	queue   *queue
	space   *space
	waiters sync.Pool
	stopped chan struct{} // closed when the writer has ended
	closing sync.Once
	closed  error

	trouble      atomic.Pointer[trouble]
	broken       atomic.Bool
	fatal        chan error
	checkpointed atomic.Pointer[Checkpoint]
	counts       counts

	desk // what inbox and outbox keep beside the rows
}

// counts are what the writer counts about itself.
type counts struct {
	batches, units, reruns, troubles atomic.Uint64
	checkpoints, checkpointErrors    atomic.Uint64
	checkpointsPartial               atomic.Uint64
	walBytes                         atomic.Int64
	commitTime, checkpointTime       *meter.Histogram
}

// Open opens the database for a server, creates or migrates it where needed,
// and starts the writer. A second server on the same file gets ErrRunning.
// Every error names the path and what to do. ctx bounds the opening alone.
func Open(ctx context.Context, options Options) (*Store, error) {
	o := options.withDefaults()
	if err := prepareLibrary(); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	path, err := locate(o.Path, true)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if err := lonely(path); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	held, err := acquire(path)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s, err := open(ctx, path, o, held)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open store: %w", whatToDo(path, err)), held.release())
	}
	return s, nil
}

// open does the work of Open under the lock.
func open(ctx context.Context, path string, o Options, held *lock) (*Store, error) {
	created, err := create(path)
	if err != nil {
		return nil, err
	}
	if created {
		logCreated(o, path)
	}
	var extra []string
	if o.vfs != "" {
		extra = append(extra, "vfs="+o.vfs)
	}
	if err := recognise(path, o, extra); err != nil {
		return nil, err
	}
	// Only now is it known which locks the library takes.
	if err := held.holdInode(path); err != nil {
		return nil, err
	}
	// It may not create the file: one that is gone when the connection is
	// opened anew must not become an empty one.
	dsn := dataSource(path, writerSettings(o.BusyTimeout), append(slices.Clone(extra), "mode=rw")...)
	conn, err := openWriter(dsn, o)
	if err != nil {
		return nil, err
	}
	w := &writer{conn: conn}
	reader, err := prepareFile(ctx, w, path, o, extra)
	if err != nil {
		return nil, errors.Join(err, w.conn.close())
	}
	stands, err := placeOf(path)
	if err != nil {
		return nil, errors.Join(err, reader.Close(), w.conn.close())
	}
	s := &Store{
		Reader:  reader,
		path:    path,
		dsn:     dsn,
		options: o,
		log:     o.Log,
		lock:    held,
		place:   stands,
		queue:   newQueue(o.MaxQueue),
		space:   newSpace(filepath.Dir(path), o.MinFree, o.Clock),
		stopped: make(chan struct{}),
		fatal:   make(chan error, 1),
		desk:    newDesk(o.Boot),
	}
	if err := s.findLanes(ctx); err != nil {
		return nil, errors.Join(err, reader.Close(), w.conn.close())
	}
	s.counts.commitTime, s.counts.checkpointTime = meter.NewHistogram(meter.Short()), meter.NewHistogram(meter.Short())
	s.waiters.New = func() any { return &waiter{answer: make(chan error, 1)} }
	w.store = s
	w.measureWAL()
	go w.loop()
	return s, nil
}

// prepareFile checks and migrates the database, then opens the readers.
func prepareFile(ctx context.Context, w *writer, path string, o Options, extra []string) (*Reader, error) {
	if err := inspect(w.conn, path); err != nil {
		return nil, err
	}
	if err := migrate(w.conn, o.Clock()); err != nil {
		return nil, err
	}
	if err := syncDirectory(filepath.Dir(path)); err != nil {
		return nil, err
	}
	return newReader(ctx, path, o.BusyTimeout, extra...)
}

// Close stops taking writes, commits what waits, closes every connection and
// gives the lock back. The WAL is copied into the database and removed. It
// may be called more than once.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.queue.close()
		<-s.stopped
		s.desk.actions.running.Wait()
		s.closed = errors.Join(s.closed, s.lock.release())
		if s.closed != nil {
			s.closed = fmt.Errorf("close store: %w", s.closed)
		}
	})
	return s.closed
}

// shut is the writer's end: the readers go first, so that the last connection
// can checkpoint.
func (w *writer) shut() {
	w.store.closed = errors.Join(w.store.Reader.Close(), w.conn.close())
}

// Fatal gives the one error after which the process should end: a sync to disk
// failed and only a restart, after the disk was looked at, tells what is on
// it. Everything is refused until then.
func (s *Store) Fatal() <-chan error { return s.fatal }

// Healthy is nil, or why writes do not work now. It looks whether the files are
// still there, so that their loss shows without traffic.
func (s *Store) Healthy() error {
	if err := s.refusal(); err != nil {
		return err
	}
	if err := s.seePlace(); err != nil {
		return err
	}
	return s.space.check()
}

// Path is the database file, absolute.
func (s *Store) Path() string { return s.path }

// Gauges is what the writer knows about itself, for metrics and the page.
type Gauges struct {
	Batches, Units, Reruns, Troubles uint64 // since start
	QueuedIntake, QueuedWork         int
	WALBytes                         int64 // when it was last measured, at each checkpoint
	Checkpoints, CheckpointErrors    uint64
	CheckpointsPartial               uint64     // of the checkpoints, those that a reader kept from copying all
	Checkpoint                       Checkpoint // the last one; zero before it
	CommitTime, CheckpointTime       meter.Reading
}

// Gauges reads the counters; it touches no disk.
func (s *Store) Gauges() Gauges {
	g := Gauges{
		Batches: s.counts.batches.Load(), Units: s.counts.units.Load(),
		Reruns: s.counts.reruns.Load(), Troubles: s.counts.troubles.Load(),
		WALBytes:    s.counts.walBytes.Load(),
		Checkpoints: s.counts.checkpoints.Load(), CheckpointErrors: s.counts.checkpointErrors.Load(),
		CheckpointsPartial: s.counts.checkpointsPartial.Load(),
		CommitTime:         s.counts.commitTime.Read(), CheckpointTime: s.counts.checkpointTime.Read(),
	}
	g.QueuedIntake, g.QueuedWork = s.queue.lens()
	if last := s.checkpointed.Load(); last != nil {
		g.Checkpoint = *last
	}
	return g
}
