// Command poison is a custom binary whose handler kills the process on one
// event. A test builds it.
package main

import (
	"context"
	"os"

	"creel/cli"
	"creel/event"
	"creel/handlers"
)

func main() {
	cli.Main(cli.Handler("poison", func(_ context.Context, e handlers.Event) ([]event.Effect, error) {
		if e.Type == "order.poison" {
			os.Exit(3)
		}
		if e.Type == "order.panic" {
			panic("the handler is broken")
		}
		return []event.Effect{e.Forward("app")}, nil
	}))
}
