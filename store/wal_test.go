package store

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

func TestBugSQL01ManyWritersNeverLocked(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	const writers, each = 50, 40
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				p := intake
				if w%3 == 0 {
					p = work
				}
				if err := s.write(t.Context(), p, 1, func(tx *tx) error { // reads, then writes
					if err := tx.query("SELECT count(*) FROM app_test", nil, func(row) error { return nil }); err != nil {
						return err
					}
					return put(fmt.Sprintf("%d-%d", w, i), nil)(tx)
				}); err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
			}
		})
	}
	group.Wait()
	if n := count(t, s); n != writers*each {
		t.Errorf("%d rows, want %d", n, writers*each)
	}
}

func walSize(t *testing.T, s *Store) int64 {
	t.Helper()
	stat, err := os.Stat(s.Path() + "-wal")
	must(t, err)
	return stat.Size()
}

func TestBugSQL03WALShrinksAfterALongReader(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	must(t, s.write(t.Context(), intake, 1, put("first", nil)))
	reading, release := make(chan struct{}), make(chan struct{})
	var group errGroup
	group.goes(func() error {
		return s.snapshot(t.Context(), func(snap snapshot) error {
			var n int
			if err := snap.row("SELECT count(*) FROM app_test", nil, &n); err != nil {
				return err
			}
			close(reading)
			<-release
			return nil
		})
	})
	<-reading
	for i := 0; walSize(t, s) <= walLimit+(1<<20); i++ {
		if i > 1000 {
			t.Fatal("the WAL does not grow beside a long reader: this test tests nothing")
		}
		must(t, s.write(t.Context(), intake, 1, put(fmt.Sprint(i), make([]byte, 256<<10))))
	}
	if g := s.Gauges(); g.Checkpoint.At.IsZero() || g.WALBytes <= walLimit {
		t.Errorf("the gauges do not show it: %+v", g)
	}
	close(release)
	must(t, group.wait())
	// Nobody writes any more: the writer finds out by itself.
	eventually(t, "WAL under its limit", func() bool { return walSize(t, s) <= walLimit })
	if err := s.Healthy(); err != nil {
		t.Error(err)
	}
}

func TestOverloadKeepsTheWALUnderItsLimit(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	var group sync.WaitGroup
	var largest int64
	for w := range 32 {
		group.Go(func() {
			for i := range 30 {
				if err := s.write(t.Context(), intake, 1, put(fmt.Sprintf("%d-%d", w, i), make([]byte, 32<<10))); err != nil {
					t.Error(err)
					return
				}
				if w == 0 {
					largest = max(largest, walSize(t, s))
				}
			}
		})
	}
	group.Wait()
	if largest > walLimit {
		t.Errorf("the WAL reached %d bytes, limit %d", largest, walLimit)
	}
}

// TestIdleStoreWritesNothing counts the operations of a store that nobody
// uses.
func TestIdleStoreWritesNothing(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	s := newStore(t, func(o *Options) { o.vfs = d.name })
	must(t, s.write(t.Context(), intake, 1, put("a", nil)))
	d.mu.Lock()
	d.n = 0
	d.mu.Unlock()
	batches := s.Gauges().Batches
	idle := time.NewTimer(300 * time.Millisecond)
	<-idle.C
	if n := count(t, s); n != 1 {
		t.Errorf("%d rows", n)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.n != 0 || s.Gauges().Batches != batches {
		t.Errorf("an idle store did %d disk operations and %d batches", d.n, s.Gauges().Batches-batches)
	}
}
