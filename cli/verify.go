package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"creel/admin"
	"creel/app"
	"creel/event"
	"creel/source"
)

// verifying is what creel verify was asked for.
type verifying struct {
	source, at string
	drawer     int64
}

func (f *frame) verify() *cobra.Command {
	var how verifying
	cmd := &cobra.Command{
		Use:   "verify [--source NAME] [--at TIME] FILE | --drawer REQUEST",
		Short: "Say why a captured request verifies or not, and which part fails",
		Long: `Verify checks a captured request against a source as it would have been checked
at a moment, and where it fails finds out why: it tries what usually happens to
bodies (line ends, JSON that was written anew), to secrets (blanks, prefixes,
encodings, another source's) and to times and URLs. It prints neither the secret
nor the signature that would have been right, and changes nothing.

FILE is a raw HTTP request: the request line, the header lines, a blank line and
the body to the last byte (- is standard input). Or it is JSON: an object with
url, headers, and body (a text) or body_base64, or an HTTP Archive (HAR) with one
request. --drawer takes a request that the running server rejected, as creel
rejects lists it, at the time at which it came.

The configuration file counts; where its secrets can not be read here, or for
--drawer, the running server answers with the configuration in force.

Exit 0 when it verifies, 1 when it does not.`,
		Example: `  creel verify --source stripe --at 2026-01-01T00:00:00Z captured.http
  creel verify --drawer 7`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 || (len(args) == 1) == (how.drawer != 0) {
				return usage(cmd.CommandPath()+" --help", "%s takes the file of a captured request, or --drawer", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseTime("--at", how.at, f.now())
			if err != nil {
				return err
			}
			if how.drawer != 0 {
				return f.verifyDrawer(cmd.Context(), how, at)
			}
			return f.verifyFile(cmd.Context(), args[0], how, at)
		},
	}
	textVar(cmd, &how.source, "source", "the source; the one in the path of the request otherwise")
	textVar(cmd, &how.at, "at", "when it came: 2026-11-01T10:00:00Z, or 24h ago as 24h; now otherwise")
	cmd.Flags().Int64Var(&how.drawer, "drawer", 0, "the number of a rejected request instead of a file")
	return f.jsonFlag(cmd)
}

func (f *frame) verifyDrawer(ctx context.Context, how verifying, at time.Time) error {
	if how.source != "" {
		return usage("creel rejects show REQUEST --save FILE, then creel verify --source NAME FILE", "--drawer takes a request to its own source")
	}
	client, _, err := f.server(ctx)
	if err != nil {
		return err
	}
	d, err := client.VerifyReject(ctx, how.drawer, at)
	if err != nil {
		return rejectError(err)
	}
	return f.printDiagnosis(&d, "the configuration in force")
}

// maxCapture is the largest capture that is read, in bytes.
const maxCapture = 64 << 20

func (f *frame) verifyFile(ctx context.Context, name string, how verifying, at time.Time) error {
	capture, err := readCapture(name)
	if err != nil {
		return err
	}
	s, err := f.usable()
	if err != nil {
		return err
	}
	if how.source == "" {
		rest, found := strings.CutPrefix(capture.Path, "/in/")
		if how.source = strings.TrimSuffix(rest, "/"); !found || how.source == "" {
			return usage("--source "+strings.Join(namesOf(s.config), ", or --source "), "the path of the request, %q, names no source", printable(capture.Path))
		}
	}
	if at.IsZero() {
		at = f.now().UTC()
	}
	d, against, err := f.diagnose(ctx, s, capture, how.source, at)
	if err != nil {
		return err
	}
	d.Notes = append(d.Notes, capture.Notes...)
	return f.printDiagnosis(&d, against)
}

func readCapture(name string) (*source.Capture, error) {
	from := io.Reader(os.Stdin)
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, usage("creel verify --help", "read the capture: %w", err)
		}
		defer file.Close()
		from = file
	}
	data, err := io.ReadAll(io.LimitReader(from, maxCapture+1))
	if err != nil {
		return nil, usage("creel verify --help", "read the capture: %w", err)
	}
	if len(data) > maxCapture {
		return nil, usage("creel verify --help", "the capture is larger than 64 MiB")
	}
	capture, err := source.ReadCapture(data)
	if err != nil {
		return nil, usage("creel verify --help says how a capture is written", "%w", err)
	}
	if capture.Method == http.MethodGet || capture.Method == http.MethodHead {
		return nil, usage("", "a %s carries no event: there is nothing to verify", capture.Method)
	}
	return capture, nil
}

// diagnose asks the configuration file, or the running server where the
// source's secrets can not be read here.
func (f *frame) diagnose(ctx context.Context, s *setup, capture *source.Capture, name string, at time.Time) (source.Diagnosis, string, error) {
	snapshot := &app.Snapshot{Config: s.config, Sources: map[string]*source.Source{}}
	unresolved := false
	found := false
	for i := range s.config.Sources {
		compiled, problems := app.CompileSource(s.config, i, f.env)
		snapshot.Sources[s.config.Sources[i].Name] = compiled // nil is passed over
		if s.config.Sources[i].Name != name {
			continue
		}
		found = true
		if err := s.placed(problems.Resolved()).Err(); err != nil {
			return source.Diagnosis{}, "", usage("creel check", "the source %q has problems:\n%w", name, err)
		}
		unresolved = problems.Err() != nil
		if unresolved {
			if d, err := f.askServer(ctx, s, capture, name, at); err == nil || !errors.Is(err, admin.ErrNoServer) {
				return d, "the configuration in force: the secrets can not be read here", err
			}
			return source.Diagnosis{}, "", usage("creel serve, which can read them, or set them here", "the secrets of %q can not be read, and no server runs:\n%w", name, s.placed(problems).Err())
		}
	}
	if !found {
		return source.Diagnosis{}, "", usage(meant(name, namesOf(s.config)), "there is no source %q in the configuration", name)
	}
	d, err := snapshot.Diagnose(name, &capture.Request, at)
	against := s.file
	if against == "" {
		against = "the demo configuration"
	}
	return d, against, err
}

func (f *frame) askServer(ctx context.Context, s *setup, capture *source.Capture, name string, at time.Time) (source.Diagnosis, error) {
	client, err := f.dial(ctx, s)
	if err != nil {
		return source.Diagnosis{}, err
	}
	d, err := client.VerifyRequest(ctx, admin.VerifyRequest{Source: name, At: at, Method: capture.Method,
		Query: capture.Query, Header: capture.Header, Body: capture.Body})
	if errors.Is(err, event.ErrNotFound) {
		return d, failed("creel reload", "%w", err)
	}
	return d, err
}

func (f *frame) printDiagnosis(d *source.Diagnosis, against string) error {
	if f.asJSON {
		if err := f.printJSON(d); err != nil {
			return err
		}
	} else {
		f.tellDiagnosis(d, against)
	}
	if !d.Verified {
		return silent(exitFailed)
	}
	return nil
}

func (f *frame) tellDiagnosis(d *source.Diagnosis, against string) {
	facts := newTable(f.out, "SOURCE", d.Source)
	facts.cut = math.MaxInt // what to do stands at the end of a line
	result := "it does not verify: " + string(d.Part)
	switch {
	case d.Verified && d.Secret >= 0:
		result = fmt.Sprintf("it verifies, with secrets[%d]", d.Secret)
	case d.Verified:
		result = "it verifies"
	}
	facts.row("result", result)
	for _, fact := range [][2]string{{"cause", string(d.Cause)}, {"problem", d.Problem}, {"likely", d.Likely}, {"do", d.Next}, {"signed at", stamp(d.SignedAt)}} {
		if fact[1] != "" {
			facts.row(fact[0], fact[1])
		}
	}
	if len(d.Tried) > 0 {
		facts.row("tried", strings.Join(d.Tried, "; "))
	}
	for _, e := range d.Events {
		facts.row("event", e.Key.String()+"  "+e.Type)
	}
	for _, note := range d.Notes {
		facts.row("note", note)
	}
	facts.row("as of", stamp(d.At))
	facts.row("by", against)
	facts.flush()
}
