package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"creel/event"
)

// ownFolder writes migrations into a folder, 0001.sql for the first text.
func ownFolder(t testing.TB, texts ...string) string {
	t.Helper()
	folder := t.TempDir()
	for i, text := range texts {
		must(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("%04d.sql", i+1)), []byte(text), 0o600))
	}
	return folder
}

// bring brings the owner's tables forward.
func (sc *scene) bring(folder string) error {
	sc.t.Helper()
	steps, faults := ReadOwnSteps(folder)
	if len(faults) > 0 {
		return joinFaults(faults)
	}
	_, err := sc.ApplyOwnSteps(context.Background(), sc.now, folder, steps)
	return err
}

const ownTables = `
CREATE TABLE app_account (
  id      TEXT PRIMARY KEY,
  credits INTEGER NOT NULL DEFAULT 0 CHECK (credits >= 0)
);
CREATE TABLE app_order (
  id      TEXT PRIMARY KEY,
  account TEXT NOT NULL REFERENCES app_account (id),
  amount  INTEGER NOT NULL
);
CREATE TABLE app_log (n INTEGER PRIMARY KEY AUTOINCREMENT, line TEXT);
CREATE VIEW app_dead AS SELECT seq, error FROM event WHERE state = 'dead';
`

// ownStatement is the finish of an event by statements.
func ownStatement(w event.Work, params []event.Field, statements ...string) event.Finish {
	f := done(w, event.SQL{Key: w.Key.String() + "/r", Rule: "r", Statements: statements, Params: params})
	f.Verdicts = []event.Verdict{{Seq: w.Seq, Run: w.Run, Rule: "r", Decision: event.Applied}}
	return f
}

func field(pairs ...string) (fields []event.Field) {
	for i := 0; i < len(pairs); i += 2 {
		fields = append(fields, event.Field{Name: pairs[i], Value: pairs[i+1]})
	}
	return fields
}

// runOwn finishes a new event by statements.
func (sc *scene) runOwn(id string, params []event.Field, statements ...string) event.Finished {
	sc.t.Helper()
	sc.receive(id)
	works := sc.claim(1)
	return sc.finish(ownStatement(works[0], params, statements...))
}

func TestStatementsAreGuarded(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	must(t, sc.bring(ownFolder(t, ownTables, `
		CREATE TABLE app_trap (n INTEGER);
		CREATE TRIGGER app_trap_insert AFTER INSERT ON app_trap BEGIN UPDATE event SET state = 'done'; END;
		CREATE TRIGGER app_trap_delete AFTER DELETE ON app_trap BEGIN DELETE FROM payload; END;
		CREATE VIEW app_window AS SELECT seq FROM event;
		CREATE TRIGGER app_window_insert INSTEAD OF INSERT ON app_window BEGIN INSERT INTO payload (data) VALUES (x''); END;
		INSERT INTO app_log (line) VALUES ('first');
	`)))
	sc.LimitOwn(time.Minute) // not what is asked here
	other := filepath.Join(t.TempDir(), "other.db")
	before := sc.number(`SELECT count(*) FROM payload`)
	refused := map[string]string{
		"BEGIN":                           "may begin with",
		"COMMIT":                          "may begin with",
		"END":                             "may begin with",
		"ROLLBACK":                        "may begin with",
		"SAVEPOINT unit":                  "may begin with",
		"RELEASE finish":                  "may begin with",
		"ROLLBACK TO finish":              "may begin with",
		"ATTACH '" + other + "' AS other": "may begin with",
		"DETACH main":                     "may begin with",
		"PRAGMA synchronous = OFF":        "may begin with",
		"VACUUM":                          "may begin with",
		"VACUUM INTO '" + other + "'":     "may begin with",
		"REINDEX":                         "may begin with",
		"ANALYZE":                         "may begin with",
		"EXPLAIN INSERT INTO app_log VALUES (1,2)": "may begin with",
		"SELECT 1":                                "may begin with",
		"CREATE TABLE app_new (a)":                "may begin with",
		"CREATE TEMP TABLE app_new (a)":           "may begin with",
		"DROP TABLE app_log":                      "may begin with",
		"ALTER TABLE app_log RENAME TO app_other": "may begin with",
		"": "holds 0 statements",
		"INSERT INTO app_log (line) VALUES ('a'); DELETE FROM app_log": "holds 2 statements",
		"INSERT INTO app_log (line) VALUES (?)":                        "the parameter ? has no name",
		"INSERT INTO app_log (line) VALUES (?1)":                       "the parameter ?1 has no name",
		"INSERT INTO app_log (line) VALUES (@a)":                       "the parameter @a has no name",
		"INSERT INTO app_log (line) VALUES ($a)":                       "the parameter $a has no name",
		"INSERT INTO app_log (line) VALUES (:nobody)":                  "the parameter :nobody is not in params",
		"INSERT INTO app_log (line) VALUES ('open)":                    "the quote ' is not closed",

		"UPDATE event SET state = 'done'": `would write the table "event"`,
		"DELETE FROM payload":             `would write the table "payload"`,
		"INSERT INTO operation (event, rule, key, params, at) VALUES (1,'r','k','{}',1)":                                 `would write the table "operation"`,
		"INSERT INTO own_migration VALUES (9,'x','y',1)":                                                                 `would write the table "own_migration"`,
		"REPLACE INTO destination VALUES ('app','paused',1,'',NULL,0,NULL)":                                              `would write the table "destination"`,
		"WITH x AS (SELECT 1) DELETE FROM event":                                                                         `would write the table "event"`,
		"WITH app_event AS (SELECT 1) UPDATE event SET state = 'done'":                                                   `would write the table "event"`,
		"UPDATE sqlite_sequence SET seq = 7":                                                                             `would write the table "sqlite_sequence"`,
		"DELETE FROM sqlite_schema":                                                                                      "may not be modified",
		"INSERT INTO sqlite_dbpage VALUES (1, x'')":                                                                      `sqlite_dbpage`,
		"INSERT INTO app_log (line) SELECT load_extension('x')":                                                          "would load an extension",
		"INSERT INTO app_log (line) SELECT name FROM pragma_table_info('event')":                                         "would run a PRAGMA",
		"INSERT INTO app_log (line) SELECT * FROM pragma_journal_mode":                                                   "would run a PRAGMA",
		"INSERT INTO app_log (line) VALUES (zeroblob(100000000))":                                                        "too big",
		"INSERT INTO app_log (line) WITH RECURSIVE b(x) AS (SELECT 'aa' UNION ALL SELECT x || x FROM b) SELECT x FROM b": "too big",

		"INSERT INTO app_trap VALUES (1)":        `would write the table "event"`,
		"DELETE FROM app_trap":                   `would write the table "payload"`,
		"INSERT INTO app_window VALUES (1)":      `would write the table "payload"`,
		"INSERT INTO app_nothing VALUES (1)":     "no such table: app_nothing",
		"INSERT INTO app_log (missing) SELECT 1": "no column named missing",
		"INSERT INTO temp.app_log SELECT 1":      "no such table: temp.app_log",
	}
	n := 0
	for statement, reason := range refused {
		n++
		id := fmt.Sprintf("refused%d", n)
		got := sc.runOwn(id, nil, "INSERT INTO app_log (line) VALUES ('before')", statement)
		if !errors.Is(got.Err, event.ErrRefused) || !strings.Contains(got.Err.Error(), reason) {
			t.Errorf("%q: %v, want a refusal with %q", statement, got.Err, reason)
		}
		d := sc.detail(id)
		if d.State != event.Dead || d.Error != got.Err.Error() {
			t.Errorf("%q: the event is %s: %s", statement, d.State, d.Error)
		}
	}
	want(t, "lines", sc.number(`SELECT count(*) FROM app_log`), 1)
	want(t, "operations", sc.number(`SELECT count(*) FROM operation`), 0)
	want(t, "bodies", sc.number(`SELECT count(*) FROM payload`), before+n)
	if _, err := os.Stat(other); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("another file: %v", err)
	}
	want(t, "triggers of others", sc.number(`SELECT count(*) FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'event' AND name <> 'event_failure_counts'`), 0)
	must(t, sc.Healthy())
	// The limits of the owner's statements are not ours.
	must(t, sc.write(t.Context(), work, 1, func(t *tx) error {
		return t.query(`SELECT length(hex(zeroblob(?)))`, []any{ownBytes}, func(row) error { return nil })
	}))
	must(t, sc.runOwn("fine", nil, "INSERT INTO app_log (line) SELECT count(*) FROM event").Err)
}

func TestStatementsMayRead(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	must(t, sc.bring(ownFolder(t, ownTables)))
	for i, statement := range []string{
		"INSERT INTO app_log (line) SELECT id FROM event",
		"insert into APP_LOG (line) select 'case';",
		"INSERT INTO app_log (line) SELECT count(*) FROM app_dead -- a comment",
		"/* before */ UPDATE app_log SET line = upper(line) RETURNING n",
		"REPLACE INTO app_account (id) VALUES ('a;b')",
		"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c WHERE n < 9) INSERT INTO app_log (line) SELECT n FROM c",
		"INSERT INTO app_log (line) SELECT value FROM json_each('[1,2]')",
		"INSERT INTO app_account (id, credits) VALUES ('a;b', 7) ON CONFLICT (id) DO UPDATE SET credits = credits + excluded.credits",
		"DELETE FROM app_log",
	} {
		if got := sc.runOwn(fmt.Sprint("read", i), nil, statement); got.Err != nil {
			t.Errorf("%s: %v", statement, got.Err)
		}
	}
	want(t, "credits", sc.number(`SELECT credits FROM app_account`), 7)
}

// A statement that was compiled under the guard is compiled again under it when
// another program has changed the schema.
func TestStatementsAreGuardedAfterASchemaChange(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	must(t, sc.bring(ownFolder(t, ownTables)))
	const insert = "INSERT INTO app_log (line) VALUES (:line)"
	must(t, sc.runOwn("one", field("line", "a"), insert).Err)
	outsider(t, sc.path, `CREATE TRIGGER app_log_insert AFTER INSERT ON app_log BEGIN UPDATE event SET error = 'pwned'; END`)
	got := sc.runOwn("two", field("line", "b"), insert)
	if !errors.Is(got.Err, event.ErrRefused) || !strings.Contains(got.Err.Error(), `would write the table "event"`) {
		t.Errorf("with a trigger of another program: %v", got.Err)
	}
	want(t, "events changed", sc.number(`SELECT count(*) FROM event WHERE error = 'pwned'`), 0)
	// Ours are not under the guard, compiled again or not.
	sc.receive("three")
	want(t, "claims", len(sc.claim(1)), 1)
}

// outsider runs a statement as another program on the same file would.
func outsider(t testing.TB, path, statement string) {
	t.Helper()
	c, err := connect(dataSource(path, shared(2*time.Second), "mode=rw"))
	must(t, err)
	_, err = c.exec(statement, nil)
	must(t, err)
	must(t, c.close())
}
