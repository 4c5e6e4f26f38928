package store

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	sqlOwnSchema = `SELECT sql FROM sqlite_schema WHERE name LIKE 'app\_%' ESCAPE '\' AND sql IS NOT NULL ORDER BY rowid`
	sqlHasOwn    = `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'own_migration'`
)

// OwnCheck is the owner's SQL, to be judged before it runs.
type OwnCheck struct {
	// Database is read for the owner's tables that it has, where it exists. It
	// is not changed.
	Database string
	Folder   string
	Steps    []OwnStep
	Rules    []OwnRule
}

// OwnRule is the SQL of one rule.
type OwnRule struct {
	Statements []string
	Params     []string // names
}

// CheckOwn compiles the owner's migrations and statements under the guard,
// against a scratch copy of the schema in memory, and returns all that is wrong
// with them. The error is trouble with the database.
func CheckOwn(check OwnCheck) (faults []*OwnFault, err error) {
	for i := range check.Rules {
		faults = append(faults, check.Rules[i].faults(i)...)
	}
	if err := prepareLibrary(); err != nil {
		return faults, fmt.Errorf("check statements: %w", err)
	}
	scratch, err := connect(dataSource(":memory:", shared(0)))
	if err != nil {
		return faults, fmt.Errorf("check statements: %w", err)
	}
	defer func() { err = errors.Join(err, scratch.close()) }()
	broken, err := check.rebuild(scratch)
	if err != nil {
		return faults, fmt.Errorf("check statements: %w", err)
	}
	if len(broken) > 0 { // what the statements need may be missing for that
		return append(broken, faults...), nil
	}
	for i := range check.Rules {
		faults = append(faults, check.Rules[i].compile(scratch, i)...)
	}
	slices.SortStableFunc(faults, func(a, b *OwnFault) int { return a.Rule - b.Rule })
	return faults, nil
}

// rebuild makes our tables, those of the owner's that the database has, and
// those that its next start would make.
func (check *OwnCheck) rebuild(scratch *connection) ([]*OwnFault, error) {
	now := time.Unix(0, 0)
	if err := migrate(scratch, now); err != nil {
		return nil, err
	}
	schema, applied, err := readOwn(check.Database)
	if err != nil {
		return nil, err
	}
	for _, text := range schema {
		// What can not be made here, such as the shadow of a virtual table that
		// is there already, is missed where a statement needs it.
		_ = scratch.script(text)
	}
	if check.Folder == "" {
		return nil, nil
	}
	pending, faults := pendingSteps(check.Folder, check.Steps, applied)
	for i := range pending {
		if err := applyScratch(scratch, &pending[i], now); err != nil {
			var fault *OwnFault
			if !errors.As(err, &fault) {
				return nil, err
			}
			return append(faults, fault), nil
		}
	}
	return faults, nil
}

func applyScratch(scratch *connection, step *OwnStep, now time.Time) error {
	t := tx{c: scratch}
	if _, err := t.exec(sqlBegin); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := applyOwn(&t, step, now); err != nil {
		return err // nothing is tried on the scratch copy after it
	}
	_, err := t.exec(sqlCommit)
	if isConstraint(err) {
		return deferredFault(step, err)
	}
	return err
}

// readOwn reads what a database has of the owner's: the texts that make it, and
// the migrations that were applied. A database of any age will do; one that does
// not exist has nothing.
func readOwn(path string) (schema []string, applied []appliedStep, err error) {
	if path == "" {
		return nil, nil, nil
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	}
	full, err := locate(path, false)
	if err != nil {
		return nil, nil, err
	}
	c, err := connect(dataSource(full, readerSettings(2*time.Second), "mode=ro"))
	if err != nil {
		return nil, nil, whatToDo(full, err)
	}
	defer func() { err = errors.Join(err, c.close()) }()
	t := tx{c: c}
	if schema, err = texts(&t, sqlOwnSchema); err != nil {
		return nil, nil, whatToDo(full, err)
	}
	has, err := c.value(sqlHasOwn)
	if err != nil || has == int64(0) {
		return schema, nil, err
	}
	err = t.query(sqlOwnSteps, nil, func(r row) error {
		applied = append(applied, appliedOf(r))
		return nil
	})
	return schema, applied, err
}

// faults is what is wrong with the statements of a rule as texts.
func (r *OwnRule) faults(rule int) (all []*OwnFault) {
	used := map[string]bool{}
	for n, text := range r.Statements {
		if strings.TrimSpace(text) == "" {
			continue // whoever compiles the rule tells that
		}
		p, fault := onePart(text)
		if fault != nil {
			fault.Rule, fault.Part = rule, n
			all = append(all, fault)
			continue
		}
		for _, name := range p.params {
			used[name] = true
			if !slices.Contains(r.Params, name) {
				all = append(all, &OwnFault{Rule: rule, Part: n, Param: name, Message: fmt.Sprintf("the parameter :%s is not in params", name),
					Hint: fmt.Sprintf(`write params = { %s = "{body.…}" }`, name)})
			}
		}
	}
	if len(all) > 0 {
		return all // a name that nobody uses may be the one that is missing
	}
	for _, name := range r.Params {
		if !used[name] {
			all = append(all, &OwnFault{Rule: rule, Part: -1, Param: name, Message: "no statement uses :" + name, Hint: "take it out"})
		}
	}
	return all
}

// compile is what SQLite and the guard say to the statements of a rule.
func (r *OwnRule) compile(scratch *connection, rule int) (all []*OwnFault) {
	for n, text := range r.Statements {
		p, fault := onePart(text)
		if fault != nil {
			continue // it was told
		}
		err := scratch.licensed(ownStatements, func() error {
			_, err := scratch.prepareOwn(p.text)
			return err
		})
		if err == nil {
			continue
		}
		fault = &OwnFault{Rule: rule, Part: n, Message: saying(err)}
		if name, missing := strings.CutPrefix(fault.Message, "no such table: "); missing {
			fault.Hint = fmt.Sprintf("make %s in a file of [sql] migrations, or let your app make it first", name)
		}
		all = append(all, fault)
	}
	return all
}
