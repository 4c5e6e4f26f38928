package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"creel/admin"
	"creel/event"
	"creel/store"
)

// keptList reads a list of what rules keep, newest first, up to limit rows (0
// is all), and prints each: as a row of the table, or as its line with --json.
type keptList[E, L any] struct {
	head  []string
	read  func(context.Context, *store.Reader, event.Page) ([]E, error)
	id    func(E) int64
	line  func(E) L
	cells func(L) []string
	none  string // the hint where there is nothing
}

func (k keptList[E, L]) print(ctx context.Context, f *frame, limit int) error {
	reader, _, err := f.reader(ctx)
	if err != nil {
		return err
	}
	defer reader.Close()
	var rows *table
	count, page := 0, event.Page{}
	for {
		if page.Limit = pageRows; limit > 0 {
			page.Limit = min(pageRows, limit-count)
		}
		list, err := k.read(ctx, reader, page)
		if err != nil {
			return failed("", "%w", err)
		}
		for _, one := range list {
			line := k.line(one)
			if f.asJSON {
				if err := f.printJSON(line); err != nil {
					return err
				}
				continue
			}
			if rows == nil {
				rows = newTable(f.out, k.head...)
			}
			rows.row(k.cells(line)...)
		}
		count += len(list)
		if len(list) < page.Limit || count == limit {
			break
		}
		page.Before = k.id(list[len(list)-1])
	}
	if rows != nil {
		rows.flush()
	}
	if count == 0 {
		return nothing(k.none)
	}
	if count == limit && !f.asJSON {
		fmt.Fprintf(f.err, "The first %d; --limit 0 lists all.\n", limit)
	}
	return nil
}

// keptCommand is a command that prints such a list.
func (f *frame) keptCommand(use, short, example string, args cobra.PositionalArgs, run func(ctx context.Context, args []string, limit int) error) *cobra.Command {
	var limit uint
	cmd := &cobra.Command{Use: use, Short: short, Example: example, Args: args,
		RunE: func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), args, int(limit)) }}
	limitFlag(cmd, &limit)
	return f.jsonFlag(cmd)
}

func (f *frame) balances() *cobra.Command {
	return f.keptCommand("balances [HOLDER]", "What holders have, as rules granted it",
		"  creel balances\n  creel balances cus_1 --json", mostArgs(1, "a holder"),
		func(ctx context.Context, args []string, limit int) error {
			holder := strings.Join(args, "")
			var after event.Balance
			return keptList[event.Balance, admin.BalanceLine]{
				head: []string{"HOLDER", "UNIT", "AMOUNT", "CHANGED"},
				read: func(ctx context.Context, r *store.Reader, page event.Page) ([]event.Balance, error) {
					list, err := r.Balances(ctx, holder, after, page.Limit)
					if len(list) > 0 {
						after = list[len(list)-1]
					}
					return list, err
				},
				id:   func(event.Balance) int64 { return 0 }, // after has the place
				line: admin.LineOfBalance,
				cells: func(b admin.BalanceLine) []string {
					return []string{b.Holder, b.Unit, strconv.FormatInt(b.Amount, 10), b.At}
				},
				none: "creel ledger, to see whether a rule has granted anything",
			}.print(ctx, f, limit)
		})
}

func (f *frame) ledger() *cobra.Command {
	return f.keptCommand("ledger [HOLDER UNIT]", "Grants and reversals, newest first, of one holder's unit or of all",
		"  creel ledger\n  creel ledger cus_1 credits --limit 0", func(cmd *cobra.Command, args []string) error {
			if len(args) != 0 && len(args) != 2 {
				return usage(cmd.CommandPath()+" --help", "the ledger is of one holder and one unit: give both or neither")
			}
			return nil
		},
		func(ctx context.Context, args []string, limit int) error {
			args = append(args, "", "")
			return keptList[event.Entry, admin.EntryLine]{
				head: []string{"ENTRY", "AT", "HOLDER", "UNIT", "AMOUNT", "BALANCE", "REVERSES", "RULE", "KEY", "EVENT"},
				read: func(ctx context.Context, r *store.Reader, page event.Page) ([]event.Entry, error) {
					return r.Ledger(ctx, args[0], args[1], page)
				},
				id:   func(n event.Entry) int64 { return n.ID },
				line: admin.LineOfEntry,
				cells: func(n admin.EntryLine) []string {
					reverses := ""
					if n.Reverses != 0 {
						reverses = strconv.FormatInt(n.Reverses, 10)
					}
					return []string{strconv.FormatInt(n.ID, 10), n.At, n.Holder, n.Unit, strconv.FormatInt(n.Amount, 10),
						strconv.FormatInt(n.Balance, 10), reverses, n.Rule, n.Key, n.Event.String()}
				},
				none: "creel balances, to see who has what",
			}.print(ctx, f, limit)
		})
}

func (f *frame) records() *cobra.Command {
	var filter store.RecordFilter
	cmd := f.keptCommand("records", "Rows that rules inserted once, newest first",
		"  creel records --kind order\n  creel records --key order/17 --json", noArgs,
		func(ctx context.Context, _ []string, limit int) error {
			return keptList[event.KeptRecord, admin.RecordLine]{
				head: []string{"RECORD", "AT", "KIND", "KEY", "FIELDS", "RULE", "EVENT"},
				read: func(ctx context.Context, r *store.Reader, page event.Page) ([]event.KeptRecord, error) {
					return r.Records(ctx, filter, page)
				},
				id:   func(k event.KeptRecord) int64 { return k.ID },
				line: admin.LineOfRecord,
				cells: func(k admin.RecordLine) []string {
					return []string{strconv.FormatInt(k.ID, 10), k.At, k.Kind, k.Key, fieldsText(k.Fields), k.Rule, k.Event.String()}
				},
				none: "creel records, without a filter",
			}.print(ctx, f, limit)
		})
	textVar(cmd, &filter.Kind, "kind", "kind of the record, as its rule names it")
	textVar(cmd, &filter.Key, "key", "its business key")
	return cmd
}

// fieldsText are the fields of a row in one cell, by name.
func fieldsText(fields map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		parts = append(parts, name+"="+fields[name])
	}
	return strings.Join(parts, " ")
}

// objectLine is the state of an object, and how it came to that.
type objectLine struct {
	admin.StateLine
	History []admin.TransitionLine `json:"history"` // newest first
}

func (f *frame) object() *cobra.Command {
	return f.keptCommand("object NAME", "The state that rules keep of an object, and how it came to that",
		"  creel object sub_1", oneArg("the object, as the rule's object names it"),
		func(ctx context.Context, args []string, limit int) error {
			reader, _, err := f.reader(ctx)
			if err != nil {
				return err
			}
			defer reader.Close()
			state, err := reader.ObjectState(ctx, args[0])
			if errors.Is(err, event.ErrNotFound) {
				return nothing("creel events --object " + args[0] + ", for the events about it")
			}
			if err != nil {
				return failed("", "%w", err)
			}
			line := objectLine{StateLine: admin.LineOfState(state), History: []admin.TransitionLine{}}
			if err := f.historyOf(ctx, reader, &line, args[0], limit); err != nil {
				return failed("", "%w", err)
			}
			if f.asJSON {
				return f.printJSON(line)
			}
			f.printObject(&line)
			return nil
		})
}

func (f *frame) historyOf(ctx context.Context, reader *store.Reader, line *objectLine, object string, limit int) error {
	page := event.Page{}
	for {
		if page.Limit = pageRows; limit > 0 {
			page.Limit = min(pageRows, limit-len(line.History))
		}
		list, err := reader.ObjectHistory(ctx, object, page)
		for _, n := range list {
			line.History = append(line.History, admin.LineOfTransition(n))
			page.Before = n.ID
		}
		if err != nil || len(list) < page.Limit || len(line.History) == limit {
			return err
		}
	}
}

func (f *frame) printObject(line *objectLine) {
	facts := newTable(f.out, "OBJECT", line.Object)
	facts.row("state", line.State)
	if line.Version != "" {
		facts.row("version", line.Version)
	}
	if len(line.Fields) > 0 {
		facts.row("fields", fieldsText(line.Fields))
	}
	facts.row("since", line.At)
	facts.row("event", line.Event.String())
	facts.flush()
	fmt.Fprintln(f.out)
	rows := newTable(f.out, "AT", "FROM", "STATE", "VERSION", "FIELDS", "RULE", "EVENT")
	for _, n := range line.History {
		rows.row(n.At, n.From, n.State, n.Version, fieldsText(n.Fields), n.Rule, n.Event.String())
	}
	rows.flush()
}
