package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOwnStepsComeForward(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	folder := ownFolder(t, "CREATE TABLE app_a (x INTEGER);\nINSERT INTO app_a VALUES (1);", "-- two\nALTER TABLE app_a ADD COLUMN y TEXT;\nUPDATE app_a SET y = 'a;b';")
	must(t, os.WriteFile(filepath.Join(folder, "README.md"), []byte("# tables"), 0o600))
	must(t, os.WriteFile(filepath.Join(folder, ".0009.sql"), []byte("nothing"), 0o600))
	steps, faults := ReadOwnSteps(folder)
	must(t, joinFaults(faults))
	names, err := sc.ApplyOwnSteps(context.Background(), sc.now, folder, steps)
	must(t, err)
	if diff := cmp.Diff([]string{"0001.sql", "0002.sql"}, names); diff != "" {
		t.Error(diff)
	}
	sc.crash("boot2")
	must(t, sc.bring(folder))
	must(t, os.WriteFile(filepath.Join(folder, "0003-index.sql"), []byte("CREATE INDEX app_a_y ON app_a (y)"), 0o600))
	must(t, sc.bring(folder))
	want(t, "rows", sc.number(`SELECT count(*) FROM app_a WHERE y = 'a;b'`), 1)
	want(t, "recorded", sc.number(`SELECT count(*) FROM own_migration WHERE at = ?`, sc.now.UnixMilli()), 3)
	// The file may come from a checkout with other line ends, under another name,
	// and from an editor with a mark in front.
	must(t, os.WriteFile(filepath.Join(folder, "0002.sql"), []byte("\ufeff-- two\r\nALTER TABLE app_a ADD COLUMN y TEXT;\r\nUPDATE app_a SET y = 'a;b';"), 0o600))
	must(t, os.Rename(filepath.Join(folder, "0001.sql"), filepath.Join(folder, "0001-first.sql")))
	must(t, sc.bring(folder))
}

func TestOwnStepsThatChangedAreRefused(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	folder := ownFolder(t, "CREATE TABLE app_a (x)", "CREATE TABLE app_b (x)")
	must(t, sc.bring(folder))
	must(t, os.WriteFile(filepath.Join(folder, "0001.sql"), []byte("CREATE TABLE app_a (x, y)"), 0o600))
	must(t, os.Remove(filepath.Join(folder, "0002.sql")))
	err := sc.bring(folder)
	for _, part := range []string{
		"0001.sql: it was applied on 2026-03-01 as 0001.sql and says something else now: put it back as it was, and write the change as 0002-….sql",
		"0002.sql: it was applied on 2026-03-01 and is gone: put the file back as it was",
	} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v\ndoes not say %q", err, part)
		}
	}
}

func TestOwnStepsAreRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		says  []string
	}{
		"no number":    {map[string]string{"orders.sql": "CREATE TABLE app_a (x)"}, []string{"orders.sql: it has no number"}},
		"other case":   {map[string]string{"0001.SQL": "CREATE TABLE app_a (x)"}, []string{"0001.SQL: it has no number: name it like 0001-orders.sql"}},
		"a gap":        {map[string]string{"0001.sql": "", "0003.sql": ""}, []string{"0003.sql: it has the number 0003 where 0002 comes next"}},
		"twice":        {map[string]string{"0001-a.sql": "", "0001-b.sql": ""}, []string{"0001-b.sql: it has the number 0001 where 0002 comes next"}},
		"several":      {map[string]string{"0001.sql": "CREATE 'x", "0002.sql": "\n\nPRAGMA x"}, []string{"0001.sql:1: the quote ' is not closed", `0002.sql:3: a statement is not for a migration: it begins with "pragma"`}},
		"a parameter":  {map[string]string{"0001.sql": "\nINSERT INTO app_a VALUES (:x)"}, []string{"0001.sql:2: a statement has a parameter"}},
		"transactions": {map[string]string{"0001.sql": "BEGIN; CREATE TABLE app_a (x); COMMIT;"}, []string{`0001.sql:1: a statement is not for a migration: it begins with "begin"`}},
	} {
		folder := t.TempDir()
		for file, text := range c.files {
			must(t, os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600))
		}
		_, faults := ReadOwnSteps(folder)
		err := joinFaults(faults)
		for _, part := range c.says {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v\ndoes not say %q", name, err, part)
			}
		}
		want(t, name, len(faults), len(c.says))
	}
	if _, faults := ReadOwnSteps(filepath.Join(t.TempDir(), "none")); len(faults) != 1 {
		t.Errorf("no folder: %v", faults)
	}
}

// A pipe has no end, and a device may have none: nobody waits for it.
func TestAMigrationIsAFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	must(t, syscall.Mkfifo(filepath.Join(folder, "0001.sql"), 0o600))
	must(t, os.Symlink("/dev/zero", filepath.Join(folder, "0002.sql")))
	_, faults := ReadOwnSteps(folder)
	if len(faults) != 2 || !strings.Contains(joinFaults(faults).Error(), "0002.sql: it is no file") {
		t.Errorf("%v", joinFaults(faults))
	}
}

func TestOwnStepsAreGuarded(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	schema := sc.rows(sqlOurSchema)
	for text, says := range map[string]string{
		"CREATE TABLE orders (x)":                                                    `would create the table "orders"`,
		"CREATE VIEW temp.app_x AS SELECT 1":                                         `of the database "temp"`,
		"CREATE TABLE temp.app_x (x)":                                                `would create the table "app_x" of the database "temp"`,
		"CREATE TEMP TABLE app_x (x)":                                                "temporary table",
		"CREATE TEMP TRIGGER app_x AFTER INSERT ON event BEGIN SELECT 1; END":        "temporary trigger",
		"CREATE VIEW v_mine AS SELECT 1":                                             `would create the view "v_mine"`,
		"CREATE INDEX app_event ON event (type)":                                     `would put "app_event" on the table "event"`,
		"CREATE INDEX mine ON app_first (x)":                                         `would create the index "mine"`,
		"CREATE TRIGGER app_t AFTER INSERT ON event BEGIN SELECT 1; END":             `would put "app_t" on the table "event"`,
		"CREATE TRIGGER t AFTER INSERT ON app_first BEGIN SELECT 1; END":             `would create the trigger "t"`,
		"DROP TABLE event":                                                           `"event"`,
		"DROP TABLE own_migration":                                                   `"own_migration"`,
		"DROP INDEX event_due":                                                       `"event_due"`,
		"DROP VIEW v_event":                                                          `"v_event"`,
		"DROP TRIGGER ledger_no_update":                                              `"ledger_no_update"`,
		"ALTER TABLE event ADD COLUMN mine":                                          `would alter the table "event"`,
		"ALTER TABLE event RENAME TO app_event":                                      `would alter the table "event"`,
		"ALTER TABLE app_first RENAME TO first":                                      "it would change what is not its own",
		"ALTER TABLE app_first RENAME TO v_mine":                                     "it would change what is not its own",
		"CREATE TABLE app_x AS SELECT * FROM event; UPDATE event SET state = 'done'": `would write the table "event"`,
		"UPDATE sqlite_schema SET sql = ''":                                          "may not be modified",
		"CREATE VIRTUAL TABLE app_v USING fts5 (x)":                                  "virtual table",
		"CREATE TABLE app_x (e INTEGER REFERENCES event (seq))":                      `the table "app_x" has a reference to a table that is not its own`,
		"CREATE TABLE app_x (e INTEGER REFERENCES event ON DELETE CASCADE)":          `the table "app_x" has a reference`,
		"CREATE TABLE app_x (e INTEGER REFERENCES app_first (x) DEFERRABLE INITIALLY DEFERRED); INSERT INTO app_x VALUES (9)": "FOREIGN KEY constraint failed",
		"CREATE TABLE app_x (x); INSERT INTO app_x VALUES (1, 2)":                                                             "has 1 columns but 2 values",
		"CREATE TABLE app_x (x": "incomplete input",
		"WITH x AS (SELECT 1) INSERT INTO event (source) SELECT 1 FROM x": `would write the table "event"`,
		"DELETE FROM delivery": `would write the table "delivery"`,
	} {
		folder := ownFolder(t, "CREATE TABLE app_first (x INTEGER PRIMARY KEY)", "\n"+text)
		err := sc.bring(folder)
		var fault *OwnFault
		if !errors.As(err, &fault) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "0002.sql") {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
	if after := sc.rows(sqlOurSchema); after != schema {
		t.Errorf("the schema became %s", after)
	}
	want(t, "tables of its own", sc.number(`SELECT count(*) FROM sqlite_schema WHERE name LIKE 'app%' AND name NOT LIKE 'app_first%'`), 0)
	want(t, "recorded", sc.number(`SELECT count(*) FROM own_migration`), 1)
	must(t, sc.Healthy())
}

func TestOwnStepsMayDoAllThisToTheirOwn(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	must(t, sc.bring(ownFolder(t, `
		CREATE TABLE app_a (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, "order" TEXT COLLATE NOCASE);
		CREATE TABLE IF NOT EXISTS main.app_b (a INTEGER REFERENCES app_a (id) ON DELETE CASCADE, at TEXT DEFAULT (datetime('now'))) STRICT;
		CREATE UNIQUE INDEX app_b_a ON app_b (a) WHERE a IS NOT NULL;
		CREATE VIEW app_v AS SELECT app_a.name, event.type FROM app_a JOIN event ON event.id = app_a.name;
		CREATE TRIGGER app_a_log AFTER INSERT ON app_a BEGIN INSERT INTO app_b (a) VALUES (new.id); END;
		INSERT INTO app_a (name) VALUES ('one'), ('two');
	`, `
		ALTER TABLE app_a RENAME COLUMN name TO title;
		ALTER TABLE app_a ADD COLUMN more INTEGER NOT NULL DEFAULT 0;
		ALTER TABLE app_a DROP COLUMN "order";
		ALTER TABLE app_b ADD COLUMN n INTEGER NOT NULL DEFAULT 0 CHECK (n >= 0);
		ALTER TABLE app_b RENAME TO app_c;
		CREATE TABLE app_copy AS SELECT * FROM app_a;
		DROP INDEX app_b_a; DROP TRIGGER app_a_log; DROP VIEW app_v;
		DELETE FROM app_a WHERE title = 'one';
		CREATE TABLE APP_UPPER (x); DROP TABLE app_upper;
		DROP TABLE app_copy;
	`)))
	want(t, "cascaded", sc.number(`SELECT count(*) FROM app_c`), 1)
}

// One file is applied whole or not at all, those before it stay, and a start
// after the repair goes on.
func TestOwnStepsFailWhole(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	folder := ownFolder(t, "CREATE TABLE app_a (x)", "CREATE TABLE app_b (x);\n\nINSERT INTO app_missing VALUES (1)", "CREATE TABLE app_c (x)")
	steps, _ := ReadOwnSteps(folder)
	names, err := sc.ApplyOwnSteps(context.Background(), sc.now, folder, steps)
	if err == nil || !strings.Contains(err.Error(), "0002.sql:3: no such table: app_missing: nothing of this file was applied") {
		t.Errorf("%v", err)
	}
	want(t, "applied", len(names), 1)
	want(t, "tables", sc.number(`SELECT count(*) FROM sqlite_schema WHERE name LIKE 'app%'`), 1)
	must(t, os.WriteFile(filepath.Join(folder, "0002.sql"), []byte("CREATE TABLE app_b (x)"), 0o600))
	must(t, sc.bring(folder))
	want(t, "tables", sc.number(`SELECT count(*) FROM sqlite_schema WHERE name LIKE 'app%'`), 3)
}

func TestCheckOwn(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	outsider(t, sc.path, `CREATE TABLE app_users (id TEXT PRIMARY KEY)`)
	folder := ownFolder(t, ownTables)
	must(t, sc.bring(folder))
	before := sc.rows(`SELECT type, name, sql FROM sqlite_schema`)
	must(t, os.WriteFile(filepath.Join(folder, "0002-more.sql"), []byte("CREATE TABLE app_more (x); CREATE TRIGGER app_more_in AFTER INSERT ON app_more BEGIN DELETE FROM event; END"), 0o600))
	steps, faults := ReadOwnSteps(folder)
	must(t, joinFaults(faults))
	faults, err := CheckOwn(OwnCheck{Database: sc.path, Folder: folder, Steps: steps, Rules: []OwnRule{
		{Statements: []string{insertAccount, insertOrder}, Params: []string{"amount", "id", "order"}},
		{Statements: []string{"INSERT INTO app_users VALUES (:id)"}, Params: []string{"id"}},
		{Statements: []string{"INSERT INTO app_nobody VALUES (:id)", "UPDATE event SET state = :id", "INSRT INTO app_log", "INSERT INTO app_log (missing) VALUES (1)"}, Params: []string{"id"}},
		{Statements: []string{insertAccount}, Params: []string{"id", "other"}},
		{Statements: []string{insertAccount, insertOrder}, Params: []string{"order", "amount"}},
		{Statements: []string{"SELECT 1; SELECT 2"}},
		{Statements: []string{"INSERT INTO app_more VALUES (1)"}},
	}})
	must(t, err)
	var got []OwnFault
	for _, f := range faults {
		f.Hint = ""
		got = append(got, *f)
	}
	if diff := cmp.Diff([]OwnFault{
		{Rule: 2, Part: 2, Message: `it begins with "insrt"; it may begin with INSERT, UPDATE, DELETE, REPLACE, WITH`},
		{Rule: 2, Part: 0, Message: "no such table: app_nobody"},
		{Rule: 2, Part: 1, Message: `it would write the table "event"; it may write tables whose names begin with app_`},
		{Rule: 2, Part: 3, Message: "table app_log has no column named missing"},
		{Rule: 3, Part: -1, Param: "other", Message: "no statement uses :other"},
		{Rule: 4, Part: 0, Param: "id", Message: "the parameter :id is not in params"},
		{Rule: 4, Part: 1, Param: "id", Message: "the parameter :id is not in params"},
		{Rule: 5, Message: "it holds 2 statements"},
		{Rule: 6, Message: `it would write the table "event"; it may write tables whose names begin with app_`},
	}, got); diff != "" {
		t.Error(diff)
	}
	if after := sc.rows(`SELECT type, name, sql FROM sqlite_schema`); after != before {
		t.Errorf("the check changed the database: %s", after)
	}
	// Without a database the migrations are enough.
	faults, err = CheckOwn(OwnCheck{Database: filepath.Join(t.TempDir(), "none.db"), Folder: folder, Steps: steps[:1], Rules: []OwnRule{
		{Statements: []string{insertAccount}, Params: []string{"id"}},
	}})
	must(t, err)
	want(t, "faults", len(faults), 0)
}

func TestPendingOwnSteps(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	folder := ownFolder(t, "CREATE TABLE app_a (x)")
	must(t, sc.bring(folder))
	must(t, os.WriteFile(filepath.Join(folder, "0002-b.sql"), []byte("CREATE TABLE app_b (x)"), 0o600))
	steps, _ := ReadOwnSteps(folder)
	names, faults, err := sc.PendingOwnSteps(context.Background(), folder, steps)
	must(t, err)
	if diff := cmp.Diff([]string{"0002-b.sql"}, names); diff != "" || len(faults) > 0 {
		t.Error(diff, faults)
	}
}
