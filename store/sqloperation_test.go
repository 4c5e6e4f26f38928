package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"creel/event"
)

func sqlOf(k string, params []event.Field, statements ...string) event.SQL {
	return event.SQL{Key: k, Rule: "r", Statements: statements, Params: params}
}

const (
	insertAccount = "INSERT INTO app_account (id, credits) VALUES (:id, 10) ON CONFLICT (id) DO UPDATE SET credits = credits + 10"
	insertOrder   = "INSERT INTO app_order (id, account, amount) VALUES (:order, :id, :amount)"
)

// own are all tables that statements of the owner's write.
func (sc *scene) own() string {
	sc.t.Helper()
	var b strings.Builder
	for _, table := range []string{"operation", "app_account", "app_order", "app_log"} {
		b.WriteString(table + ":\n" + sc.rows(`SELECT * FROM `+table))
	}
	return b.String()
}

func newOwnScene(t testing.TB) *scene {
	t.Helper()
	sc := newScene(t)
	must(t, sc.bring(ownFolder(t, ownTables)))
	return sc
}

func TestGateA2StatementsTwice(t *testing.T) {
	t.Parallel()
	sc := newOwnScene(t)
	paid := sqlOf("invoice/7", field("id", "ann", "order", "o1", "amount", "100"), insertAccount, insertOrder)
	sc.decides(sc.run("a", paid), event.Applied)
	before := sc.own()
	sc.decides(sc.again("a", paid), event.AlreadyApplied, "its statements ran")
	sc.decides(sc.run("b", paid), event.AlreadyApplied, "gen//a did this operation")
	edited := paid
	edited.Rule, edited.Statements = "repaired", []string{"DELETE FROM app_order"}
	sc.decides(sc.run("c", edited), event.AlreadyApplied)
	want(t, "rows", sc.own(), before)

	other := sqlOf("invoice/7", field("id", "ann", "order", "o1", "amount", "200"), insertAccount, insertOrder)
	sc.dies("d", sc.run("d", other), event.ErrMismatch, `amount = "100"`, `amount = "200"`)
	want(t, "rows after a mismatch", sc.own(), before)
	want(t, "amount", sc.number(`SELECT amount FROM app_order WHERE typeof(amount) = 'integer'`), 100)
}

// One operation has one row, whichever form its key is stored in.
func TestStatementsUnderTheKeyOfAnEvent(t *testing.T) {
	t.Parallel()
	sc := newOwnScene(t)
	fields := field("id", "ann")
	long := strings.Repeat("k", 300)
	for _, k := range []string{"gen//a/r", "=odd/key", long} {
		sc.decides(sc.run("a"+k[:4], sqlOf(k, fields, insertAccount)), event.Applied)
		sc.decides(sc.run("b"+k[:4], sqlOf(k, fields, insertAccount)), event.AlreadyApplied)
	}
	sc.decides(sc.run("own", sqlOf("gen//own/r", fields, insertAccount)), event.Applied)
	sc.decides(sc.again("own", sqlOf("gen//own/r", fields, insertAccount)), event.AlreadyApplied)
	want(t, "credits", sc.number(`SELECT credits FROM app_account`), 40)
}

func TestStatementsFailWhole(t *testing.T) {
	t.Parallel()
	sc := newOwnScene(t)
	must(t, sc.bring(ownFolder(t, ownTables, `
		CREATE TABLE app_stock (id TEXT PRIMARY KEY, n INTEGER NOT NULL) STRICT;
		INSERT INTO app_stock VALUES ('box', 1);
		CREATE TRIGGER app_stock_left BEFORE UPDATE ON app_stock WHEN new.n < 0 BEGIN SELECT raise(ABORT, 'no box left'); END;
		CREATE TRIGGER app_stock_gone BEFORE DELETE ON app_stock BEGIN SELECT raise(ROLLBACK, 'stock stays'); END;
		CREATE TABLE app_item (id TEXT PRIMARY KEY, stock TEXT REFERENCES app_stock (id) DEFERRABLE INITIALLY DEFERRED);
	`)))
	must(t, sc.run("first", sqlOf("first", field("id", "ann"), insertAccount)).Err)
	for i, c := range []struct {
		statement string
		says      string
	}{
		{"INSERT INTO app_account (id) VALUES ('ann')", "UNIQUE constraint failed: app_account.id"},
		{"INSERT INTO app_order (id, account) VALUES ('o', 'ann')", "NOT NULL constraint failed: app_order.amount"},
		{"UPDATE app_account SET credits = -1", "CHECK constraint failed: credits >= 0"},
		{"INSERT INTO app_order (id, account, amount) VALUES ('o', 'nobody', 1)", "FOREIGN KEY constraint failed"},
		{"INSERT INTO app_item VALUES ('i', 'nothing')", "FOREIGN KEY constraint failed"},
		{"UPDATE app_stock SET n = n - 2", "no box left"},
		{"DELETE FROM app_stock", "stock stays"},
		{"INSERT OR ROLLBACK INTO app_account (id) VALUES ('ann')", "UNIQUE constraint failed: app_account.id"},
		{"INSERT OR FAIL INTO app_account (id) VALUES ('new'), ('ann')", "UNIQUE constraint failed: app_account.id"},
		{"UPDATE app_stock SET n = 'many'", "cannot store TEXT value in INTEGER column app_stock.n"},
		{"UPDATE app_stock SET n = abs(-9223372036854775807 - 1)", "integer overflow"},
	} {
		id := fmt.Sprint("e", i)
		got := sc.run(id, sqlOf(id, nil, "INSERT INTO app_log (line) VALUES ('first')", c.statement), recordOf(id), forward(event.Work{Event: event.Event{Key: key(id)}}, "app"))
		sc.dies(id, got, event.ErrRefused, c.says)
		if d := sc.detail(id); len(d.Deliveries) != 0 || d.Attempts != 1 {
			t.Errorf("%s: %d deliveries, %d attempts", c.statement, len(d.Deliveries), d.Attempts)
		}
	}
	for table, n := range map[string]int{"app_log": 0, "app_account": 1, "app_order": 0, "app_item": 0, "record": 0, "delivery": 0, "operation": 1} {
		want(t, table, sc.number(`SELECT count(*) FROM `+table), n)
	}
	want(t, "boxes", sc.number(`SELECT n FROM app_stock`), 1)
	must(t, sc.Healthy())
	// The owner repairs the cause and replays.
	sc.decides(sc.again("e0", sqlOf("e0", nil, "INSERT INTO app_log (line) VALUES ('again')")), event.Applied)
}

const endless = "INSERT INTO app_log (line) WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"

func TestStatementsHaveATimeBudget(t *testing.T) {
	t.Parallel()
	sc := newOwnScene(t)
	sc.LimitOwn(100 * time.Millisecond)
	for _, id := range []string{"slow", "x", "y"} {
		sc.receive(id)
	}
	works := sc.claim(3)
	begun := time.Now()
	got, _ := sc.settle(0,
		done(works[2], sqlOf("y", nil, "INSERT INTO app_log (line) VALUES ('y')")),
		done(works[0], sqlOf("slow", field("id", "ann"), insertAccount, endless), recordOf("slow")), done(works[1], recordOf("x")))
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	sc.undecided(works[0], got[1], event.ErrNotYet)
	if text := got[1].Err.Error(); !strings.Contains(text, `those of rule "r" took longer than 100ms`) {
		t.Errorf("it says %q", text)
	}
	must(t, got[0].Err)
	must(t, got[2].Err)
	want(t, "records", sc.number(`SELECT count(*) FROM record`), 1)
	want(t, "lines", sc.number(`SELECT count(*) FROM app_log`), 1)
	want(t, "accounts", sc.number(`SELECT count(*) FROM app_account`), 0)
	want(t, "operations", sc.number(`SELECT count(*) FROM operation`), 1)
	must(t, sc.Healthy())

	// The budget is of the event: many short statements do not get around it.
	sc.LimitOwn(400 * time.Millisecond)
	many := make([]string, 500)
	for i := range many {
		many[i] = "INSERT INTO app_log (line) WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 10000) SELECT count(*) FROM c"
	}
	sc.undecided(works[0], sc.finish(done(works[0], sqlOf("slow", nil, many...))), event.ErrNotYet)
	want(t, "lines", sc.number(`SELECT count(*) FROM app_log`), 1)
	must(t, sc.finish(done(works[0], sqlOf("slow", nil, "INSERT INTO app_log (line) VALUES ('quick')"))).Err)
}

// One comparison is one step: what a sender wrote must not make it last.
func TestAPatternOfASenderHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	for _, operator := range []string{"LIKE", "GLOB"} {
		sc := newOwnScene(t)
		sc.LimitOwn(100 * time.Millisecond)
		statement := "INSERT INTO app_log (line) SELECT 'found' WHERE :text " + operator + " :pattern"
		any := map[string]string{"LIKE": "%", "GLOB": "*"}[operator]
		params := field("text", strings.Repeat("a", 200_000), "pattern", any+strings.Repeat("a", 40_000)+"b")
		begun := time.Now()
		sc.dies("long", sc.runOwn("long", params, statement), event.ErrRefused, "pattern too complex")
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("%s took %s", operator, took)
		}
		params = field("text", strings.Repeat("a", 1000), "pattern", any+strings.Repeat("a", 255))
		must(t, sc.runOwn("short", params, statement).Err)
		want(t, "lines", sc.number(`SELECT count(*) FROM app_log`), 1)
	}
}

// A batch of slow events takes the time of one: the others are given back, with
// their attempts, and are due.
func TestStatementsOfABatchHaveATimeBudget(t *testing.T) {
	t.Parallel()
	sc := newOwnScene(t)
	sc.LimitOwn(50 * time.Millisecond)
	const n = 40
	for i := range n {
		sc.receive(fmt.Sprint("slow", i))
	}
	works := sc.claim(n)
	finishes := make([]event.Finish, n)
	for i, w := range works {
		finishes[i] = done(w, sqlOf(w.Key.ID, nil, endless))
	}
	want(t, "claimed", len(works), n)
	finished, again := sc.settle(n, finishes...)
	tried := 0
	for i, f := range finished {
		if !f.GivenBack {
			tried++
			sc.undecided(works[i], f, event.ErrNotYet)
			continue
		}
		must(t, f.Err)
	}
	if tried == 0 || tried > 2 {
		t.Errorf("%d of %d were tried", tried, n)
	}
	want(t, "claimed again", len(again), n-tried)
	for _, w := range again {
		want(t, "attempts", w.Attempts, 1)
	}
	want(t, "finishes of the caller", finishes[n-1].State, event.Done)
}

// Intake goes on between statements that use up their budget, and nothing that
// was accepted meanwhile is lost.
func TestStatementsDoNotHoldIntakeLongerThanOne(t *testing.T) {
	t.Parallel()
	sc := newOwnScene(t)
	const budget = 150 * time.Millisecond
	sc.LimitOwn(budget)
	const n = 6
	finishes := make([]event.Finish, n)
	for i := range n {
		w := sc.claimed(fmt.Sprint("slow", i))
		finishes[i] = done(w, sqlOf(w.Key.ID, nil, endless))
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for i := range finishes {
			if _, _, err := sc.Settle(context.Background(), sc.now, finishes[i:i+1], 0); err != nil {
				t.Error(err)
			}
		}
	}()
	var mu sync.Mutex
	accepted, longest := 0, time.Duration(0)
	for i := 0; ; i++ {
		select {
		case <-over:
		default:
			begun := time.Now()
			sc.receive(fmt.Sprint("beside", i))
			mu.Lock()
			accepted, longest = accepted+1, max(longest, time.Since(begun))
			mu.Unlock()
			continue
		}
		break
	}
	if accepted < n || longest > 2*budget+time.Second {
		t.Errorf("%d accepted beside %d slow events, the slowest in %s", accepted, n, longest)
	}
	want(t, "events", sc.number(`SELECT count(*) FROM event`), n+accepted)
}

func TestGateA4StatementsAndACrash(t *testing.T) {
	t.Parallel()
	sc := newOwnScene(t)
	paid := sqlOf("k", field("id", "ann"), insertAccount)
	// Before the finish: nothing.
	sc.claimed("a")
	sc.crash("boot2")
	_, err := sc.Recover(context.Background(), sc.now, nil)
	must(t, err)
	works := sc.claim(1)
	must(t, sc.finish(done(works[0], paid)).Err)
	want(t, "credits", sc.number(`SELECT credits FROM app_account`), 10)
	// After it, with a lost answer: the claim is gone, and the statements do not
	// run again.
	sc.crash("boot3")
	got := sc.finish(done(works[0], paid))
	if !errors.Is(got.Err, event.ErrClaimLost) {
		t.Errorf("%v, want %v", got.Err, event.ErrClaimLost)
	}
	want(t, "credits", sc.number(`SELECT credits FROM app_account`), 10)
}

// A claim that was lost while the statements ran takes back what they did.
func TestStatementsWithoutTheClaim(t *testing.T) {
	t.Parallel()
	sc := newOwnScene(t)
	w := sc.claimed("a")
	w.Claim = "boot0.1"
	got := sc.finish(done(w, sqlOf("k", field("id", "ann"), insertAccount)))
	if !errors.Is(got.Err, event.ErrClaimLost) {
		t.Errorf("%v, want %v", got.Err, event.ErrClaimLost)
	}
	want(t, "accounts", sc.number(`SELECT count(*) FROM app_account`), 0)
	want(t, "operations", sc.number(`SELECT count(*) FROM operation`), 0)
}

// The next events are claimed in the same call, also those that the statements
// left due.
func TestStatementsAndTheNextClaim(t *testing.T) {
	t.Parallel()
	sc := newOwnScene(t)
	w := sc.claimed("a")
	sc.receive("b")
	finished, works := sc.settle(5, done(w, sqlOf("k", field("id", "ann"), insertAccount), event.Forward{Key: "k", Rule: "r", Destination: "app", Claimed: true}))
	must(t, finished[0].Err)
	want(t, "shipments", len(finished[0].Shipments), 1)
	want(t, "works", len(works), 1)
	want(t, "state", sc.detail("a").State, event.Done)
}

func TestParametersAreTexts(t *testing.T) {
	t.Parallel()
	sc := newOwnScene(t)
	must(t, sc.bring(ownFolder(t, ownTables, `CREATE TABLE app_value (name TEXT, value, n INTEGER)`)))
	values := field("big", "123456789012345678901234567890", "empty", "", "int", "42", "quote", `'; DROP TABLE app_value; --`, "zero", "a\x00b", "raw", "\xff\xfe")
	var statements []string
	for _, f := range values {
		statements = append(statements, fmt.Sprintf("INSERT INTO app_value VALUES ('%s', :%s, CAST(:%[2]s AS INTEGER))", f.Name, f.Name))
	}
	must(t, sc.run("a", sqlOf("k", values, statements...)).Err)
	for _, f := range values {
		var got, kind string
		must(t, sc.row(context.Background(), `SELECT value, typeof(value) FROM app_value WHERE name = ?`, []any{f.Name}, &got, &kind))
		want(t, f.Name, got, f.Value)
		want(t, "type of "+f.Name, kind, "text")
	}
	want(t, "a number", sc.number(`SELECT n FROM app_value WHERE name = 'int' AND typeof(n) = 'integer'`), 42)
}

// An app on the same file reads what rules wrote, and writes its own.
func TestStatementsBesideAnApp(t *testing.T) {
	t.Parallel()
	sc := newOwnScene(t)
	must(t, sc.run("a", sqlOf("a", field("id", "ann"), insertAccount)).Err)
	outsider(t, sc.path, `UPDATE app_account SET credits = credits - 4 WHERE id = 'ann' AND credits >= 4`)
	must(t, sc.run("b", sqlOf("b", field("id", "ann"), insertAccount)).Err)
	want(t, "credits", sc.number(`SELECT credits FROM app_account`), 16)
}
