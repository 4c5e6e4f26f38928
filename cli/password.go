package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"creel/admin"
	"creel/app"
)

func (f *frame) password() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "password",
		Short: "Make a new password for the page, and end every login",
		Long: `Password makes up a new password for the page and prints it once: only its
hash is kept. Whoever is logged in has to log in again. Where the configuration
sets [admin] password, it is changed there.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ask := admin.Actor{Actor: f.actor(), Reason: reason}
			made, err := access(cmd.Context(), f, func(ctx context.Context, client *admin.Client) (string, error) {
				return client.NewPassword(ctx, ask)
			}, func(ctx context.Context, s *setup) (string, error) {
				return app.NewPasswordAlone(ctx, s.config, ask)
			})
			if err != nil {
				return failed("", "%w", err)
			}
			if f.asJSON {
				return f.printJSON(admin.MadePassword{Password: made})
			}
			fmt.Fprintln(f.out, made)
			return nil
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit trail")
	return f.jsonFlag(cmd)
}
