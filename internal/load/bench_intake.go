package main

import (
	"context"
	"strings"
	"time"
)

// bodySize is the size of the events of every figure.
const bodySize = 1024

// benchIntake is P1: acknowledged and synced events a second over the HTTP
// ceiling of the same round.
func benchIntake(ctx context.Context, b *run) error {
	cases := []struct {
		connections int
		ordered     bool
		what        string
		goal        float64
	}{
		{64, false, "over the ceiling at 64", 0.40},
		{256, false, "over the ceiling at 256", 0.45},
		{64, true, "over the ceiling at 64, time-ordered ids", 0.50},
	}
	ratios, bare := make([][]float64, len(cases)), make([][]float64, len(cases))
	for range b.rounds {
		for i, c := range cases {
			l := load{connections: c.connections, ordered: c.ordered, duration: b.duration, size: bodySize}
			top, err := b.loadCeiling(ctx, l)
			if err != nil {
				return err
			}
			least, err := b.loadCeiling(ctx, l, "-bare")
			if err != nil {
				return err
			}
			ours, err := b.loadCreel(ctx, l, setup{}, "creel")
			if err != nil {
				return err
			}
			ratios[i] = append(ratios[i], ours.PerSecond/top.PerSecond)
			bare[i] = append(bare[i], ours.PerSecond/least.PerSecond)
		}
	}
	for i, c := range cases {
		b.note("P1", c.what, median(ratios[i]), "", c.goal, true)
		b.note("P1", strings.Replace(c.what, "the ceiling", "a bare handler", 1), median(bare[i]), "", 0, true)
	}
	return nil
}

func (b *run) loadCeiling(ctx context.Context, l load, flags ...string) (result, error) {
	p, err := b.ceiling(ctx, flags...)
	if err != nil {
		return result{}, err
	}
	defer p.kill()
	l.url = p.url()
	r, err := l.run(ctx)
	return b.keep(strings.TrimSpace("ceiling "+strings.Join(flags, " ")), r), err
}

// loadCreel runs a load against a fresh server and refuses a figure in which
// something went wrong.
func (b *run) loadCreel(ctx context.Context, l load, s setup, name string) (result, error) {
	dir, err := b.folder()
	if err != nil {
		return result{}, err
	}
	return b.loadIn(ctx, dir, l, s, name)
}

// benchSync is P4's second half: the acknowledgement at a steady 100/s in
// syncs of the same disk.
func benchSync(ctx context.Context, b *run) error {
	var ratios []float64
	for range b.rounds {
		dir, err := b.folder()
		if err != nil {
			return err
		}
		sync, err := syncTime(dir)
		if err != nil {
			return err
		}
		l := load{connections: 8, rate: 100, duration: min(b.steady, 10*time.Second), size: bodySize}
		r, err := b.loadCreel(ctx, l, setup{}, "creel at 100/s")
		if err != nil {
			return err
		}
		ratios = append(ratios, r.P50/sync)
	}
	b.note("P4", "the whole answer at 100/s in syncs of this disk", median(ratios), "syncs", 0, true)
	return nil
}
