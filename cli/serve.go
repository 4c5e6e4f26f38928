package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"creel/admin"
	"creel/app"
	"creel/config"
)

func (f *frame) serve() *cobra.Command {
	var acceptNew bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Receive, keep and deliver; without a configuration, as a demo",
		Example: `  creel serve
  creel serve -c creel.toml`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.runServer(cmd.Context(), acceptNew) },
	}
	cmd.Flags().BoolVar(&acceptNew, "accept-new-identity", false, "start although a source's identity settings changed; an event that is already here may come in a second time")
	return cmd
}

func (f *frame) runServer(ctx context.Context, acceptNew bool) error {
	syscall.Umask(0o077) // whatever this process creates is its owner's alone
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt, syscall.SIGHUP)
	defer signal.Stop(signals)

	s, err := f.load()
	if err != nil {
		return err
	}
	if s.problems.Err() != nil {
		_, all := f.judge(s)
		return badConfiguration(all)
	}
	log := f.logger(s.config.Log)
	_, all := f.judge(s)
	for _, warning := range all.Warnings() {
		if s.file == "" && !strings.HasPrefix(warning.Path, "CREEL_") {
			continue // about what the demo made, which nobody can repair
		}
		log.Warn().Str("problem", warning.String()).Msg("configuration warning")
	}
	running, closeDemo, err := f.start(ctx, s, log, acceptNew)
	if err != nil {
		return err
	}
	defer closeDemo()
	return f.wait(running, s.config, log, signals)
}

func (f *frame) start(ctx context.Context, s *setup, log zerolog.Logger, acceptNew bool) (*app.App, func(), error) {
	closeDemo := func() {}
	if err := app.CanListen(f.env, s.config); err != nil {
		return nil, nil, startError(err)
	}
	opt := app.Options{Config: s.config, File: s.source, Env: f.env, Log: log, Version: buildVersion(), AcceptNewIdentity: acceptNew}
	if s.file == "" {
		stop, err := app.StartDemoApp(s.config, log)
		if err != nil {
			return nil, nil, failed("", "%w", err)
		}
		closeDemo = stop
	} else {
		opt.Load = func() (*config.Config, *config.File, config.Problems) { return config.Load(s.file, f.env) }
	}
	registry, err := f.registry()
	if err != nil {
		return nil, nil, failed("", "%w", err)
	}
	opt.Handlers = registry
	debug.SetGCPercent(gcPercent)
	running, err := app.New(ctx, opt)
	if err != nil {
		closeDemo()
		return nil, nil, startError(err)
	}
	if err := running.Start(ctx); err != nil {
		closeDemo()
		return nil, nil, startError(err)
	}
	if s.file == "" {
		f.greet(running)
	} else if made := running.FirstPassword(); made != "" {
		fmt.Fprintf(f.out, "\nThe page   %s\nPassword   %s\n           (shown this once; creel password makes another one)\n\n", running.PageURL(), made)
	}
	return running, closeDemo, nil
}

// startError tells trouble with the configuration from trouble with the world.
func startError(err error) error {
	var problems config.Problems
	switch {
	case errors.As(err, &problems):
		return badConfiguration(problems)
	case errors.Is(err, admin.ErrRefused):
		return usage("creel check", "start: %w", err)
	}
	return failed("", "start: %w", err)
}

func badConfiguration(problems config.Problems) error {
	return usage("creel check", "the configuration has problems:\n%w", problems.Faults())
}

// sameSignal is how long a second signal counts as the first one.
const sameSignal = 250 * time.Millisecond

// gcPercent lets the heap grow further than Go's default between two
// collections: most of it is bodies that live for milliseconds.
const gcPercent = 200

// greet tells a newcomer what runs and what to do next.
func (f *frame) greet(running *app.App) {
	command, err := running.DemoCommand()
	if err != nil {
		return // the demo runs; only its advice is missing
	}
	password := running.FirstPassword()
	if password == "" {
		password = "was shown at the first start; creel password makes another one"
	}
	fmt.Fprintf(f.out, `
Creel runs as a demo, because no configuration was named.

  Senders reach it at   http://%s/in/%s
  Its events go to      a demo app, which says so in the log below
  The page is at        %s
  Its password          %s
  Everything is kept in %s

Send it a signed event (in another terminal):

  %s

Then look at it:        the page, or %[7]s events and %[7]s deliveries
Send it once more:      it is a duplicate, and nothing happens twice
Your own sources:       config.example.toml, then %[7]s serve -c creel.toml

`, running.Listen, app.DemoSource, running.PageURL(), password, running.Database(), command, startedAs(os.Args[0]))
}

// startedAs is how this program is called at this terminal: by its path, or by
// go run, which has it in a folder that is gone when it ends.
func startedAs(name string) string {
	if strings.Contains(filepath.ToSlash(name), "/go-build") {
		return "go run ."
	}
	return name
}

// wait runs until a signal or a fault ends the server. The first SIGTERM or
// interrupt stops it within its grace, the second at once.
func (f *frame) wait(running *app.App, cfg *config.Config, log zerolog.Logger, signals <-chan os.Signal) error {
	var cause error
wait:
	for {
		select {
		case cause = <-running.Failed():
			log.Error().Err(cause).Msg("the server can not go on")
			break wait
		case got := <-signals:
			if got != syscall.SIGHUP {
				log.Info().Str("signal", got.String()).Msg("stopping")
				break wait
			}
			_, _ = running.Reload(context.Background()) // it logs what it did, or why not
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(cfg.Grace))
	defer cancel()
	first := time.Now()
	go func() {
		for got := range signals {
			// A supervisor that signals the process and its group means it once.
			if got != syscall.SIGHUP && time.Since(first) > sameSignal {
				log.Warn().Msg("second signal: not waiting for what is in flight")
				cancel()
			}
		}
	}()
	if err := running.Stop(ctx); err != nil {
		log.Error().Err(err).Msg("the stop was not clean")
		cause = errors.Join(cause, err)
	} else {
		log.Info().Msg("stopped")
	}
	if cause != nil {
		return failed("", "%w", cause)
	}
	return nil
}

// logger writes readable lines to a terminal and JSON to everything else.
// Messages are constant; what strangers sent stands in fields, which both
// writers escape.
func (f *frame) logger(cfg config.Log) zerolog.Logger {
	zerolog.TimeFieldFormat = "2006-01-02T15:04:05.000Z07:00"
	zerolog.TimestampFunc = func() time.Time { return time.Now().UTC() }
	level, err := zerolog.ParseLevel(cfg.Level)
	if err != nil {
		level = zerolog.InfoLevel
	}
	out := f.err
	terminal := isTerminal(out)
	if cfg.Format == "text" || cfg.Format != "json" && terminal {
		out = zerolog.ConsoleWriter{Out: f.err, TimeFormat: time.TimeOnly, NoColor: !terminal}
	}
	return zerolog.New(out).Level(level).With().Timestamp().Logger()
}
