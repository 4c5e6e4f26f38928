package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"creel/admin"
)

// reconciling is what creel reconcile was asked for.
type reconciling struct {
	since, ids, id, format, reason string
	bring, redeliver               bool
}

func (f *frame) reconcile() *cobra.Command {
	var how reconciling
	cmd := &cobra.Command{
		Use:   "reconcile SOURCE",
		Short: "Find events that the sender lists and the inbox does not have; bring them in",
		Long: `Reconcile reads the sender's own list of events, as [source.reconcile] describes
it, and compares it with the inbox. What is missing is printed and kept as the gap
signal. --import brings it in through the inbox, marked as recovered; --redeliver
asks the sender to deliver it again. Events of the last minutes (reconcile.lag) are
left for the next time: they may still come, or be listed late.

--ids compares a list of event ids instead: lines of a file, a column of a CSV
table or a member of JSON lines, such as a report of settlements. It brings
nothing in.

A running server does the same by itself, weekly or as reconcile.every says.

Ctrl-C ends it; what was brought in till then stays.

Exit 0 when nothing is missing any more, 1 when something is, 3 when some could
not be read or brought in.`,
		Example: `  creel reconcile stripe --since 168h
  creel reconcile stripe --since 2026-11-01 --import --reason "outage of the 1st"
  creel reconcile github --since 48h --redeliver
  creel reconcile stripe --ids settled.csv --id event_id`,
		Args: oneArg("the source"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.runReconcile(cmd.Context(), args[0], how)
		},
	}
	how.since = "168h"
	textVar(cmd, &how.since, "since", "how far back: 2026-11-01T10:00:00Z, or 168h")
	cmd.Flags().BoolVar(&how.bring, "import", false, "bring in what is missing")
	cmd.Flags().BoolVar(&how.redeliver, "redeliver", false, "ask the sender to deliver again what is missing")
	textVar(cmd, &how.ids, "ids", "file of event ids to look for instead; - is standard input")
	textVar(cmd, &how.id, "id", "column or member of that file that is the id")
	textVar(cmd, &how.format, "format", "of that file: lines, jsonl or csv; as its name says otherwise, else lines")
	cmd.Flags().StringVar(&how.reason, "reason", "", "why, for the audit trail")
	return f.jsonFlag(cmd)
}

func (f *frame) runReconcile(ctx context.Context, name string, how reconciling) error {
	since, err := parseTime("--since", how.since, f.now())
	switch {
	case err != nil:
		return err
	case how.bring && how.redeliver:
		return usage("--import, which needs nothing of the sender's", "--import and --redeliver do the same in two ways: take one")
	case how.ids != "" && (how.bring || how.redeliver):
		return usage("creel reconcile "+name+" --since 168h --import", "a list of ids has no events in it that could be brought in")
	}
	ask := admin.AskReconcile{Source: name, Actor: f.actor(), Reason: how.reason, Since: since, Import: how.bring, Redeliver: how.redeliver}
	if how.ids != "" {
		if ask.IDs, err = readIDs(how); err != nil {
			return err
		}
	}
	return f.bring(ctx, name, func(to admin.Bring) error {
		if err := f.listless(name, how); err != nil {
			return err
		}
		if how.ids != "" {
			done, err := to.Reconcile(ctx, ask)
			if err != nil {
				return failed("", "%w", err)
			}
			return f.printReconciled(&done, how)
		}
		f.progress("Reading the sender's list of %s since %s …", name, stamp(since))
		done, err := f.compare(ctx, to, ask)
		if err != nil {
			return err
		}
		return f.printReconciled(&done, how)
	})
}

// listless refuses a source of which it is not said where its sender lists
// events, before anything says that the list is read.
func (f *frame) listless(name string, how reconciling) error {
	s, err := f.usable()
	if err != nil || how.ids != "" {
		return err
	}
	for i := range s.config.Sources {
		if own := &s.config.Sources[i]; own.Name == name && own.Reconcile == nil {
			return failed(fmt.Sprintf("below the source %s, with a token that may read events, then creel reload:\n  [source.reconcile]\n  token = \"env:NAME\"\n"+
				"docs/operations.md has the rest; without a list: creel reconcile %s --ids FILE", name, name),
				"the source %q has no [source.reconcile], so it is not known where its sender lists events", name)
		}
	}
	return nil
}

func readIDs(how reconciling) ([]string, error) {
	otherwise := "lines"
	if how.id != "" {
		otherwise = "jsonl"
	}
	format, err := formatOf(how.format, how.ids, otherwise)
	if err != nil {
		return nil, err
	}
	if format == "capture" {
		return nil, usage("one of jsonl, csv, lines", "captured requests are no list of ids")
	}
	if format != "lines" && how.id == "" {
		return nil, usage("--id event_id", "--id has to name the column or member that is the id")
	}
	ids := []string{}
	err = eachRecord(how.ids, format, func(r record) error {
		if r.bad != nil {
			return usage("", "line %d: %w", r.line, r.bad)
		}
		if format == "lines" {
			ids = append(ids, string(r.raw))
			return nil
		}
		id, err := r.field(how.id)
		if err != nil {
			return usage("", "line %d: %w", r.line, err)
		}
		ids = append(ids, id)
		return nil
	})
	if err == nil && len(ids) == 0 {
		err = nothing("a file with one id a line")
	}
	return ids, err
}

func (f *frame) printReconciled(done *admin.Reconciled, how reconciling) error {
	if f.asJSON {
		if err := f.printJSON(done); err != nil {
			return err
		}
	} else {
		f.tellReconciled(done, how)
	}
	switch {
	case done.Failed > 0:
		return silent(exitPartly)
	case done.Missing > done.Recovered+done.Asked:
		return silent(exitFailed)
	case done.Unreadable > 0:
		return silent(exitPartly)
	}
	return nil
}

func (f *frame) tellReconciled(done *admin.Reconciled, how reconciling) {
	if len(done.List) > 0 {
		rows := newTable(f.out, "ID", "TYPE", "AT", "OUTCOME", "ERROR")
		for _, one := range done.List {
			rows.row(one.ID, one.Type, stamp(one.At), one.Outcome, one.Error)
		}
		rows.flush()
	}
	if done.More > 0 {
		fmt.Fprintf(f.out, "and %d more\n", done.More)
	}
	for _, lost := range done.Lost {
		fmt.Fprintf(f.out, "%s to %s can not be recovered: the sender does not list that span (any more). Look for what happened then at the sender itself.\n",
			stamp(lost.From), stamp(lost.Until.Add(-time.Millisecond)))
	}
	if done.Unreadable > 0 {
		fmt.Fprintf(f.out, "%s of the list could not be read; the first: %s\n", plural(done.Unreadable, "item", "items"), printable(done.Why))
	}
	if how.ids != "" {
		fmt.Fprintf(f.out, "%s, %d not in the inbox.\n", plural(done.Listed, "id", "ids"), done.Missing)
		return
	}
	fmt.Fprintf(f.out, "%s to %s: %s listed, %d missing", stamp(done.Span.From), stamp(done.Span.Until), plural(done.Listed, "event", "events"), done.Missing)
	switch {
	case how.bring:
		fmt.Fprintf(f.out, ", %d recovered", done.Recovered)
	case how.redeliver:
		fmt.Fprintf(f.out, ", %d asked for again (compare anew when they have come)", done.Asked)
	case done.Missing > 0:
		fmt.Fprintf(f.out, "; --import brings them in")
	}
	fmt.Fprintln(f.out, ".")
}
