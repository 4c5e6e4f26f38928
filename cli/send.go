package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"creel/app"
	"creel/source"
)

// sending is what creel send was asked for.
type sending struct {
	kind, id, body, flaw, url string
	secret, copies            int
	reverse                   bool
}

func (f *frame) send() *cobra.Command {
	var how sending
	var flaws []string
	for _, flaw := range source.Flaws() {
		flaws = append(flaws, string(flaw))
	}
	cmd := &cobra.Command{
		Use:   "send SOURCE",
		Short: "Send a signed test event to a source, through its front door",
		Long: `Send signs an event as the source's sender would, with the secret of the
configuration, and posts it to the running server. It can send copies (the
second and later ones are duplicates) and requests with a flaw, which a source
has to refuse.`,
		Example: `  creel send stripe --type invoice.paid
  creel send stripe --id evt_test_1 --copies 5
  creel send github --flaw body`,
		Args: oneArg("the name of a source"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.runSend(cmd.Context(), args[0], how) },
	}
	flags := cmd.Flags()
	flags.StringVar(&how.kind, "type", "", "event type; the preset's first sample otherwise")
	flags.StringVar(&how.id, "id", "", "event id; a new one otherwise")
	flags.StringVar(&how.body, "body", "", "file with the body to send instead of a sample; - is standard input")
	flags.StringVar(&how.flaw, "flaw", "", "what is wrong with it: "+strings.Join(flaws, ", "))
	flags.StringVar(&how.url, "url", "", "where to post; the listener of the configuration otherwise")
	flags.IntVar(&how.secret, "secret", 0, "which of the source's secrets signs, from 0")
	flags.IntVar(&how.copies, "copies", 1, "how often to send it")
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
			if err := problems.Err(); err != nil {
				return usage("creel check", "the source %q has problems:\n%w", name, err)
			}
			compiled = found
		}
	}
	if compiled == nil {
		return usage("creel check", "there is no source %q in the configuration", name)
	}
	request, err := f.draft(compiled, how)
	if err != nil {
		return err
	}
	url := how.url
	if url == "" {
		url = "http://" + s.config.Listen + "/in/" + name
	}
	return f.post(ctx, url, request, max(how.copies, 1))
}

// draft makes the signed request.
func (f *frame) draft(compiled *source.Source, how sending) (*source.Request, error) {
	now := f.now()
	draft := compiled.Sample(how.kind, how.id, now)
	if how.body != "" {
		body, err := f.readBody(how.body)
		if err != nil {
			return nil, failed("", "read the body: %w", err)
		}
		draft.Body = body
	}
	request, err := compiled.Sign(draft, source.Signing{At: now, Flaw: source.Flaw(how.flaw), Secret: how.secret})
	if err != nil {
		return nil, failed("creel send --help", "%w", err)
	}
	return request, nil
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
}

func (f *frame) post(ctx context.Context, url string, request *source.Request, copies int) error {
	if request.Query != "" {
		url += "?" + request.Query
	}
	client := &http.Client{Timeout: 30 * time.Second}
	bad := 0
	for range copies {
		line, err := f.postOnce(ctx, client, url, request)
		if err != nil {
			return failed("creel serve, and --url where it listens elsewhere", "%w", err)
		}
		if line.Status >= 300 {
			bad++
		}
		if f.asJSON {
			if err := f.printJSON(line); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(f.out, "%d in %d ms  %s\n", line.Status, line.DurationMS, printable(strings.TrimSpace(line.Answer)))
	}
	if bad > 0 {
		return silent(exitFailed)
	}
	return nil
}

func (f *frame) postOnce(ctx context.Context, client *http.Client, url string, request *source.Request) (sentLine, error) {
	line := sentLine{URL: url}
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
