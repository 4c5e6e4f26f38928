package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"creel/event"
)

// batch submits units while the writer is busy, so that they end up in one
// transaction, and returns what each was answered.
func batch(t *testing.T, s *Store, runs ...func(*tx) error) []error {
	t.Helper()
	ctx := t.Context()
	busy, release := make(chan struct{}), make(chan struct{})
	blocker := &unit{done: func(error) {}, run: func(*tx) error {
		close(busy)
		<-release
		return nil
	}}
	must(t, s.submit(intake, blocker))
	<-busy
	answers := make([]error, len(runs))
	done := make(chan int, len(runs))
	for i, run := range runs {
		must(t, s.submit(intake, &unit{run: run, rows: 1, done: func(err error) {
			answers[i] = err
			done <- i
		}}))
	}
	close(release)
	for range runs {
		select {
		case <-done:
		case <-ctx.Done():
			t.Fatal("no answer")
		}
	}
	return answers
}

func names(t *testing.T, s *Store) []string {
	t.Helper()
	var all []string
	must(t, s.snapshot(t.Context(), func(snap snapshot) error {
		var joined string
		err := snap.row("SELECT ifnull(group_concat(name, ' '), '') FROM (SELECT name FROM app_test ORDER BY name)", nil, &joined)
		all = strings.Fields(joined)
		return err
	}))
	return all
}

// interrupted is what a cancelled context does to the write connection. The
// statement ends by itself after some seconds: an interrupt that comes before
// its first step is lost.
func interrupted(t *tx) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	s, err := t.c.prepare(`INSERT INTO app_test (name)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 10000000) SELECT 'n' || count(*) FROM n`)
	if err != nil {
		return err
	}
	_, err = s.execer.ExecContext(ctx, nil)
	return err
}

// failing is a unit that fails, and what it has to be answered.
type failing struct {
	run  func(*tx) error
	want func(error) bool
}

// failures are the ways to fail that are the unit's own.
func failures() map[string]failing {
	oops := errors.New("oops")
	return map[string]failing{
		"constraint": {put("good0", nil), isConstraint},
		"own error": {func(t *tx) error {
			_ = put("undone", nil)(t)
			return oops
		}, func(err error) bool { return errors.Is(err, oops) }},
		"panic": {func(t *tx) error {
			_ = put("undone", nil)(t)
			panic(oops)
		}, func(err error) bool { return errors.Is(err, errPanicked) && strings.Contains(err.Error(), "oops") }},
		"panic inside a query": {func(t *tx) error {
			return t.query("SELECT id FROM app_test", nil, func(row) error { panic("inside") })
		}, func(err error) bool { return errors.Is(err, errPanicked) }},
		"bad SQL": {func(t *tx) error {
			_, err := t.exec("INSERT INTO nowhere VALUES (1)")
			return err
		}, func(err error) bool { return err != nil }},
		"bad argument": {func(t *tx) error {
			_, err := t.exec("INSERT INTO app_test (name) VALUES (?)", struct{}{})
			return err
		}, func(err error) bool { return err != nil }},
		"interrupt": {func(t *tx) error {
			_ = put("undone", nil)(t)
			return interrupted(t)
		}, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
		"interrupt, passed over": {func(t *tx) error {
			_ = t.note(interrupted(t))
			_ = put("undone", nil)(t)
			return nil
		}, func(err error) bool { return err != nil }},
		"conflict that rolls back, passed over": {func(t *tx) error {
			_, _ = t.exec("INSERT OR ROLLBACK INTO app_test (name) VALUES ('good0')")
			_ = put("undone", nil)(t)
			return nil
		}, isConstraint},
	}
}

// tooLarge are the ways to find the disk full: at a statement, and when the
// batch packs what its requests carried.
func tooLarge() map[string]failing {
	body := make([]byte, 1<<20)
	full := func(err error) bool { return errors.Is(err, event.ErrUnavailable) }
	return map[string]failing{
		"full": {func(t *tx) error {
			if err := capPages(t); err != nil {
				return err
			}
			return put("undone", body)(t)
		}, full},
		"full, at the end of the batch": {func(t *tx) error {
			if err := capPages(t); err != nil {
				return err
			}
			payload, _, err := t.place(len(body))
			if err != nil {
				return err
			}
			t.carry(payload, body, "", "")
			return put("undone", nil)(t)
		}, full},
	}
}

// capPages leaves the database a few pages to grow.
func capPages(t *tx) error {
	pages, err := t.c.value("PRAGMA page_count")
	if err != nil {
		return err
	}
	_, err = t.c.value(fmt.Sprintf("PRAGMA max_page_count = %d", pages.(int64)+8))
	return err
}

func TestGateA15OneFailingUnitHurtsNobodyElse(t *testing.T) {
	t.Parallel()
	kinds := failures()
	maps.Copy(kinds, tooLarge())
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			must(t, s.write(t.Context(), intake, 1, put("good0", nil)))
			answers := batch(t, s, put("good1", nil), put("good2", nil), kind.run, put("good3", nil), put("good4", nil))
			for i, err := range answers {
				if i == 2 {
					if !kind.want(err) {
						t.Errorf("failing unit answered %v", err)
					}
				} else if err != nil {
					t.Errorf("unit %d answered %v", i, err)
				}
			}
			if got, want := names(t, s), []string{"good0", "good1", "good2", "good3", "good4"}; !slices.Equal(got, want) {
				t.Errorf("stored %v, want %v", got, want)
			}
			if err := s.Healthy(); err != nil {
				t.Errorf("unhealthy after a failing unit: %v", err)
			}
		})
	}
}

func TestGateA15ManyFailingUnits(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	var runs []func(*tx) error
	var want []string
	for i := range 30 {
		switch name := fmt.Sprintf("u%02d", i); i % 3 {
		case 0:
			runs = append(runs, put(name, nil))
			want = append(want, name)
		case 1:
			runs = append(runs, put(fmt.Sprintf("u%02d", i-1), nil)) // a duplicate of the one before
		default:
			runs = append(runs, interrupted)
		}
	}
	for i, err := range batch(t, s, runs...) {
		if (err == nil) != (i%3 == 0) {
			t.Errorf("unit %d answered %v", i, err)
		}
	}
	if got := names(t, s); !slices.Equal(got, want) {
		t.Errorf("stored %v, want %v", got, want)
	}
}

// heldOnce is a statement whose next run tells that it was reached and waits.
type heldOnce struct {
	driver.StmtExecContext
	reached, release chan struct{}
	held             bool
}

func (h *heldOnce) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if !h.held {
		h.held = true
		close(h.reached)
		<-h.release
	}
	return h.StmtExecContext.ExecContext(ctx, args)
}

func TestGateA15NobodyIsAnsweredBeforeCommit(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	held := &heldOnce{reached: make(chan struct{}), release: make(chan struct{})}
	answer := make(chan error, 1)
	must(t, s.submit(intake, &unit{done: func(err error) { answer <- err }, run: func(t *tx) error {
		commit := t.c.statements[sqlCommit]
		held.StmtExecContext, commit.execer = commit.execer, held
		return put("a", nil)(t)
	}}))
	<-held.reached
	select {
	case err := <-answer:
		t.Fatalf("answered %v before COMMIT", err)
	default:
	}
	if n := count(t, s); n != 0 {
		t.Fatalf("%d rows are visible before COMMIT", n)
	}
	close(held.release)
	must(t, <-answer)
	if n := count(t, s); n != 1 {
		t.Fatalf("%d rows after COMMIT, want 1", n)
	}
}

func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	s := newStore(t, func(o *Options) { o.MaxQueue = 3 })
	busy, release := make(chan struct{}), make(chan struct{})
	must(t, s.submit(intake, &unit{done: func(error) {}, run: func(*tx) error {
		close(busy)
		<-release
		return nil
	}}))
	<-busy
	nothing := &unit{done: func(error) {}, run: func(*tx) error { return nil }}
	for range 3 {
		must(t, s.submit(intake, nothing))
	}
	if err := s.submit(intake, nothing); !errors.Is(err, event.ErrBusy) {
		t.Errorf("a full queue answered %v", err)
	}
	if err := s.submit(work, nothing); err != nil {
		t.Errorf("work must have places of its own: %v", err)
	}
	close(release)
}

func TestCallerMayLeaveAndTheWriteStillHappens(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	busy, release := make(chan struct{}), make(chan struct{})
	must(t, s.submit(intake, &unit{done: func(error) {}, run: func(*tx) error {
		close(busy)
		<-release
		return nil
	}}))
	<-busy
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := s.write(gone, intake, 1, put("late", nil)); !errors.Is(err, event.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("answered %v", err)
	}
	close(release)
	must(t, s.write(t.Context(), intake, 1, put("after", nil)))
	if n := count(t, s); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
}

func TestWorkGivesWayToIntake(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	busy, release := make(chan struct{}), make(chan struct{})
	must(t, s.submit(work, &unit{done: func(error) {}, run: func(*tx) error {
		close(busy)
		<-release
		return nil
	}}))
	<-busy
	var order []string // the writer's goroutine alone appends
	finished := make(chan struct{})
	const slow = 3
	for i := range slow {
		must(t, s.submit(work, &unit{done: func(error) {
			order = append(order, "work")
			if i == slow-1 {
				close(finished)
			}
		}, run: func(*tx) error {
			if i == 0 {
				must(t, s.submit(intake, &unit{run: put("a", nil), done: func(error) { order = append(order, "intake") }}))
			}
			for start := time.Now(); time.Since(start) <= workBudget; {
			}
			return nil
		}}))
	}
	close(release)
	<-finished
	if at := slices.Index(order, "intake"); at == slow || at < 0 {
		t.Errorf("intake waited for all work: %v", order)
	}
}

func TestCloseStoresWhatWaits(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	busy, release := make(chan struct{}), make(chan struct{})
	must(t, s.submit(intake, &unit{done: func(error) {}, run: func(*tx) error {
		close(busy)
		<-release
		return nil
	}}))
	<-busy
	answer := make(chan error, 1)
	must(t, s.submit(intake, &unit{run: put("last", nil), done: func(err error) { answer <- err }}))
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	close(release)
	must(t, <-answer)
	must(t, <-closed)
	if err := s.write(t.Context(), intake, 1, put("late", nil)); !errors.Is(err, ErrClosed) || !errors.Is(err, event.ErrUnavailable) {
		t.Errorf("a closed store answered %v", err)
	}
}
