package cli

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"creel/admin"
	"creel/store"
)

func (f *frame) health() *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask the running server whether it is ready; exit 0 when it is",
		Long: `Health asks through the control socket beside the database, so it needs no
network and no shell: it is what the container's health check runs.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := f.usable()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), max(wait, 5*time.Second))
			defer cancel()
			report, err := askHealth(ctx, store.SocketPath(s.config.Database), wait > 0)
			if err != nil {
				return failed("creel serve", "%w", err)
			}
			return f.printHealth(report)
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait this long for the server to become ready (30s)")
	return f.jsonFlag(cmd)
}

// askHealth asks once, or until the server is ready or ctx ends.
func askHealth(ctx context.Context, socket string, wait bool) (admin.Readiness, error) {
	const between = 100 * time.Millisecond
	for {
		client, err := admin.Dial(ctx, socket)
		var report admin.Readiness
		if err == nil {
			report, err = client.Ready(ctx)
		}
		if !wait || err == nil && report.Ready {
			return report, err
		}
		select {
		case <-ctx.Done():
			return report, errors.Join(errors.New("the server did not become ready in time"), err)
		case <-time.After(between):
		}
	}
}

func (f *frame) printHealth(report admin.Readiness) error {
	if f.asJSON {
		if err := f.printJSON(report); err != nil {
			return err
		}
	} else {
		names := make([]string, 0, len(report.Checks))
		for name := range report.Checks {
			names = append(names, name)
		}
		slices.Sort(names)
		rows := newTable(f.out, "CHECK", "STATE")
		for _, name := range names {
			rows.row(name, report.Checks[name])
		}
		rows.flush()
	}
	if !report.Ready {
		return silent(exitFailed)
	}
	return nil
}
