package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"creel/admin"
	"creel/app"
	"creel/config"
	"creel/event"
	"creel/handlers"
	"creel/store"
)

// defaultConfigs are the files that are looked for where none is named.
func defaultConfigs() []string { return []string{"creel.toml", "/etc/creel/creel.toml"} }

// setup is the configuration that a command works with.
type setup struct {
	config   *config.Config
	file     string // "" for the demo
	source   *config.File
	problems config.Problems
	// faults are what a command goes on in spite of that needs to know no more
	// than where the database is; see place.
	faults config.Problems
}

// configName finds the configuration: the named file, the one that CREEL_CONFIG
// names, creel.toml in this folder or in /etc/creel; "" is the demo.
func (f *frame) configName() string {
	if f.configPath != "" {
		return f.configPath
	}
	if fromEnv, ok := f.env(configVariable); ok && fromEnv != "" {
		return fromEnv
	}
	for _, name := range defaultConfigs() {
		if _, err := os.Stat(name); err == nil {
			return name
		}
	}
	return ""
}

// load finds and reads the configuration.
func (f *frame) load() (*setup, error) {
	name := f.configName()
	if name == "" {
		cfg, problems := app.Demo(f.env)
		return &setup{config: cfg, problems: append(problems, strayVariables(cfg)...)}, nil
	}
	cfg, source, problems := config.Load(name, f.env)
	if problems.Err() == nil || cfg.Sources != nil {
		// A file that could not be read names no variables: all would be strays.
		problems = append(problems, strayVariables(cfg)...)
	}
	return &setup{config: cfg, file: name, source: source, problems: problems}, nil
}

// placed adds file and line to problems that were found by compiling.
func (s *setup) placed(problems config.Problems) config.Problems {
	if s.source == nil {
		return problems.Sorted()
	}
	return s.source.Locate(problems)
}

// configVariable names the configuration file in the environment.
const configVariable = "CREEL_CONFIG"

// strayVariables warns of CREEL_ variables that nothing reads.
func strayVariables(cfg *config.Config) config.Problems {
	return cfg.UnknownVariables(os.Environ(), configVariable)
}

// place is usable for commands that look at what is stored, or ask the server:
// what is wrong with a file on disk does not matter to them as long as it says
// where the database is. The server goes on with what it was started with.
func (f *frame) place() (*setup, error) {
	s, err := f.load()
	if err != nil {
		return nil, err
	}
	faults := s.problems.Resolved().Faults()
	if len(faults) == 0 || s.source == nil || !s.source.Placed() {
		return s, f.judged(s)
	}
	s.faults = faults
	if f.warned {
		return s, nil
	}
	f.warned = true
	goesOn, them := "", "them"
	if running, _ := store.Running(s.config.Database); running {
		goesOn = ": the server goes on with the one it started with"
	}
	if len(faults) == 1 {
		them = "it"
	}
	fmt.Fprintf(f.err, "the configuration has %s%s; creel check lists %s\n", plural(len(faults), "problem", "problems"), goesOn, them)
	return s, nil
}

// whole refuses what needs the meaning of a configuration that has faults.
func (s *setup) whole() error {
	if err := s.faults.Err(); err != nil {
		return usage("creel check", "the configuration has problems:\n%w", err)
	}
	return nil
}

// usable is load for commands that need a configuration without faults in
// its frame. Secrets that can not be read here do not matter to them: the
// server may run as somebody else.
func (f *frame) usable() (*setup, error) {
	s, err := f.load()
	if err != nil {
		return nil, err
	}
	return s, f.judged(s)
}

// judged says which database a demo is about, and refuses faults.
func (f *frame) judged(s *setup) error {
	if s.file == "" && !f.asJSON && !f.warned {
		f.warned = true
		fmt.Fprintf(f.err, "No configuration is named, so this is about the demo, %s. -c names one.\n", s.config.Database)
	}
	if err := s.problems.Resolved().Err(); err != nil {
		return usage("creel check", "the configuration has problems:\n%w", err)
	}
	return nil
}

// reader opens the database for plain reads, beside a running server or not.
func (f *frame) reader(ctx context.Context) (*store.Reader, *setup, error) {
	s, err := f.place()
	if err != nil {
		return nil, nil, err
	}
	running, _ := store.Running(s.config.Database) // a hint only
	if _, err := os.Stat(s.config.Database); errors.Is(err, os.ErrNotExist) {
		if running {
			return nil, nil, failed("creel health, and put the file back", "the database %s was moved or removed while a server has it open", s.config.Database)
		}
		if err := s.whole(); err != nil {
			return nil, nil, err // no server goes on with anything
		}
		return nil, nil, failed("creel serve, or name the configuration with -c",
			"there is no database %s yet", s.config.Database)
	}
	reader, err := store.OpenRead(ctx, s.config.Database)
	if err != nil && running && errors.Is(err, store.ErrForeign) {
		return nil, nil, failed("creel health --wait 10s", "the server is still making the database %s", s.config.Database)
	}
	if err != nil {
		return nil, nil, failed("", "%w", err)
	}
	return reader, s, nil
}

// dial reaches the running server: admin.ErrNoServer where none runs. Where
// somebody has the database and nobody listens, neither is true.
func (f *frame) dial(ctx context.Context, s *setup) (*admin.Client, error) {
	socket := store.SocketPath(s.config.Database)
	client, err := admin.Dial(ctx, socket)
	if !errors.Is(err, admin.ErrNoServer) {
		return client, err
	}
	if running, _ := store.Running(s.config.Database); running {
		return nil, failed("creel health --wait 30s; where that does not help, restart the server",
			"a process has the database open, and nobody listens on its control socket %s: the server starts or stops, another command is at work, or the socket was removed", socket)
	}
	return nil, err
}

// act does an action through the running server, or on the database itself
// where no server runs: alone says that it was so, and that what was queued
// waits for a server.
func (f *frame) act(ctx context.Context, s *setup, action event.Action) (done event.Action, alone bool, err error) {
	client, err := f.dial(ctx, s)
	if err == nil {
		done, err = f.actThere(ctx, s, client, action)
		return done, false, err
	}
	if !errors.Is(err, admin.ErrNoServer) {
		return action, false, err
	}
	if err := s.whole(); err != nil {
		return action, true, err
	}
	if _, err := os.Stat(s.config.Database); errors.Is(err, os.ErrNotExist) {
		return action, true, fmt.Errorf("there is no database %s yet", s.config.Database)
	}
	done, err = app.ActAlone(ctx, s.config, action)
	return done, true, err
}

// judge gives the configuration its meaning and reports everything that is
// wrong with it at once.
func (f *frame) judge(s *setup) (*app.Snapshot, config.Problems) {
	registry, err := f.registry()
	if err != nil {
		return nil, config.Problems{{Message: err.Error()}}
	}
	return app.Judge(s.config, s.source, s.problems,
		app.Meaning{Env: f.env, Handlers: registry, Clock: f.now, Version: buildVersion()})
}

// rules compiles the rules alone: who asks what a replay would do need not be
// able to read the server's secrets.
func (f *frame) rules(s *setup) (*handlers.Rules, error) {
	if err := s.whole(); err != nil {
		return nil, err
	}
	registry, err := f.registry()
	if err != nil {
		return nil, failed("", "%w", err)
	}
	rules, problems := handlers.Compile(s.config, handlers.Options{Registry: registry})
	if err := s.placed(problems).Err(); err != nil {
		return nil, usage("creel check", "the configuration has problems:\n%w", err)
	}
	return rules, nil
}

func (f *frame) registry() (*handlers.Registry, error) {
	registry := handlers.NewRegistry()
	for _, given := range f.handlers {
		if err := registry.Register(given.name, given.run); err != nil {
			return nil, fmt.Errorf("register the handler %q: %w", given.name, err)
		}
	}
	return registry, nil
}
