package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"creel/admin"
	"creel/config"
	"creel/event"
	"creel/store"
)

func (f *frame) audit() *cobra.Command {
	var limit uint
	cmd := &cobra.Command{
		Use:   "audit [ACTION]",
		Short: "Who did what, newest first; with a number, the keys of one action, or itself where it has none",
		RunE: func(cmd *cobra.Command, args []string) error {
			reader, _, err := f.reader(cmd.Context())
			if err != nil {
				return err
			}
			defer reader.Close()
			if len(args) == 1 {
				id, err := strconv.ParseInt(args[0], 10, 64)
				if err != nil {
					return usage("creel audit", "%q is not the number of an action", args[0])
				}
				items, err := itemsOf(cmd.Context(), reader, id)
				if err != nil {
					return failed("", "%w", err)
				}
				if len(items) == 0 {
					return f.printAction(cmd.Context(), reader, id)
				}
				return f.printItems(items)
			}
			actions, err := reader.Actions(cmd.Context(), event.Page{Limit: int(min(limit, pageRows))})
			if err != nil {
				return failed("", "%w", err)
			}
			return f.printActions(actions)
		},
	}
	cmd.Flags().UintVar(&limit, "limit", 50, "how many at most, up to 500")
	return f.jsonFlag(cmd)
}

// itemsOf reads all keys of an action.
func itemsOf(ctx context.Context, reader *store.Reader, id int64) ([]event.ActionItem, error) {
	var items []event.ActionItem
	for {
		page, err := reader.ActionItems(ctx, id, len(items))
		if err != nil || len(page) == 0 {
			return items, err
		}
		items = append(items, page...)
	}
}

// printAction shows an action that acted on no events: all there is of it.
func (f *frame) printAction(ctx context.Context, reader *store.Reader, id int64) error {
	action, err := reader.Action(ctx, id)
	if errors.Is(err, event.ErrNotFound) {
		return nothing("creel audit, to see the actions")
	}
	if err != nil {
		return failed("", "%w", err)
	}
	return f.printActions([]event.Action{action})
}

func (f *frame) printActions(actions []event.Action) error {
	if len(actions) == 0 {
		return &exit{code: exitNothing, err: errors.New("nobody has replayed, discarded, paused or resumed anything yet")}
	}
	rows := newTable(f.out, "ACTION", "AT", "ACTOR", "WHAT", "SELECTION", "DONE", "REFUSED", "REASON")
	for _, action := range actions {
		if f.asJSON {
			if err := f.printJSON(action); err != nil {
				return err
			}
			continue
		}
		rows.row(strconv.FormatInt(action.ID, 10), stamp(action.At), action.Actor, deed(action), admin.Subject(action),
			fmt.Sprintf("%d of %d", action.Done, action.Selected), strconv.Itoa(action.Refused), action.Reason)
	}
	if !f.asJSON {
		rows.flush()
	}
	return nil
}

// deed is what was done, and how where that is not the usual.
func deed(action event.Action) string {
	text := string(action.Kind)
	if action.Resend {
		text += " --resend"
	}
	if action.Rate > 0 {
		text += " --rate " + config.Rate(action.Rate).String()
	}
	if action.Finished.IsZero() {
		text += " (goes on)"
	}
	return text
}

func (f *frame) printItems(items []event.ActionItem) error {
	rows := newTable(f.out, "EVENT", "RESULT")
	for _, item := range items {
		if f.asJSON {
			if err := f.printJSON(item); err != nil {
				return err
			}
			continue
		}
		rows.row(item.Event.String(), item.Result)
	}
	if !f.asJSON {
		rows.flush()
	}
	return nil
}
