package store

import (
	"path/filepath"
	"testing"
	"time"
)

// TestNoTemporaryTablePerRow keeps IN lists of more than two constants out of
// CHECKs: SQLite builds a temporary table for each, for every row written.
func TestNoTemporaryTablePerRow(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for _, table := range []string{"event", "payload", "delivery", "attempt", "record", "ledger", "balance", "state", "transition"} {
		must(t, s.write(t.Context(), work, 1, func(tx *tx) error {
			return tx.query("EXPLAIN INSERT INTO "+table+" DEFAULT VALUES", nil, func(r row) error {
				if op := r.text(1); op == "OpenEphemeral" {
					t.Errorf("inserting into %s opens a temporary table", table)
				}
				return nil
			})
		}))
	}
}

func TestFailedStepLeavesNothing(t *testing.T) {
	t.Parallel()
	c, err := connect(dataSource(filepath.Join(t.TempDir(), "creel.db"), shared(0)))
	must(t, err)
	defer c.close()
	broken := step{1, "CREATE TABLE one (id INTEGER) STRICT; CREATE TABLE two (id NOTHING) STRICT;"}
	if err := apply(c, broken, time.UnixMilli(0)); err == nil {
		t.Fatal("applied")
	}
	tables, err := c.value("SELECT count(*) FROM sqlite_schema")
	must(t, err)
	if tables != int64(0) {
		t.Errorf("a failed step left %v tables", tables)
	}
	if number, err := schemaOf(c); err != nil || number != 0 {
		t.Errorf("schema number %d, %v", number, err)
	}
	must(t, apply(c, step{1, "CREATE TABLE one (id INTEGER) STRICT"}, time.UnixMilli(0)))
}
