// Command fickle is a custom binary with handlers that do not say the same of an
// event each time. A test builds it and drills it.
package main

import (
	"context"
	"crypto/rand"
	"time"

	"creel/cli"
	"creel/event"
	"creel/handlers"
)

func main() {
	cli.Main(
		cli.Handler("fickle", func(_ context.Context, e handlers.Event) ([]event.Effect, error) {
			return []event.Effect{e.Record("order", map[string]string{"ticket": rand.Text()})}, nil
		}),
		cli.Handler("steady", func(_ context.Context, e handlers.Event) ([]event.Effect, error) {
			return []event.Effect{e.Record("seen", map[string]string{"type": e.Type})}, nil
		}),
		cli.Handler("stuck", func(_ context.Context, e handlers.Event) ([]event.Effect, error) {
			time.Sleep(time.Hour)
			return []event.Effect{e.Record("never", nil)}, nil
		}),
	)
}
