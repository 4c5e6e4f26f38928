package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"creel/event"
	"creel/handlers"
)

// Option adds something of a custom binary's own.
type Option func(*frame)

// Handler registers a Go handler under the name by which rules call it
// (go = "name").
func Handler(name string, handler handlers.Func) Option {
	return func(f *frame) { f.handlers = append(f.handlers, namedHandler{name, handler}) }
}

type namedHandler struct {
	name string
	run  handlers.Func
}

// frame is what every command has around it.
type frame struct {
	out, err   io.Writer
	env        func(string) (string, bool)
	now        func() time.Time
	handlers   []namedHandler
	configPath string
	asJSON     bool
	warned     bool // of a demo, or of a configuration with faults, once
}

// Main runs the command line of this process and exits with its code.
func Main(options ...Option) {
	os.Exit(Run(context.Background(), os.Args[1:], os.Stdout, os.Stderr, options...))
}

// Run runs one command line and returns its exit code.
func Run(ctx context.Context, args []string, out, errout io.Writer, options ...Option) int {
	f := &frame{out: out, err: errout, env: os.LookupEnv, now: time.Now}
	for _, option := range options {
		option(f)
	}
	root := f.root(args)
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errout)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if !errors.Is(err, errSilent) {
		fmt.Fprintf(errout, "Error: %v\n", err)
		var coded *exit
		if errors.As(err, &coded) && coded.hint != "" {
			fmt.Fprintf(errout, "Try: %s\n", coded.hint)
		}
	}
	return codeOf(err)
}

func (f *frame) root(args []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "creel",
		Short: "Receive webhooks once, keep them, deliver them",
		Long: `Creel verifies webhooks over their raw bytes, keeps each event once in a
SQLite inbox, acknowledges it in milliseconds, and delivers it to your app
until that says yes. What fails waits in the dead letters to be replayed.

Start here:  creel serve          (no configuration needed: a demo source)
             creel check          (what is wrong with creel.toml)
             creel events         (what has come in)

Exit codes: 0 ok, 1 failed, 2 usage or configuration, 3 partly done,
4 nothing matched.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArgs,

		SuggestionsMinimumDistance: 2,
	}
	root.Version = buildVersion()
	root.SetVersionTemplate("creel {{.Version}}\n")
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	root.PersistentFlags().VarP((*text)(&f.configPath), "config", "c", "configuration file (default $CREEL_CONFIG, ./creel.toml, /etc/creel/creel.toml; without any, the demo)")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if len(args) > 0 && cmd == root && !strings.HasPrefix(args[0], "-") {
			return noArgs(cmd, args) // the flag belongs to a command that there is not
		}
		return usage(cmd.CommandPath()+" --help", "%w", err)
	})
	grouped(root, "Run", f.serve(), f.check(), f.reload(), f.health(), f.send(), f.version())
	grouped(root, "Look", f.events(), f.deliveries(), f.tail(), f.stats(), f.audit(), f.rejects(),
		f.conflicts(), f.duplicates(), f.balances(), f.ledger(), f.records(), f.object())
	grouped(root, "Repair", f.replay(), f.discard(), f.pause(), f.resume(), f.lane(), f.resolve(), f.ack(),
		f.verify(), f.reconcile(), f.importFile())
	grouped(root, "Keep", f.backup(), f.restore(), f.prune())
	grouped(root, "Set up", f.providers(), f.contract(), f.pair(), f.password(), f.tokens(), f.drill(), f.drillLife())
	root.SetHelpCommandGroupID("Set up")
	root.SetCompletionCommandGroupID("Set up")
	f.completesNames(root)
	return root
}

// grouped adds commands below a heading of their own in the help.
func grouped(root *cobra.Command, name string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: name, Title: name + ":"})
	for _, cmd := range commands {
		cmd.GroupID = name
	}
	root.AddCommand(commands...)
}

// noArgs and the others below are cobra's checks with our exit code.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return usage(cmd.CommandPath()+" "+near[0], "%s has no command %q", cmd.CommandPath(), args[0])
	}
	if cmd.HasSubCommands() {
		return usage(cmd.CommandPath()+" --help", "%s has no command %q", cmd.CommandPath(), args[0])
	}
	return usage(cmd.CommandPath()+" --help", "%s takes no argument, and %q is one", cmd.CommandPath(), args[0])
}

func oneArg(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usage(cmd.CommandPath()+" --help", "%s takes one argument, %s", cmd.CommandPath(), name)
		}
		return nil
	}
}

func mostArgs(most int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > most {
			return usage(cmd.CommandPath()+" --help", "%s takes %s and no more", cmd.CommandPath(), names)
		}
		return nil
	}
}

func (f *frame) jsonFlag(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON object a line")
	return cmd
}

// actor is who the audit trail names: the person at this terminal.
func (f *frame) actor() string {
	name := "unknown"
	if current, err := user.Current(); err == nil {
		name = current.Username
	}
	if via, ok := f.env("SUDO_USER"); ok && via != "" {
		name = via
	}
	return "cli:" + name
}

// action is an act of this person, now.
func (f *frame) action(kind event.ActionKind, reason string) event.Action {
	return event.Action{Kind: kind, Actor: f.actor(), Reason: reason, At: f.now()}
}
