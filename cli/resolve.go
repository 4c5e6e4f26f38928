package cli

import (
	"fmt"

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
		Use:   "resolve sent|again|dead DELIVERY",
		Short: "Decide about a delivery in doubt, whose answer was lost",
		Long: `A destination with on_doubt = "review" keeps a delivery whose answer was lost
instead of sending it again. Ask the destination whether it arrived, then say:

  sent    it arrived
  again   it did not: send it again, under the same identity
  dead    give it up; it is a dead letter that can be replayed

creel deliveries --state in_doubt lists them.`,
		Example: `  creel resolve sent 17 --reason "the app has it"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 || decisions()[args[0]] == "" {
				return usage("creel deliveries --state in_doubt", "%s takes sent, again or dead, and the number of a delivery", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := f.usable()
			if err != nil {
				return err
			}
			action := f.action(decisions()[args[0]], reason)
			action.Target = args[1]
			done, _, err := f.act(cmd.Context(), s, action)
			if err != nil {
				return failed("creel deliveries --state in_doubt", "%w", err)
			}
			if f.asJSON {
				if err := f.printJSON(done); err != nil {
					return err
				}
			}
			if done.Done == 0 {
				return &exit{code: exitNothing, err: fmt.Errorf("delivery %s is not in doubt", args[1]), hint: "creel deliveries --state in_doubt"}
			}
			if !f.asJSON {
				fmt.Fprintf(f.out, "Delivery %s: %s, action %d in the audit trail.\n", args[1], args[0], done.ID)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit trail")
	return f.jsonFlag(cmd)
}
