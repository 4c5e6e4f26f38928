package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"creel/event"
)

func (f *frame) ack() *cobra.Command {
	var reason string
	var all bool
	cmd := &cobra.Command{
		Use:   "ack INCIDENT | --all",
		Short: "Say that somebody sees to an incident: no alert of it goes out any more",
		Long: `Ack notes who sees to an incident, in the audit trail too. It stays open until
its cause is gone; one that only happened (a conflict, an event that can not be
read) is over with it. Those who were told that it began are told that it is
over. creel health lists the open incidents with their numbers.`,
		Example: `  creel ack 7 --reason "the app is being deployed"
  creel ack --all`,
		Args: func(cmd *cobra.Command, args []string) error { return ackArgs(cmd, args, all) },
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := f.place()
			if err != nil {
				return err
			}
			action := f.action(event.ActionAck, reason)
			action.Target = event.AllIncidents
			if !all {
				action.Target = args[0]
			}
			done, _, err := f.act(cmd.Context(), s, action)
			if coded := (*exit)(nil); errors.As(err, &coded) {
				return err
			}
			if err != nil {
				return failed("creel health", "%w", err)
			}
			if f.asJSON {
				if err := f.printJSON(done); err != nil {
					return err
				}
			}
			if done.Done == 0 {
				none := &exit{code: exitNothing, err: fmt.Errorf("incident %s is not open, or was acknowledged already", action.Target), hint: "creel health"}
				if all {
					none.err = errors.New("there is no open incident that was not acknowledged")
				}
				return none
			}
			if !f.asJSON {
				fmt.Fprintf(f.out, "Acknowledged %s; action %d in the audit trail.\n", plural(done.Done, "incident", "incidents"), done.ID)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit trail")
	cmd.Flags().BoolVar(&all, "all", false, "every open incident")
	return f.jsonFlag(cmd)
}

func ackArgs(cmd *cobra.Command, args []string, all bool) error {
	switch {
	case all && len(args) > 0:
		return usage("creel ack --all", "%s takes the number of an incident or --all, not both", cmd.CommandPath())
	case all:
		return nil
	case len(args) != 1:
		return usage("creel health, for the numbers", "%s takes the number of an incident, or --all", cmd.CommandPath())
	}
	if _, err := strconv.ParseUint(args[0], 10, 63); err != nil {
		return usage("creel health, for the numbers", "%q is not the number of an incident", args[0])
	}
	return nil
}
