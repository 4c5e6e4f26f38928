package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"creel/event"
)

// mess is a history in which things fail in all the ways there are.
type mess struct {
	*scene
	random *rand.Rand
	n      int
}

func newMess(t testing.TB, seed uint64) *mess {
	t.Logf("seed %d", seed)
	return &mess{scene: newScene(t), random: rand.New(rand.NewPCG(seed, 1))}
}

func (m *mess) pick(of ...string) string { return of[m.random.IntN(len(of))] }

// receive stores some events of several sources, some of them dead as they come
// and some for the second time.
func (m *mess) receive() {
	for range 1 + m.random.IntN(4) {
		m.n++
		id := fmt.Sprintf("evt_%d", m.n)
		if m.n > 5 && m.random.IntN(4) == 0 {
			id = fmt.Sprintf("evt_%d", 1+m.random.IntN(m.n))
		}
		it := item(id, id)
		it.Key.Source = m.pick("gen", "stripe", "github")
		it.Key.Account = m.pick("", "", "acct_1")
		it.Type, it.Object = m.pick("invoice.paid", "invoice.void", "push"), fmt.Sprintf("object_%d", m.random.IntN(9))
		it.Index = []event.IndexValue{{Field: "body.customer", Value: fmt.Sprintf("cus_%d", m.random.IntN(20))}}
		if m.random.IntN(8) == 0 {
			it.State, it.Error = event.Dead, fmt.Sprintf("body.id finds nothing at byte %d", m.n)
		}
		r := m.receipt(id, it)
		r.Source = it.Key.Source
		m.accept(r)
	}
}

func (m *mess) work() {
	for _, w := range m.claim(1 + m.random.IntN(5)) {
		switch m.random.IntN(3) {
		case 0:
			f := dead(w)
			f.Error = m.pick("no such customer", fmt.Sprintf("no price %q", w.Key.ID), "connect refused")
			m.settle(0, f)
		default:
			m.settle(0, done(w, forward(w, "app"), forward(w, "audit")))
		}
	}
}

func (m *mess) sendSome() {
	_, list := m.ship(nil, event.ShipmentClaim{Destination: "app", Max: 3}, event.ShipmentClaim{Destination: "audit", Max: 3})
	var ends []event.DeliveryFinish
	for _, s := range list {
		f := outcome(s, []event.DeliveryState{event.DeliverySent, event.DeliveryDead, event.DeliveryDead, event.DeliveryInDoubt}[m.random.IntN(4)])
		if f.State == event.DeliveryDead {
			f.Attempt.Status = 100 * (4 + m.random.IntN(2))
			f.Attempt.Error = fmt.Sprintf("HTTP %d", f.Attempt.Status)
		}
		ends = append(ends, f)
	}
	m.ship(ends)
}

// act is what an operator does.
func (m *mess) act() {
	ctx := context.Background()
	a := event.Action{Actor: "ann", Selector: event.Selector{State: event.Dead, Source: m.pick("", "gen", "stripe"), Destination: m.pick("", "", "app")}}
	var err error
	switch m.random.IntN(5) {
	case 0:
		_, err = m.Replay(ctx, m.now, a)
	case 1:
		_, err = m.Discard(ctx, m.now, a)
	case 2:
		a.Selector.Destination, a.Target = "", "audit"
		_, err = m.Discard(ctx, m.now, a)
	case 3:
		_, err = m.GiveUp(ctx, m.now, "audit", m.now, "nobody answers")
	case 4:
		doubtful, failed := m.Deliveries(ctx, DeliveryFilter{State: event.DeliveryInDoubt}, event.Page{Limit: 2})
		for err = failed; err == nil && len(doubtful) > 0; doubtful = doubtful[1:] {
			_, err = m.Decide(ctx, m.now, event.Action{Actor: "ann", Target: fmt.Sprint(doubtful[0].ID),
				Kind: []event.ActionKind{event.ActionGiveUp, event.ActionWasSent, event.ActionSendAgain}[m.random.IntN(3)]})
		}
	}
	must(m.t, err)
}

func (m *mess) step() {
	m.later(time.Duration(m.random.IntN(3)*m.random.IntN(4000)) * time.Second) // some things happen at one moment
	switch m.random.IntN(10) {
	case 0, 1, 2:
		m.receive()
	case 3, 4, 5:
		m.work()
	case 6, 7, 8:
		m.sendSome()
	case 9:
		if m.random.IntN(3) == 0 {
			m.act()
		}
	}
}

// Whatever happens, each group says how many dead letters it has, and every
// dead letter has its group.
func TestGroupsAreCountedExactly(t *testing.T) {
	t.Parallel()
	m := newMess(t, rand.Uint64())
	for i := range 400 {
		m.step()
		if i%20 == 0 {
			m.checkGroups()
		}
	}
	m.checkGroups()
	if m.number(`SELECT count(*) FROM failure WHERE dead > 0`) < 3 {
		t.Errorf("the history left too few groups to prove anything")
	}
	m.checkLists()
	m.Reader.search = searchBounds{zones: 1, dead: 4, deliveries: 3, groups: 1, named: 2}
	m.checkLists()
}

func (m *mess) checkGroups() {
	m.t.Helper()
	want(m.t, "groups with another count", m.number(`SELECT count(*) FROM failure WHERE dead <>
		(SELECT count(*) FROM event WHERE failure = failure.id) + (SELECT count(*) FROM delivery WHERE failure = failure.id)`), 0)
	want(m.t, "dead events without a group", m.number(`SELECT count(*) FROM event WHERE (state = 'dead') <> (failure IS NOT NULL)`), 0)
	want(m.t, "dead deliveries without a group", m.number(`SELECT count(*) FROM delivery WHERE (state = 'dead') <> (failure IS NOT NULL)`), 0)
	want(m.t, "members of a group of another kind", m.number(`SELECT count(*) FROM event JOIN failure ON failure.id = event.failure
		WHERE failure.kind <> 'event' OR failure.source <> event.source`), 0)
}

// checkLists compares what is listed, page by page, with what the rows say.
func (m *mess) checkLists() {
	m.t.Helper()
	all := m.letters(event.Selector{}, 500)
	want(m.t, "dead letters", len(all), m.number(`SELECT (SELECT count(*) FROM event WHERE state = 'dead') + (SELECT count(*) FROM delivery WHERE state = 'dead')`))
	for i := 1; i < len(all); i++ {
		if markOf(&all[i-1]).compare(markOf(&all[i])) >= 0 {
			m.t.Fatalf("the list is out of order at %d: %s, %s", i, markOf(&all[i-1]), markOf(&all[i]))
		}
	}
	selectors := []event.Selector{{}, {Source: "stripe"}, {Destination: "app"}, {Destination: "audit", Source: "gen"}, {Type: "invoice.*"},
		{Error: "HTTP 4"}, {Kind: event.FailedEvent}, {Kind: event.FailedDelivery, Account: "acct_1"}, {Since: m.now.Add(-200 * time.Hour)},
		{Object: "object_3"}, {ID: "evt_1"}, {Word: "object_7"}, {Word: "evt_2"}, {Index: []event.IndexMatch{{Field: "body.customer", Value: "cus_4"}}},
		{DeadBy: m.now.Add(-50 * time.Hour)}, {Newest: 20}}
	groups, err := m.Failures(m.t.Context(), m.now, FailureFilter{}, FailuresBySize, FailureCursor{}, 500)
	must(m.t, err)
	for _, g := range groups.Failures {
		list := m.letters(event.Selector{Failure: g.ID}, 7)
		want(m.t, "letters of "+g.Text, len(list), g.Dead)
	}
	lone, err := m.Lone(m.t.Context(), groups.Failures)
	must(m.t, err)
	for _, g := range groups.Failures {
		e, is := lone[g.ID]
		want(m.t, "one letter of "+g.Text, is, g.Dead == 1)
		want(m.t, "its event", e.Key.ID, m.onlyOf(all, g.ID))
	}
	for _, f := range []DeliveryFilter{{}, {Source: "stripe"}, {Destination: "app", State: event.DeliverySent}, {State: event.DeliveryDead, Error: "HTTP 5"}} {
		for _, limit := range []int{2, 400} {
			var ids []int64
			page := event.Page{Limit: limit}
			for {
				found, err := m.DeliveryPage(m.t.Context(), f, page)
				must(m.t, err)
				for _, d := range found.Deliveries {
					ids = append(ids, d.ID)
				}
				if page.Before = found.Next; found.Next == 0 {
					break
				}
			}
			want(m.t, fmt.Sprintf("deliveries of %+v", f), len(ids), m.number(`SELECT count(*) FROM delivery JOIN event ON event.seq = delivery.event
				WHERE (?1 = '' OR source = ?1) AND (?2 = '' OR destination = ?2) AND (?3 = '' OR delivery.state = ?3) AND instr(delivery.error, ?4) > 0`,
				f.Source, f.Destination, string(f.State), f.Error))
			if !slices.IsSortedFunc(ids, func(a, b int64) int { return int(b - a) }) {
				m.t.Errorf("deliveries are out of order: %v", ids)
			}
		}
	}
	for _, s := range selectors {
		for _, limit := range []int{3, 500} {
			m.compare(s, all, limit)
		}
	}
}

// onlyOf is the event of the one dead letter of a group; "" where there are more.
func (m *mess) onlyOf(all []DeadLetter, group int64) (id string) {
	n := 0
	for _, d := range all {
		if d.Failure == group {
			id, n = d.Event.Key.ID, n+1
		}
	}
	if n != 1 {
		return ""
	}
	return id
}

func (m *mess) compare(s event.Selector, all []DeadLetter, limit int) {
	m.t.Helper()
	got := map[string]bool{}
	for _, d := range m.letters(s, limit) {
		if got[markOf(&d).String()] {
			m.t.Errorf("%s: %s is listed twice", s.Query(), markOf(&d))
		}
		got[markOf(&d).String()] = true
	}
	events, n := map[int64]bool{}, 0
	for _, d := range all {
		if meant := m.means(s, &d); meant != got[markOf(&d).String()] {
			m.t.Errorf("%s, %d a page: %s %s is listed: %v", s.Query(), limit, d.Event.Key, markOf(&d), !meant)
		} else if meant {
			n++
			events[d.Event.Seq] = true
		}
	}
	want(m.t, s.Query()+": letters", len(got), n)
	s.State = event.Dead
	picks, err := m.Reader.pick(m.t.Context(), event.Action{Kind: event.ActionReplay, Selector: s})
	must(m.t, err)
	want(m.t, s.Query()+": picked", len(picks), len(events))
	for _, p := range picks {
		if !events[p.seq] {
			m.t.Errorf("%s: event %d is picked", s.Query(), p.seq)
		}
	}
}

// means says in Go what a selector means.
func (m *mess) means(s event.Selector, d *DeadLetter) bool {
	e := &d.Event
	has := func(start, text string) bool { return len(text) >= len(start) && text[:len(start)] == start }
	customer := ""
	if len(s.Index) > 0 {
		must(m.t, m.row(m.t.Context(), `SELECT value FROM event_index WHERE event = ?`, []any{e.Seq}, &customer))
	}
	return (s.Source == "" || e.Key.Source == s.Source) && (s.Account == "" || e.Key.Account == s.Account) &&
		(s.Type == "" || event.MatchGlob(s.Type, e.Type)) && (s.Object == "" || e.Object == s.Object) && has(s.ID, e.Key.ID) &&
		(s.Word == "" || has(s.Word, e.Key.ID) || has(s.Word, e.Object)) && (len(s.Index) == 0 || customer == s.Index[0].Value) &&
		(s.Kind == "" || (s.Kind == event.FailedDelivery) == (d.Delivery != nil)) &&
		(s.Destination == "" || d.Delivery != nil && d.Delivery.Destination == s.Destination) &&
		(s.Error == "" || slices.Contains([]string{"HTTP 400"}, d.Error())) && !e.ReceivedAt.Before(s.Since) &&
		(s.DeadBy.IsZero() || !d.At.After(s.DeadBy)) && (s.Newest == 0 || e.Seq <= s.Newest)
}

func (m *mess) letters(s event.Selector, limit int) (all []DeadLetter) {
	m.t.Helper()
	for cursor := ""; ; {
		page, err := m.DeadLetters(m.t.Context(), s, cursor, limit)
		must(m.t, err)
		all = append(all, page.Letters...)
		if cursor = page.Next; cursor == "" {
			return all
		}
	}
}
