package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"creel/admin"
	"creel/app"
	"creel/config"
	"creel/source"
	"creel/store"
)

// sending is what creel send was asked for.
type sending struct {
	kind, id, object, body, flaw, url string
	secret, copies, reverse           int
}

func (f *frame) send() *cobra.Command {
	var how sending
	cmd := &cobra.Command{
		Use:   "send SOURCE",
		Short: "Send a signed test event to a source, through its front door",
		Long: `Send signs an event as the source's sender would, with the secret of the
configuration, and posts it to the running server. It can send copies (the
second and later ones are duplicates), several events about one object with the
newest first, and requests with a flaw, which a source has to refuse. Each event
is named by its key and, where the server runs on this machine, with what the
inbox made of it: new, duplicate or conflict. Exit 0 when every answer was a success, 1 when one was not.`,
		Example: `  creel send stripe --type invoice.paid
  creel send stripe --id evt_test_1 --copies 5
  creel send stripe --type invoice.payment_succeeded --object in_17
  creel send stripe --type customer.subscription.updated --reverse 3
  creel send github --flaw body`,
		Args: oneArg("the name of a source"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.runSend(cmd.Context(), args[0], how) },
	}
	flags := cmd.Flags()
	textVar(cmd, &how.kind, "type", "event type; the preset's first sample otherwise")
	textVar(cmd, &how.id, "id", "event id; a new one otherwise")
	textVar(cmd, &how.object, "object", "what the event is about, as the list of events names it; something new otherwise")
	textVar(cmd, &how.body, "body", "file with the body to send instead of a sample; - is standard input")
	textVar(cmd, &how.flaw, "flaw", "what is wrong with it: "+flawNames())
	textVar(cmd, &how.url, "url", "where to post; the listener of the configuration otherwise")
	flags.IntVar(&how.secret, "secret", 0, "which of the source's secrets signs, from 0")
	flags.IntVar(&how.copies, "copies", 1, "how often to send each event")
	flags.IntVar(&how.reverse, "reverse", 0, "send this many events about one object, a second apart, the newest first")
	return f.jsonFlag(cmd)
}

func (f *frame) runSend(ctx context.Context, name string, how sending) error {
	s, err := f.usable()
	if err != nil {
		return err
	}
	var compiled *source.Source
	for i := range s.config.Sources {
		if s.config.Sources[i].Name == name {
			found, problems := app.CompileSource(s.config, i, f.env)
			if err := s.placed(problems).Err(); err != nil {
				return usage("creel check", "the source %q has problems:\n%w", name, err)
			}
			compiled = found
		}
	}
	if compiled == nil {
		return usage(meant(name, namesOf(s.config)), "there is no source %q in the configuration", name)
	}
	if err := how.check(); err != nil {
		return err
	}
	requests, err := f.sign(compiled, how)
	if err != nil {
		return err
	}
	onlooker, err := f.onlooker(ctx, s, compiled, how.url)
	if err != nil {
		return err
	}
	defer onlooker.close()
	url := how.url
	if url == "" {
		url = "http://" + f.address(ctx, s.config) + "/in/" + name
	}
	return f.postAll(ctx, onlooker, url, requests, how.copies)
}

func (how sending) check() error {
	switch {
	case how.copies < 1:
		return usage("--copies 2", "--copies is how often each event is sent, at least 1")
	case how.reverse < 0 || how.reverse > maxReverse:
		return usage("--reverse 3", "--reverse is how many events are sent, up to %d", maxReverse)
	case how.reverse > 0 && (how.id != "" || how.body != ""):
		return usage("creel send --help", "--reverse makes events of its own: it goes with neither --id nor --body")
	case how.object != "" && (how.reverse > 0 || how.body != ""):
		return usage("creel send --help", "--object is of an event that is made: it goes with neither --reverse nor --body")
	case how.flaw != "" && !slices.Contains(source.Flaws(), source.Flaw(how.flaw)):
		return usage("one of "+flawNames(), "--flaw %q is not known", how.flaw)
	}
	return nil
}

// maxReverse bounds a series: its events are signed within seconds, and the
// oldest must still look like one of today.
const maxReverse = 1000

func flawNames() string {
	var names []string
	for _, flaw := range source.Flaws() {
		names = append(names, string(flaw))
	}
	return strings.Join(names, ", ")
}

// address is where the server listens: as it says itself where it runs on this
// machine, else as it is configured.
func (f *frame) address(ctx context.Context, cfg *config.Config) string {
	client, err := admin.Dial(ctx, store.SocketPath(cfg.Database))
	if err != nil {
		return cfg.Listen
	}
	var status app.Status
	if err := client.Status(ctx, &status); err != nil || status.Listen == "" {
		return cfg.Listen
	}
	return reachable(status.Listen)
}

// reachable turns the address of a listener on every interface into one that
// can be dialled.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("localhost", port)
	}
	return listen
}

// sign makes the signed requests, in the order in which they are sent.
func (f *frame) sign(compiled *source.Source, how sending) ([]*source.Request, error) {
	now := f.now()
	drafts := []source.Draft{compiled.Sample(how.kind, how.id, now)}
	if how.object != "" {
		about, err := compiled.About(how.kind, how.id, how.object, now)
		if err != nil {
			return nil, usage("creel send --help", "--object: %w", err)
		}
		drafts[0] = about
	}
	if how.reverse > 0 {
		drafts = compiled.Series(how.kind, how.reverse, now)
		slices.Reverse(drafts)
	}
	if how.body != "" {
		body, err := f.readBody(how.body)
		if err != nil {
			return nil, failed("", "read the body: %w", err)
		}
		drafts[0].Body = body
		if err := f.unheeded(compiled, drafts[0], how); err != nil {
			return nil, err
		}
	}
	requests := make([]*source.Request, len(drafts))
	for i, draft := range drafts {
		request, err := compiled.Sign(draft, source.Signing{At: now, Flaw: source.Flaw(how.flaw), Secret: how.secret})
		if err != nil {
			return nil, usage("creel send --help", "%w", err)
		}
		requests[i] = request
	}
	return requests, nil
}

// unheeded refuses what stands in the body already, and in another way: the
// body is sent as it is.
func (f *frame) unheeded(compiled *source.Source, draft source.Draft, how sending) error {
	items, err := compiled.Read(draft, f.now())
	if err != nil || len(items) == 0 {
		return nil //nolint:nilerr // what it is, its source will say
	}
	for i := range items {
		if id := items[i].Key.ID; how.id != "" && id != how.id {
			return usage("leave --id out, or change the body", "--id has no effect: the event's id stands in the body, and is %s", printable(id))
		}
		if kind := items[i].Type; how.kind != "" && kind != how.kind {
			return usage("leave --type out, or change the body", "--type has no effect: the event's type stands in the body, and is %s", printable(kind))
		}
	}
	return nil
}

func (f *frame) readBody(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(name)
}

// sentLine is one answer as --json prints it.
type sentLine struct {
	URL        string `json:"url"`
	Status     int    `json:"status"`
	DurationMS int64  `json:"duration_ms"`
	Answer     string `json:"answer"`
	// Events are those that it carried.
	Events []sentEvent `json:"events,omitempty"`
}

// postAll sends every request as often as it is asked to, one after another.
func (f *frame) postAll(ctx context.Context, o *onlooker, url string, requests []*source.Request, copies int) error {
	client := &http.Client{Timeout: 30 * time.Second}
	bad := 0
	for _, request := range requests {
		items := o.source.Receive(request, f.now()).Items
		for range copies {
			line, err := o.around(ctx, items, func() (sentLine, error) { return f.post(ctx, client, url, request) })
			if coded := (*exit)(nil); errors.As(err, &coded) {
				return err
			}
			if err != nil {
				return failed("creel serve, and --url where it listens elsewhere", "%w", err)
			}
			if line.Status >= 300 {
				bad++
			}
			if err := f.printSent(line); err != nil {
				return err
			}
		}
	}
	if bad > 0 {
		return silent(exitFailed)
	}
	return nil
}

func (f *frame) printSent(line sentLine) error {
	if f.asJSON {
		return f.printJSON(line)
	}
	fmt.Fprintf(f.out, "%d in %d ms  %s\n", line.Status, line.DurationMS, printable(strings.TrimSpace(line.Answer)))
	for _, one := range line.Events {
		fmt.Fprintln(f.out, strings.TrimSpace(fmt.Sprintf("%s  %s", printable(one.Key.String()), one.Result)))
	}
	return nil
}

func (f *frame) post(ctx context.Context, client *http.Client, url string, request *source.Request) (sentLine, error) {
	line := sentLine{URL: url}
	if request.Query != "" {
		url += "?" + request.Query
	}
	post, err := http.NewRequestWithContext(ctx, request.Method, url, bytes.NewReader(request.Body))
	if err != nil {
		return line, fmt.Errorf("build the request: %w", err)
	}
	post.Header = request.Header.Clone()
	start := time.Now()
	response, err := client.Do(post)
	if err != nil {
		return line, fmt.Errorf("post the event: %w", err)
	}
	defer response.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(response.Body, 4<<10)) // what is shown of it
	line.Status, line.DurationMS, line.Answer = response.StatusCode, time.Since(start).Milliseconds(), string(answer)
	return line, nil
}
