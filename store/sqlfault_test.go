package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rs/zerolog"
	sqlite3 "modernc.org/sqlite/lib"

	"creel/event"
)

// bigOrder has to spill pages while it runs.
const bigOrder = `INSERT INTO app_log (line) WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20)
	SELECT hex(randomblob(2000)) FROM c`

// Whichever operation of the disk fails while statements are settled: they ran
// once or not at all, together with the end of their event, and run when the
// worker comes again.
func TestGateA4StatementsOnAFailingDisk(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]int32{"full": sqlite3.SQLITE_FULL, "write": sqlite3.SQLITE_IOERR_WRITE} {
		for n := 1; ; n += stride(7) {
			if !statementsNthFails(t, n, code) {
				if n < 10 {
					t.Errorf("%s: only %d operations", name, n)
				}
				break
			}
		}
	}
}

func statementsNthFails(t *testing.T, n int, code int32) (hit bool) {
	t.Helper()
	d := newDisk(t)
	sc := &scene{t: t, path: t.TempDir() + "/creel.db", now: start}
	s, err := Open(t.Context(), Options{Path: sc.path, Log: zerolog.Nop(), Boot: "boot1", vfs: d.name, Clock: func() time.Time { return start }})
	must(t, err)
	sc.Store = s
	defer func() { must(t, sc.Close()) }()
	must(t, sc.bring(ownFolder(t, ownTables)))
	w := sc.claimed("a")
	finish := done(w, sqlOf("k", field("id", "ann"), insertAccount, bigOrder), recordOf("k"))
	d.set(func(i int, _ operation) int32 {
		if i == n {
			hit = true
			return code
		}
		return 0
	})
	first, _, err := sc.Settle(context.Background(), sc.now, []event.Finish{finish}, 0)
	d.set(nil)
	if err != nil && !errors.Is(err, event.ErrUnavailable) {
		t.Errorf("operation %d: %v", n, err)
	}
	eventually(t, "healthy again", func() bool { return sc.Healthy() == nil })
	again, _, err := sc.Settle(context.Background(), sc.now, []event.Finish{finish}, 0)
	must(t, err)
	if first[0].Err == nil && !errors.Is(again[0].Err, event.ErrClaimLost) {
		t.Errorf("operation %d: settled, and again with %v", n, again[0].Err)
	}
	if again[0].Err != nil && !errors.Is(again[0].Err, event.ErrClaimLost) {
		t.Errorf("operation %d: %v", n, again[0].Err)
	}
	for query, rows := range map[string]int{
		`SELECT credits FROM app_account`:  10,
		`SELECT count(*) FROM app_log`:     20,
		`SELECT count(*) FROM operation`:   1,
		`SELECT count(*) FROM record`:      1,
		`SELECT state = 'done' FROM event`: 1,
	} {
		want(t, query, sc.number(query), rows)
	}
	return hit
}

// Another program that holds the file is no fault of the event's.
func TestStatementsWaitForAnOutsideWriter(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	must(t, sc.Close())
	s, err := Open(t.Context(), Options{Path: sc.path, Log: zerolog.Nop(), Boot: "boot1", BusyTimeout: 50 * time.Millisecond, Clock: func() time.Time { return start }})
	must(t, err)
	sc.Store = s
	must(t, sc.bring(ownFolder(t, ownTables)))
	w := sc.claimed("a")
	outside, err := connect(s.dsn)
	must(t, err)
	_, err = outside.exec(sqlBegin, nil)
	must(t, err)
	finish := done(w, sqlOf("k", field("id", "ann"), insertAccount))
	if _, _, err := sc.Settle(context.Background(), sc.now, []event.Finish{finish}, 1); !errors.Is(err, event.ErrUnavailable) {
		t.Errorf("%v, want %v", err, event.ErrUnavailable)
	}
	must(t, outside.close())
	eventually(t, "healthy again", func() bool { return sc.Healthy() == nil })
	must(t, sc.finish(finish).Err)
	want(t, "credits", sc.number(`SELECT credits FROM app_account`), 10)
}

func BenchmarkStatements(b *testing.B) {
	sc := newScene(b)
	must(b, sc.bring(ownFolder(b, ownTables)))
	finishes := make([]event.Finish, 0, b.N)
	for i := range b.N {
		w := sc.claimed(string(rune('a'+i%26)) + time.Duration(i).String())
		finishes = append(finishes, done(w, sqlOf(w.Key.ID, field("id", w.Key.ID), insertAccount)))
	}
	b.ResetTimer()
	finished, _ := sc.settle(0, finishes...)
	for _, f := range finished {
		must(b, f.Err)
	}
}

func BenchmarkLicense(b *testing.B) {
	c, err := connect(dataSource(":memory:", shared(0)))
	must(b, err)
	defer func() { must(b, c.close()) }()
	for range b.N {
		must(b, c.licensed(ownStatements, func() error { return nil }))
	}
}
