package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"creel/app"
	"creel/store"
)

func (f *frame) prune() *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Say what the retention takes away, or take it away now",
		Long: `A running server removes every hour what events carried and is older than the
retention: bodies, headers, the answers of destinations, the texts of mails. Keys,
business keys, verdicts, attempts and the audit trail stay, so that nothing is
applied twice. What is pending, dead, waiting or in doubt keeps everything.

Prune says with --dry-run what that would be now. Without it, it does it at once on
a database that no server has open. The file keeps its size: the room is used
again.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dry {
				return f.pruneDry(cmd)
			}
			return f.pruneAlone(cmd)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "say what would go, and change nothing")
	return f.jsonFlag(cmd)
}

func (f *frame) pruneDry(cmd *cobra.Command) error {
	reader, s, err := f.reader(cmd.Context())
	if err != nil {
		return err
	}
	defer reader.Close()
	if err := s.whole(); err != nil {
		return err
	}
	would, err := reader.Purgeable(cmd.Context(), f.now(), app.KeepTimes(s.config), nil)
	if err != nil {
		return failed("", "%w", err)
	}
	return f.printPurged(would, "would lose")
}

func (f *frame) pruneAlone(cmd *cobra.Command) error {
	s, err := f.usable()
	if err != nil {
		return err
	}
	if running, err := store.Running(s.config.Database); err == nil && running {
		return failed("creel prune --dry-run", "a server has %s open and prunes it every hour by itself", s.config.Database)
	}
	all, err := app.PruneAlone(cmd.Context(), s.config, f.now())
	if err != nil {
		return failed("", "%w", err)
	}
	return f.printPurged(all, "lost")
}

func (f *frame) printPurged(p store.Purged, verb string) error {
	if f.asJSON {
		return json.NewEncoder(f.out).Encode(p)
	}
	fmt.Fprintf(f.out, "%s %s all that was carried, %s. Old ones that keep it: %d; they are not over, or their source keeps longer.\n",
		plural(p.Events, "event", "events"), verb, plural(p.Bytes, "byte", "bytes"), p.Kept)
	return nil
}
