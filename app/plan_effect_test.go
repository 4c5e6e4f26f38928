package app

import (
	"testing"

	"creel/event"
	"creel/store"
)

func TestPlannedEffectsInWords(t *testing.T) {
	t.Parallel()
	for want, given := range map[string]struct {
		effect event.Effect
		o      store.Outlook
	}{
		"record order: insert":                          {event.Record{Of: "order"}, store.Outlook{Decision: event.Applied}},
		"record order: skip: already applied":           {event.Record{Of: "order"}, store.Outlook{Decision: event.AlreadyApplied}},
		"grant 100 credits to ann: apply":               {event.Grant{Amount: 100, Unit: "credits", To: "ann"}, store.Outlook{Decision: event.Applied}},
		"grant back 60 of in_1: apply":                  {event.Grant{Reverse: "in_1"}, store.Outlook{Decision: event.Applied, Amount: 60}},
		"grant back of in_1: wait: not there":           {event.Grant{Reverse: "in_1"}, store.Outlook{Decision: event.Later, Reason: "not there"}},
		"grant back 60 of in_1: refuse: floor":          {event.Grant{Reverse: "in_1"}, store.Outlook{Decision: event.Failed, Amount: 60, Reason: "floor"}},
		"state order/1: active → paid: apply":           {event.SetState{Object: "order/1", To: "paid"}, store.Outlook{Decision: event.Applied, From: "active"}},
		"state order/1 → paid: skip: stale: 7 is older": {event.SetState{Object: "order/1", To: "paid"}, store.Outlook{Decision: event.Stale, Reason: "7 is older"}},
		"email to ann@example.com: queue":               {event.Email{To: "ann@example.com"}, store.Outlook{Decision: event.Applied}},
		"forward app: send":                             {event.Forward{Destination: "app"}, store.Outlook{Decision: event.Applied}},
		"file dir a/b: write":                           {event.File{Destination: "dir", Path: "a/b"}, store.Outlook{Decision: event.Applied}},
		"sql stock: run":                                {event.SQL{Rule: "stock"}, store.Outlook{Decision: event.Applied}},
		"sql stock: skip: already applied":              {event.SQL{Rule: "stock"}, store.Outlook{Decision: event.AlreadyApplied}},
	} {
		planned, err := planEffect(t.Context(), nil, nil, given.effect, given.o)
		if err != nil {
			t.Fatal(err)
		}
		if got := (PlanItem{Effects: []PlanEffect{planned}}).String(); got != want {
			t.Errorf("planned %q, want %q", got, want)
		}
	}
}
