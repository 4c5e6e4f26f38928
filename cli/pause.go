package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"creel/event"
)

func (f *frame) pause() *cobra.Command {
	return f.destinationAction(event.ActionPause, "pause", "Hold the deliveries of a destination; they wait without spending attempts",
		"Paused %s: its deliveries wait. creel resume %s lets them go.\n")
}

func (f *frame) resume() *cobra.Command {
	return f.destinationAction(event.ActionResume, "resume", "Let the deliveries of a destination go again, paused, held or disabled as it was",
		"Resumed %s.\n")
}

func (f *frame) destinationAction(kind event.ActionKind, name, short, said string) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   name + " DESTINATION",
		Short: short,
		Args:  oneArg("the name of a destination"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := f.place()
			if err != nil {
				return err
			}
			if names := s.config.DestinationNames(); !slices.Contains(names, args[0]) && len(s.faults) == 0 {
				hint := "put it back into the configuration: creel discard --destination " + args[0] + " gives up what waits for one that is gone"
				if len(names) > 0 {
					hint = meant(args[0], names) + "; for one that is gone, creel discard --destination " + args[0]
				}
				return usage(hint, "there is no destination %q in the configuration", args[0])
			}
			action := f.action(kind, reason)
			action.Target = args[0]
			done, _, err := f.act(cmd.Context(), s, action)
			if coded := (*exit)(nil); errors.As(err, &coded) {
				return err
			}
			if err != nil {
				return failed("", "%w", err)
			}
			if f.asJSON {
				return f.printJSON(done)
			}
			if done.Done == 0 {
				fmt.Fprintf(f.out, "%s was so already; action %d in the audit trail.\n", args[0], done.ID)
				return nil
			}
			if kind == event.ActionPause {
				fmt.Fprintf(f.out, said, args[0], args[0])
				return nil
			}
			fmt.Fprintf(f.out, said, args[0])
			return nil
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit trail")
	return f.jsonFlag(cmd)
}
