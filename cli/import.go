package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"creel/admin"
	"creel/app"
	"creel/config"
	"creel/event"
)

// importing is what creel import was asked for.
type importing struct {
	format, body, id, reason string
	headers                  []string
	dry                      bool
}

const (
	pieceLines = 500
	pieceBytes = 6 << 20 // as they are handed over
	// progressEvery is how often a long import says how far it is.
	progressEvery = 2 * time.Second
)

func (f *frame) importFile() *cobra.Command {
	var how importing
	cmd := &cobra.Command{
		Use:   "import SOURCE FILE",
		Short: "Bring events from a file in through the inbox",
		Long: `Import takes events from a file (- is standard input): JSON lines, each the body
that a webhook would have carried, or a table in CSV. They go through the same
inbox as webhooks, marked as imported: what is there already is a duplicate, and
the same key with another body is a conflict and kept beside the first. Nothing
is verified: whoever may run this is trusted.

A file of captured requests (.har, .http, or --format capture; creel verify says
how one is written) is taken request by request, with the header that each has.

Where the event is only a part of a line, --body names that column or member; it
may be text that is JSON. --id names the event's id where the body has none, and
--header a header of the webhook that the source reads. Without --body a row of a
table is a JSON object of its columns.

Exit 0 when every line was taken, 3 when some could not be read, 4 when the file
has no events. Running it again does no harm.`,
		Example: `  creel import stripe events.jsonl --dry-run
  creel import shop orders.csv --body payload --id event_id
  creel import github deliveries.jsonl --body request.payload \
      --header X-GitHub-Delivery=guid --header X-GitHub-Event=event
  creel import stripe captured.har`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage(cmd.CommandPath()+" --help", "%s takes a source and a file", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.runImport(cmd.Context(), args[0], args[1], how)
		},
	}
	cmd.Flags().BoolVar(&how.dry, "dry-run", false, "say what is new, and take nothing")
	textVar(cmd, &how.format, "format", "jsonl, csv or capture; as the name of the file says otherwise, else jsonl")
	textVar(cmd, &how.body, "body", "column or member that is the event")
	textVar(cmd, &how.id, "id", "column or member that is the event's id")
	cmd.Flags().StringArrayVar(&how.headers, "header", nil, "NAME=FIELD: a header of the webhook, and the column or member of its value")
	cmd.Flags().StringVar(&how.reason, "reason", "", "why, for the audit trail")
	return f.jsonFlag(cmd)
}

// importer sends a file in pieces and counts what became of it.
type importer struct {
	f      *frame
	ctx    context.Context
	to     admin.Bring
	ask    admin.AskImport
	how    importing
	size   int
	sent   bool
	seen   map[event.Key]string // by a dry run: what they say
	told   time.Time
	shown  int
	counts importCounts
}

type importCounts struct {
	lines, fresh, duplicates, conflicts, skipped, bad int
}

func (f *frame) runImport(ctx context.Context, name, file string, how importing) error {
	format, err := formatOf(how.format, file, "jsonl")
	if err != nil {
		return err
	}
	for _, header := range how.headers {
		if name, field, ok := strings.Cut(header, "="); !ok || name == "" || field == "" {
			return usage("--header X-Event-Id=id", "--header %q is not NAME=FIELD", header)
		} else if !isHeaderName(name) {
			return usage("--header X-Event-Id=id", "%q is no name of a header", name)
		}
	}
	if format == "capture" && (how.body != "" || len(how.headers) > 0) {
		return usage("leave --body and --header out", "a captured request has a body and a header of its own")
	}
	return f.bring(ctx, name, func(to admin.Bring) error {
		i := &importer{f: f, ctx: ctx, to: to, how: how, seen: map[event.Key]string{}, told: f.now(),
			ask: admin.AskImport{Source: name, Actor: f.actor(), Reason: how.reason, File: file, First: true, DryRun: how.dry}}
		err := eachRecord(file, format, i.take)
		if err == nil {
			err = i.send()
		}
		return i.finish(file, err)
	})
}

// isHeaderName tells whether a text can be a header's name (RFC 9110, section
// 5.6.2, token).
func isHeaderName(text string) bool {
	other := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	}
	return text != "" && strings.IndexFunc(text, other) < 0
}

func knownSource(cfg *config.Config, name string) error {
	if names := namesOf(cfg); !slices.Contains(names, name) {
		return usage(meant(name, names), "there is no source %q in the configuration", name)
	}
	return nil
}

// bring hands over what brings events in: the running server, or the database
// itself where no server runs.
func (f *frame) bring(ctx context.Context, name string, do func(admin.Bring) error) error {
	s, err := f.usable()
	if err != nil {
		return err
	}
	if err := knownSource(s.config, name); err != nil {
		return err
	}
	client, err := f.dial(ctx, s)
	if err == nil {
		return do(client)
	}
	if !errors.Is(err, admin.ErrNoServer) {
		return failed("", "%w", err)
	}
	snapshot, problems := f.judge(s)
	if snapshot == nil {
		return usage("creel check", "no server runs, and the configuration has problems here:\n%w", problems.Err())
	}
	var own error
	err = app.BringAlone(ctx, snapshot, app.Options{Env: f.env, Log: zerolog.Nop(), Clock: f.now, Version: buildVersion()},
		func(to admin.Bring) error { own = do(to); return nil })
	if err != nil {
		return failed("", "%w", err)
	}
	return own
}

// take adds a line to the piece.
func (i *importer) take(r record) error {
	i.counts.lines++
	line, err := admin.ImportLine{}, r.bad
	if err == nil {
		line, err = i.line(r)
	}
	if err != nil {
		return i.tell(admin.ImportedLine{N: r.line, Events: []admin.ImportedEvent{}, Error: err.Error()})
	}
	size := line.Size()
	if i.size+size > pieceBytes || len(i.ask.Lines) == pieceLines {
		if err := i.send(); err != nil {
			return err
		}
	}
	i.ask.Lines = append(i.ask.Lines, line)
	i.size += size
	return nil
}

func (i *importer) line(r record) (admin.ImportLine, error) {
	line := admin.ImportLine{N: r.line, Body: r.whole(), Header: http.Header{"Content-Type": {"application/json"}}}
	if r.sent != nil {
		if r.sent.Method == http.MethodGet || r.sent.Method == http.MethodHead {
			return line, fmt.Errorf("a %s carries no event", r.sent.Method)
		}
		line.Header, line.Query = r.sent.Header.Clone(), r.sent.Query
		line.Header.Del("Host") // of the connection, as at the front door
	}
	if i.how.body != "" {
		text, err := r.field(i.how.body)
		if err != nil {
			return line, err
		}
		line.Body = []byte(text)
	}
	for _, header := range i.how.headers {
		name, field, _ := strings.Cut(header, "=")
		text, err := r.field(field)
		if err != nil {
			return line, err
		}
		line.Header.Set(name, text)
	}
	if i.how.id != "" {
		id, err := r.field(i.how.id)
		if err != nil {
			return line, err
		}
		line.ID = id
	}
	return line, nil
}

// send hands the piece over.
func (i *importer) send() error {
	if len(i.ask.Lines) == 0 {
		return nil
	}
	done, err := i.to.Import(i.ctx, i.ask)
	i.ask.Lines, i.ask.First, i.size = nil, false, 0
	if err != nil {
		return failed("the same command again: what is in the inbox is a duplicate then", "%w", err)
	}
	for _, line := range done {
		if err := i.tell(line); err != nil {
			return err
		}
	}
	if now := i.f.now(); now.Sub(i.told) >= progressEvery && !i.f.asJSON {
		i.told = now
		fmt.Fprintf(i.f.err, "%s so far, %s new\n", plural(i.counts.lines, "line", "lines"), plural(i.counts.fresh, "event", "events"))
	}
	return nil
}

// tell counts and tells what became of a line.
func (i *importer) tell(line admin.ImportedLine) error {
	i.counts.skipped += line.Skipped
	if line.Error != "" {
		i.counts.bad++
		i.note("line %d: %s", line.N, line.Error)
	}
	for n := range line.Events {
		one := &line.Events[n]
		if i.how.dry {
			i.compare(one)
		}
		switch one.Result {
		case event.New:
			i.counts.fresh++
		case event.Duplicate:
			i.counts.duplicates++
		case event.Conflict:
			i.counts.conflicts++
			if i.how.dry {
				i.note("line %d: %s is there with another body, which would stand", line.N, one.Key)
			} else {
				i.note("line %d: %s is there with another body, which stands; this one is kept beside it", line.N, one.Key)
			}
		}
	}
	if i.f.asJSON {
		return i.f.printJSON(line)
	}
	return nil
}

// compare tells what an earlier piece of the file would have brought, which a
// dry run did not.
func (i *importer) compare(one *admin.ImportedEvent) {
	said, ok := i.seen[one.Key]
	switch {
	case one.Result != event.New:
	case !ok:
		i.seen[one.Key] = one.Content
	case said == one.Content:
		one.Result = event.Duplicate
	default:
		one.Result = event.Conflict
	}
	one.Content = ""
}

// mostNotes is how many lines are told of one by one.
const mostNotes = 20

func (i *importer) note(format string, args ...any) {
	if i.shown++; i.shown <= mostNotes && !i.f.asJSON {
		fmt.Fprintln(i.f.err, printable(fmt.Sprintf(format, args...)))
	}
}

func (i *importer) finish(file string, err error) error {
	c := i.counts
	if i.shown > mostNotes && !i.f.asJSON {
		fmt.Fprintf(i.f.err, "and %s more; --json names each\n", plural(i.shown-mostNotes, "line", "lines"))
	}
	if !i.f.asJSON && (err == nil || c.lines > 0) {
		verb := "are new"
		switch {
		case i.how.dry:
			verb = "would be new"
		case c.fresh == 1:
			verb = "is new"
		}
		text := fmt.Sprintf("%s of %s: %s %s, %d there before", plural(c.lines, "line", "lines"), printable(file), plural(c.fresh, "event", "events"), verb, c.duplicates)
		if c.conflicts > 0 {
			text += fmt.Sprintf(", %d with another body than the one there", c.conflicts)
		}
		if c.skipped > 0 {
			text += fmt.Sprintf(", %d of the other mode", c.skipped)
		}
		fmt.Fprintf(i.f.out, "%s; %s unreadable.\n", text, plural(c.bad, "line", "lines"))
	}
	switch {
	case err != nil:
		return err
	case c.lines == 0:
		return nothing("a file with one event a line")
	case c.bad > 0:
		return silent(exitPartly)
	}
	return nil
}
