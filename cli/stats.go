package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"creel/admin"
	"creel/app"
	"creel/event"
)

func (f *frame) stats() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Signals against their thresholds, rates, latencies and sizes",
		Long: `Stats prints the signals with their thresholds, what came from each source and
went to each destination in the last hour, latencies since the server started,
what waits, and the size of the database. It costs the server next to nothing.

Where no server runs the figures are those of the database file: of the last
hour as far as it was stored, without latencies.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			figures, err := f.askStatistics(cmd.Context())
			if err != nil {
				return err
			}
			if f.asJSON {
				return f.printJSON(figures)
			}
			f.printStatistics(figures)
			return nil
		},
	}
	return f.jsonFlag(cmd)
}

// askStatistics asks the running server, else the file.
func (f *frame) askStatistics(ctx context.Context) (*app.Statistics, error) {
	s, err := f.place()
	if err != nil {
		return nil, err
	}
	var figures app.Statistics
	client, err := f.dial(ctx, s)
	if err == nil {
		if err = client.Statistics(ctx, &figures); err != nil {
			return nil, failed("creel health", "%w", err)
		}
		return &figures, nil
	}
	if !errors.Is(err, admin.ErrNoServer) {
		return nil, failed("", "%w", err)
	}
	reader, s, err := f.reader(ctx)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	if err := s.whole(); err != nil {
		return nil, err
	}
	figures, err = app.ReadStatistics(ctx, reader, s.config, f.now)
	if err != nil {
		return nil, failed("", "%w", err)
	}
	return &figures, nil
}

func (f *frame) printStatistics(s *app.Statistics) {
	if s.Live {
		fmt.Fprintf(f.out, "The server runs since %s. Counts are of the last hour, latencies since its start.\n%s\n\n", stamp(s.Started), measuredWhen(s))
	} else {
		fmt.Fprint(f.out, "No server runs: these are figures of the file, without latencies and without the free\nspace of the disk. Counts are of the last hour, as far as they were stored.\n\n")
	}
	f.printSignals(s.Signals)
	f.printSources(s.Sources)
	f.printRoutes(s)
	f.printTotals(s)
}

// measuredWhen says how old the signals are: what came since is not in them.
func measuredWhen(s *app.Statistics) string {
	if s.Measured.IsZero() {
		return "The signals are not measured yet: ask again in a moment."
	}
	ago := max(s.At.Sub(s.Measured), 0).Truncate(time.Second)
	return "The signals were measured " + ago.String() + " ago, as every 30 s: what came since is not in them."
}

func (f *frame) printSignals(signals []event.Signal) {
	rows := newTable(f.out, "SIGNAL", "OF", "VALUE", "FIRES AT", "STATE", "NOTE")
	for _, s := range signals {
		fires, state := measured(s.Threshold, s.Unit), "ok"
		if s.Threshold == 0 {
			fires, state = "-", "off"
		}
		if s.Firing {
			state = "FIRING since " + stamp(s.Since)
		}
		rows.row(string(s.Name), s.Subject, measured(s.Value, s.Unit), fires, state, s.Note)
	}
	rows.flush()
}

// measured writes a value in its unit.
func measured(value float64, unit string) string {
	switch unit {
	case "seconds":
		return span(value)
	case "bytes":
		if value < 0 {
			return "-" // not known
		}
		return bytesText(int64(value))
	case "percent":
		return percentText(value)
	}
	return strconv.FormatFloat(value, 'f', -1, 64) + " " + event.UnitOf(value, unit)
}

// span writes seconds as people say them.
func span(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 48*time.Hour:
		return d.Round(time.Second).String()
	}
	return strconv.Itoa(int(d/(24*time.Hour))) + " days"
}

func percentText(value float64) string { return strconv.FormatFloat(value, 'f', 1, 64) + " %" }

func bytesText(n int64) string {
	switch {
	case n < 10<<10:
		return strconv.FormatInt(n, 10) + " B"
	case n < 10<<20:
		return strconv.FormatInt(n>>10, 10) + " KiB"
	}
	return strconv.FormatInt(n>>20, 10) + " MiB"
}

func (f *frame) printSources(sources []app.SourceFigures) {
	if len(sources) == 0 {
		return
	}
	fmt.Fprintln(f.out)
	rows := newTable(f.out, "SOURCE", "RECEIPTS", "EVENTS", "DUPLICATES", "CONFLICTS", "REJECTS", "RETRIES", "DEAD", "ANSWERED P50", "P95", "LAST RECEIPT")
	for _, s := range sources {
		p50, p95 := quantileTexts(s.Answered)
		rows.row(s.Name, count(s.Receipts), count(s.Events), fmt.Sprintf("%d (%s)", s.Duplicates, percentText(s.Share)), count(s.Conflicts),
			count(s.Rejects), count(s.Retries), count(s.Dead), p50, p95, stamp(s.Last))
	}
	rows.flush()
}

func count(n int64) string { return strconv.FormatInt(n, 10) }

func quantileTexts(q *app.Quantiles) (p50, p95 string) {
	if q == nil {
		return "-", "-"
	}
	return span(q.P50 / 1000), span(q.P95 / 1000)
}

func (f *frame) printRoutes(s *app.Statistics) {
	if len(s.Destinations) == 0 {
		return
	}
	fmt.Fprintln(f.out)
	rows := newTable(f.out, "DESTINATION", "STATE", "ATTEMPTS", "SUCCESS", "AT FIRST", "DELIVERED P50", "P95", "WAITING", "OVERDUE", "IN DOUBT", "DEAD", "LAST SUCCESS")
	for _, d := range s.Destinations {
		p50, p95 := quantileTexts(d.Delivery)
		first := "-"
		if d.FirstTry != nil {
			first = percentText(*d.FirstTry)
		}
		waiting, doubtful, dead := count(d.Waiting), count(d.Doubtful), count(d.Stuck)
		if s.Counted.IsZero() {
			waiting, doubtful, dead = "?", "?", "?"
		}
		rows.row(d.Name, string(d.State), count(d.Attempts), percentText(d.Success), first, p50, p95, waiting, span(d.Overdue), doubtful, dead, stamp(d.LastSent))
	}
	rows.flush()
}

func (f *frame) printTotals(s *app.Statistics) {
	fmt.Fprintln(f.out)
	p50, p95 := quantileTexts(s.Events.Processed)
	pending, dead := count(s.Events.Pending), count(s.Events.Dead)
	if s.Counted.IsZero() {
		pending, dead = "?", "?"
	}
	rows := newTable(f.out, "EVENTS", "PENDING", "OVERDUE", "DEAD", "PROCESSED P50", "P95", "OPEN INCIDENTS")
	rows.row("", pending, span(s.Events.Overdue), dead, p50, p95, strconv.Itoa(s.Incidents))
	rows.flush()
	fmt.Fprintln(f.out)
	rows = newTable(f.out, "DATABASE", "SIZE", "WAL", "FREE")
	free := "-"
	if s.Database.Free > 0 {
		free = bytesText(s.Database.Free)
	}
	rows.row(s.Database.Path, bytesText(s.Database.Bytes), bytesText(s.Database.WAL), free)
	rows.flush()
	if s.Counted.IsZero() {
		fmt.Fprintln(f.err, "What waits is being counted: ask again in a moment.")
	}
}
