package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"creel/event"
)

// decisions are what can be said about a delivery in doubt.
func decisions() map[string]event.ActionKind {
	return map[string]event.ActionKind{
		"sent": event.ActionWasSent, "again": event.ActionSendAgain, "dead": event.ActionGiveUp,
	}
}

func (f *frame) resolve() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "resolve sent|again|dead DELIVERY...",
		Short: "Decide about deliveries in doubt, whose answer was lost",
		Long: `A destination with on_doubt = "review" keeps a delivery whose answer was lost
instead of sending it again. Ask the destination whether it arrived, then say:

  sent    it arrived
  again   it did not: send it again, under the same identity
  dead    give it up; it is a dead letter that can be replayed

creel deliveries --state in_doubt lists them.`,
		Example: `  creel resolve sent 17 --reason "the app has it"
  creel resolve again 17 18 21 --reason "the app was never asked"`,
		Args: resolveArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := f.place()
			if err != nil {
				return err
			}
			return f.decide(cmd.Context(), s, args[0], args[1:], reason)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit trail")
	return f.jsonFlag(cmd)
}

func resolveArgs(cmd *cobra.Command, args []string) error {
	if len(args) < 2 || decisions()[args[0]] == "" {
		return usage(listDoubts, "%s takes sent, again or dead, and the numbers of deliveries", cmd.CommandPath())
	}
	for _, number := range args[1:] {
		if id, err := strconv.ParseInt(number, 10, 64); err != nil || id < 1 {
			return usage(listDoubts, "%q is not the number of a delivery: it is the first column of the list", number)
		}
	}
	return nil
}

// listDoubts shows the deliveries that wait for a decision.
const listDoubts = "creel deliveries --state in_doubt"

// decide decides about one delivery after the other, each an action of its own:
// what somebody else has settled meanwhile keeps none of the others.
func (f *frame) decide(ctx context.Context, s *setup, decision string, numbers []string, reason string) error {
	var late []string
	for _, number := range numbers {
		action := f.action(decisions()[decision], reason)
		action.Target = number
		done, _, err := f.act(ctx, s, action)
		if coded := (*exit)(nil); errors.As(err, &coded) {
			return err
		}
		if err != nil {
			return failed(listDoubts, "delivery %s: %w", number, err)
		}
		if f.asJSON {
			if err := f.printJSON(done); err != nil {
				return err
			}
		}
		switch {
		case done.Done == 0:
			late = append(late, number)
		case !f.asJSON:
			fmt.Fprintf(f.out, "Delivery %s: %s, action %d in the audit trail.\n", number, decision, done.ID)
		}
	}
	code := exitPartly
	if len(late) == len(numbers) {
		code = exitNothing
	}
	switch {
	case len(late) == 0:
		return nil
	case len(late) == 1:
		return &exit{code: code, err: fmt.Errorf("delivery %s is not in doubt: nothing was done about it", late[0]), hint: listDoubts}
	}
	return &exit{code: code, err: fmt.Errorf("deliveries %s are not in doubt: nothing was done about them", strings.Join(late, ", ")), hint: listDoubts}
}
