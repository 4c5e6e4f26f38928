package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"creel/event"
)

// migrations holds one file a step, NNNN.sql, never edited once released.
//
//go:embed migrations/*.sql
var migrations embed.FS

// The table of applied steps is how a Creel database is told from another:
// user_version would be anybody's, and an app may keep tables of its own
// (app_…) in the same file.
const (
	sqlStepTable = `CREATE TABLE schema_step (
		number     INTEGER PRIMARY KEY,
		applied_at INTEGER NOT NULL
	) STRICT`
	sqlHasSteps = `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'schema_step'`
	sqlTables   = `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'app\_%' ESCAPE '\' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'`
	sqlLastStep = `SELECT ifnull(max(number), 0) FROM schema_step`
)

// step is one migration.
type step struct {
	number int64
	sql    string
}

// steps reads the embedded files in their order: 0001, 0002, … without gaps.
func steps() ([]step, error) {
	entries, err := migrations.ReadDir("migrations")
	if err != nil {
		return nil, fmt.Errorf("list migrations: %w", err)
	}
	all := make([]step, 0, len(entries))
	for i, entry := range entries {
		text, err := migrations.ReadFile(path.Join("migrations", entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("read migration: %w", err)
		}
		number, err := strconv.ParseInt(strings.TrimSuffix(entry.Name(), ".sql"), 10, 64)
		if err != nil || number != int64(i+1) {
			return nil, fmt.Errorf("migration %s must be number %04d", entry.Name(), i+1)
		}
		all = append(all, step{number, string(text)})
	}
	return all, nil
}

// migrate brings the schema forward, each step in one transaction.
//
// A crash between two steps leaves the schema of the first, which the next
// start brings forward again.
func migrate(c *connection, now time.Time) error {
	all, err := steps()
	if err != nil {
		return err
	}
	have, err := schemaOf(c)
	if err != nil {
		return err
	}
	if newest := all[len(all)-1].number; have > newest {
		return newer(have, newest)
	}
	for _, s := range all[have:] {
		if err := apply(c, s, now); err != nil {
			return fmt.Errorf("migration %04d: %w", s.number, err)
		}
	}
	return nil
}

// schemaOf is the number of the last applied step, 0 for an empty database.
func schemaOf(c *connection) (int64, error) {
	count, err := c.value(sqlHasSteps)
	if err != nil {
		return 0, fmt.Errorf("read the schema: %w", err)
	}
	if count == int64(0) {
		tables, err := c.value(sqlTables)
		if err != nil {
			return 0, fmt.Errorf("read the schema: %w", err)
		}
		if tables != int64(0) {
			return 0, fmt.Errorf("%w: it has tables of another program: set database to another path", ErrForeign)
		}
		return 0, nil
	}
	last, err := c.value(sqlLastStep)
	if err != nil {
		return 0, fmt.Errorf("read the schema's number: %w", err)
	}
	number, _ := last.(int64)
	return number, nil
}

func apply(c *connection, s step, now time.Time) (err error) {
	t := tx{c: c}
	if _, err := t.exec(sqlBegin); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() {
		if err != nil {
			_, _ = c.exec(sqlRollback, nil)
		}
	}()
	if s.number == 1 {
		if _, err := t.exec(sqlStepTable); err != nil {
			return fmt.Errorf("create the table of steps: %w", err)
		}
	}
	// A script runs statement by statement through the same call; it is not
	// kept in the statement cache.
	if err := c.script(s.sql); err != nil {
		return err
	}
	if _, err := t.exec("INSERT INTO schema_step (number, applied_at) VALUES (?, ?)", s.number, now.UnixMilli()); err != nil {
		return fmt.Errorf("record the step: %w", err)
	}
	if _, err := t.exec(sqlCommit); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// known refuses to read a schema that this program does not know.
func (r *Reader) known(ctx context.Context) error {
	all, err := steps()
	if err != nil {
		return err
	}
	var count, have int64
	if err := r.row(ctx, sqlHasSteps, nil, &count); err != nil {
		return err
	}
	if count == 0 {
		return fmt.Errorf("%w: set database to the file that creel serve uses", ErrForeign)
	}
	if err := r.row(ctx, sqlLastStep, nil, &have); err != nil && !errors.Is(err, event.ErrNotFound) {
		return err
	}
	switch newest := all[len(all)-1].number; {
	case have > newest:
		return newer(have, newest)
	case have < newest:
		return fmt.Errorf("%w (step %d of %d): start creel serve once, which brings it forward", ErrOlder, have, newest)
	}
	return nil
}

func newer(have, newest int64) error {
	return fmt.Errorf("%w (step %d, this one knows %d): install that version, or restore a backup from before the upgrade", ErrNewer, have, newest)
}

// inspectBytes is the size up to which a database is read whole at start.
// quick_check costs about a second a gigabyte; a larger file gets a bounded
// look, and damage deeper inside shows as an error of the read that meets it.
const inspectBytes = 8 << 20

// inspect looks for damage before anything is written.
func inspect(c *connection, file string) error {
	check := "PRAGMA quick_check(1)"
	if stat, err := os.Stat(file); err != nil {
		return fmt.Errorf("look at %s: %w", file, err)
	} else if stat.Size() > inspectBytes {
		// Reads the header and every row of the schema, and sees a file that
		// was cut short.
		check = "SELECT CASE WHEN count(*) >= 0 AND max(length(sql)) > 0 THEN 'ok' ELSE 'empty schema' END FROM sqlite_schema"
	}
	answer, err := c.value(check)
	if err != nil {
		return fmt.Errorf("look for damage: %w", err)
	}
	if answer != "ok" {
		return fmt.Errorf("%s: %w: %v%s", file, ErrCorrupt, answer, keepCopy)
	}
	return nil
}
