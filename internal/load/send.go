package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

// send is the mode that puts a load on a server that runs.
func send(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("send", flag.ContinueOnError)
	l := loadFlags(flags)
	flags.StringVar(&l.url, "url", "http://127.0.0.1:8080/in/load", "address of the source, on this machine")
	flags.IntVar(&l.events, "events", 0, "stop after as many events")
	if err := flags.Parse(args); err != nil {
		return err
	}
	r, err := l.run(ctx)
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	return out.Encode(r)
}

func loadFlags(flags *flag.FlagSet) *load {
	l := &load{}
	flags.IntVar(&l.connections, "connections", 64, "connections")
	flags.DurationVar(&l.duration, "duration", 5*time.Second, "length")
	flags.Float64Var(&l.rate, "rate", 0, "events a second (open loop); 0 sends as fast as answers come (closed loop)")
	flags.IntVar(&l.size, "size", bodySize, "bytes of a body")
	flags.BoolVar(&l.ordered, "ordered", false, "ids begin with the time")
	return l
}

// compare is P2: receivers that run already, in interleaved rounds. The first
// one is compared with each of the others.
func compare(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	l := loadFlags(flags)
	rounds := flags.Int("rounds", 3, "interleaved rounds")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() < 2 {
		return fmt.Errorf("compare takes at least two NAME=URL")
	}
	var names []string
	rates, tails := map[string][]float64{}, map[string][]float64{}
	for round := range *rounds {
		for _, arg := range flags.Args() {
			name, url, ok := strings.Cut(arg, "=")
			if !ok {
				return fmt.Errorf("%q is not NAME=URL", arg)
			}
			one := *l
			one.url = url
			r, err := one.run(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if r.Events == 0 {
				return fmt.Errorf("%s acknowledged nothing: %v %v", name, r.Statuses, r.Errors)
			}
			if round == 0 {
				names = append(names, name)
			}
			rates[name] = append(rates[name], r.PerSecond)
			tails[name] = append(tails[name], r.P99)
			fmt.Fprintf(os.Stderr, "round %d %-20s %8.0f/s p50 %.2f p99 %.2f ms %v\n", round+1, name, r.PerSecond, r.P50, r.P99, r.Statuses)
		}
	}
	fmt.Println("| receiver | events/s | p99 ms | first over it |\n|---|---|---|---|")
	for _, name := range names {
		rate := median(rates[name])
		fmt.Printf("| %s | %.0f | %.1f | %.2f |\n", name, rate, median(tails[name]), median(rates[names[0]])/rate)
	}
	return nil
}
