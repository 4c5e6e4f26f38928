package app

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"creel/config"
	"creel/event"
	"creel/handlers"
	"creel/store"
)

// A plan looks at its events in the order of the replay, each upon what those
// before it would have done; of one that would fail it tells what goes all the
// same.
func TestAPlanIsOneForesight(t *testing.T) {
	t.Parallel()
	ctx, now := context.Background(), time.Date(2026, 3, 7, 22, 0, 0, 0, time.UTC)
	s, err := store.Open(ctx, store.Options{Path: filepath.Join(t.TempDir(), "creel.db"), Log: zerolog.Nop(), Clock: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for i, body := range []string{
		`{"invoice":"in_1","to":"ann"}`, `{"invoice":"in_1","to":"ann"}`, `{"invoice":"in_1","to":"bob"}`, `{"to":"ann"}`,
	} {
		_, err := s.Accept(ctx, &event.Receipt{Source: "gen", Origin: event.FromWebhook, At: now, Body: []byte(body),
			Items: []event.Item{{Key: event.Key{Source: "gen", ID: fmt.Sprint("e", i)}, Type: "paid", State: event.Pending}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	_, works, err := s.Settle(ctx, now, nil, 10)
	if err != nil || len(works) != 4 {
		t.Fatal(works, err)
	}
	var ends []event.Finish
	for _, w := range works {
		end := event.Finish{Seq: w.Seq, Claim: w.Claim, Run: w.Run, State: event.Dead, Error: "no"}
		if w.Key.ID == "e3" { // it was done, and its delivery died
			end.State, end.Error = event.Done, ""
			end.Effects = []event.Effect{event.Forward{Key: "gen//e3/r", Rule: "r", Destination: "app"}}
		}
		ends = append(ends, end)
	}
	_, _, err = s.Settle(ctx, now, ends, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, shipments, err := s.Ship(ctx, now, nil, []event.ShipmentClaim{{Destination: "app", Max: 1}})
	if err != nil || len(shipments) != 1 {
		t.Fatal(shipments, err)
	}
	died := event.DeliveryFinish{ID: shipments[0].ID, Claim: shipments[0].Claim, State: event.DeliveryDead,
		Attempt: event.Attempt{Delivery: shipments[0].ID, Run: 1, Number: 1, Spent: true, Start: now, Outcome: event.Permanent, Error: "HTTP 400"}}
	if _, _, err := s.Ship(ctx, now, []event.DeliveryFinish{died}, nil); err != nil {
		t.Fatal(err)
	}

	cfg := config.Default()
	cfg.Sources = []config.Source{{Name: "gen"}}
	cfg.Destinations = map[string]config.Destination{"app": {}}
	cfg.Rules = []config.Rule{{Name: "r", Key: "{body.invoice}",
		Grant: &config.Grant{To: "{body.to}", Unit: "credits", Amount: "100"}, Forward: &config.Forward{To: config.StringList{"app"}}}}
	rules, problems := handlers.Compile(cfg, handlers.Options{})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"grant 100 credits to ann: apply; forward app: send",
		"grant 100 credits to ann: skip: already applied; forward app: skip: already applied",
		"replay: it would be dead: the business key names another operation: it names 100 credits to ann, this event asks for 100 credits to bob",
		"replay: it would be dead again: r: key: body.invoice: nothing stands there; delivery app: send again: it died at attempt 1",
	}
	n, err := Plan(ctx, s.Reader, rules, event.Action{Kind: event.ActionReplay, Selector: event.Selector{All: true}}, func(item PlanItem) error {
		if got := item.String(); got != want[0] {
			t.Errorf("%s:\n%q, want\n%q", item.Event.Key, got, want[0])
		}
		want = want[1:]
		if item.Event.Key.ID == "e2" && (len(item.Effects) != 2 || item.Effects[1].Would != "skip: the effects of an event apply together") {
			t.Errorf("what fails with the event: %+v", item.Effects)
		}
		return nil
	})
	if err != nil || n != 4 {
		t.Error(n, err)
	}
}
