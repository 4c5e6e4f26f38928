package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
)

// Scratch is a database to be made for trying rules out: our tables empty, the
// owner's made as they are, and those that statements only read with their rows.
type Scratch struct {
	Path string // of the new database
	// From is the owner's database, which is read and never written; "" or a
	// file that does not exist has nothing.
	From   string
	Folder string // of the owner's migrations; "" is none
	Steps  []OwnStep
	// Statements are what rules may run, by the rule's name.
	Statements map[string][]string
}

const (
	sqlAttachFrom = `ATTACH ? AS origin`
	sqlDetachFrom = `DETACH origin`
	// The order of rowid is that in which things were made: what depends on
	// another comes behind it.
	sqlOwnObjects  = `SELECT name, sql FROM origin.sqlite_schema WHERE name LIKE 'app\_%' ESCAPE '\' AND sql IS NOT NULL ORDER BY rowid`
	sqlOwnNames    = `SELECT name FROM main.sqlite_schema WHERE name LIKE 'app\_%' ESCAPE '\' AND sql IS NOT NULL`
	sqlOwnTriggers = `SELECT name, sql FROM main.sqlite_schema WHERE type = 'trigger' AND name LIKE 'app\_%' ESCAPE '\' ORDER BY rowid`
	sqlParents     = `SELECT DISTINCT "table" FROM pragma_foreign_key_list(?)`
	// The columns that both databases have and that are stored.
	sqlSharedColumns = `SELECT mine.name FROM pragma_table_xinfo(?1, 'main') AS mine
		JOIN pragma_table_xinfo(?1, 'origin') AS theirs ON theirs.name = mine.name COLLATE NOCASE
		WHERE mine.hidden = 0 AND theirs.hidden = 0 ORDER BY mine.cid`
)

// MakeScratch makes the database and closes it again: it is one file then, which
// may be copied. It tells which of the owner's tables the statements of each
// rule write. A statement or migration that can not be is an error that says so.
func MakeScratch(ctx context.Context, now time.Time, of Scratch) (writes map[string][]string, err error) {
	s, err := Open(ctx, Options{Path: of.Path, Log: zerolog.Nop(), Clock: func() time.Time { return now }})
	if err != nil {
		return nil, err
	}
	if of.Folder != "" {
		_, err = s.ApplyOwnSteps(ctx, now, of.Folder, of.Steps)
	}
	if err = errors.Join(err, s.Close()); err != nil {
		return nil, fmt.Errorf("make a scratch database: %w", err)
	}
	// Nobody waits for this database, and nothing of it outlives a power loss.
	settings := append(shared(2*time.Second), setting{"foreign_keys", "0", "0"}, setting{"wal_autocheckpoint", "0", "0"})
	c, err := connect(dataSource(of.Path, settings, "mode=rw"))
	if err != nil {
		return nil, fmt.Errorf("make a scratch database: %w", err)
	}
	defer func() { err = errors.Join(err, c.close()) }()
	m := scratchMaker{of: of, t: &tx{c: c}}
	if writes, err = m.fill(); err != nil {
		return nil, fmt.Errorf("make a scratch database: %w", err)
	}
	return writes, nil
}

// scratchMaker fills a scratch database on one connection.
type scratchMaker struct {
	of Scratch
	t  *tx
}

func (m *scratchMaker) fill() (map[string][]string, error) {
	attached, err := m.attach()
	if err != nil {
		return nil, err
	}
	if attached {
		if err := m.adopt(); err != nil {
			return nil, err
		}
	}
	writes, needs, err := m.tables()
	if err != nil || !attached {
		return writes, err
	}
	if err := m.copy(needs); err != nil {
		return nil, err
	}
	_, err = m.t.exec(sqlDetachFrom)
	return writes, err
}

// attach opens the owner's database beside the scratch one, for reading.
func (m *scratchMaker) attach() (bool, error) {
	if m.of.From == "" {
		return false, nil
	}
	if _, err := os.Stat(m.of.From); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	full, err := locate(m.of.From, false)
	if err != nil {
		return false, err
	}
	if _, err := m.t.exec(sqlAttachFrom, dataSource(full, nil, "mode=ro")); err != nil {
		return false, whatToDo(full, err)
	}
	return true, nil
}

// adopt makes what the owner's database has and the migrations do not make: the
// owner's app may have made it. What can not be made here is missed where a
// statement needs it.
func (m *scratchMaker) adopt() error {
	have, err := texts(m.t, sqlOwnNames)
	if err != nil {
		return err
	}
	var missing []string
	err = m.t.query(sqlOwnObjects, nil, func(r row) error {
		if !slices.Contains(have, r.text(0)) {
			missing = append(missing, r.text(1))
		}
		return nil
	})
	for _, text := range missing {
		_ = m.t.c.script(text)
	}
	return err
}

// tables asks for the tables that the statements touch: those that each rule
// writes, and those of all that have to have their rows, because they are only
// read or referred to.
func (m *scratchMaker) tables() (writes map[string][]string, needs []string, err error) {
	writes = map[string][]string{}
	written, read := map[string]bool{}, map[string]bool{}
	for _, rule := range slices.Sorted(maps.Keys(m.of.Statements)) {
		mine := map[string]bool{}
		for _, text := range m.of.Statements[rule] {
			if err := m.ask(rule, text, mine, read); err != nil {
				return nil, nil, err
			}
		}
		writes[rule] = slices.Sorted(maps.Keys(mine))
		maps.Copy(written, mine)
	}
	if err := m.parents(written, read); err != nil {
		return nil, nil, err
	}
	for name := range read {
		if isOwn(name) && !written[name] {
			needs = append(needs, name)
		}
	}
	slices.Sort(needs)
	return writes, needs, nil
}

// ask compiles one statement under the guard.
func (m *scratchMaker) ask(rule, text string, writes, reads map[string]bool) error {
	part, fault := onePart(text)
	if fault != nil {
		return fmt.Errorf("the rule %s: %w", rule, fault)
	}
	err := m.t.c.licensed(ownStatements, func() error {
		m.t.c.own.guard.touched = func(table string, written bool) {
			if written {
				writes[table] = true
			} else {
				reads[table] = true
			}
		}
		defer func() { m.t.c.own.guard.touched = nil }()
		s, err := m.t.c.compile(part.text)
		if err != nil {
			return err
		}
		return s.closer.Close()
	})
	if err != nil {
		return fmt.Errorf("the rule %s: %s", rule, saying(err))
	}
	return nil
}

// parents adds the tables that others refer to, as far as it goes.
func (m *scratchMaker) parents(written, read map[string]bool) error {
	todo := slices.Concat(slices.Collect(maps.Keys(written)), slices.Collect(maps.Keys(read)))
	for len(todo) > 0 {
		child := todo[0]
		todo = todo[1:]
		err := m.t.query(sqlParents, []any{child}, func(r row) error {
			if parent := r.text(0); !read[parent] && !written[parent] {
				read[parent] = true
				todo = append(todo, parent)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// copy takes over the rows of tables, all of one state of the owner's database,
// with the triggers of the owner's out of the way: what they did is in the rows.
func (m *scratchMaker) copy(needs []string) error {
	if len(needs) == 0 {
		return nil
	}
	type trigger struct{ name, text string }
	var triggers []trigger
	err := m.t.query(sqlOwnTriggers, nil, func(r row) error {
		triggers = append(triggers, trigger{r.text(0), r.text(1)})
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := m.t.exec(sqlBegin); err != nil {
		return err
	}
	for _, t := range triggers {
		if _, err := m.t.exec("DROP TRIGGER " + named(t.name)); err != nil {
			return err
		}
	}
	for _, table := range needs {
		if err := m.copyTable(table); err != nil {
			return fmt.Errorf("copy the table %s: %w", table, err)
		}
	}
	for _, t := range triggers {
		if _, err := m.t.exec(t.text); err != nil {
			return err
		}
	}
	_, err = m.t.exec(sqlCommit)
	return err
}

func (m *scratchMaker) copyTable(table string) error {
	var columns []string
	err := m.t.query(sqlSharedColumns, []any{table}, func(r row) error {
		columns = append(columns, named(r.text(0)))
		return nil
	})
	if err != nil || len(columns) == 0 {
		return err // the owner's database does not have it yet
	}
	list := strings.Join(columns, ", ")
	// Rows that a migration made are the owner's by now.
	if _, err := m.t.exec("DELETE FROM main." + named(table)); err != nil {
		return err
	}
	_, err = m.t.exec(fmt.Sprintf("INSERT INTO main.%s (%s) SELECT %s FROM origin.%s", named(table), list, list, named(table)))
	return err
}

// named is an identifier in the text of a statement.
func named(identifier string) string {
	return `"` + strings.ReplaceAll(identifier, `"`, `""`) + `"`
}
