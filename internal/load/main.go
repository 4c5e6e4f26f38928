package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	runtime.GOMAXPROCS(max(4, runtime.NumCPU())) // one may sleep in the kernel, see pace
	if err := command(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// command runs one mode; each has its own flags.
func command(ctx context.Context, args []string) error {
	modes := map[string]func(context.Context, []string) error{
		"bench": bench, "send": send, "ceiling": ceiling, "sink": serveSink, "compare": compare,
	}
	if len(args) == 0 || modes[args[0]] == nil {
		return fmt.Errorf("the first argument is one of bench, send, ceiling, sink, compare")
	}
	return modes[args[0]](ctx, args[1:])
}
