package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"creel/admin"
	"creel/app"
	"creel/config"
	"creel/event"
)

func (f *frame) replay() *cobra.Command {
	var sel selection
	var reason, pace string
	var dry, all, resend bool
	cmd := &cobra.Command{
		Use:   "replay [KEY...]",
		Short: "Run the rules of events again, and send their dead deliveries",
		Long: `Replay queues events again under the same identity. What was applied or sent
stays so and is skipped; nothing is deleted. With --resend what was sent goes out
again, with the same webhook-id and a new signature; with --destination to that
destination alone.

A replay of many goes on in the server by itself, at --rate where one is given,
also after the server was stopped or killed. This command waits for the end and
says how far it is; the same command again waits for the same replay as long as
it goes on. Without a server the events are queued, and go on when it starts.`,
		Example: `  creel replay --source razorpay --state dead --since 2026-11-01 --dry-run
  creel replay --source razorpay --state dead --since 2026-11-01 --reason "bug 412 fixed"
  creel replay stripe/acct_1/evt_1M2
  creel replay --destination app --since 24h --resend --rate 50/s --reason "the app lost a day"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			selector, err := f.bulkSelector(cmd.Context(), &sel, args, all, "replay")
			if err != nil {
				return err
			}
			action := f.action(event.ActionReplay, reason)
			action.Selector, action.Resend = selector, resend
			if action.Rate, err = parsePace(pace); err != nil {
				return err
			}
			if dry {
				return f.plan(cmd.Context(), action)
			}
			return f.bulkAction(cmd.Context(), action)
		},
	}
	sel.flags(cmd)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "say what would happen, per effect, and change nothing")
	cmd.Flags().BoolVar(&resend, "resend", false, "send again what was sent, under the same identity")
	textVar(cmd, &pace, "rate", "how many events go at most: 50/s, 100/m; as fast as it can without")
	cmd.Flags().BoolVar(&all, "all", false, "every event, where no other selection is given")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit trail")
	return f.jsonFlag(cmd)
}

// parsePace reads --rate: events in a second, 0 where it is not given.
func parsePace(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	rate, err := config.ParseRate(text)
	if err != nil {
		return 0, usage("--rate 50/s", "--rate %q: %w", text, err)
	}
	return float64(rate), nil
}

// bulkSelector refuses to act on everything by accident.
func (f *frame) bulkSelector(ctx context.Context, sel *selection, args []string, all bool, verb string) (event.Selector, error) {
	if len(args) == 0 && !sel.given() && !all {
		return event.Selector{}, usage(fmt.Sprintf("creel %s --state dead, or a key", verb), "%s needs a selection", verb)
	}
	selector, err := sel.selector(f.now(), args)
	if errors.Is(err, event.ErrBadKey) {
		return selector, f.keyFor(ctx, "creel "+verb, args, err)
	}
	selector.All = all
	return selector, err
}

// bulk does an action on a selection and says what it came to.
func (f *frame) bulk(ctx context.Context, kind event.ActionKind, selector event.Selector, reason string) error {
	action := f.action(kind, reason)
	action.Selector = selector
	return f.bulkAction(ctx, action)
}

func (f *frame) bulkAction(ctx context.Context, action event.Action) error {
	kind, selector := action.Kind, action.Selector
	s, err := f.place()
	if err != nil {
		return err
	}
	if err := s.known(ctx, selector.Source, selector.Destination); err != nil {
		return err
	}
	done, alone, err := f.act(ctx, s, action)
	if errors.Is(err, event.ErrNotFound) {
		return &exit{code: exitNothing, err: errors.New("no event has that key"), hint: "creel events"}
	}
	if errors.Is(err, admin.ErrLost) {
		return failed("creel audit, which has it at the top if it has begun: then it goes on by itself", "%s: %w", kind, err)
	}
	if coded := (*exit)(nil); errors.As(err, &coded) {
		return err
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
		if alone && done.Finished.IsZero() {
			fmt.Fprintf(f.out, "No server runs on this database: the others go at %s when creel serve does.\n", config.Rate(done.Rate))
		} else if alone && kind == event.ActionReplay && done.Done > 0 {
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
	case event.ActionLaneSkip:
		return "Skipped"
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
func (f *frame) plan(ctx context.Context, action event.Action) error {
	reader, s, err := f.reader(ctx)
	if err != nil {
		return err
	}
	defer reader.Close()
	rules, err := f.rules(s)
	if err != nil {
		return err
	}
	refused := 0
	rows := newTable(f.out, "EVENT", "TYPE", "STATE", "WHAT WOULD HAPPEN")
	count, err := app.Plan(ctx, reader, rules, action, func(item app.PlanItem) error {
		if item.Refused() {
			refused++
		}
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
		return noneNamed(ctx, reader, s, action.Selector.Source, action.Selector.Destination, "creel events, to see what there is")
	}
	if !f.asJSON {
		rows.flush()
		would := plural(count-refused, "event", "events") + " would be replayed"
		if refused > 0 {
			would += fmt.Sprintf(", %d would not", refused)
		}
		fmt.Fprintln(f.out, would+". Nothing has been changed.")
	}
	return nil
}
