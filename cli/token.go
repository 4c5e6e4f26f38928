package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"creel/admin"
	"creel/app"
	"creel/event"
)

func (f *frame) tokens() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Who may use the API: make, list and revoke tokens",
		Long: `A token is for programs that use the API: it is sent as "Authorization: Bearer
TOKEN" to /api/v1 on the listener of the page. With the scope read it looks,
with operate it acts as well, under its name in the audit trail. It is shown
once, when it is made, and holds until it is revoked.`,
		Example: `  creel token create grafana --scope read
  curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8081/api/v1/events
  creel token list
  creel token revoke grafana`,
		Args: noArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(f.createToken(), f.listTokens(), f.revokeToken())
	return cmd
}

func (f *frame) createToken() *cobra.Command {
	var scope, reason string
	cmd := &cobra.Command{
		Use:   "create NAME --scope read|operate",
		Short: "Make a token and print it, once",
		Args:  oneArg("the name of who will use it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if scope != string(event.ScopeRead) && scope != string(event.ScopeOperate) {
				return usage("creel token create NAME --scope read", "--scope %q is neither read nor operate", scope)
			}
			ask := admin.AskToken{Name: args[0], Scope: event.Scope(scope), Actor: f.actor(), Reason: reason}
			made, err := access(cmd.Context(), f, func(ctx context.Context, client *admin.Client) (admin.MadeToken, error) {
				return client.CreateToken(ctx, ask)
			}, func(ctx context.Context, s *setup) (admin.MadeToken, error) {
				return app.CreateTokenAlone(ctx, s.config, ask)
			})
			if err != nil {
				return failed("", "%w", err)
			}
			if f.asJSON {
				return f.printJSON(made)
			}
			fmt.Fprintln(f.out, made.Secret)
			fmt.Fprintf(f.err, "Token %d, %s, may %s. It is shown this once.\n", made.ID, printable(made.Name), made.Scope)
			return nil
		},
	}
	textVar(cmd, &scope, "scope", "read, to look; operate, to act as well")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit trail")
	return f.jsonFlag(cmd)
}

// access asks the running server, or acts on the database itself where none
// runs.
func access[A any](ctx context.Context, f *frame, ask func(context.Context, *admin.Client) (A, error), alone func(context.Context, *setup) (A, error)) (none A, err error) {
	s, err := f.place()
	if err != nil {
		return none, err
	}
	client, err := f.dial(ctx, s)
	switch {
	case err == nil:
		return ask(ctx, client)
	case !errors.Is(err, admin.ErrNoServer):
		return none, err
	}
	if err := s.whole(); err != nil {
		return none, err
	}
	if _, err := os.Stat(s.config.Database); errors.Is(err, os.ErrNotExist) {
		return none, fmt.Errorf("there is no database %s yet", s.config.Database)
	}
	return alone(ctx, s)
}

func (f *frame) listTokens() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tokens, the revoked ones too",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			reader, _, err := f.reader(cmd.Context())
			if err != nil {
				return err
			}
			defer reader.Close()
			list, err := reader.Tokens(cmd.Context())
			if err != nil {
				return failed("", "%w", err)
			}
			if len(list) == 0 {
				return nothing("creel token create NAME --scope read")
			}
			rows := newTable(f.out, "ID", "NAME", "SCOPE", "CREATED", "REVOKED")
			for _, token := range list {
				if f.asJSON {
					if err := f.printJSON(token); err != nil {
						return err
					}
					continue
				}
				rows.row(strconv.FormatInt(token.ID, 10), token.Name, string(token.Scope), stamp(token.Created), stamp(token.Revoked))
			}
			if !f.asJSON {
				rows.flush()
			}
			return nil
		},
	}
	return f.jsonFlag(cmd)
}

func (f *frame) revokeToken() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "revoke NAME|ID",
		Short: "End a token at once",
		Args:  oneArg("the name or the number of a token"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := f.tokenNamed(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			ask := admin.Actor{Actor: f.actor(), Reason: reason}
			_, err = access(cmd.Context(), f, func(ctx context.Context, client *admin.Client) (struct{}, error) {
				return struct{}{}, client.RevokeToken(ctx, id, ask)
			}, func(ctx context.Context, s *setup) (struct{}, error) {
				return struct{}{}, app.RevokeTokenAlone(ctx, s.config, id, ask)
			})
			if errors.Is(err, event.ErrNotFound) {
				return nothing("creel token list")
			}
			if err != nil {
				return failed("", "%w", err)
			}
			fmt.Fprintf(f.out, "Token %d is revoked.\n", id)
			return nil
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit trail")
	return cmd
}

// tokenNamed finds a token that holds, by its number or its name. A name that
// several have is none.
func (f *frame) tokenNamed(ctx context.Context, text string) (int64, error) {
	reader, _, err := f.reader(ctx)
	if err != nil {
		return 0, err
	}
	defer reader.Close()
	list, err := reader.Tokens(ctx)
	if err != nil {
		return 0, failed("", "%w", err)
	}
	var found []int64
	for _, token := range list {
		if token.Revoked.IsZero() && (token.Name == text || strconv.FormatInt(token.ID, 10) == text) {
			found = append(found, token.ID)
		}
	}
	switch len(found) {
	case 0:
		return 0, nothing("creel token list")
	case 1:
		return found[0], nil
	}
	return 0, usage("creel token list, and revoke by number", "%s called %q", plural(len(found), "token is", "tokens are"), text)
}
