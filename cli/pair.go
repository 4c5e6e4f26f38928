package cli

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"creel/admin"
	"creel/config"
)

func (f *frame) pair() *cobra.Command {
	ask := admin.PairRequest{}
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "pair SOURCE",
		Short: "Wait for the secret that a sender hands over in a request, and take it once",
		Long: `Some senders (Asana, Notion) choose the secret themselves and hand it over in a
request that nothing proves. Pair takes the next one that comes to the source,
answers it as the sender wants, and closes: while it waits, and never else. Whoever
knows the URL could be first, so wait for minutes, and register the webhook at the
sender meanwhile.

The secret is written to the first "file:PATH" among the source's secrets that is
not there yet, for the server's user alone, and is in force at once. Without such
a file it is shown here, once, to be put where the configuration finds it. A
source that waits for its first secret has await_secret = true.

Exit 0 when the secret was taken, 1 when none came.`,
		Example: `  creel pair asana
  creel pair asana --for 5m --replace --reason "new webhook"`,
		Args: oneArg("the name of a source"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ask.Source = args[0]
			if wait < time.Second || wait > time.Hour {
				return usage("--for 10m", "--for is how long to wait, from a second to an hour")
			}
			ask.Seconds = int(wait / time.Second)
			return f.waitForSecret(cmd, ask, wait)
		},
	}
	cmd.Flags().DurationVar(&wait, "for", 10*time.Minute, "how long to wait, with its unit")
	cmd.Flags().BoolVar(&ask.Replace, "replace", false, "take another secret in place of the one that is there")
	cmd.Flags().StringVar(&ask.Reason, "reason", "", "why, for the audit trail")
	return f.jsonFlag(cmd)
}

func (f *frame) waitForSecret(cmd *cobra.Command, ask admin.PairRequest, wait time.Duration) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	client, s, err := f.server(ctx)
	if err != nil {
		return err
	}
	if err := s.whole(); err != nil { // it prints the address, too
		return err
	}
	if err := knownSource(s.config, ask.Source); err != nil {
		return err
	}
	ask.Actor = f.actor()
	began := f.now()
	fmt.Fprintf(f.err, "Waiting up to %s for the secret of %s at %s; Ctrl-C ends it.\n", wait, ask.Source, addressOf(s.config, ask.Source))
	paired, err := client.Pair(ctx, ask)
	if ctx.Err() != nil {
		return failed("", "the pairing mode of %q is closed: no secret came", ask.Source)
	}
	if err != nil && f.now().Sub(began) < wait {
		return failed("", "%w", err) // it was refused
	}
	if err != nil {
		return failed("creel pair "+ask.Source+" again, and register the webhook at the sender while it waits", "%w", err)
	}
	return f.printPaired(&paired)
}

// addressOf is what the sender calls.
func addressOf(cfg *config.Config, name string) string {
	for i := range cfg.Sources {
		if cfg.Sources[i].Name == name && cfg.Sources[i].PublicURL != "" {
			return cfg.Sources[i].PublicURL
		}
	}
	return strings.TrimSuffix(cfg.PublicURL, "/") + "/in/" + name
}

func (f *frame) printPaired(p *admin.Paired) error {
	if f.asJSON {
		return f.printJSON(p)
	}
	fmt.Fprintf(f.out, "The secret of %s came from %s.\n", p.Source, p.Peer)
	if p.File != "" {
		fmt.Fprintf(f.out, "It is in %s and in force: requests of this source are verified with it.\n", p.File)
	}
	if p.Secret == "" {
		return nil
	}
	fmt.Fprintf(f.out, "\n  %s\n\n", printable(p.Secret))
	if p.File != "" {
		fmt.Fprintln(f.out, "The sender wants it back: enter it there. It is not shown again.")
		return nil
	}
	fmt.Fprintf(f.out, "It is kept nowhere and not shown again. Put it into a file, secrets = [\"file:PATH\"] of\nthe source %s into the configuration, and creel reload.\n", p.Source)
	return nil
}
