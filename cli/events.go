package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"creel/admin"
	"creel/event"
	"creel/store"
)

// pageRows is how many rows a list reads at once.
const pageRows = 500

func (f *frame) events() *cobra.Command {
	var sel selection
	var limit uint
	cmd := &cobra.Command{
		Use:   "events [KEY]",
		Short: "List what has come in, newest first; with a key, show one event whole",
		Example: `  creel events --state dead
  creel events --source stripe --type 'invoice.*' --since 24h --json
  creel events stripe/acct_1/evt_1M2`,
		RunE: func(cmd *cobra.Command, args []string) error {
			reader, s, err := f.reader(cmd.Context())
			if err != nil {
				return err
			}
			defer reader.Close()
			if len(args) == 1 && !sel.given() {
				return f.showEvent(cmd.Context(), reader, s, args[0])
			}
			for _, text := range args {
				if err := actedOn(cmd.Context(), reader, "creel events", text); err != nil {
					return err
				}
			}
			selector, err := sel.selector(f.now(), args)
			if err != nil {
				return err
			}
			return f.listEvents(cmd.Context(), s, reader, selector, int(limit))
		},
	}
	sel.flags(cmd)
	limitFlag(cmd, &limit)
	return f.jsonFlag(cmd)
}

func (f *frame) listEvents(ctx context.Context, s *setup, reader *store.Reader, selector event.Selector, limit int) error {
	var rows *table
	count, err := eachEvent(ctx, reader, selector, limit, func(e event.Event) error {
		if selector.State == event.Dead && e.State != event.Dead {
			why, err := deadDelivery(ctx, reader, e.Key)
			if err != nil {
				return err
			}
			e.Error = why
		}
		if f.asJSON {
			return f.printJSON(admin.LineOf(e))
		}
		if rows == nil {
			rows = newTable(f.out, "RECEIVED", "EVENT", "TYPE", "STATE", "ATTEMPTS", "DUPLICATES", "ERROR")
		}
		rows.row(stamp(e.ReceivedAt), e.Key.String(), e.Type, string(e.State),
			strconv.Itoa(e.Attempts), strconv.Itoa(e.Duplicates), e.Error)
		return nil
	})
	if rows != nil {
		rows.flush()
	}
	if err != nil {
		return err
	}
	if count == 0 {
		return noneNamed(ctx, reader, s, selector.Source, selector.Destination, "creel events, without a filter")
	}
	if count == limit && !f.asJSON {
		fmt.Fprintf(f.err, "The newest %d; --limit 0 lists all.\n", limit)
	}
	return nil
}

// deadDelivery says why an event that is done itself is among the dead
// letters: one of its deliveries is.
func deadDelivery(ctx context.Context, reader *store.Reader, key event.Key) (string, error) {
	dead, err := reader.Deliveries(ctx, store.DeliveryFilter{Event: &key, State: event.DeliveryDead}, event.Page{Limit: 1})
	if err != nil || len(dead) == 0 {
		return "", err
	}
	return fmt.Sprintf("delivery %d to %s is dead: %s", dead[0].ID, dead[0].Destination, dead[0].Error), nil
}

// eachEvent calls visit for the events of a selection, newest first, up to
// limit of them (0 is all), and returns how many it visited.
func eachEvent(ctx context.Context, reader *store.Reader, selector event.Selector, limit int, visit func(event.Event) error) (int, error) {
	count := 0
	page := event.Page{Limit: pageRows}
	for {
		if limit > 0 {
			page.Limit = min(pageRows, limit-count)
		}
		events, err := reader.Events(ctx, selector, page)
		if err != nil {
			return count, err
		}
		for _, e := range events {
			if err := visit(e); err != nil {
				return count, err
			}
			count++
		}
		if len(events) < page.Limit || count == limit {
			return count, nil
		}
		page.Before = events[len(events)-1].Seq
	}
}
