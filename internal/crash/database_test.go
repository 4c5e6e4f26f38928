package crash

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite" // the driver, to read the file without the product's own code
)

// inspect opens a copy of the database as the process left it, so that
// looking changes nothing of what the next start finds.
func inspect(t *testing.T, dir string) *sql.DB {
	t.Helper()
	into := t.TempDir()
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(filepath.Join(dir, "creel.db"+suffix))
		if os.IsNotExist(err) && suffix != "" {
			continue
		}
		if err != nil {
			t.Fatalf("copy the database: %v", err)
		}
		if err := os.WriteFile(filepath.Join(into, "copy.db"+suffix), data, 0o600); err != nil {
			t.Fatalf("copy the database: %v", err)
		}
	}
	db, err := sql.Open("sqlite", filepath.Join(into, "copy.db"))
	if err != nil {
		t.Fatalf("open the copy: %v", err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// count runs a statement that gives one number.
func count(t *testing.T, db *sql.DB, query string, args ...any) int {
	t.Helper()
	var n int
	if err := db.QueryRow(query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// ask runs one statement on a copy of what a dead process left.
func ask(t *testing.T, dir, query string, args ...any) int {
	t.Helper()
	db := inspect(t, dir)
	defer func() { _ = db.Close() }()
	return count(t, db, query, args...)
}

// look runs one statement on the file of a server that is running. The server
// keeps its own connections open, so this one is never the last.
func look(t *testing.T, dir, query string, args ...any) int {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "creel.db")+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatalf("open the database: %v", err)
	}
	defer func() { _ = db.Close() }()
	return count(t, db, query, args...)
}

// sound checks what must hold of every database that a process left behind.
func sound(t *testing.T, dir string) {
	t.Helper()
	db := inspect(t, dir)
	defer func() { _ = db.Close() }()
	var verdict string
	if err := db.QueryRow(`PRAGMA integrity_check`).Scan(&verdict); err != nil || verdict != "ok" {
		t.Errorf("integrity_check: %q %v", verdict, err)
	}
	if n := count(t, db, `SELECT count(*) FROM (SELECT 1 FROM delivery GROUP BY event, destination HAVING count(*) > 1)`); n != 0 {
		t.Errorf("%d events have two deliveries to one destination", n)
	}
}

// kept counts the acknowledged events that have no row.
func kept(t *testing.T, dir string, acked []string) (missing int) {
	t.Helper()
	db := inspect(t, dir)
	defer func() { _ = db.Close() }()
	rows, err := db.Query(`SELECT id FROM event WHERE source = 'load'`)
	if err != nil {
		t.Fatalf("read the events: %v", err)
	}
	defer func() { _ = rows.Close() }()
	stored := map[string]bool{}
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatalf("read the events: %v", err)
		}
		if stored[id] {
			t.Errorf("two rows for %s", id)
		}
		stored[id] = true
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("read the events: %v", err)
	}
	for _, id := range acked {
		if !stored[id] {
			missing++
		}
	}
	return missing
}
