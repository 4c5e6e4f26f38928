package drill

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"creel/app"
	"creel/event"
	"creel/jobs"
	"creel/store"
)

// clock stands still until the scene moves it. Go handlers run beside the
// worker, which asks it then.
type clock struct{ millis atomic.Int64 }

func (c *clock) now() time.Time { return time.UnixMilli(c.millis.Load()).UTC() }

func (c *clock) set(at time.Time) { c.millis.Store(at.UnixMilli()) }

// nobody takes deliveries: they stay rows.
type nobody struct{}

func (nobody) Reserve(string) bool   { return false }
func (nobody) Unreserve(string)      {}
func (nobody) Hand([]event.Shipment) {}

// scene is one scratch database with a worker and a clock of its own.
type scene struct {
	snap   *app.Snapshot
	store  *store.Store
	worker *jobs.Worker
	clock  *clock
	path   string
}

// patience is how often a scene looks for what is due before it gives up: far
// beyond what any retry policy asks for.
const patience = 1_000_000

// open starts a scene on a copy of the template.
func (d *drill) open(ctx context.Context, name string) (*scene, error) {
	path := filepath.Join(d.folder, name+".db")
	if err := copyFile(filepath.Join(d.folder, template), path); err != nil {
		return nil, err
	}
	return openScene(ctx, d.snap, path, d.opt.Now(), 0, nil)
}

// openScene opens a scene's database. attempts are added to those that the
// worker's policy gives an event; inbox may stand before the store.
func openScene(ctx context.Context, snap *app.Snapshot, path string, now time.Time, attempts int, inbox func(jobs.Inbox) jobs.Inbox) (*scene, error) {
	s := &scene{snap: snap, clock: &clock{}, path: path}
	s.clock.set(now)
	var err error
	if s.store, err = store.Open(ctx, store.Options{Path: path, Log: zerolog.Nop(), Clock: s.clock.now}); err != nil {
		return nil, err
	}
	cfg := snap.Config
	s.store.LimitOwn(time.Duration(cfg.SQL.Timeout))
	policy := snap.EventPolicy
	policy.Attempts += attempts
	before := jobs.Inbox(s.store)
	if inbox != nil {
		before = inbox(before)
	}
	s.worker = jobs.NewWorker(jobs.WorkerOptions{
		Inbox: before, Shipper: nobody{}, Clock: s.clock.now, Jitter: func() float64 { return 0 }, Log: zerolog.Nop(),
		// Without fetchers nothing can be asked for.
		Rules:   func() jobs.Rules { return &jobs.Rulebook{Rules: snap.Rules} },
		Policy:  func() jobs.Policy { return policy },
		Timeout: func() time.Duration { return time.Duration(cfg.Worker.Timeout) },
		Batch:   cfg.Worker.Batch, Room: cfg.Worker.Batch, Slow: cfg.Worker.Slow,
	})
	return s, nil
}

func (s *scene) close() error { return s.store.Close() }

// accept takes an event in, as the receiver would. It waits in the file: what is
// handed over in memory comes a moment after the answer.
func (s *scene) accept(ctx context.Context, p *piece, more string) error {
	receipt := p.receipt(s.clock.now(), more)
	s.snap.Prepare(ctx, receipt)
	_, err := s.store.Accept(ctx, receipt)
	return err
}

// step does what is due now, a moment later than what was done before.
func (s *scene) step(ctx context.Context) error {
	_, err := s.worker.Step(ctx, s.clock.now())
	s.clock.set(s.clock.now().Add(time.Millisecond))
	return err
}

// finish does all that is due, at whatever time it is.
func (s *scene) finish(ctx context.Context) error {
	for range patience {
		if err := s.step(ctx); err != nil {
			return err
		}
		next, waiting, err := s.store.NextEvent(ctx)
		if err != nil || !waiting {
			return err
		}
		if next.After(s.clock.now()) {
			s.clock.set(next)
		}
	}
	return fmt.Errorf("after %d looks something is still due", patience)
}

// outcome is what a scene left.
type outcome struct {
	traces []store.Trace
	own    []store.OwnTable
}

func (s *scene) outcome(ctx context.Context, own []string) (out outcome, err error) {
	if out.traces, err = s.store.Traces(ctx); err != nil {
		return out, err
	}
	out.own, err = s.store.OwnRows(ctx, own)
	return out, err
}

// copyFile copies a database that nobody has open.
func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("copy the scratch database: %w", err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("copy the scratch database: %w", err)
	}
	_, err = io.Copy(out, in)
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("copy the scratch database: %w", err)
	}
	return nil
}
