package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"creel/admin"
	"creel/event"
	"creel/source"
)

func (f *frame) rejects() *cobra.Command {
	var filter admin.RejectFilter
	var limit uint
	cmd := &cobra.Command{
		Use:   "rejects",
		Short: "List the requests that failed verification, newest first; look at one, verify again",
		Long: `Rejects shows the drawer of rejected requests: the newest 200 that failed their
verification since the server started, in its memory and never on disk. The
senders were answered 401 and told nothing; here is the cause. Those that are
larger than max_body of their source (413), or compressed in a way that it does
not take (415), are here too, mostly without their body.`,
		Example: `  creel rejects --source stripe
  creel rejects show 7 --save captured.http
  creel verify --drawer 7
  creel rejects retry --source stripe --reason "secret repaired"`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, s, err := f.server(cmd.Context())
			if err != nil {
				return err
			}
			if err := s.known(cmd.Context(), filter.Source, ""); err != nil {
				return err
			}
			filter.Limit = int(limit)
			list, err := client.Rejects(cmd.Context(), filter)
			if err != nil {
				return failed("", "%w", err)
			}
			return f.printRejects(list, filter)
		},
	}
	textVar(cmd, &filter.Source, "source", "source name")
	textVar(cmd, &filter.Cause, "cause", "cause: "+strings.Join(causeNames(), ", "))
	limitFlag(cmd, &limit)
	completes(cmd, "cause", causeNames)
	cmd.AddCommand(f.showReject(), f.retryRejects())
	return f.jsonFlag(cmd)
}

func causeNames() []string {
	var names []string
	for _, cause := range source.Causes() {
		names = append(names, string(cause))
	}
	return names
}

// server is the running server of the configuration; what the command needs is
// in its memory alone.
func (f *frame) server(ctx context.Context) (*admin.Client, *setup, error) {
	s, err := f.place()
	if err != nil {
		return nil, nil, err
	}
	client, err := f.dial(ctx, s)
	if errors.Is(err, admin.ErrNoServer) {
		return nil, nil, failed("creel serve", "%w, and only a running one knows this", err)
	}
	if err != nil {
		return nil, nil, failed("", "%w", err)
	}
	return client, s, nil
}

func (f *frame) printRejects(list []admin.Reject, filter admin.RejectFilter) error {
	if len(list) == 0 {
		if filter.Source != "" || filter.Cause != "" {
			return nothing("creel rejects, without a filter")
		}
		return &exit{code: exitNothing, err: errors.New("no request was rejected since the server started")}
	}
	var rows *table
	for _, r := range list {
		if f.asJSON {
			if err := f.printJSON(r); err != nil {
				return err
			}
			continue
		}
		if rows == nil {
			rows = newTable(f.out, "REQUEST", "AT", "SOURCE", "CAUSE", "FROM", "BYTES", "ACCEPTED", "DETAIL")
		}
		rows.row(strconv.FormatInt(r.ID, 10), stamp(r.At), r.Source, r.Cause, r.Peer, strconv.Itoa(r.Size), keyList(r.Accepted), r.Detail)
	}
	if rows != nil {
		rows.flush()
		if len(list) == filter.Limit {
			fmt.Fprintf(f.err, "The newest %d; --limit 0 lists all.\n", filter.Limit)
		}
	}
	return nil
}

func keyList(keys []event.Key) string {
	texts := make([]string, len(keys))
	for i, key := range keys {
		texts[i] = key.String()
	}
	return strings.Join(texts, " ")
}

func (f *frame) showReject() *cobra.Command {
	var save string
	cmd := &cobra.Command{
		Use:   "show REQUEST",
		Short: "Show one rejected request; with --save, write it as a raw HTTP request",
		Long: `Show prints head and body of one rejected request. What may be a secret, or is
made with one, is not shown. --save writes the request into a new file as it
came, signature included, for creel verify or for a bug report; headers that
carry a secret itself are left out of that too.`,
		Args: oneArg("the number of a request, as creel rejects lists it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := rejectID(args[0])
			if err != nil {
				return err
			}
			client, _, err := f.server(cmd.Context())
			if err != nil {
				return err
			}
			if save != "" {
				return f.saveReject(cmd.Context(), client, id, save)
			}
			detail, err := client.Reject(cmd.Context(), id)
			if err != nil {
				return rejectError(err)
			}
			return f.printReject(&detail)
		},
	}
	textVar(cmd, &save, "save", "write it to this new file as a raw HTTP request, to be read by its owner alone")
	return f.jsonFlag(cmd)
}

func rejectID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 {
		return 0, usage("creel rejects", "%q is not the number of a request", text)
	}
	return id, nil
}

func rejectError(err error) error {
	if errors.Is(err, event.ErrNotFound) {
		return &exit{code: exitNothing, err: err, hint: "creel rejects"}
	}
	return failed("", "%w", err)
}

func (f *frame) saveReject(ctx context.Context, client *admin.Client, id int64, name string) error {
	capture, err := client.Capture(ctx, id)
	if err != nil {
		return rejectError(err)
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return failed("a name that is not taken", "save the request: %w", err)
	}
	if err != nil {
		return failed("", "save the request: %w", err)
	}
	_, err = file.Write(capture)
	if err := errors.Join(err, file.Close()); err != nil {
		return failed("", "save the request: %w", err)
	}
	if f.asJSON {
		return f.printJSON(map[string]any{"id": id, "file": name, "bytes": len(capture)})
	}
	fmt.Fprintf(f.out, "Request %d is in %s. It holds a signature and a payload: keep it as you keep them.\n", id, name)
	return nil
}

func (f *frame) printReject(d *admin.RejectDetail) error {
	if f.asJSON {
		line := map[string]any{"id": d.ID, "at": d.At, "source": d.Source, "cause": d.Cause, "detail": d.Detail, "peer": d.Peer,
			"size": d.Size, "kept": d.Kept, "accepted": d.Accepted, "method": d.Method, "query": d.Query, "header": d.Header, "body_base64": d.Body, "body": ""}
		if utf8.Valid(d.Body) {
			line["body"] = string(d.Body)
		}
		return f.printJSON(line)
	}
	facts := newTable(f.out, "REQUEST", strconv.FormatInt(d.ID, 10))
	for _, fact := range [][2]string{{"at", stamp(d.At)}, {"source", d.Source}, {"cause", d.Cause}, {"detail", d.Detail},
		{"from", d.Peer}, {"accepted", keyList(d.Accepted)}, {"query", d.Query}} {
		if fact[1] != "" {
			facts.row(fact[0], fact[1])
		}
	}
	facts.flush()
	body := "(not UTF-8 text; --json has the bytes in body_base64)"
	if utf8.Valid(d.Body) {
		body = terminalText(string(d.Body[:min(len(d.Body), maxShown)]))
	}
	fmt.Fprintf(f.out, "\n%s\n\n%s\n", terminalText(strings.TrimSuffix(d.Header, "\n")), body)
	if shown := min(d.Kept, maxShown); shown < d.Size {
		fmt.Fprintf(f.out, "… %s more; the drawer has kept %d of %d\n", plural(d.Size-shown, "byte", "bytes"), d.Kept, d.Size)
	}
	if d.Kept == d.Size { // else nothing can be verified
		fmt.Fprintf(f.err, "creel verify --drawer %d says why it fails.\n", d.ID)
	}
	return nil
}

func (f *frame) retryRejects() *cobra.Command {
	ask := admin.RetryRejects{}
	cmd := &cobra.Command{
		Use:   "retry REQUEST | --source NAME",
		Short: "Verify rejected requests again and accept those that verify now",
		Long: `Retry verifies a rejected request, or all of a source, under the configuration in
force: after a secret was repaired and creel reload. One that verifies now goes
through the same inbox as any other (a duplicate stays one) and is an action in
the audit trail. How old its signature is, is judged as of the time at which it
came, not of now.

Exit 0 when all were accepted, 3 when some were, 1 when none was.`,
		Example: `  creel rejects retry 7 --reason "secret repaired"
  creel rejects retry --source stripe --reason "secret repaired"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 || (len(args) == 1) == (ask.Source != "") {
				return usage(cmd.CommandPath()+" --help", "%s takes the number of a request, or --source", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 1 {
				if ask.ID, err = rejectID(args[0]); err != nil {
					return err
				}
			}
			client, s, err := f.server(cmd.Context())
			if err != nil {
				return err
			}
			if err := s.known(cmd.Context(), ask.Source, ""); err != nil {
				return err
			}
			ask.Actor = f.actor()
			list, err := client.RetryRejects(cmd.Context(), ask)
			if err != nil {
				return rejectError(err)
			}
			return f.printRetried(list)
		},
	}
	textVar(cmd, &ask.Source, "source", "all rejected requests of this source")
	cmd.Flags().StringVar(&ask.Reason, "reason", "", "why, for the audit trail")
	return f.jsonFlag(cmd)
}

func (f *frame) printRetried(list []admin.RetriedReject) error {
	if len(list) == 0 {
		return nothing("creel rejects")
	}
	stored := 0
	var rows *table
	for _, r := range list {
		if r.Stored {
			stored++
		}
		if f.asJSON {
			if err := f.printJSON(r); err != nil {
				return err
			}
			continue
		}
		if rows == nil {
			rows = newTable(f.out, "REQUEST", "AT", "SOURCE", "RESULT", "EVENTS", "CAUSE", "DETAIL")
		}
		rows.row(strconv.FormatInt(r.ID, 10), stamp(r.At), r.Source, r.Outcome, keyList(r.Events), r.Cause, r.Detail)
	}
	if rows != nil {
		rows.flush()
	}
	switch {
	case stored == len(list):
		return nil
	case !f.asJSON:
		fmt.Fprintln(f.err, "creel verify --drawer REQUEST says why one fails; creel reload puts a repaired configuration in force.")
	}
	if stored > 0 {
		return silent(exitPartly)
	}
	return silent(exitFailed)
}
