package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	sqlOwnSteps    = `SELECT number, name, checksum, at FROM own_migration ORDER BY number`
	sqlSaveOwnStep = `INSERT INTO own_migration (number, name, checksum, at) VALUES (?,?,?,?)`
	// What of the schema is not the owner's. sqlite_sequence comes with the
	// first AUTOINCREMENT and holds nothing else.
	sqlOurSchema = `SELECT type || ' ' || name || ' ' || ifnull(sql, '') FROM sqlite_schema
		WHERE name NOT LIKE 'app\_%' ESCAPE '\' AND name NOT LIKE 'sqlite\_autoindex\_app\_%' ESCAPE '\' AND name <> 'sqlite_sequence'
		ORDER BY 1`
	// The references of the owner's tables to tables that are not the owner's.
	sqlOutward = `SELECT m.name, f."table" FROM sqlite_schema AS m, pragma_foreign_key_list(m.name) AS f
		WHERE m.type = 'table' AND m.name LIKE 'app\_%' ESCAPE '\' AND f."table" NOT LIKE 'app\_%' ESCAPE '\'`
)

// maxStep bounds a migration file, in bytes.
const maxStep = 16 << 20

// OwnStep is one migration of the owner's: a file NNNN-name.sql of one folder.
type OwnStep struct {
	Number int64
	Name   string // of the file
	File   string // its path
	parts  []sqlPart
	sum    string
}

// OwnFault is something wrong with the SQL of the owner's. It is an error too.
type OwnFault struct {
	File    string // a migration, or "" for a statement of a rule
	Line    int    // in File; 0 where it can not be told
	Rule    int    // index among the rules that were asked about
	Part    int    // index of its statement; -1 for its parameters
	Param   string // the parameter, where it is about one
	Message string
	Hint    string
}

// Error implements error.
func (f *OwnFault) Error() string {
	text := f.Message
	if f.Hint != "" {
		text += ": " + f.Hint
	}
	switch {
	case f.File != "" && f.Line > 0:
		return fmt.Sprintf("%s:%d: %s", f.File, f.Line, text)
	case f.File != "":
		return f.File + ": " + text
	}
	return text
}

var (
	stepName = regexp.MustCompile(`^([0-9]{4})(-[A-Za-z0-9._-]+)?\.sql$`)
	// stepVerbs begin what a migration may do; the guard decides on what.
	stepVerbs = []string{"create", "alter", "drop", "insert", "update", "delete", "replace", "with"}
)

// ReadOwnSteps reads the owner's migrations: the files of a folder that end in
// .sql, numbered 0001, 0002, … without gaps. All that is wrong with them comes
// at once; what SQLite says about them is asked by CheckOwn.
func ReadOwnSteps(folder string) ([]OwnStep, []*OwnFault) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, []*OwnFault{{File: folder, Message: "it can not be read (" + reason(err) + ")",
			Hint: "make the folder, or set [sql] migrations to the one that holds NNNN-name.sql files"}}
	}
	var steps []OwnStep
	var faults []*OwnFault
	for _, entry := range entries { // in the order of their names
		if !strings.HasSuffix(strings.ToLower(entry.Name()), ".sql") || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		step, fault := readOwnStep(filepath.Join(folder, entry.Name()))
		if fault != nil {
			faults = append(faults, fault)
			continue
		}
		steps = append(steps, step)
	}
	for i := range steps {
		if want := int64(i + 1); len(faults) == 0 && steps[i].Number != want {
			faults = append(faults, &OwnFault{File: steps[i].File, Message: fmt.Sprintf("it has the number %04d where %04d comes next", steps[i].Number, want),
				Hint: "number the files 0001, 0002, … with one file for each"})
		}
	}
	return steps, faults
}

func readOwnStep(file string) (OwnStep, *OwnFault) {
	step := OwnStep{Name: filepath.Base(file), File: file}
	match := stepName.FindStringSubmatch(step.Name)
	if match == nil {
		return step, &OwnFault{File: file, Message: "it has no number", Hint: "name it like 0001-orders.sql, or give it another ending than .sql"}
	}
	step.Number, _ = strconv.ParseInt(match[1], 10, 64) // four digits
	switch stat, err := os.Stat(file); {
	case err != nil: // told below
	case !stat.Mode().IsRegular() && !stat.IsDir():
		return step, &OwnFault{File: file, Message: "it is no file: reading it may never end", Hint: "put a file there, or give it another ending than .sql"}
	case stat.Size() > maxStep:
		return step, &OwnFault{File: file, Message: "it is larger than 16 MiB", Hint: "a migration makes tables; load rows with a program of your own"}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return step, &OwnFault{File: file, Message: "it can not be read (" + reason(err) + ")", Hint: "let the server's user read it"}
	}
	// A checkout may have changed the ends of lines, and an editor the beginning.
	text := strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n")
	sum := sha256.Sum256([]byte(text))
	step.sum = hex.EncodeToString(sum[:])
	var cut *textError
	if step.parts, err = splitSQL(text); errors.As(err, &cut) {
		return step, &OwnFault{File: file, Line: cut.line, Message: cut.text, Hint: "close it, or take it out"}
	}
	for i := range step.parts {
		p := &step.parts[i]
		switch {
		case len(p.params) > 0 || p.unnamed != "":
			return step, &OwnFault{File: file, Line: p.line, Message: "a statement has a parameter", Hint: "a migration has nothing to put in its place: write the value"}
		case checkVerb(p, stepVerbs...) != nil:
			return step, &OwnFault{File: file, Line: p.line, Message: "a statement is not for a migration: " + checkVerb(p, stepVerbs...).Error(),
				Hint: "each file runs in one transaction of its own"}
		}
	}
	return step, nil
}

// reason is what the system said, without the path that stands beside it.
func reason(err error) string {
	var named *os.PathError
	if errors.As(err, &named) {
		return named.Err.Error()
	}
	return err.Error()
}

// appliedStep is a migration of the owner's as it was recorded.
type appliedStep struct {
	number    int64
	name, sum string
	at        time.Time
}

// pendingSteps are those that were not applied yet. One that was and is not what
// it was, or is gone, is a fault.
func pendingSteps(folder string, steps []OwnStep, applied []appliedStep) ([]OwnStep, []*OwnFault) {
	var faults []*OwnFault
	for _, a := range applied {
		i := slices.IndexFunc(steps, func(s OwnStep) bool { return s.Number == a.number })
		on := a.at.UTC().Format(time.DateOnly)
		switch {
		case i < 0:
			faults = append(faults, &OwnFault{File: filepath.Join(folder, a.name), Message: "it was applied on " + on + " and is gone",
				Hint: "put the file back as it was"})
		case steps[i].sum != a.sum:
			faults = append(faults, &OwnFault{File: steps[i].File, Message: fmt.Sprintf("it was applied on %s as %s and says something else now", on, a.name),
				Hint: fmt.Sprintf("put it back as it was, and write the change as %04d-….sql", len(steps)+1)})
		}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return steps[min(len(applied), len(steps)):], nil
}

// ApplyOwnSteps brings the owner's tables forward, each file in one transaction,
// and returns the names of those that were applied now. An error is an OwnFault
// or trouble of the store; files before the one that it names were applied.
//
// A crash between two files leaves the tables of the first, which the next start
// brings forward again.
func (s *Store) ApplyOwnSteps(ctx context.Context, now time.Time, folder string, steps []OwnStep) ([]string, error) {
	applied, err := s.appliedSteps(ctx)
	if err != nil {
		return nil, err
	}
	pending, faults := pendingSteps(folder, steps, applied)
	if len(faults) > 0 {
		return nil, joinFaults(faults)
	}
	var names []string
	for i := range pending {
		err := s.writeAlone(ctx, 1, func(t *tx) error { return applyOwn(t, &pending[i], now) })
		var fault *OwnFault
		if errors.As(err, &fault) {
			return names, fault
		}
		if isConstraint(err) {
			return names, deferredFault(&pending[i], err)
		}
		if err != nil {
			return names, fmt.Errorf("apply %s: %w", pending[i].File, err)
		}
		names = append(names, pending[i].Name)
	}
	return names, nil
}

// PendingOwnSteps names the migrations that the next start will apply.
func (r *Reader) PendingOwnSteps(ctx context.Context, folder string, steps []OwnStep) ([]string, []*OwnFault, error) {
	applied, err := r.appliedSteps(ctx)
	if err != nil {
		return nil, nil, err
	}
	pending, faults := pendingSteps(folder, steps, applied)
	var names []string
	for _, step := range pending {
		names = append(names, step.Name)
	}
	return names, faults, nil
}

func (r *Reader) appliedSteps(ctx context.Context) ([]appliedStep, error) {
	var applied []appliedStep
	err := r.list(ctx, sqlOwnSteps, nil, func(r row) error {
		applied = append(applied, appliedOf(r))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the applied migrations: %w", err)
	}
	return applied, nil
}

func appliedOf(r row) appliedStep {
	return appliedStep{number: r.int64(0), name: r.text(1), sum: r.text(2), at: timeOf(r, 3)}
}

// applyOwn runs one migration and records it. What is not the owner's is
// compared before and after: an ALTER TABLE … RENAME names its new name to
// nobody else.
func applyOwn(t *tx, step *OwnStep, now time.Time) error {
	before, err := texts(t, sqlOurSchema)
	if err != nil {
		return fmt.Errorf("read the schema: %w", err)
	}
	earlier, err := texts(t, sqlOutward) // that the app made by itself
	if err != nil {
		return fmt.Errorf("read the references: %w", err)
	}
	for i := range step.parts {
		if err := t.c.runStep(step.parts[i].text); err != nil {
			if !ownFault(err) {
				return t.note(err)
			}
			return &OwnFault{File: step.File, Line: step.parts[i].line, Message: saying(err), Hint: "nothing of this file was applied: repair it and start again"}
		}
	}
	after, err := texts(t, sqlOurSchema)
	if err != nil {
		return fmt.Errorf("read the schema: %w", err)
	}
	if !slices.Equal(before, after) {
		return &OwnFault{File: step.File, Message: "it would change what is not its own: every name has to begin with " + ownPrefix,
			Hint: "nothing of this file was applied; look for an ALTER TABLE … RENAME"}
	}
	outward, err := texts(t, sqlOutward)
	if err != nil {
		return fmt.Errorf("read the references: %w", err)
	}
	for _, table := range outward {
		if !slices.Contains(earlier, table) {
			return &OwnFault{File: step.File, Message: fmt.Sprintf("the table %q has a reference to a table that is not its own", table),
				Hint: "keep the key in a plain column: a reference could refuse what Creel itself has to store"}
		}
	}
	if _, err := t.exec(sqlSaveOwnStep, step.Number, step.Name, step.sum, now.UnixMilli()); err != nil {
		return fmt.Errorf("record the migration: %w", err)
	}
	return nil
}

// deferredFault is a reference that COMMIT found broken.
func deferredFault(step *OwnStep, err error) *OwnFault {
	return &OwnFault{File: step.File, Message: saying(err), Hint: "nothing of this file was applied: repair it and start again"}
}

// texts are the first column of a query.
func texts(t *tx, query string) (all []string, err error) {
	err = t.query(query, nil, func(r row) error {
		all = append(all, r.text(0))
		return nil
	})
	return all, err
}

func joinFaults(faults []*OwnFault) error {
	all := make([]error, len(faults))
	for i, f := range faults {
		all[i] = f
	}
	return errors.Join(all...)
}
