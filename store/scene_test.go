package store

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"creel/event"
)

// start is when every scene begins.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// scene is a store with a clock of its own, and words to tell stories in.
type scene struct {
	*Store
	t    testing.TB
	path string
	now  time.Time
}

func newScene(t testing.TB) *scene {
	t.Helper()
	sc := &scene{t: t, path: filepath.Join(t.TempDir(), "creel.db"), now: start}
	sc.open("boot1")
	t.Cleanup(func() { must(t, sc.Close()) })
	return sc
}

func (sc *scene) open(boot string) {
	sc.t.Helper()
	now := sc.now
	s, err := Open(context.Background(), Options{
		Path: sc.path, Log: zerolog.Nop(), Boot: boot,
		Clock: func() time.Time { return now },
	})
	must(sc.t, err)
	sc.Store = s
}

// crash is the end of a boot that finished nothing, and the start of the next.
func (sc *scene) crash(boot string) {
	sc.t.Helper()
	must(sc.t, sc.Close())
	sc.open(boot)
}

func (sc *scene) later(d time.Duration) { sc.now = sc.now.Add(d) }

func key(id string) event.Key { return event.Key{Source: "gen", ID: id} }

// item is a pending event whose content is its body.
func item(id, body string) event.Item {
	sum := sha256.Sum256([]byte(body))
	it := event.Item{Key: key(id), Type: "invoice.paid", State: event.Pending}
	copy(it.Content[:], sum[:])
	return it
}

// receipt is a request with one event, or with several items.
func (sc *scene) receipt(body string, items ...event.Item) *event.Receipt {
	return &event.Receipt{
		Source: "gen", Origin: event.FromWebhook, At: sc.now, Body: []byte(body),
		Header: "Content-Type: application/json", BodyKey: sha256.Sum256([]byte(body)), Items: items,
	}
}

func (sc *scene) accept(r *event.Receipt) []event.AcceptedItem {
	sc.t.Helper()
	got, err := sc.Accept(context.Background(), r)
	must(sc.t, err)
	return got.Items
}

// receive stores one event and returns its sequence.
func (sc *scene) receive(id string) int64 {
	sc.t.Helper()
	body := `{"id":"` + id + `"}`
	return sc.accept(sc.receipt(body, item(id, body)))[0].Seq
}

func (sc *scene) settle(max int, finishes ...event.Finish) ([]event.Finished, []event.Work) {
	sc.t.Helper()
	finished, works, err := sc.Settle(context.Background(), sc.now, finishes, max)
	must(sc.t, err)
	return finished, works
}

// claim takes what is due.
func (sc *scene) claim(max int) []event.Work {
	sc.t.Helper()
	_, works := sc.settle(max)
	return works
}

// finish ends one claimed event.
func (sc *scene) finish(f event.Finish) event.Finished {
	sc.t.Helper()
	finished, _ := sc.settle(0, f)
	return finished[0]
}

func done(w event.Work, effects ...event.Effect) event.Finish {
	f := event.Finish{Seq: w.Seq, Claim: w.Claim, Run: w.Run, State: event.Done, Effects: effects}
	for _, e := range effects {
		if slices.ContainsFunc(f.Verdicts, func(v event.Verdict) bool { return v.Rule == e.RuleName() }) {
			continue
		}
		f.Verdicts = append(f.Verdicts, event.Verdict{Seq: w.Seq, Run: w.Run, Rule: e.RuleName(), Decision: event.Applied})
	}
	return f
}

func dead(w event.Work) event.Finish {
	return event.Finish{
		Seq: w.Seq, Claim: w.Claim, Run: w.Run, State: event.Dead, Error: "no such customer",
		Verdicts: []event.Verdict{{Seq: w.Seq, Run: w.Run, Rule: "r", Decision: event.Failed}},
		Incident: &event.Incident{Cause: event.CauseDeadEvent, Subject: "r", Detail: "look"},
	}
}

func forward(w event.Work, destination string) event.Forward {
	return event.Forward{Key: w.Key.String() + "/r", Rule: "r", Destination: destination}
}

// deliver runs one received event up to a ready delivery to app.
func (sc *scene) deliver(id string) (event.Work, event.Delivery) {
	sc.t.Helper()
	sc.receive(id)
	works := sc.claim(1)
	if len(works) != 1 || works[0].Key.ID != id {
		sc.t.Fatalf("claimed %v, want %s", works, id)
	}
	must(sc.t, sc.finish(done(works[0], forward(works[0], "app"))).Err)
	d, ok, err := sc.DeliveryOf(context.Background(), works[0].Key.String()+"/r", "app")
	must(sc.t, err)
	if !ok {
		sc.t.Fatal("no delivery")
	}
	return works[0], d
}

func (sc *scene) ship(finishes []event.DeliveryFinish, claims ...event.ShipmentClaim) ([]error, []event.Shipment) {
	sc.t.Helper()
	errs, shipments, err := sc.Ship(context.Background(), sc.now, finishes, claims)
	must(sc.t, err)
	return errs, shipments
}

func (sc *scene) send(max int) []event.Shipment {
	sc.t.Helper()
	_, shipments := sc.ship(nil, event.ShipmentClaim{Destination: "app", Max: max})
	return shipments
}

// outcome is the finish of a shipment in a state.
func outcome(s event.Shipment, state event.DeliveryState) event.DeliveryFinish {
	f := event.DeliveryFinish{ID: s.ID, Claim: s.Claim, State: state, Attempt: event.Attempt{
		Delivery: s.ID, Run: s.Run, Number: s.Tries, Spent: true, Start: start, Duration: 3 * time.Millisecond,
		Status: 200, Outcome: event.OK,
	}}
	if state != event.DeliverySent {
		f.Attempt.Status, f.Attempt.Outcome, f.Attempt.Error = 500, event.Transient, "status 500"
	}
	if state == event.DeliveryDead {
		f.Incident = &event.Incident{Cause: event.CauseDeadDelivery, Subject: s.Destination}
	}
	return f
}

func (sc *scene) detail(id string) EventDetail {
	sc.t.Helper()
	d, err := sc.Event(context.Background(), key(id))
	must(sc.t, err)
	return d
}

// number is the answer of a query that counts.
func (sc *scene) number(query string, args ...any) int {
	sc.t.Helper()
	var n int
	must(sc.t, sc.row(context.Background(), query, args, &n))
	return n
}

func (sc *scene) open1(cause event.Cause, subject string) *event.OpenIncident {
	sc.t.Helper()
	list, err := sc.Incidents(context.Background(), true)
	must(sc.t, err)
	var found *event.OpenIncident
	for i := range list {
		if list[i].Cause == cause && list[i].Subject == subject {
			if found != nil {
				sc.t.Fatalf("two open incidents of %s about %s", cause, subject)
			}
			found = &list[i]
		}
	}
	return found
}

func (sc *scene) replay(s event.Selector) event.Action {
	sc.t.Helper()
	a, err := sc.Replay(context.Background(), sc.now, event.Action{Actor: "ann", Reason: "fixed", Selector: s})
	must(sc.t, err)
	return a
}

func want[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// memory is a worker's memory with a number of places.
type memory struct {
	mu     sync.Mutex
	places int
	works  []event.Work
}

func (m *memory) Reserve(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n = min(n, m.places)
	m.places -= n
	return n
}

func (m *memory) Hand(works []event.Work) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.works = append(m.works, works...)
}

func (m *memory) Release(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.places += n
}

func (m *memory) free() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.places
}

// each runs n functions at once and waits for them.
func each(n int, run func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { run(i) })
	}
	all.Wait()
}

func numbered(prefix string, i int) string { return fmt.Sprintf("%s-%05d", prefix, i) }
