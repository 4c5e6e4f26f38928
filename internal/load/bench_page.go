package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// fewRows is up to where P12 is tried out beside 50,000 events.
const fewRows = 100_000

// benchPage is P12: what the page and the API read beside two and a half
// million events with 500,000 dead letters among them, what a look at the
// signals takes, and the page, the API and a scrape over HTTP. The queries are
// those of the store's own benchmark, which fills the file too.
func benchPage(ctx context.Context, b *run) error {
	dir, err := b.folder()
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "creel.db")
	flags := []string{"-page-file", file}
	if b.rows <= fewRows {
		flags = append(flags, "-short")
	}
	queries, err := b.benchmark(ctx, "store", "BenchmarkPage", 5*b.rounds, flags...)
	if err != nil {
		return fmt.Errorf("measure the queries: %w", err)
	}
	b.slowest("query", queries, 100)
	ticks, err := b.benchmark(ctx, "app", "BenchmarkTick", 20*b.rounds, "-tick-file", file)
	if err != nil {
		return fmt.Errorf("measure the signals: %w", err)
	}
	b.slowest("signals", ticks, 100)
	return b.served(ctx, dir)
}

// benchmark runs one of the benchmarks of a room.
func (b *run) benchmark(ctx context.Context, room, name string, times int, flags ...string) ([]timed, error) {
	args := append([]string{"test", "creel/" + room, "-run", "^$", "-bench", "^" + name + "$", "-benchtime", fmt.Sprint(times, "x"), "-timeout", "30m"}, flags...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "TMPDIR="+b.dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	found := medians(out)
	if len(found) == 0 {
		return nil, fmt.Errorf("no median among what was measured: %s", out)
	}
	return found, nil
}

// slowest notes what was measured, and the slowest of it by its name.
func (b *run) slowest(kind string, found []timed, goal float64) {
	slowest := found[0]
	for _, m := range found {
		b.note("P12", m.name, m.ms, "ms", goal, false)
		if m.ms > slowest.ms {
			slowest = m
		}
	}
	b.note("P12", fmt.Sprintf("slowest %s of %d: %s", kind, len(found), strings.TrimPrefix(slowest.name, kind+" ")), slowest.ms, "ms", goal, false)
}

// timed is the median time of something.
type timed struct {
	name string
	ms   float64
}

// medians reads the lines of a benchmark: a name, and a figure before its unit.
func medians(out []byte) (list []timed) {
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		for i := 2; i < len(words); i++ {
			if words[i] != "p50-ms" {
				continue
			}
			ms, err := strconv.ParseFloat(words[i-1], 64)
			if err != nil {
				continue
			}
			_, name, _ := strings.Cut(words[0], "/")
			name, _, _ = strings.Cut(name, "-")
			list = append(list, timed{strings.ReplaceAll(name, "_", " "), ms})
		}
	}
	return list
}
