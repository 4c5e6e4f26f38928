package drill

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"creel/app"
	"creel/event"
	"creel/handlers"
	"creel/jobs"
)

const (
	// killFile is the database that a child works on.
	killFile = "kills.db"
	// waiting is the template with every event in it, none of them begun.
	waitingFile = "waiting"
	// perRound is how often one database is left by a killed process.
	perRound = 3
	// childLimit is how long a child may take.
	childLimit = 5 * time.Minute
	// mark is what a child says before it writes.
	mark = '.'
	// lastMoment is the most that a child lives on after the mark at which it is
	// to be killed: about as long as one transaction takes.
	lastMoment = 2 * time.Millisecond
)

// LiveOptions are what a child process works with.
type LiveOptions struct {
	Snapshot *app.Snapshot
	Handlers *handlers.Registry
	Folder   string
	Now      func() time.Time
	Mark     func() error // is called before each write
}

// Live is the child's part: it works off what waits in the scratch folder, as a
// server does after its start, until nothing is left.
func Live(ctx context.Context, opt LiveOptions) (err error) {
	snap, err := offline(opt.Snapshot, opt.Handlers)
	if err != nil {
		return err
	}
	m := &marked{mark: opt.Mark}
	// A kill costs the event an attempt that was alone in the process's hands.
	s, err := openScene(ctx, snap, filepath.Join(opt.Folder, killFile), opt.Now(), perRound, func(inbox jobs.Inbox) jobs.Inbox {
		m.Inbox = inbox
		return m
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if _, err := s.store.Recover(ctx, s.clock.now(), nil); err != nil {
		return err
	}
	return s.finish(ctx)
}

// marked says when something is about to be written.
type marked struct {
	jobs.Inbox
	mark func() error
}

// Settle implements jobs.Inbox.
func (m *marked) Settle(ctx context.Context, now time.Time, finishes []event.Finish, claim int) ([]event.Finished, []event.Work, error) {
	if err := m.mark(); err != nil {
		return nil, nil, fmt.Errorf("nobody listens any more: %w", err)
	}
	// One at a time: there are more moments to be killed at.
	return m.Inbox.Settle(ctx, now, finishes, min(claim, 1))
}

// killed has a process work the events off, kills it at random moments and
// starts it again, until it has come to its end.
func (d *drill) killed(ctx context.Context) error {
	if d.opt.Kills == 0 {
		return nil
	}
	if err := d.fill(ctx); err != nil {
		return err
	}
	marks := len(d.pieces)
	// A child that ends before its time is over is not killed: try again.
	for rounds := 0; d.kills < d.opt.Kills && rounds < 2*d.opt.Kills+2; rounds++ {
		if err := copyFile(filepath.Join(d.folder, waitingFile+".db"), filepath.Join(d.folder, killFile)); err != nil {
			return err
		}
		left, err := d.lives(ctx, &marks)
		if err != nil {
			return err
		}
		d.found(sceneKills, d.compare(d.base, left), func(r *subject, diff *difference) Finding {
			if diff.path || r.has(sceneOrder) {
				return Finding{} // what a crash takes back comes again a little later
			}
			return Finding{Verdict: Failure, Reason: "a killed process leaves something else: " + diff.String(),
				Hint: "look for what a Go handler does by itself; if the rule has none, please report it"}
		})
	}
	return nil
}

// fill makes the database in which every event waits.
func (d *drill) fill(ctx context.Context) error {
	s, err := d.open(ctx, waitingFile)
	if err != nil {
		return err
	}
	for _, p := range d.pieces {
		if err == nil {
			err = s.accept(ctx, p, "")
		}
		s.clock.set(s.clock.now().Add(time.Millisecond))
	}
	return errors.Join(err, s.close())
}

// lives runs children on one database until one comes to its end, and reads what
// they left. marks is how many marks a whole life has, as far as it is known.
func (d *drill) lives(ctx context.Context, marks *int) (left outcome, err error) {
	for life := 0; ; life++ {
		at := 0
		if life < perRound && d.kills < d.opt.Kills {
			at = 1 + d.random.IntN(max(*marks, 1))
		}
		killed, seen, err := d.life(ctx, at)
		if err != nil {
			return left, err
		}
		if !killed {
			if life == 0 {
				*marks = seen
			}
			break
		}
		d.kills++
	}
	s, err := openScene(ctx, d.snap, filepath.Join(d.folder, killFile), d.opt.Now(), 0, nil)
	if err != nil {
		return left, err
	}
	left, err = s.outcome(ctx, d.own)
	return left, errors.Join(err, s.close())
}

// life runs one child and kills it shortly after a mark; at 0 lets it live.
func (d *drill) life(ctx context.Context, at int) (killed bool, seen int, err error) {
	ctx, cancel := context.WithTimeout(ctx, childLimit)
	defer cancel()
	cmd := d.opt.Child(ctx, d.folder)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, 0, fmt.Errorf("start a child: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return false, 0, fmt.Errorf("start a child: %w", err)
	}
	for marks := bufio.NewReader(out); ; {
		b, err := marks.ReadByte()
		if err != nil {
			break // it has ended
		}
		if b != mark {
			continue
		}
		if seen++; seen == at {
			time.Sleep(time.Duration(d.random.Int64N(int64(lastMoment))))
			_ = cmd.Process.Kill() // it may have ended
		}
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil && seen >= at && at > 0 {
		if status, is := exit.Sys().(syscall.WaitStatus); is && status.Signaled() && status.Signal() == syscall.SIGKILL {
			return true, seen, nil
		}
	}
	if err != nil {
		return false, seen, fmt.Errorf("a child did not come to its end: %w\n%s", err, bytes.TrimSpace(complaint.Bytes()))
	}
	return false, seen, nil
}
