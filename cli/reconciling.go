package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"

	"creel/admin"
)

const (
	// compareTick is how often it is shown how far a comparison is.
	compareTick = time.Second
	// compareEnd is how long one that was interrupted may take to end, and
	// comparePause the wait before it is asked for again.
	compareEnd   = 5 * time.Second
	comparePause = 50 * time.Millisecond
)

// compare has a source compared with its sender's list, shows how far it is, and
// ends it where somebody interrupts.
func (f *frame) compare(ctx context.Context, to admin.Bring, ask admin.AskReconcile) (admin.Reconciled, error) {
	running, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(running, stop) // the second one ends the process
	began := f.now()
	ended := make(chan struct{})
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		if !f.asJSON && isTerminal(f.err) {
			f.showComparing(running, to, ask.Source, ended)
		}
	}()
	done, err := to.Reconcile(running, ask)
	close(ended)
	<-shown
	switch {
	case running.Err() != nil && err != nil:
		return done, f.interrupted(ctx, to, ask, began)
	case err != nil:
		return done, failed("", "%w", err)
	}
	return done, nil
}

// showComparing rewrites one line until the comparison has ended.
func (f *frame) showComparing(ctx context.Context, to admin.Bring, name string, ended <-chan struct{}) {
	ticker := time.NewTicker(compareTick)
	defer ticker.Stop()
	defer fmt.Fprint(f.err, "\r\x1b[K")
	for {
		select {
		case <-ended:
			return
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if far, err := to.Reconciling(ctx, name); err == nil && !far.Ended { // a server of another version does not know
			fmt.Fprint(f.err, "\r\x1b[K"+comparingLine(far))
		}
	}
}

// comparingLine is how far a comparison is, on one line.
func comparingLine(far admin.Reconciling) string {
	text := fmt.Sprintf("%s, %s, %d missing", plural(far.Read.Pages, "page", "pages"), plural(far.Read.Listed, "event", "events"), far.Missing)
	if !far.Read.At.IsZero() {
		text += ", now at " + stamp(far.Read.At)
	}
	if !far.Read.Again.IsZero() {
		_, why, _ := strings.Cut(far.Read.Why, ": ") // the address is known
		text += "; again at " + far.Read.Again.Local().Format(time.TimeOnly) + ", after: " + printable(why)
	}
	return text
}

// interrupted waits for the end of a comparison and says what became of it.
func (f *frame) interrupted(ctx context.Context, to admin.Bring, ask admin.AskReconcile, began time.Time) error {
	var far admin.Reconciling
	var err error
	for until := f.now().Add(compareEnd); f.now().Before(until); {
		if far, err = to.Reconciling(ctx, ask.Source); err != nil || far.Ended || far.Began.Before(began.Truncate(time.Millisecond)) {
			break
		}
		if rest(ctx, comparePause) != nil {
			break
		}
	}
	switch {
	case err != nil || far.Began.Before(began.Truncate(time.Millisecond)):
		return &exit{code: exitFailed, err: errors.New("interrupted; creel audit tells whether anything was brought in")}
	case far.Recovered+far.Asked > 0:
		return &exit{code: exitPartly, err: errors.New("interrupted; " + far.Left())}
	}
	return &exit{code: exitFailed, err: errors.New("interrupted; " + far.Left())}
}

// isTerminal tells whether people read what is written.
func isTerminal(to io.Writer) bool {
	file, ok := to.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}
