package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"creel/app"
	"creel/config"
	"creel/store"
)

// rehearsalLine is a rehearsal as it is printed; problems follow, one a line.
type rehearsalLine struct {
	app.Rehearsal
	TookMS  int64 `json:"took_ms"`  // of bringing the schema forward
	WholeMS int64 `json:"whole_ms"` // of reading the copy whole
}

// rehearse starts on a copy of the database, as far as nobody notices.
func (f *frame) rehearse(ctx context.Context, s *setup, copied string, notes bool) error {
	if s.file == "" {
		return usage("creel check -c FILE --database "+copied, "no configuration is named, and the demo's is nobody's")
	}
	if same(copied, s.config.Database) {
		return usage("creel backup copy.db && creel check --database copy.db", "%s is the database itself: a rehearsal changes what it opens", copied)
	}
	brought, err := store.Rehearse(ctx, copied, f.now)
	switch {
	case errors.Is(err, store.ErrRunning):
		return failed("creel backup copy.db && creel check --database copy.db", "%w", err)
	case errors.Is(err, fs.ErrNotExist):
		return usage("creel backup "+copied, "%w", err)
	case err != nil:
		return failed("", "%w", err)
	}
	s.config.Database = brought.Path
	line := rehearsalLine{Rehearsal: app.Rehearsal{Rehearsed: brought, Migrations: []string{}, Orphans: []app.Orphan{}},
		TookMS: brought.Took.Milliseconds(), WholeMS: brought.Whole.Milliseconds()}
	var orphaned config.Problems
	if snapshot, _ := f.judge(s); snapshot != nil { // else everything tells why
		if line.Rehearsal, err = snapshot.Rehearse(ctx, f.now); err != nil {
			return failed("", "%w", err)
		}
		line.Rehearsed = brought
		orphaned = line.Orphaned(snapshot)
	}
	if err := f.printRehearsal(&line); err != nil {
		return err
	}
	problems := append(f.everything(ctx, s), s.placed(orphaned)...)
	if err := f.printProblems(s, problems, notes); err != nil {
		return err
	}
	if len(line.Orphans) > 0 {
		if !f.asJSON {
			fmt.Fprintln(f.err, "serve would start, and leave behind:")
			for _, o := range line.Orphans {
				fmt.Fprintln(f.err, "  "+o.String())
			}
		}
		return silent(exitPartly)
	}
	return nil
}

// same tells whether two names are those of one file.
func same(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

func (f *frame) printRehearsal(r *rehearsalLine) error {
	if f.asJSON {
		return f.printJSON(r)
	}
	fmt.Fprintf(f.out, "%s was read whole, in %s: %s, %s.\n", r.Path, r.Whole.Round(time.Millisecond), plural(int(r.Events), "event", "events"), plural(r.Bytes, "byte", "bytes"))
	if r.From == r.To {
		fmt.Fprintf(f.out, "Its schema is this version's, step %d.\n", r.To)
	} else {
		fmt.Fprintf(f.out, "Its schema was brought forward from step %d to %d, in %s; the file had %s before. There is no way back but the copy.\n",
			r.From, r.To, r.Took.Round(time.Millisecond), plural(r.Before, "byte", "bytes"))
	}
	if len(r.Migrations) > 0 {
		fmt.Fprintf(f.out, "Of your own migrations were applied: %s.\n", strings.Join(r.Migrations, ", "))
	}
	if r.Purge.Events > 0 {
		fmt.Fprintf(f.out, "The retention would remove within an hour what %s carried, %s.\n", plural(int(r.Purge.Events), "event", "events"), plural(r.Purge.Bytes, "byte", "bytes"))
	}
	return nil
}
