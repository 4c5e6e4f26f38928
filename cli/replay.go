package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"creel/app"
	"creel/event"
)

func (f *frame) replay() *cobra.Command {
	var sel selection
	var reason string
	var dry, all bool
	cmd := &cobra.Command{
		Use:   "replay [KEY...]",
		Short: "Run the rules of events again, and send their dead deliveries",
		Long: `Replay queues events again under the same identity. What was applied or sent
stays so and is skipped; nothing is deleted. It acts through the running server
where there is one.`,
		Example: `  creel replay --source razorpay --state dead --since 2026-11-01 --dry-run
  creel replay --source razorpay --state dead --since 2026-11-01 --reason "bug 412 fixed"
  creel replay stripe/acct_1/evt_1M2`,
		RunE: func(cmd *cobra.Command, args []string) error {
			selector, err := f.bulkSelector(&sel, args, all, "replay")
			if err != nil {
				return err
			}
			if dry {
				return f.plan(cmd.Context(), selector)
			}
			return f.bulk(cmd.Context(), event.ActionReplay, selector, reason)
		},
	}
	sel.flags(cmd)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "say what would happen, per effect, and change nothing")
	cmd.Flags().BoolVar(&all, "all", false, "every event, where no other selection is given")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit trail")
	return f.jsonFlag(cmd)
}

func (f *frame) discard() *cobra.Command {
	var sel selection
	var reason string
	cmd := &cobra.Command{
		Use:     "discard [KEY...]",
		Short:   "Give dead events up; they stay visible and audited",
		Example: `  creel discard stripe//evt_1 --reason "test data"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			selector, err := f.bulkSelector(&sel, args, false, "discard")
			if err != nil {
				return err
			}
			if len(args) == 0 && selector.State == "" {
				selector.State = event.Dead // nothing else can be given up
			}
			return f.bulk(cmd.Context(), event.ActionDiscard, selector, reason)
		},
	}
	sel.flags(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit trail")
	return f.jsonFlag(cmd)
}

// bulkSelector refuses to act on everything by accident.
func (f *frame) bulkSelector(sel *selection, args []string, all bool, verb string) (event.Selector, error) {
	if len(args) == 0 && !sel.given() && !all {
		return event.Selector{}, usage(fmt.Sprintf("creel %s --state dead, or a key", verb), "%s needs a selection", verb)
	}
	selector, err := sel.selector(f.now(), args)
	selector.All = all
	return selector, err
}

// bulk does an action on a selection and says what it came to.
func (f *frame) bulk(ctx context.Context, kind event.ActionKind, selector event.Selector, reason string) error {
	s, err := f.usable()
	if err != nil {
		return err
	}
	action := f.action(kind, reason)
	action.Selector = selector
	done, alone, err := f.act(ctx, s, action)
	if errors.Is(err, event.ErrNotFound) {
		return &exit{code: exitNothing, err: errors.New("no event has that key"), hint: "creel events"}
	}
	if err != nil {
		return failed("", "%s: %w", kind, err)
	}
	if f.asJSON {
		if err := f.printJSON(done); err != nil {
			return err
		}
	} else if done.Selected > 0 {
		fmt.Fprintf(f.out, "%s: %d of %d, action %d in the audit trail.\n", past(kind), done.Done, done.Selected, done.ID)
		if alone && kind == event.ActionReplay {
			fmt.Fprintln(f.out, "No server runs on this database: they go on when creel serve does.")
		}
	}
	if done.Selected == 0 {
		return nothing("creel events, to see what there is")
	}
	return f.partly(done, len(selector.Keys)-done.Selected)
}

// partly says what an action left out: events that it refused, and keys that
// no event has.
func (f *frame) partly(done event.Action, missing int) error {
	if done.Refused > 0 && !f.asJSON {
		fmt.Fprintf(f.err, "%s not: creel audit %d says why.\n", plural(done.Refused, "event was", "events were"), done.ID)
	}
	if missing > 0 && !f.asJSON {
		fmt.Fprintf(f.err, "%s no event.\n", plural(missing, "key names", "keys name"))
	}
	if done.Refused > 0 || missing > 0 {
		return silent(exitPartly)
	}
	return nil
}

func past(kind event.ActionKind) string {
	switch kind {
	case event.ActionReplay:
		return "Replayed"
	case event.ActionDiscard:
		return "Discarded"
	}
	return string(kind)
}

// planLine is one event of a dry run as --json prints it.
type planLine struct {
	Event   event.Key        `json:"event"`
	Type    string           `json:"type"`
	State   event.State      `json:"state"`
	Outcome string           `json:"outcome"`
	Effects []app.PlanEffect `json:"effects"`
	Error   string           `json:"error,omitempty"`
}

// plan prints what a replay would do. It reads, and does nothing else.
func (f *frame) plan(ctx context.Context, selector event.Selector) error {
	reader, s, err := f.reader(ctx)
	if err != nil {
		return err
	}
	defer reader.Close()
	rules, err := f.rules(s)
	if err != nil {
		return err
	}
	rows := newTable(f.out, "EVENT", "TYPE", "STATE", "WHAT WOULD HAPPEN")
	count, err := app.Plan(ctx, reader, rules, selector, func(item app.PlanItem) error {
		if f.asJSON {
			return f.printJSON(planLine{Event: item.Event.Key, Type: item.Event.Type, State: item.Event.State,
				Outcome: item.Outcome, Effects: item.Effects, Error: item.Error})
		}
		rows.row(item.Event.Key.String(), item.Event.Type, string(item.Event.State), item.String())
		return nil
	})
	if err != nil {
		return failed("", "plan: %w", err)
	}
	if count == 0 {
		return nothing("creel events, to see what there is")
	}
	if !f.asJSON {
		rows.flush()
		fmt.Fprintf(f.out, "%s would be replayed. Nothing has been changed.\n", plural(count, "event", "events"))
	}
	return nil
}
