package app

import (
	"maps"
	"slices"
	"strings"
	"time"

	"creel/config"
	"creel/deliver"
	"creel/handlers"
	"creel/jobs"
	"creel/source"
)

// Meaning is what a configuration is compiled with beside itself.
type Meaning struct {
	Env      config.Environment
	Handlers *handlers.Registry   // of a custom binary; may be nil
	Panicked func(handlers.Panic) // told when a Go handler panics; may be nil
	Clock    func() time.Time
	Version  string
}

// Snapshot is a configuration compiled whole: what a reload swaps at once.
type Snapshot struct {
	Config      *config.Config
	Sources     map[string]*source.Source
	Rules       *handlers.Rules
	Routes      []jobs.Route
	EventPolicy jobs.Policy
}

// Compile gives a configuration its meaning and reports every problem of it,
// by key path. The snapshot is nil where a problem stops the start.
func Compile(cfg *config.Config, m Meaning) (*Snapshot, config.Problems) {
	s := &Snapshot{Config: cfg, Sources: map[string]*source.Source{}}
	var problems config.Problems
	for i := range cfg.Sources {
		compiled, found := CompileSource(cfg, i, m.Env)
		problems = append(problems, found...)
		s.Sources[cfg.Sources[i].Name] = compiled
	}
	policies, found := jobs.CompilePolicies(cfg.Retries)
	problems = append(problems, found...)
	s.EventPolicy, found = jobs.PolicyOf(policies, cfg.Worker.Retry, "worker.retry")
	problems = append(problems, found...)
	problems = append(problems, s.routes(m, policies)...)
	s.Rules, found = handlers.Compile(cfg, handlers.Options{Registry: m.Handlers, Panicked: m.Panicked})
	problems = append(problems, found...)
	problems = append(problems, unused(cfg)...)
	if problems.Err() != nil {
		return nil, problems
	}
	return s, append(problems, s.nowhere()...)
}

// CompileSource compiles the i-th source of a configuration. A source without
// a public URL of its own has the one that its place under the frame's gives.
func CompileSource(cfg *config.Config, i int, env config.Environment) (*source.Source, config.Problems) {
	own := cfg.Sources[i]
	if own.PublicURL == "" && cfg.PublicURL != "" {
		own.PublicURL = strings.TrimSuffix(cfg.PublicURL, "/") + "/in/" + own.Name
	}
	return source.Compile(own, config.Item("source", i), env)
}

// routes compiles the destinations with their limits and retry policies.
func (s *Snapshot) routes(m Meaning, policies map[string]jobs.Policy) config.Problems {
	var problems config.Problems
	for _, name := range slices.Sorted(maps.Keys(s.Config.Destinations)) {
		cfg := s.Config.Destinations[name]
		prefix := config.Join("destination", name)
		policy, found := jobs.PolicyOf(policies, cfg.Retry, prefix+".retry")
		problems = append(problems, found...)
		carrier, found := deliver.New(name, cfg, prefix, deliver.Options{Env: m.Env, Clock: m.Clock,
			Version: m.Version, Retry4xx: policy.Retry4xx})
		problems = append(problems, found...)
		if carrier != nil {
			s.Routes = append(s.Routes, jobs.RouteTo(carrier, policy))
		}
	}
	return problems
}

// close drops the idle connections to its destinations; attempts that run are
// not touched.
func (s *Snapshot) close() {
	for _, route := range s.Routes {
		if carrier, ok := route.Carrier.(interface{ Close() }); ok {
			carrier.Close()
		}
	}
}

// reviews tells whether a send to a destination whose answer was lost waits
// for a person.
func (s *Snapshot) reviews(destination string) bool {
	return s.Config.Destinations[destination].OnDoubt == "review"
}

// keptHeaders are headers that are kept only because some destination passes
// them on.
func (s *Snapshot) keptHeaders() []string {
	var names []string
	for _, destination := range s.Config.Destinations {
		names = append(names, destination.PassHeaders...)
	}
	return names
}
