package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"creel/drill"
)

// lifeCommand is what a drill starts and kills.
const lifeCommand = "drill-life"

// drilling is what creel drill was asked for.
type drilling struct {
	events, orders, kills uint
	seed                  uint64
	rules                 []string
	keep                  bool
}

func (f *frame) drill() *cobra.Command {
	var how drilling
	cmd := &cobra.Command{
		Use:   "drill",
		Short: "Try your own rules out: copies, other orders, second runs, kills",
		Long: `Drill tells the newest events of the inbox to your rules once more, on a scratch
database, and looks whether the end is always the same: each event five times,
one thing under two ids, in other orders, every rule twice, with the process
killed at random moments. It says which rule could apply something twice.

Nothing is sent or fetched, and the database is only read, also beside a running
server. Where the inbox has no event for a rule, the sample that creel send
signs is taken. A rule with [rule.fetch] is not drilled. Go handlers of a custom
binary run, as often as that takes.

Exit 0 when no rule fails (warnings too), 1 when one does, 4 when there is
nothing to drill.`,
		Example: `  creel drill
  creel drill --rule "credits for a paid invoice" --events 100
  creel drill --seed 7 --kills 0 --json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("seed") {
				how.seed = rand.Uint64N(1_000_000)
			}
			return f.runDrill(cmd.Context(), how)
		},
	}
	flags := cmd.Flags()
	flags.UintVar(&how.events, "events", 20, "the newest events that each rule is tried with, at most")
	flags.UintVar(&how.orders, "orders", 3, "how many random orders, besides the reverse one")
	flags.UintVar(&how.kills, "kills", 5, "how often the process is killed at work")
	flags.Uint64Var(&how.seed, "seed", 0, "of the random orders and kills; a new one otherwise")
	flags.StringArrayVar(&how.rules, "rule", nil, "only this rule; may be given several times")
	flags.BoolVar(&how.keep, "keep", false, "leave the scratch folder behind: it holds copies of events")
	return f.jsonFlag(cmd)
}

// maxDrill bounds the numbers of a drill.
const maxDrill = 1000

func (f *frame) runDrill(ctx context.Context, how drilling) error {
	if how.events < 1 || how.events > maxDrill || how.orders > maxDrill || how.kills > maxDrill {
		return usage("creel drill --help", "--events is from 1, --orders and --kills from 0 to %d", maxDrill)
	}
	opt, err := f.drillOptions(how)
	if err != nil {
		return err
	}
	// The scratch folder goes also when somebody interrupts.
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	report, err := drill.Run(ctx, opt)
	switch {
	case errors.Is(err, drill.ErrNoRule):
		return usage(strangeRule(how.rules, ruleNames(opt.Snapshot.Config)), "%w", err)
	case ctx.Err() != nil:
		return failed("", "interrupted")
	case err != nil:
		return failed("creel check; TMPDIR names the folder for the scratch databases", "drill: %w", err)
	}
	if err := f.printDrill(report, how); err != nil {
		return err
	}
	return drilled(report)
}

// drillOptions compiles the configuration and finds this program.
func (f *frame) drillOptions(how drilling) (drill.Options, error) {
	var opt drill.Options
	s, err := f.load()
	if err != nil {
		return opt, err
	}
	snapshot, problems := f.judge(s)
	if snapshot == nil {
		return opt, usage("creel check", "the configuration has problems:\n%w", problems.Err())
	}
	registry, err := f.registry()
	if err != nil {
		return opt, failed("", "%w", err)
	}
	program, err := os.Executable()
	if err != nil {
		return opt, failed("", "find this program: %w", err)
	}
	began := f.now()
	return drill.Options{
		Snapshot: snapshot, Handlers: registry, Events: int(how.events), Orders: int(how.orders), Kills: int(how.kills),
		Seed: how.seed, Rules: how.rules, Keep: how.keep, Now: f.now,
		Child: func(ctx context.Context, folder string) *exec.Cmd {
			return exec.CommandContext(ctx, program, "--config="+s.file, lifeCommand, folder)
		},
		Progress: func(step string) {
			if f.now().Sub(began) > 2*time.Second {
				fmt.Fprintf(f.err, "Drill: %s …\n", step)
			}
		},
	}, nil
}

// drilled is the exit code of a drill.
func drilled(report *drill.Report) error {
	tried := false
	for _, r := range report.Rules {
		switch r.Verdict {
		case drill.Failure:
			return silent(exitFailed)
		case drill.NotDrilled:
		default:
			tried = true
		}
	}
	if !tried {
		return &exit{code: exitNothing, err: errors.New("no rule could be drilled"), hint: "creel send SOURCE, and drill again"}
	}
	return nil
}

// drillLine is one rule as --json prints it. Fields are only ever added.
type drillLine struct {
	Rule     string        `json:"rule"`
	Verdict  drill.Verdict `json:"verdict"` // ok, WARN, FAIL or not drilled
	Events   int           `json:"events"`
	Sample   bool          `json:"sample"`
	Reason   string        `json:"reason"`
	Hint     string        `json:"hint"`
	Findings []findingLine `json:"findings"`
	Seed     uint64        `json:"seed"`
	Orders   int           `json:"orders"`
	Kills    int           `json:"kills"`
	Folder   string        `json:"folder,omitempty"`
}

type findingLine struct {
	Scene   string        `json:"scene"`
	Verdict drill.Verdict `json:"verdict"`
	Reason  string        `json:"reason"`
	Hint    string        `json:"hint"`
}

func (f *frame) printDrill(report *drill.Report, how drilling) error {
	if f.asJSON {
		for _, r := range report.Rules {
			line := drillLine{Rule: r.Name, Verdict: r.Verdict, Events: r.Events, Sample: r.Sample, Reason: r.Reason, Hint: r.Hint,
				Findings: []findingLine{}, Seed: how.seed, Orders: report.Orders, Kills: report.Kills, Folder: report.Folder}
			for _, finding := range r.Findings {
				line.Findings = append(line.Findings, findingLine(finding))
			}
			if err := f.printJSON(line); err != nil {
				return err
			}
		}
		return nil
	}
	rows := newTable(f.out, "RULE", "EVENTS", "VERDICT", "SCENE", "REASON")
	counts := map[drill.Verdict]int{}
	for _, r := range report.Rules {
		counts[r.Verdict]++
		events := fmt.Sprint(r.Events)
		if r.Sample {
			events += " (sample)"
		}
		if len(r.Findings) == 0 || r.Reason != "" {
			rows.row(r.Name, events, string(r.Verdict), "", r.Reason)
		}
		for _, finding := range r.Findings {
			rows.row(r.Name, events, string(finding.Verdict), finding.Scene, finding.Reason)
		}
	}
	rows.flush()
	f.printAdvice(report)
	fmt.Fprintf(f.out, "%s: %d ok, %d WARN, %d FAIL, %d not drilled. %s, %s, %s, seed %d. Nothing was sent.\n",
		plural(len(report.Rules), "rule", "rules"), counts[drill.Sound], counts[drill.Warning], counts[drill.Failure], counts[drill.NotDrilled],
		plural(report.Events, "event", "events"), plural(report.Orders+1, "other order", "other orders"), plural(report.Kills, "kill", "kills"), how.seed)
	if report.Folder != "" {
		fmt.Fprintf(f.out, "The scratch folder is %s; it holds copies of events: remove it when you have seen it.\n", report.Folder)
	}
	return nil
}

// printAdvice says what to do, each thing once.
func (f *frame) printAdvice(report *drill.Report) {
	of := map[string][]string{}
	var order []string
	add := func(hint, rule string) {
		if hint == "" {
			return
		}
		if of[hint] == nil {
			order = append(order, hint)
		}
		if n := len(of[hint]); n == 0 || of[hint][n-1] != rule {
			of[hint] = append(of[hint], rule)
		}
	}
	for _, r := range report.Rules {
		add(r.Hint, r.Name)
		for _, finding := range r.Findings {
			add(finding.Hint, r.Name)
		}
	}
	for _, hint := range order {
		fmt.Fprintf(f.out, "%s: %s.\n", strings.Join(of[hint], ", "), hint)
	}
}

// drillLife is the process that a drill kills. It writes in the scratch folder
// alone, and a mark on its standard output before each write.
func (f *frame) drillLife() *cobra.Command {
	return &cobra.Command{
		Use:    lifeCommand + " FOLDER",
		Short:  "The process that creel drill kills",
		Hidden: true,
		Args:   oneArg("the scratch folder of a drill"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opt, err := f.drillOptions(drilling{})
			if err != nil {
				return err
			}
			return drill.Live(cmd.Context(), drill.LiveOptions{Snapshot: opt.Snapshot, Handlers: opt.Handlers, Folder: args[0], Now: f.now,
				Mark: func() error {
					_, err := io.WriteString(f.out, ".")
					return err
				}})
		},
	}
}
