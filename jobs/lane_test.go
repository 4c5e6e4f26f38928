package jobs

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"creel/config"
	"creel/event"
	"creel/handlers"
)

// errNotNow is what a handler says of an event that may succeed later.
var errNotNow = errors.New("the price list is not there")

// ordered is a workshop whose rules keep the order of an object: one calls the
// handler, one forwards to app.
func ordered(t *testing.T, answer http.HandlerFunc) *workshop {
	t.Helper()
	w := newWorkshop(t, func(context.Context, handlers.Event) ([]event.Effect, error) { return nil, nil })
	match := config.Match{Source: config.StringList{"s"}, Types: []string{"o"}}
	w.rules = []config.Rule{
		{Name: "look", Match: match, OrderBy: "{object}", Go: "test"},
		{Name: "send", Match: match, OrderBy: "{object}", Forward: &config.Forward{To: config.StringList{"app"}}},
	}
	w.use(config.Destination{URL: newOutpost(t, answer).url(), Timeout: config.Duration(5 * time.Second), MaxInFlight: 8})
	w.hire()
	w.store.SetHandoff(w.worker)
	return w
}

// acceptOf stores events of an object, each in the lane that the rules give it.
func (w *workshop) acceptOf(object string, ids ...string) {
	w.t.Helper()
	for _, id := range ids {
		receipt := &event.Receipt{Source: "s", Origin: event.FromWebhook, At: w.clock.Now(), Body: []byte(`{"ok":true}`)}
		item := event.Item{Key: event.Key{Source: "s", ID: id}, Type: "o", Object: object, State: event.Pending}
		item.Lane, item.LaneSkip = w.book.Lane(event.Event{Key: item.Key, Type: item.Type, Object: object}, event.Payload{Body: receipt.Body})
		receipt.Items = []event.Item{item}
		if _, err := w.store.Accept(context.Background(), receipt); err != nil {
			w.t.Fatal(err)
		}
	}
}

// calls notes who came, in order.
type calls struct {
	mu  sync.Mutex
	ids []string
}

func (c *calls) note(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids = append(c.ids, id)
}

// times is how often id came.
func (c *calls) times(id string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, other := range c.ids {
		if other == id {
			n++
		}
	}
	return n
}

// sorted demands who came, in any order.
func (c *calls) sorted(t *testing.T, what, want string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if got := strings.Join(slices.Sorted(slices.Values(c.ids)), " "); got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

// without demands the order in which all came but one that is in no hurry.
func (c *calls) without(t *testing.T, other, want string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	rest := slices.DeleteFunc(slices.Clone(c.ids), func(id string) bool { return id == other })
	if got := strings.Join(rest, " "); got != want {
		t.Errorf("came %s, want %s", got, want)
	}
}

func yes(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

// A fails twice, B and C of the same object wait for it, D does not: with the
// worker's own schedule and events that are born in its hands.
func TestGateA5ALaneKeepsItsOrder(t *testing.T) {
	t.Parallel()
	came := &calls{}
	w := ordered(t, yes)
	w.handle = func(_ context.Context, e handlers.Event) ([]event.Effect, error) {
		came.note(e.Key.ID)
		if e.Key.ID == "A" && came.times("A") < 3 {
			return nil, errNotNow
		}
		return nil, nil
	}
	w.acceptOf("x", "A", "B", "C")
	w.acceptOf("y", "D")
	w.step()
	came.sorted(t, "at once", "A D")
	w.expect("D", event.Done, 1)
	w.clock.Advance(5 * time.Second)
	w.step()
	came.sorted(t, "after the first slot", "A A D")
	w.expect("B", event.Pending, 0)
	w.clock.Advance(25 * time.Second)
	w.step()
	came.without(t, "D", "A A A B C")
	w.expect("C", event.Done, 1)
}

// A dead one parks its lane, visibly, until it is skipped or replayed; a
// replayed one goes before those that waited.
func TestGateA5ADeadOneParksItsLaneUntilSomebodyDecides(t *testing.T) {
	t.Parallel()
	for _, skip := range []bool{true, false} {
		came := &calls{}
		w := ordered(t, yes)
		broken := true
		w.handle = func(_ context.Context, e handlers.Event) ([]event.Effect, error) {
			came.note(e.Key.ID)
			if e.Key.ID == "A" && broken {
				return nil, handlers.Permanent(errNotNow)
			}
			return nil, nil
		}
		w.acceptOf("x", "A", "B", "C")
		w.acceptOf("y", "D")
		w.step()
		w.clock.Advance(48 * time.Hour)
		w.step()
		came.sorted(t, "while it is parked", "A D")
		w.expect("A", event.Dead, 1)
		lanes, err := w.store.Lanes(context.Background(), "", 10)
		if err != nil || len(lanes) != 1 || lanes[0].Event.ID != "A" || lanes[0].Waiting != 2 {
			t.Fatalf("parked lanes %+v, %v", lanes, err)
		}
		open := w.incidents(2)
		if !slices.ContainsFunc(open, func(i event.OpenIncident) bool { return i.Cause == event.CauseLaneParked }) {
			t.Errorf("no incident about the lane: %+v", open)
		}
		act, want := w.store.Replay, "A A B C"
		if skip {
			act, want = w.store.SkipLane, "A B C"
		}
		broken = false
		_, err = act(context.Background(), w.clock.Now(), event.Action{Selector: event.Selector{Keys: []event.Key{lanes[0].Event}}})
		if err != nil {
			t.Fatal(err)
		}
		w.step()
		came.without(t, "D", want)
		w.expect("C", event.Done, 1)
	}
}

// The deliveries of a lane keep its order at their destination too.
func TestBugORD03ARetriedDeliveryIsNotOvertaken(t *testing.T) {
	t.Parallel()
	came := &calls{}
	ids := map[string]string{}
	var mu sync.Mutex
	answer := func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		id := ids[r.Header.Get("webhook-id")]
		mu.Unlock()
		came.note(id)
		if id == "A" && came.times("A") < 3 {
			rw.WriteHeader(http.StatusServiceUnavailable)
		}
	}
	w := ordered(t, answer)
	for _, id := range []string{"A", "B", "C", "D"} {
		ids[event.WebhookID("s//"+id+"/send", "app")] = id
	}
	w.acceptOf("x", "A", "B", "C")
	w.step()
	w.settle()
	w.acceptOf("y", "D")
	w.step()
	w.settle()
	came.sorted(t, "at once", "A D")
	w.runUntil(startTime().Add(time.Hour))
	came.without(t, "D", "A A A B C")
	if left := w.count(event.DeliveryWaiting) + w.count(event.DeliveryReady); left > 0 {
		t.Errorf("%d deliveries are left", left)
	}
}
