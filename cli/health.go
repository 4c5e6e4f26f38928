package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"creel/admin"
	"creel/app"
	"creel/event"
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
			socket := store.SocketPath(s.config.Database)
			report, err := askHealth(ctx, socket, wait > 0)
			if err != nil {
				return failed("creel serve", "%w", err)
			}
			return f.printHealth(healthLine{Readiness: report, Trouble: askTrouble(ctx, socket)})
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait this long for the server to become ready, with its unit: 30s")
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

// healthLine is what health prints. What is in trouble does not make the
// server unready: a destination that is down is waited for.
type healthLine struct {
	admin.Readiness
	Trouble []trouble `json:"trouble"`
}

// trouble is one thing that an owner should know of.
type trouble struct {
	What  string `json:"what"`  // destination_held, destination_paused, dead_event, …
	About string `json:"about"` // a destination, source or rule
	Since string `json:"since"`
	Count int    `json:"count"`
	Why   string `json:"why"`
}

// askTrouble reads the destinations that are not open and the open incidents.
// A server that does not answer this is judged by its readiness alone.
func askTrouble(ctx context.Context, socket string) []trouble {
	list := []trouble{}
	client, err := admin.Dial(ctx, socket)
	if err != nil {
		return list
	}
	var status app.Status
	if client.Status(ctx, &status) != nil {
		return list
	}
	for _, d := range status.Destinations {
		if d.State != event.DestinationEnabled {
			list = append(list, trouble{"destination_" + string(d.State), d.Name, stamp(d.Since), 1, d.Reason})
		}
	}
	for _, name := range status.Stranded {
		list = append(list, trouble{"destination_gone_from_configuration", name, "", 1, "deliveries wait for it: put it back under that name"})
	}
	if status.InDoubt > 0 {
		list = append(list, trouble{"in_doubt", "deliveries", "", status.InDoubt, "creel deliveries --state in_doubt, then creel resolve"})
	}
	for _, i := range status.Incidents {
		if i.Cause != event.CauseDestinationDown && i.Cause != event.CauseDestinationGone {
			list = append(list, trouble{string(i.Cause), i.Subject, stamp(i.OpenedAt), i.Count, i.Detail})
		}
	}
	return list
}

func (f *frame) printHealth(report healthLine) error {
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
		f.printTrouble(report.Trouble)
	}
	if !report.Ready {
		return silent(exitFailed)
	}
	return nil
}

func (f *frame) printTrouble(list []trouble) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(f.out)
	rows := newTable(f.out, "TROUBLE", "WITH", "SINCE", "COUNT", "WHY")
	for _, t := range list {
		rows.row(t.What, t.About, t.Since, strconv.Itoa(t.Count), t.Why)
	}
	rows.flush()
}
