package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"creel/app"
	"creel/config"
)

func (f *frame) check() *cobra.Command {
	var copied string
	var notes bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say everything that is wrong with the configuration, at once",
		Long: `Check reads the configuration as serve would, compiles every source, rule and
destination, compares it with the database where there is one, and prints every
problem with its file, line, key and what to do, the worst first. It changes
nothing. Exit 0 when serve would start, 2 when it would not; warnings do not stop
the start. What is good to know about the senders and nothing can be done about
is counted, and listed with --notes.

With --database it rehearses the start on a copy, before an upgrade or a large
change: it brings the copy's schema and your own migrations forward, reads it
whole before and after, compares the configuration with it, and says what would be
left behind. Exit 3 when serve would start and leave work behind that waits for a
source or a destination that is gone; 1 when the copy can not be used.`,
		Example: `  creel check
  creel backup copy.db && creel check --database copy.db`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := f.load()
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("database") {
				return f.rehearse(cmd.Context(), s, copied, notes)
			}
			return f.printProblems(s, f.everything(cmd.Context(), s), notes)
		},
	}
	cmd.Flags().BoolVar(&notes, "notes", false, "list what is good to know and asks for nothing too")
	textVar(cmd, &copied, "database", "a copy of the database, on which the start is rehearsed; it is changed")
	return f.jsonFlag(cmd)
}

// everything is every problem of a configuration: of its shape, of its
// meaning, and of what the database remembers of an earlier one.
func (f *frame) everything(ctx context.Context, s *setup) config.Problems {
	snapshot, problems := f.judge(s)
	if s.file == "" {
		// The demo's own parts are nobody's business but ours.
		problems = append(problems.Faults(), s.problems.Warnings()...)
	}
	if snapshot == nil {
		unread := func(p config.Problem) bool { return p.Path == "database" && !p.Warning }
		if s.file != "" && !slices.ContainsFunc(problems, unread) {
			problems = append(problems, app.Homeless(s.config.Database)...)
		}
		return s.placed(problems)
	}
	if s.file != "" {
		problems = append(problems, app.Unheard(s.config)...)
	}
	problems = append(problems, snapshot.Advice()...)
	problems = append(problems, app.Compare(ctx, snapshot)...)
	return s.placed(problems)
}

// printProblems prints what stops the start first. Notes come last, and are
// only counted where they are not asked for.
func (f *frame) printProblems(s *setup, problems config.Problems, notes bool) error {
	name := s.file
	if name == "" {
		name = "the demo configuration"
	}
	faults, warnings, good := problems.Faults(), problems.Warnings(), problems.Notes()
	if f.asJSON {
		for _, problem := range slices.Concat(faults, warnings, good) {
			if err := f.printJSON(problem); err != nil {
				return err
			}
		}
	} else {
		shown := slices.Concat(faults, warnings)
		if notes {
			shown = append(shown, good...)
		}
		for _, problem := range shown {
			fmt.Fprintln(f.out, problem.String())
		}
		if len(good) > 0 && !notes {
			fmt.Fprintf(f.out, "%s about what the senders do: creel check --notes\n", plural(len(good), "note", "notes"))
		}
		f.sumUp(s, name, len(faults), len(warnings))
	}
	if len(faults) > 0 {
		return silent(exitUsage)
	}
	return nil
}

func (f *frame) sumUp(s *setup, name string, faults, warnings int) {
	if faults > 0 {
		fmt.Fprintf(f.err, "%s: %s, %s\n", name, plural(faults, "problem", "problems"), plural(warnings, "warning", "warnings"))
		return
	}
	fmt.Fprintf(f.out, "%s is fine: %s, %s, %s; %s.\n", name,
		plural(len(s.config.Sources), "source", "sources"), plural(len(s.config.Rules), "rule", "rules"),
		plural(len(s.config.Destinations), "destination", "destinations"), plural(warnings, "warning", "warnings"))
}
