package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"creel/admin"
)

// some are the first of a list, and how many more there are.
func some(list []string, most int) string {
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}

func (f *frame) reload() *cobra.Command {
	return &cobra.Command{
		Use:   "reload",
		Short: "Let the running server apply its configuration file again, whole or not at all",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// The server judges the new file: here it only says where the
			// database is, so its problems do not matter yet.
			s, err := f.load()
			if err != nil {
				return err
			}
			client, err := f.dial(cmd.Context(), s)
			if found := s.problems.Resolved(); err != nil && found.Err() != nil {
				// Where its database is may be among what could not be read.
				return usage("creel check, then creel reload again", "the configuration has problems:\n%w", found.Faults())
			}
			if err != nil && !errors.Is(err, admin.ErrNoServer) {
				return failed("", "%w", err)
			}
			if err != nil {
				return failed("creel serve; where the file now names another database, a restart", "%w", err)
			}
			warnings, err := client.Reload(cmd.Context())
			if err != nil {
				return usage("creel check, then creel reload again; a restart, where one is needed", "the old configuration stays in force:\n%w", err)
			}
			fmt.Fprintln(f.out, "The new configuration is in force.")
			for i, warning := range warnings {
				if i == mostNotes {
					fmt.Fprintf(f.err, "and %d more: creel check\n", len(warnings)-mostNotes)
					break
				}
				fmt.Fprintln(f.err, shown(warning, 1000))
			}
			if fixed := s.config.FromStart(); len(fixed) > 0 {
				fmt.Fprintf(f.out, "Values of %s are those with which the server was started: a changed one needs a restart; what file: names is read at a reload.\n",
					some(fixed, 3))
			}
			return nil
		},
	}
}
