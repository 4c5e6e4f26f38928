package store

import (
	"context"
	"strings"
	"testing"
	"time"

	"creel/event"
)

// A business key has one stored form, whichever event names it and in which
// order, and everybody outside the store sees its text.
func TestOneOperationHasOneStoredKey(t *testing.T) {
	t.Parallel()
	for name, told := range map[string]struct{ ownFirst, restart, known bool }{
		"own first": {true, false, false}, "foreign first": {false, false, false},
		"own first, restarted": {true, true, false}, "foreign first, restarted": {false, true, false},
		"foreign first, own known": {false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc := newScene(t)
			text := key("a").String() + "/r"
			effect := event.Forward{Key: text, Rule: "r", Destination: "app"}
			order := []string{"a", "b"}
			if !told.ownFirst {
				order = []string{"b", "a"}
			}
			if told.known { // it is there and has done nothing yet
				sc.receive("a")
				later := sc.now.Add(time.Hour)
				w := sc.claim(1)[0]
				must(t, sc.finish(event.Finish{Seq: w.Seq, Claim: w.Claim, Run: w.Run, State: event.Pending, NextAt: later}).Err)
			}
			for i, id := range order {
				if told.known && id == "a" {
					sc.later(time.Hour)
				}
				if told.restart {
					sc.crash(numbered("boot", i))
				}
				if !told.known || id != "a" {
					sc.receive(id)
				}
				w := sc.claim(1)[0]
				finished := sc.finish(done(w, effect))
				must(t, finished.Err)
				decision := finished.Verdicts[0].Decision
				if (decision == event.AlreadyApplied) != (i == 1) {
					t.Errorf("%s, the %d. to name it: %s", id, i+1, decision)
				}
			}
			want(t, "deliveries", sc.number(`SELECT count(*) FROM delivery`), 1)
			d, found, err := sc.DeliveryOf(context.Background(), text, "app")
			must(t, err)
			if !found || d.Key != text {
				t.Errorf("found %t, under the key %q", found, d.Key)
			}
			shipments := sc.send(1)
			want(t, "key of the shipment", shipments[0].Key, text)
		})
	}
}

func TestKeysAreStoredShortAndShownWhole(t *testing.T) {
	t.Parallel()
	of := event.Key{Source: "s", ID: "evt"}
	for _, text := range []string{"s//evt/r", "s//evt/", "s//evt/a/b", "invoice/1", "=0000000001/r", "==", "=", "s//other/r",
		"s//evt/" + strings.Repeat("x", 300), strings.Repeat("y", 300)} {
		stored, long := storeKey(7, of, text)
		if len(stored) > event.MaxKey {
			t.Errorf("%.20q is stored in %d bytes", text, len(stored))
		}
		wantKey, wantLong := event.Fold(text)
		if key, readable := showKey(stored, long, of); key != wantKey || readable != wantLong {
			t.Errorf("%.20q is stored as %.20q and shown as %.20q, %.20q", text, stored, key, readable)
		}
	}
	early, _ := storeKey(9, of, "s//evt/r")
	late, _ := storeKey(1<<30, of, "s//evt/r")
	if early >= late {
		t.Errorf("%q does not stand before %q", early, late)
	}
}
