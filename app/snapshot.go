package app

import (
	"maps"
	"slices"
	"strings"
	"time"

	"creel/config"
	"creel/deliver"
	"creel/event"
	"creel/handlers"
	"creel/jobs"
	"creel/source"
	"creel/store"
)

// Meaning is what a configuration is compiled with beside itself.
type Meaning struct {
	Env      config.Environment
	Handlers *handlers.Registry   // of a custom binary; may be nil
	Panicked func(handlers.Panic) // told when a Go handler panics; may be nil
	Clock    func() time.Time
	Version  string
	// Link is where the body of an event can be fetched; nil where no server
	// hands out bodies.
	Link func(seq int64, key event.Key, until time.Time) string
}

// Snapshot is a configuration compiled whole: what a reload swaps at once.
type Snapshot struct {
	Config      *config.Config
	Sources     map[string]*source.Source
	Rules       *handlers.Rules
	Rulebook    *jobs.Rulebook // Rules with what they fetch by
	Routes      []jobs.Route
	EventPolicy jobs.Policy
	ownSteps    []store.OwnStep      // migrations of the owner's
	inline      map[string]bool      // sources whose events are completed when they are stored
	indexes     map[string][]indexed // by source: where values are that its events are found by
	redact      Redactions
}

// Compile gives a configuration its meaning and reports every problem of it,
// by key path. The snapshot is nil where a problem stops the start.
func Compile(cfg *config.Config, m Meaning) (*Snapshot, config.Problems) {
	s := &Snapshot{Config: cfg, Sources: map[string]*source.Source{}, inline: inlineSources(cfg)}
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
	problems = append(problems, s.mail(m, policies)...)
	problems = append(problems, s.deaf()...)
	s.redact, found = RedactionsOf(cfg)
	problems = append(problems, found...)
	s.Rules, found = handlers.Compile(cfg, handlers.Options{Registry: m.Handlers, Panicked: m.Panicked, Hidden: s.redact.Texts})
	problems = append(problems, found...)
	problems = append(problems, s.fetchers(m, problems)...)
	problems = append(problems, s.compileSQL()...)
	s.indexes, found = indexes(cfg)
	problems = append(problems, found...)
	if problems.Err() != nil {
		return nil, problems
	}
	return s, append(append(problems, s.nowhere()...), s.unreachable()...)
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
		carrier, found := newCarrier(name, cfg, prefix, deliver.Options{Env: m.Env, Clock: m.Clock,
			Version: m.Version, Retry4xx: policy.Retry4xx, Schedule: policy.Whole(), Link: m.Link, Tenant: s.tenant})
		problems = append(problems, found...)
		if found.Err() == nil {
			route := jobs.RouteTo(carrier, policy)
			route.GiveUpAfter = time.Duration(cfg.GiveUpAfter)
			s.Routes = append(s.Routes, route)
		}
	}
	return problems
}

// newCarrier compiles a destination of whatever kind. The carrier may be used
// where no problem is a fault.
func newCarrier(name string, cfg config.Destination, prefix string, opt deliver.Options) (jobs.Limited, config.Problems) {
	switch cfg.Kind() {
	case config.ToCommand:
		return deliver.NewCommand(name, cfg, prefix, opt)
	case config.ToFolder:
		return deliver.NewFolder(name, cfg, prefix, opt)
	}
	return deliver.New(name, cfg, prefix, opt)
}

// mail compiles the route of the mail server, where there is one.
func (s *Snapshot) mail(m Meaning, policies map[string]jobs.Policy) config.Problems {
	cfg := s.Config.SMTP
	if cfg.Host == "" {
		return nil
	}
	policy, problems := jobs.PolicyOf(policies, cfg.Retry, "smtp.retry")
	mailer, found := deliver.NewMailer(cfg, "smtp", deliver.Options{Env: m.Env, Clock: m.Clock})
	if mailer != nil {
		route := jobs.RouteToMail(mailer, policy)
		route.GiveUpAfter = time.Duration(cfg.GiveUpAfter)
		s.Routes = append(s.Routes, route)
	}
	return append(problems, found...)
}

// fetchers compiles what the rules fetch by. What compiling the rules has told
// of a key is not told again.
func (s *Snapshot) fetchers(m Meaning, known config.Problems) config.Problems {
	s.Rulebook = &jobs.Rulebook{Rules: s.Rules, Fetchers: map[string]*deliver.Fetcher{}}
	var problems config.Problems
	for i, rule := range s.Config.Rules {
		if rule.Fetch == nil {
			continue
		}
		fetcher, found := deliver.NewFetcher(*rule.Fetch, config.Join(config.Item("rule", i), "fetch"),
			deliver.Options{Env: m.Env, Clock: m.Clock, Version: m.Version})
		if fetcher != nil {
			s.Rulebook.Fetchers[rule.Name] = fetcher
		}
		problems = append(problems, slices.DeleteFunc(found, func(p config.Problem) bool {
			return slices.ContainsFunc(known, func(k config.Problem) bool { return k.Path == p.Path })
		})...)
	}
	return problems
}

// longestWait is the longest that an event may have to wait for its next
// attempt.
func (s *Snapshot) longestWait() time.Duration {
	if len(s.Rulebook.Fetchers) == 0 {
		return s.EventPolicy.Longest(0)
	}
	return s.EventPolicy.Longest(deliver.MaxFetchRetryAfter)
}

// close drops the idle connections to its destinations and to what it fetches
// from; attempts that run are not touched.
func (s *Snapshot) close() {
	s.Rulebook.Close()
	for _, route := range s.Routes {
		if carrier, ok := route.Carrier.(interface{ Close() }); ok {
			carrier.Close()
		}
	}
}

// reviews tells whether a delivery waits for a person, after so many answers
// were lost in its run.
func (s *Snapshot) reviews(destination string, lost int) bool {
	for i := range s.Routes {
		if s.Routes[i].Name == destination {
			return s.Routes[i].InDoubt(lost)
		}
	}
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
