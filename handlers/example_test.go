package handlers_test

import (
	"context"
	"errors"
	"fmt"

	"creel/config"
	"creel/event"
	"creel/handlers"
)

// A custom binary registers its handlers by name; a rule calls one with
// go = "credits".
func Example() {
	registry := handlers.NewRegistry()
	err := registry.Register("credits", func(_ context.Context, e handlers.Event) ([]event.Effect, error) {
		plan, err := e.Text("body.plan")
		if err != nil {
			return nil, handlers.Permanent(err) // no retry brings a plan
		}
		if plan == "free" {
			return nil, nil
		}
		return []event.Effect{e.Forward("app")}, nil
	})
	if err != nil {
		fmt.Println(err)
	}

	cfg := config.Default()
	cfg.Sources = []config.Source{{Name: "shop"}}
	cfg.Destinations = map[string]config.Destination{"app": {URL: "http://127.0.0.1:3000/webhooks"}}
	cfg.Rules = []config.Rule{{Name: "credits", Match: config.Match{Types: []string{"order.*"}}, Key: "{body.order}/credits", Go: "credits"}}
	rules, problems := handlers.Compile(cfg, handlers.Options{Registry: registry})
	if err := problems.Err(); err != nil {
		fmt.Println(err)
	}

	for _, body := range []string{`{"order":9007199254740993,"plan":"pro"}`, `{"order":2,"plan":"free"}`, `{"order":3}`} {
		work := event.Work{
			Event:   event.Event{Key: event.Key{Source: "shop", ID: "evt_1"}, Type: "order.paid"},
			Payload: event.Payload{Body: []byte(body)},
		}
		decision := rules.Decide(context.Background(), work)
		fmt.Printf("%s %v %q\n", decision.State, decision.Effects, decision.Error)
	}
	// Output:
	// done [{9007199254740993/credits credits app false}] ""
	// done [] ""
	// dead [] "credits: go: body.plan: nothing stands there"
}

// ExamplePermanent shows an error that no retry can mend.
func ExamplePermanent() {
	errNoPlan := errors.New("there is no such plan")
	err := handlers.Permanent(errNoPlan)
	fmt.Println(err, errors.Is(err, errNoPlan))
	// Output: there is no such plan true
}

// ExampleFunctions lists what a condition may call.
func ExampleFunctions() {
	fmt.Println(len(handlers.Functions()) > 0)
	// Output: true
}
