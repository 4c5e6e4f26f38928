// Command custom-binary is Creel with a handler of its own. It guarantees
// nothing beyond what Creel does: the handler runs again on every attempt and
// replay, so it only says what should happen, and Creel does it once. Nobody
// imports it: copy it.
package main

import (
	"context"
	"errors"

	"creel/cli"
	"creel/event"
	"creel/handlers"
)

func main() {
	cli.Main(cli.Handler("big orders", bigOrders))
}

// big is from when on an order is a matter for the owner, in cents.
const big = 100_000

// bigOrders tells the owner of an order that is big, under the order's number:
// two events about one order are one message.
func bigOrders(_ context.Context, e handlers.Event) ([]event.Effect, error) {
	var order struct {
		Number string `json:"number"`
		Cents  *int64 `json:"cents"`
	}
	if err := e.Decode(&order); err != nil {
		return nil, handlers.Permanent(err) // no later attempt reads it better
	}
	if order.Cents == nil {
		return nil, handlers.Permanent(errors.New("the order has no cents"))
	}
	if *order.Cents < big {
		return nil, nil
	}
	return []event.Effect{e.Forward("owner")}, nil
}
