package handlers

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"creel/config"
	"creel/event"
	"creel/path"
)

// Options are what a configuration can not say.
type Options struct {
	// Registry holds the Go handlers that rules may name; nil is none.
	Registry *Registry
	// Panicked is told when a Go handler panics, with the stack, for the log;
	// nil forgets it. It may be called by several goroutines at once.
	Panicked func(Panic)
	// Hidden tells which texts of an event no error may quote; nil is none.
	Hidden func(source string, p event.Payload) []string
}

// Panic is what is known about a handler that panicked.
type Panic struct {
	Rule  string
	Event event.Key
	Text  string
	Stack []byte
}

// Rules are the compiled rules of one configuration. They are immutable and
// safe for concurrent use.
type Rules struct {
	rules        []*rule
	accounts     map[string]map[string]string // source, account: tenant
	destinations map[string]config.DestinationKind
	timeout      time.Duration
	panicked     func(Panic)
	hidden       func(source string, p event.Payload) []string
}

// maxRunning bounds the calls of one rule's Go handler that run at once (or
// twice the places in the worker): those that were left behind count too. A
// handler that does not return takes the room of no other.
const maxRunning = 64

// Compile reads the rules of a configuration: those of [[rule]] in their
// order, then those that the forward of a source is short for. It reports
// every problem at once; the rules are whole only where none is a fault.
func Compile(cfg *config.Config, o Options) (*Rules, config.Problems) {
	c := compiler{cfg: cfg, options: o, names: map[string]string{}}
	for i, r := range cfg.Rules {
		c.rule(config.Item("rule", i), r)
	}
	c.oneLane()
	c.oneOperation()
	for i, s := range cfg.Sources {
		c.source(config.Item("source", i), s)
	}
	c.inline()
	rules := &Rules{
		rules:        c.rules,
		accounts:     map[string]map[string]string{},
		destinations: map[string]config.DestinationKind{},
		timeout:      time.Duration(cfg.Worker.Timeout),
		panicked:     o.Panicked,
		hidden:       o.Hidden,
	}
	for _, s := range cfg.Sources {
		if len(s.Accounts) > 0 {
			rules.accounts[s.Name] = maps.Clone(s.Accounts)
		}
	}
	for name, d := range cfg.Destinations {
		rules.destinations[name] = d.Kind()
	}
	return rules, c.problems
}

// Names lists the rules in the order in which they run.
func (rs *Rules) Names() []string {
	names := make([]string, len(rs.rules))
	for i, r := range rs.rules {
		names[i] = r.name
	}
	return names
}

type compiler struct {
	cfg      *config.Config
	options  Options
	rules    []*rule
	names    map[string]string // rule name: where it stands
	problems config.Problems
}

func (c *compiler) fault(at, message, hint string) {
	c.problems = append(c.problems, config.Problem{Path: at, Message: message, Hint: hint})
}

func (c *compiler) warn(at, message, hint string) {
	c.problems = append(c.problems, config.Problem{Path: at, Message: message, Hint: hint, Warning: true})
}

func (c *compiler) rule(at string, r config.Rule) {
	out := &rule{
		name:    r.Name,
		at:      at,
		sources: slices.Clone(r.Match.Source),
		types:   slices.Clone(r.Match.Types),
		goName:  r.Go,
	}
	c.name(config.Join(at, "name"), r.Name)
	for i, pattern := range r.Match.Source {
		c.matchedSource(list(config.Join(at, "match", "source"), i, len(r.Match.Source)), pattern)
	}
	for i, pattern := range r.Match.Types {
		if pattern == "" {
			c.fault(config.Item(config.Join(at, "match", "types"), i), "is empty", `write "*" for all`)
		}
	}
	if strings.TrimSpace(r.When) != "" {
		var problem *config.Problem
		if out.when, problem = compileCondition(r.When); problem != nil {
			c.fault(config.Join(at, "when"), problem.Message, problem.Hint)
		} else if isBare(r.When) {
			c.warn(config.Join(at, "when"), "is a value and no comparison: an event in which it is anything but true or false is a dead letter",
				"such as "+r.When+" > 0, or "+r.When+" == true where it is true or false")
		}
	}
	if r.Key != "" {
		out.key = c.key(config.Join(at, "key"), r.Key)
	}
	c.order(at, &r, out)
	out.fetch = c.fetch(config.Join(at, "fetch"), &r)
	c.effects(at, &r, out)
	if r.Go != "" {
		var ok bool
		out.running = make(chan struct{}, max(maxRunning, 2*c.cfg.Worker.Slow))
		if out.goFunc, ok = c.options.Registry.find(r.Go); !ok {
			c.fault(config.Join(at, "go"), strconv.Quote(r.Go)+" is not registered in this program", c.handlersHint())
		}
	}
	if len(out.makers) == 0 && r.Go == "" {
		c.fault(at, "does nothing", `say what happens: [rule.forward] with to = "app", or another effect`)
	}
	c.rules = append(c.rules, out)
}

// effects reads the tables of a rule, in the order in which they are applied:
// the state first, since a stale one keeps the others from being applied.
func (c *compiler) effects(at string, r *config.Rule, out *rule) {
	below := func(table string) string { return config.Join(at, table) }
	if out.state = c.state(below("state"), r.State, out.fetch); out.state != nil {
		out.makers = append(out.makers, out.state)
	}
	for _, m := range []maker{
		c.record(below("record"), r.Record), c.grant(below("grant"), r.Grant), c.sql(below("sql"), r.SQL),
		c.email(below("email"), r.Email), c.forward(below("forward"), r.Forward),
		c.run(below("run"), r.Run), c.file(below("file"), r.File),
	} {
		if m != nil {
			out.makers = append(out.makers, m)
		}
	}
	out.sql = r.SQL != nil
}

func (c *compiler) handlersHint() string {
	if names := c.options.Registry.Names(); len(names) > 0 {
		return "registered: " + strings.Join(names, ", ")
	}
	return "a custom binary registers its handlers before it starts; this one has none"
}

// source adds the rule that the forward of a source is short for.
func (c *compiler) source(at string, s config.Source) {
	for account, tenant := range s.Accounts {
		if tenant == "" {
			c.fault(config.Join(at, "accounts", account), "names no tenant", `write the tenant's name, or leave the account out`)
		}
	}
	if len(s.Forward) == 0 {
		return
	}
	name := "forward " + s.Name
	c.name(config.Join(at, "forward"), name)
	c.destinations(config.Join(at, "forward"), s.Forward, config.ToURL)
	c.rules = append(c.rules, &rule{name: name, at: at, sources: []string{s.Name}, makers: []maker{&forwarding{to: slices.Clone(s.Forward)}}})
}

func (c *compiler) name(at, name string) {
	if strings.TrimSpace(name) == "" {
		c.fault(at, "is missing", "a rule's name is its identity: it stands in verdicts, and keys are made of it")
		return
	}
	if other, taken := c.names[name]; taken {
		c.fault(at, strconv.Quote(name)+" is the name of "+other+" already", "every rule has a name of its own: keys are made of it")
		return
	}
	c.names[name] = strings.TrimSuffix(at, ".name")
}

func (c *compiler) key(at, text string) *path.Template {
	return c.varying(at, text, "a key names one operation: put a place of the event into it, such as {body.id}")
}

// varying reads a template that becomes a key and must differ from event to
// event.
func (c *compiler) varying(at, text, hint string) *path.Template {
	t, err := path.ParseTemplate(text, path.EventNames()...)
	if err != nil {
		c.fault(at, err.Error(), "such as {source}/{account}/{body.data.object.id}")
		return nil
	}
	if !varies(t) {
		c.fault(at, "is the same for every event", hint)
	}
	return t
}

func (c *compiler) matchedSource(at, pattern string) {
	for _, s := range c.cfg.Sources {
		if event.MatchGlob(pattern, s.Name) {
			return
		}
	}
	var names []string
	for _, s := range c.cfg.Sources {
		names = append(names, s.Name)
	}
	c.unknown(at, "source", pattern, names)
}

// destinations checks that an effect's destinations are there and of its kind.
func (c *compiler) destinations(at string, names []string, kind config.DestinationKind) {
	if len(names) == 0 {
		c.fault(at, "is missing", "name a destination with a "+string(kind))
	}
	for i, name := range names {
		at := list(at, i, len(names))
		d, ok := c.cfg.Destinations[name]
		switch is := d.Kind(); {
		case !ok:
			c.unknown(at, "destination", name, slices.Sorted(maps.Keys(c.cfg.Destinations)))
		case is != kind:
			c.fault(at, config.WrongKind(name, is, kind), config.EffectHint(is, name))
		}
	}
}

func (c *compiler) unknown(at, kind, name string, known []string) {
	hint := "there is none yet"
	if near := config.Nearest(name, known); near != "" {
		hint = "did you mean " + near + "?"
	} else if len(known) > 0 {
		hint = "known: " + strings.Join(known, ", ")
	}
	c.fault(at, "there is no "+kind+" "+strconv.Quote(name), hint)
}

// list is the path of an element of a list that may be written as one string.
func list(at string, i, n int) string {
	if n == 1 {
		return at
	}
	return config.Item(at, i)
}
