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
			s, err := f.place()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), max(wait, 5*time.Second))
			defer cancel()
			socket := store.SocketPath(s.config.Database)
			report, err := askHealth(ctx, socket, wait > 0)
			if errors.Is(err, admin.ErrNoServer) {
				if _, why := f.dial(cmd.Context(), s); why != nil && !errors.Is(why, admin.ErrNoServer) {
					return why
				}
				return failed("creel serve", "%w", err)
			}
			if err != nil {
				return failed("", "%w", err)
			}
			troubles, signals := askTrouble(ctx, socket)
			return f.printHealth(healthLine{Readiness: report, Trouble: troubles, Signals: signals})
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait this long for the server to become ready, with its unit: 30s")
	return f.jsonFlag(cmd)
}

// askHealth asks once, or until the server is ready or ctx ends.
func askHealth(ctx context.Context, socket string, wait bool) (admin.Readiness, error) {
	const between = 100 * time.Millisecond
	var last error
	for {
		client, err := admin.Dial(ctx, socket)
		var report admin.Readiness
		if err == nil {
			report, err = client.Ready(ctx)
		}
		if !wait || err == nil && report.Ready {
			return report, err
		}
		if ctx.Err() != nil && last != nil {
			err = last // the end of the waiting says nothing about the server
		}
		last = err
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
	Trouble []trouble      `json:"trouble"`
	Signals []event.Signal `json:"signals"` // the five first signals first
}

// trouble is one thing that an owner should know of.
type trouble struct {
	What  string `json:"what"`  // the cause of its incident; destination_paused, in_doubt and others that have none
	About string `json:"about"` // a destination, source or rule
	// Incident is its number, for creel ack; 0 where there is none.
	Incident     int64  `json:"incident,omitempty"`
	Acknowledged string `json:"acknowledged_by,omitempty"`
	NotifiedAt   string `json:"notified_at,omitempty"` // when the first recipient had its alert
	Since        string `json:"since"`
	Count        int    `json:"count"`
	Why          string `json:"why"`
}

// askTrouble reads the destinations that are not open and the open incidents.
// A server that does not answer this is judged by its readiness alone.
func askTrouble(ctx context.Context, socket string) ([]trouble, []event.Signal) {
	client, err := admin.Dial(ctx, socket)
	var status app.Status
	if err == nil {
		err = client.Status(ctx, &status)
	}
	if err != nil {
		return []trouble{}, []event.Signal{}
	}
	return troubles(&status), status.Signals
}

func troubles(status *app.Status) []trouble {
	list := []trouble{}
	shown := map[int64]bool{} // incidents that stand beside their destination
	for _, d := range status.Destinations {
		if d.State == event.DestinationEnabled {
			continue
		}
		t := trouble{What: string(causeOf(d.State)), About: d.Name, Since: stamp(d.Since), Count: 1, Why: d.Reason}
		if d.State == event.DestinationPaused && t.Why == "" {
			t.Why = "somebody paused it: creel resume " + d.Name + " lets its deliveries go"
		}
		for i := range status.Incidents {
			if of := &status.Incidents[i]; of.Cause.Family() == event.FamilyDestination && of.Subject == d.Name && d.State != event.DestinationPaused {
				t.about(of)
				t.What, t.Why = string(of.Cause), d.Reason+of.Lost()
				shown[of.ID] = true
			}
		}
		list = append(list, t)
	}
	for _, name := range status.Stranded {
		list = append(list, trouble{What: "destination_gone_from_configuration", About: name, Count: 1, Why: "deliveries wait for it: put it back under that name"})
	}
	if status.InDoubt > 0 {
		list = append(list, trouble{What: "in_doubt", About: "deliveries", Count: status.InDoubt, Why: "creel deliveries --state in_doubt, then creel resolve"})
	}
	for i := range status.Incidents {
		of := &status.Incidents[i]
		if shown[of.ID] {
			continue
		}
		t := trouble{What: string(of.Cause), About: of.Subject, Since: stamp(of.OpenedAt), Count: of.Count, Why: of.Detail}
		t.about(of)
		list = append(list, t)
	}
	for i := range status.DeadAlerts {
		d := &status.DeadAlerts[i]
		list = append(list, trouble{What: "alert_not_sent", About: whereTo(d.Destination, d.Target), Incident: d.Alert, Since: stamp(d.FinishedAt),
			Count: 1, Why: d.Error})
	}
	return list
}

// causeOf names the state of a destination as its incident does: an alert, a
// metric and this say the same.
func causeOf(s event.DestinationState) event.Cause {
	if s == event.DestinationHeld {
		return event.CauseDestinationDown
	}
	return event.Cause("destination_" + string(s))
}

// about adds what is known of the incident that trouble stands for.
func (t *trouble) about(i *event.OpenIncident) {
	t.Incident, t.Acknowledged, t.NotifiedAt = i.ID, i.AcknowledgedBy, stamp(i.NotifiedAt)
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
	rows := newTable(f.out, "TROUBLE", "WITH", "SINCE", "COUNT", "INCIDENT", "WHY")
	for _, t := range list {
		number := ""
		if t.Incident != 0 {
			number = strconv.FormatInt(t.Incident, 10)
		}
		if t.Acknowledged != "" {
			number += " (" + t.Acknowledged + ")"
		}
		rows.row(t.What, t.About, t.Since, strconv.Itoa(t.Count), number, t.Why)
	}
	rows.flush()
}
