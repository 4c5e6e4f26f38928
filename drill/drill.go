package drill

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"creel/app"
	"creel/config"
	"creel/event"
	"creel/handlers"
	"creel/store"
)

// Options say what is drilled and how hard.
type Options struct {
	Snapshot *app.Snapshot // the configuration, compiled
	Handlers *handlers.Registry
	Events   int      // the most events for each rule
	Orders   int      // random orders
	Kills    int      // of the process
	Seed     uint64   // of orders and kills
	Rules    []string // the rules that are wanted; none is all
	Keep     bool     // leave the scratch folder behind
	Now      func() time.Time
	// Child is a process that calls Live on a folder, with the same
	// configuration and handlers.
	Child func(ctx context.Context, folder string) *exec.Cmd
	// Progress is told what comes next.
	Progress func(step string)
}

// Report is what a drill came to.
type Report struct {
	Rules  []Rule
	Events int    // that were told
	Orders int    // random orders that were tried
	Kills  int    // processes that were killed at work
	Folder string // that was kept; "" where it is gone
}

// Verdict is what a drill says about a rule.
type Verdict string

// The verdicts, from good to bad.
const (
	NotDrilled Verdict = "not drilled"
	Sound      Verdict = "ok"
	Warning    Verdict = "WARN"
	Failure    Verdict = "FAIL"
)

// Rule is what a drill says about one rule.
type Rule struct {
	Name     string
	Verdict  Verdict
	Events   int    // of the rule's that were told
	Sample   bool   // they are samples, because the inbox has none
	Reason   string // why it was not drilled, or what to know of a good verdict
	Hint     string // what to do about the reason
	Findings []Finding
}

// Finding is what one scene showed about a rule.
type Finding struct {
	Scene   string
	Verdict Verdict
	Reason  string
	Hint    string
}

// ErrNoRule says that a wanted rule is not in the configuration.
var ErrNoRule = errors.New("the configuration has no such rule")

// template is the database that every scene starts with.
const template = "template.db"

// drill is one drill on its way.
type drill struct {
	opt    Options
	snap   *app.Snapshot // with the rules that are told events: those that fetch are left out
	folder string
	random *rand.Rand
	rules  []*subject
	pieces []*piece            // told in this order
	writes map[string][]string // tables of the owner's, by the rule that writes them
	own    []string            // all of those tables
	base   outcome
	moving map[string][]string // columns of the owner's tables that differ from run to run
	kills  int
}

// Run drills. An error says that the drill itself could not go on.
func Run(ctx context.Context, opt Options) (report *Report, err error) {
	d := &drill{opt: opt, random: rand.New(rand.NewPCG(opt.Seed, 0))}
	if err := d.cast(); err != nil {
		return nil, err
	}
	folder, err := makeFolder()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, folder.leave(opt.Keep)) }()
	d.folder = folder.path
	if err := d.choose(ctx); err != nil {
		return nil, err
	}
	if len(d.pieces) > 0 {
		if err := d.play(ctx); err != nil {
			return nil, err
		}
	}
	return d.report(), nil
}

// play runs the scenes.
func (d *drill) play(ctx context.Context) error {
	if err := d.scratch(ctx); err != nil {
		return err
	}
	for _, scene := range []struct {
		step string
		run  func(context.Context) error
	}{
		{"each event once, in the order of receipt", d.baseline},
		{"every rule twice", d.again},
		{"the same event five times", d.copies},
		{"two ids for one thing", d.twins},
		{"other orders", d.orders},
		{"kills at random moments", d.killed},
	} {
		if len(d.pieces) == 0 { // the baseline left none
			return nil
		}
		d.opt.Progress(scene.step)
		if err := scene.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", scene.step, err)
		}
	}
	return nil
}

// scratch makes the database that every scene starts with.
func (d *drill) scratch(ctx context.Context) error {
	d.opt.Progress("a scratch database")
	cfg := d.snap.Config
	steps, faults := []store.OwnStep(nil), []*store.OwnFault(nil)
	if cfg.SQL.Migrations != "" {
		steps, faults = store.ReadOwnSteps(cfg.SQL.Migrations)
	}
	if len(faults) > 0 {
		return faults[0]
	}
	var err error
	d.writes, err = store.MakeScratch(ctx, d.opt.Now(), store.Scratch{
		Path: filepath.Join(d.folder, template), From: cfg.Database,
		Folder: cfg.SQL.Migrations, Steps: steps, Statements: d.statements(),
	})
	for _, tables := range d.writes {
		d.own = append(d.own, tables...)
	}
	slices.Sort(d.own)
	d.own = slices.Compact(d.own)
	return err
}

// statements are those that rules may run: of the configuration, and of Go
// handlers for the events that were chosen.
func (d *drill) statements() map[string][]string {
	all := map[string][]string{}
	for _, r := range d.snap.Config.Rules {
		if r.SQL != nil {
			all[r.Name] = append(all[r.Name], r.SQL.Statements...)
		}
	}
	for _, p := range d.pieces {
		for rule, effects := range p.effects {
			for _, e := range effects {
				if q, is := e.(event.SQL); is {
					all[rule] = append(all[rule], q.Statements...)
				}
			}
		}
	}
	for rule, texts := range all {
		slices.Sort(texts)
		all[rule] = slices.Compact(texts)
	}
	return all
}

// cast lists the rules, and compiles those that are told events: a rule that
// fetches is left out, because it would ask its provider.
func (d *drill) cast() error {
	cfg := d.opt.Snapshot.Config
	for i := range cfg.Rules {
		r := &cfg.Rules[i]
		d.rules = append(d.rules, &subject{name: r.Name, sources: r.Match.Source, types: r.Match.Types, fetches: r.Fetch != nil, keyed: r.Key != "",
			left: map[string]int{}})
	}
	for _, s := range cfg.Sources {
		if len(s.Forward) > 0 {
			d.rules = append(d.rules, &subject{name: "forward " + s.Name, sources: []string{s.Name}, forward: s.Forward, left: map[string]int{}})
		}
	}
	for _, name := range d.opt.Rules {
		if d.subject(name) == nil {
			return fmt.Errorf("%q: %w", name, ErrNoRule)
		}
	}
	for _, r := range d.rules {
		r.wanted = len(d.opt.Rules) == 0 || slices.Contains(d.opt.Rules, r.name)
	}
	var err error
	d.snap, err = offline(d.opt.Snapshot, d.opt.Handlers)
	return err
}

// offline is a configuration without the rules that fetch.
func offline(snapshot *app.Snapshot, registry *handlers.Registry) (*app.Snapshot, error) {
	cfg := *snapshot.Config
	cfg.Rules = slices.DeleteFunc(slices.Clone(cfg.Rules), func(r config.Rule) bool { return r.Fetch != nil })
	rules, problems := handlers.Compile(&cfg, handlers.Options{Registry: registry})
	if err := problems.Err(); err != nil {
		return nil, err
	}
	out := *snapshot
	out.Config, out.Rules, out.Rulebook = &cfg, rules, nil
	return &out, nil
}

func (d *drill) subject(name string) *subject {
	for _, r := range d.rules {
		if r.name == name {
			return r
		}
	}
	return nil
}
