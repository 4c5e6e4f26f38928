package store

import (
	"errors"
	"strings"
	"testing"
	"time"

	"creel/event"
)

// inlineItem is an event with what its rules decided.
func inlineItem(id string, effects ...event.Effect) event.Item {
	it := item(id, `{"id":"`+id+`"}`)
	finish := &event.Finish{State: event.Done, Effects: effects}
	for _, e := range effects {
		finish.Verdicts = append(finish.Verdicts, event.Verdict{Rule: e.RuleName(), Decision: event.Applied})
	}
	it.Inline = finish
	return it
}

func credits(_, key string) event.Grant {
	return event.Grant{Key: key, Rule: "credits", To: "ada", Unit: "credits", Amount: 100}
}

// Receipt, effects and completion are there when the sender gets his answer.
func TestGateA11InlineIsOneTransaction(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	order := event.Record{Key: "order/1", Rule: "orders", Of: "order", Fields: []event.Field{{Name: "total", Value: "5"}}}
	forward := event.Forward{Key: "order/1", Rule: "tell", Destination: "app"}
	before := sc.counts.batches.Load()
	got := sc.accept(sc.receipt("{}", inlineItem("evt_1", order, credits("evt_1", "order/1/credits"), forward)))
	if n := sc.counts.batches.Load() - before; n != 1 {
		t.Errorf("it took %d transactions", n)
	}
	if got[0].Result != event.New {
		t.Fatalf("accepted as %+v", got[0])
	}
	e, err := sc.Event(t.Context(), key("evt_1"))
	must(t, err)
	if e.State != event.Done || e.Attempts != 1 || len(e.Verdicts) != 3 {
		t.Errorf("stored as %s after %d attempts with %d verdicts", e.State, e.Attempts, len(e.Verdicts))
	}
	for table, want := range map[string]int{"record": 1, "ledger": 1, "balance": 1, "delivery": 1} {
		if n := sc.number("SELECT count(*) FROM " + table); n != want {
			t.Errorf("%d rows in %s, want %d", n, table, want)
		}
	}
	select {
	case <-sc.DeliveriesReady(): // rung behind the answer
	case <-time.After(10 * time.Second):
		t.Error("nobody is told of the delivery")
	}
	if works := sc.claim(10); len(works) != 0 {
		t.Errorf("%d events are left to the worker", len(works))
	}
	again := sc.accept(sc.receipt("{}", inlineItem("evt_1", order, credits("evt_1", "order/1/credits"), forward)))
	if again[0].Result != event.Duplicate || sc.number("SELECT count(*) FROM ledger") != 1 {
		t.Errorf("the second receipt: %+v, %d grants", again[0], sc.number("SELECT count(*) FROM ledger"))
	}
}

// A rule that can not be applied now leaves the receipt pending, with nothing
// of its effects, and the others of the request complete.
func TestGateA11AFailingRuleLeavesTheReceiptPending(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	early := event.Grant{Key: "refund", Rule: "refund", Reverse: "nothing granted this"}
	mismatch := credits("c", "shared")
	mismatch.Amount = 7
	got := sc.accept(sc.receipt("{}",
		inlineItem("evt_1", credits("evt_1", "shared")),
		inlineItem("evt_2", event.Record{Key: "r", Rule: "refund", Of: "note"}, early),
		inlineItem("evt_3", event.Record{Key: "r", Rule: "other", Of: "note"}, mismatch),
	))
	if len(got) != 3 {
		t.Fatalf("answered %+v", got)
	}
	for id, want := range map[string]event.State{"evt_1": event.Done, "evt_2": event.Pending, "evt_3": event.Pending} {
		e, err := sc.Event(t.Context(), key(id))
		must(t, err)
		if e.State != want || want == event.Pending && e.Attempts != 0 {
			t.Errorf("%s is %s after %d attempts", id, e.State, e.Attempts)
		}
	}
	if sc.number("SELECT count(*) FROM record") != 0 || sc.number("SELECT count(*) FROM ledger") != 1 {
		t.Errorf("%d records, %d grants", sc.number("SELECT count(*) FROM record"), sc.number("SELECT count(*) FROM ledger"))
	}
	if works := sc.claim(10); len(works) != 2 {
		t.Errorf("%d events are left to the worker", len(works))
	}
}

// An effect whose statement fails costs the sender nothing either.
func TestGateA11AStatementThatFails(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	unstorable := event.Record{Key: strings.Repeat("k", 300), Rule: "r", Of: ""} // no kind: a CHECK refuses it
	got := sc.accept(sc.receipt("{}", inlineItem("evt_1", unstorable), inlineItem("evt_2", credits("evt_2", "fine"))))
	if len(got) != 2 {
		t.Fatalf("answered %+v", got)
	}
	e, err := sc.Event(t.Context(), key("evt_1"))
	must(t, err)
	if e.State != event.Pending {
		t.Errorf("evt_1 is %s", e.State)
	}
	if e, err = sc.Event(t.Context(), key("evt_2")); err != nil || e.State != event.Done {
		t.Errorf("evt_2 is %s, %v", e.State, err)
	}
}

// A commit that fails leaves neither the receipt nor its effects.
func TestGateA11AllOrNothing(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	must(t, sc.Close())
	if _, err := sc.Accept(t.Context(), sc.receipt("{}", inlineItem("evt_1", credits("evt_1", "k")))); !errors.Is(err, event.ErrUnavailable) && !errors.Is(err, ErrClosed) {
		t.Fatalf("a closed store answered %v", err)
	}
	sc.open("boot2")
	if sc.number("SELECT count(*) FROM event")+sc.number("SELECT count(*) FROM ledger") != 0 {
		t.Error("something was stored")
	}
}
