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
		fmt.Printf("%s %q\n", decision.State, decision.Error)
		for _, effect := range decision.Effects {
			fmt.Println(effect.Kind(), effect.BusinessKey())
		}
	}
	// Output:
	// done ""
	// forward 9007199254740993/credits
	// done ""
	// dead "credits: go: body.plan: nothing stands there"
}

// A handler returns effects of every kind. They get the key of the rule, apply
// together, and are done once for it.
func ExampleEvent_Grant() {
	registry := handlers.NewRegistry()
	err := registry.Register("order", func(_ context.Context, e handlers.Event) ([]event.Effect, error) {
		var order struct {
			ID       string
			Customer string
			Total    int64
			Version  string
		}
		if err := e.Decode(&order); err != nil {
			return nil, handlers.Permanent(err)
		}
		floor := int64(0)
		spent := e.Grant(order.Customer, "credits", order.Total)
		spent.Floor = &floor
		return []event.Effect{
			e.State(order.ID, "paid", order.Version),
			e.Record("order", map[string]string{"customer": order.Customer}),
			spent,
			e.Email(order.Customer+"@example.com", "Order "+order.ID, "Thank you."),
		}, nil
	})
	if err != nil {
		fmt.Println(err)
	}

	cfg := config.Default()
	cfg.Sources = []config.Source{{Name: "shop"}}
	cfg.Rules = []config.Rule{{Name: "order", Key: "{body.id}/order", Go: "order"}}
	rules, problems := handlers.Compile(cfg, handlers.Options{Registry: registry})
	if err := problems.Err(); err != nil {
		fmt.Println(err)
	}

	decision := rules.Decide(context.Background(), event.Work{
		Event:   event.Event{Key: event.Key{Source: "shop", ID: "evt_1"}},
		Payload: event.Payload{Body: []byte(`{"id":"o_1","customer":"ann","total":100,"version":"3"}`)},
	})
	for _, effect := range decision.Effects {
		switch effect := effect.(type) {
		case event.SetState:
			fmt.Println(effect.Kind(), effect.Object, effect.To)
		default:
			fmt.Println(effect.Kind(), effect.BusinessKey())
		}
	}
	// Output:
	// state shop//o_1 paid
	// record o_1/order
	// grant o_1/order
	// email o_1/order
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
