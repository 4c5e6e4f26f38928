package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"creel/event"
	"creel/store"
)

func (f *frame) discard() *cobra.Command {
	var sel selection
	var reason string
	var dry bool
	cmd := &cobra.Command{
		Use:   "discard [KEY...]",
		Short: "Give dead events up, or what waits for a destination that is gone",
		Long: `Discard takes dead events and dead deliveries off the dead letters for good;
they stay visible and audited. With --destination NAME of a destination that the
configuration does not have any more, it takes the deliveries to it instead, those
that wait or are in doubt too, and leaves the events as they are.`,
		Example: `  creel discard stripe//evt_1 --reason "test data"
  creel discard --destination old-app --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			action, err := f.discardAction(cmd.Context(), &sel, args, reason)
			if err != nil {
				return err
			}
			if dry {
				return f.planDiscard(cmd.Context(), action)
			}
			return f.bulkAction(cmd.Context(), action)
		},
	}
	sel.flags(cmd)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "say what would be discarded, and change nothing")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit trail")
	return f.jsonFlag(cmd)
}

// discardAction is what the command line asks for. A destination that is gone is
// the target of the action, any other one narrows the dead letters.
func (f *frame) discardAction(ctx context.Context, sel *selection, args []string, reason string) (event.Action, error) {
	action := f.action(event.ActionDiscard, reason)
	selector, err := f.bulkSelector(ctx, sel, args, false, "discard")
	if err != nil {
		return action, err
	}
	s, err := f.place()
	if err != nil {
		return action, err
	}
	if selector.Destination != "" && selector.State == "" { // is it gone, or not?
		if err := s.whole(); err != nil {
			return action, err
		}
	}
	switch {
	case selector.Destination != "" && selector.State == "" && !slices.Contains(s.config.DestinationNames(), selector.Destination):
		action.Target = selector.Destination
	case len(args) == 0 && selector.State == "":
		selector.State = event.Dead // nothing else can be given up
	}
	action.Selector = selector
	return action, nil
}

// discardLine is one event of a dry run as --json prints it.
type discardLine struct {
	Event      event.Key   `json:"event"`
	Type       string      `json:"type"`
	State      event.State `json:"state"`
	Outcome    string      `json:"outcome"`    // discard or refuse
	Whole      bool        `json:"whole"`      // the event itself
	Deliveries int         `json:"deliveries"` // how many of its deliveries
	Error      string      `json:"error,omitempty"`
}

// planDiscard prints what a discard would do. It reads, and does nothing else.
func (f *frame) planDiscard(ctx context.Context, action event.Action) error {
	reader, s, err := f.reader(ctx)
	if err != nil {
		return err
	}
	defer reader.Close()
	rows := newTable(f.out, "EVENT", "TYPE", "STATE", "WHAT WOULD HAPPEN")
	events, count := 0, 0
	err = reader.ForeseeDiscard(ctx, action, func(o store.DiscardOutlook) error {
		events++
		line := discardLine{Event: o.Event.Key, Type: o.Event.Type, State: o.Event.State, Outcome: "discard",
			Whole: o.Whole, Deliveries: o.Deliveries, Error: o.Refused}
		if o.Refused != "" {
			line.Outcome = "refuse"
		} else {
			count++
		}
		if f.asJSON {
			return f.printJSON(line)
		}
		rows.row(line.Event.String(), line.Type, string(line.State), line.String())
		return nil
	})
	if err != nil {
		return failed("", "plan: %w", err)
	}
	if events == 0 {
		return noneNamed(ctx, reader, s, action.Selector.Source, action.Selector.Destination, "creel events, to see what there is")
	}
	if !f.asJSON {
		rows.flush()
		what := plural(count, "event would be discarded", "events would be discarded")
		if action.Target != "" {
			what = fmt.Sprintf("What waits for %s of %s would be discarded", action.Target, plural(count, "event", "events"))
		}
		fmt.Fprintln(f.out, what+". Nothing has been changed.")
	}
	return nil
}

// String is the line as people read it.
func (l discardLine) String() string {
	deliveries := plural(l.Deliveries, "delivery", "deliveries")
	switch {
	case l.Error != "":
		return "refuse: " + l.Error
	case l.Whole && l.Deliveries > 0:
		return "discard the event and " + deliveries
	case l.Whole:
		return "discard the event"
	}
	return "discard " + deliveries
}
