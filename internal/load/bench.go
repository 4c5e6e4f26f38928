package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// run is one run of the benchmark driver.
type run struct {
	binary   string
	self     string
	dir      string
	rounds   int
	duration time.Duration
	steady   time.Duration // length of a series at a steady rate
	rows     int           // what "a million rows" is
	drain    int           // what "100,000 deliveries" is
	folders  int
	figures  []figure
	series   []result
	filled   string // a folder with a database of rows events, made once
}

// figure is one line of docs/performance.md.
type figure struct {
	Gate  string  `json:"gate"`
	What  string  `json:"what"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
	Goal  float64 `json:"goal,omitempty"`
	Least bool    `json:"least,omitempty"` // the goal is a lower bound
}

func (f figure) met() bool {
	if f.Least {
		return f.Value >= f.Goal
	}
	return f.Value <= f.Goal
}

// measures are the gates that the driver measures, in the order in which they
// run.
func measures() []struct {
	gate string
	run  func(context.Context, *run) error
} {
	return []struct {
		gate string
		run  func(context.Context, *run) error
	}{
		{"P1", benchIntake}, {"P3", benchSteady}, {"P4", benchSync}, {"P5", benchDelay}, {"P6", benchMemory}, {"P7", benchStart},
		{"P8", benchRows}, {"P9", benchRules}, {"P10", benchDelivered}, {"P11", benchDrain}, {"P12", benchPage}, {"P13", benchDisk}, {"P14", benchIdle}, {"P15", benchOrder},
	}
}

func bench(ctx context.Context, args []string) (err error) {
	b := &run{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	only := flags.String("only", "", "gates to measure, with commas between: P1,P10")
	out := flags.String("json", "", "file for the figures and every series")
	flags.StringVar(&b.binary, "binary", "", "the server; built where it is empty")
	flags.IntVar(&b.rounds, "rounds", 3, "interleaved rounds")
	flags.DurationVar(&b.duration, "duration", 5*time.Second, "length of a closed series")
	flags.DurationVar(&b.steady, "steady", time.Minute, "length of a series at a steady rate")
	flags.IntVar(&b.rows, "rows", 1_000_000, "rows of a large database")
	flags.IntVar(&b.drain, "drain", 100_000, "deliveries of a backlog")
	dir := flags.String("dir", "", "folder for the databases, on the disk to be measured")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp(*dir, "creel-load-"); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(b.dir) }()
	if b.self, err = os.Executable(); err != nil {
		return fmt.Errorf("find this command: %w", err)
	}
	if b.binary == "" {
		if b.binary, err = build(ctx, b.dir); err != nil {
			return err
		}
	}
	if b.binary, err = filepath.Abs(b.binary); err != nil {
		return fmt.Errorf("find the binary: %w", err)
	}
	wanted := strings.FieldsFunc(*only, func(r rune) bool { return r == ',' })
	for _, m := range measures() {
		if len(wanted) > 0 && !slices.Contains(wanted, m.gate) {
			continue
		}
		fmt.Fprintln(os.Stderr, "measuring", m.gate)
		if e := m.run(ctx, b); e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", m.gate, e))
		}
	}
	b.print()
	if *out != "" {
		err = errors.Join(err, b.save(*out))
	}
	return err
}

// folder is a fresh folder for one server.
func (b *run) folder() (string, error) {
	b.folders++
	dir := filepath.Join(b.dir, fmt.Sprintf("run-%d", b.folders))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("make a folder: %w", err)
	}
	return dir, nil
}

// note adds a figure and shows it at once.
func (b *run) note(gate, what string, value float64, unit string, goal float64, least bool) {
	f := figure{Gate: gate, What: what, Value: value, Unit: unit, Goal: goal, Least: least}
	b.figures = append(b.figures, f)
	fmt.Fprintf(os.Stderr, "  %s %s: %.4g %s\n", gate, what, value, unit)
}

// keep adds a series to the record.
func (b *run) keep(name string, r result) result {
	r.Name = name
	b.series = append(b.series, r)
	fmt.Fprintf(os.Stderr, "  %-28s %4d connections: %8.0f/s  p50 %.2f  p99 %.2f  max %.1f ms  %v\n",
		name, r.Connections, r.PerSecond, r.P50, r.P99, r.Max, r.Statuses)
	return r
}

// print writes the table for docs/performance.md.
func (b *run) print() {
	fmt.Printf("%s/%s, %d cores, %s, %d rounds\n\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), b.rounds)
	fmt.Println("| gate | what | figure | goal | met |\n|---|---|---|---|---|")
	for _, f := range b.figures {
		goal, met := "", ""
		if f.Goal != 0 || f.Unit == "writes" {
			sign := "≤"
			if f.Least {
				sign = "≥"
			}
			goal, met = fmt.Sprintf("%s %.4g %s", sign, f.Goal, f.Unit), "no"
			if f.met() {
				met = "yes"
			}
		}
		fmt.Printf("| %s | %s | %.4g %s | %s | %s |\n", f.Gate, f.What, f.Value, f.Unit, goal, met)
	}
}

func (b *run) save(name string) error {
	text, err := json.MarshalIndent(map[string]any{"figures": b.figures, "series": b.series}, "", "  ")
	if err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	if err := os.WriteFile(name, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	return nil
}
