package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"creel/admin"
	"creel/event"
	"creel/store"
)

func (f *frame) deliveries() *cobra.Command {
	var filter store.DeliveryFilter
	var state string
	var key string
	var limit uint
	cmd := &cobra.Command{
		Use:   "deliveries",
		Short: "List what goes out, newest first",
		Example: `  creel deliveries --state dead
  creel deliveries --destination app --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			reader, s, err := f.reader(cmd.Context())
			if err != nil {
				return err
			}
			defer reader.Close()
			if filter.State, err = parseDeliveryState(state); err != nil {
				return err
			}
			if key != "" {
				of, err := lookedAt(cmd.Context(), reader, "creel deliveries --event", key)
				if err != nil {
					return err
				}
				filter.Event = &of
			}
			return f.listDeliveries(cmd, s, reader, filter, int(limit))
		},
	}
	textVar(cmd, &filter.Destination, "destination", "destination name")
	textVar(cmd, &state, "state", "state: "+joinDeliveryStates())
	completes(cmd, "state", words(event.DeliveryStates()))
	textVar(cmd, &key, "event", "the event that they belong to")
	limitFlag(cmd, &limit)
	return f.jsonFlag(cmd)
}

func joinDeliveryStates() string {
	text := ""
	for i, state := range event.DeliveryStates() {
		if i > 0 {
			text += ", "
		}
		text += string(state)
	}
	return text
}

func parseDeliveryState(text string) (event.DeliveryState, error) {
	if text == "" {
		return "", nil
	}
	for _, state := range event.DeliveryStates() {
		if string(state) == text {
			return state, nil
		}
	}
	return "", usage("one of "+joinDeliveryStates(), "--state %q is not a state of a delivery", text)
}

func (f *frame) listDeliveries(cmd *cobra.Command, s *setup, reader *store.Reader, filter store.DeliveryFilter, limit int) error {
	head := []string{"ID", "EVENT", "DESTINATION", "STATE", "ATTEMPTS", "STATUS", "NEXT", "ERROR"}
	answered := filter.State == event.DeliveryDead && !f.asJSON // why they are dead is what is asked
	if answered {
		head = append(head, "ANSWER")
	}
	rows := newTable(f.out, head...)
	if f.asJSON {
		rows = nil
	}
	count := 0
	hints := map[string]bool{}
	page := event.Page{Limit: pageRows}
	for {
		if limit > 0 {
			page.Limit = min(pageRows, limit-count)
		}
		deliveries, err := reader.Deliveries(cmd.Context(), filter, page)
		if err != nil {
			return err
		}
		if answered {
			err = f.printAnswered(cmd.Context(), rows, reader, deliveries, hints)
		} else {
			err = f.printDeliveries(rows, deliveries)
		}
		if err != nil {
			return err
		}
		count += len(deliveries)
		if len(deliveries) < page.Limit || count == limit {
			break
		}
		page.Before = deliveries[len(deliveries)-1].ID
	}
	if count == 0 {
		if filter == (store.DeliveryFilter{}) {
			return nothing("creel events, to see whether anything has come in")
		}
		return noneNamed(cmd.Context(), reader, s, filter.Source, filter.Destination, "creel deliveries, without a filter")
	}
	if rows != nil {
		rows.flush()
		for _, hint := range slices.Sorted(maps.Keys(hints)) {
			fmt.Fprintln(f.err, printable(hint))
		}
		if count == limit {
			fmt.Fprintf(f.err, "The newest %d; --limit 0 lists all.\n", limit)
		}
	}
	return nil
}

// eventOrAlert names what a delivery is about.
func eventOrAlert(d event.Delivery) string {
	if d.Alert != 0 {
		return "incident " + strconv.FormatInt(d.Alert, 10)
	}
	return d.Event.String()
}

// whereTo names a destination, and who or what at it.
func whereTo(destination, target string) string {
	if target == "" {
		return destination
	}
	return destination + " " + target
}

func (f *frame) printDeliveries(rows *table, deliveries []event.Delivery) error {
	for _, d := range deliveries {
		if err := f.printDelivery(rows, d); err != nil {
			return err
		}
	}
	return nil
}

// printAnswered prints deliveries with what was answered last, and collects what
// explains it.
func (f *frame) printAnswered(ctx context.Context, rows *table, reader *store.Reader, deliveries []event.Delivery, hints map[string]bool) error {
	answers, err := reader.Answers(ctx, deliveries)
	if err != nil {
		return err
	}
	for _, d := range deliveries {
		if err := f.printDelivery(rows, d, admin.AnswerLine(answers[d.ID])); err != nil {
			return err
		}
		if hint := admin.SecretHint(d); hint != "" {
			hints[hint] = true
		}
	}
	return nil
}

func (f *frame) printDelivery(rows *table, d event.Delivery, more ...string) error {
	if f.asJSON {
		return f.printJSON(admin.LineOfDelivery(d))
	}
	status := ""
	if d.Status > 0 {
		status = strconv.Itoa(d.Status)
	}
	rows.row(append([]string{strconv.FormatInt(d.ID, 10), eventOrAlert(d), whereTo(d.Destination, d.Target), string(d.State),
		strconv.Itoa(d.Attempts), status, stamp(d.NextAt), d.Error}, more...)...)
	return nil
}
