package model

import (
	"slices"
	"time"

	"creel/event"
)

// maxOthers is how many other bodies are kept under one key.
const maxOthers = 3

// accept is what has to come of a receipt. handed are the events that the
// worker got from memory, born claimed.
func (m *model) accept(r *event.Receipt, plans []plan, handed map[int64]event.Claim) []event.AcceptedItem {
	now := r.At
	if r.BodyWindow > 0 {
		first, known := m.bodies[r.BodyKey]
		if known && !first.at.Before(now.Add(-r.BodyWindow)) {
			return []event.AcceptedItem{m.duplicate(first.event)}
		}
	}
	var got []event.AcceptedItem
	for i := range r.Items {
		item := &r.Items[i]
		e := m.byKey[item.Key]
		switch {
		case e == nil:
			got = append(got, m.insert(r, i, plans[i], handed))
		case e.content == item.Content:
			got = append(got, m.duplicate(e))
		default:
			got = append(got, m.conflict(e, item))
		}
	}
	if r.BodyWindow > 0 {
		m.bodies[r.BodyKey] = seen{now, m.event(got[0].Seq)}
	}
	return got
}

func (m *model) insert(r *event.Receipt, i int, p plan, handed map[int64]event.Claim) event.AcceptedItem {
	item := &r.Items[i]
	e := &kept{seq: int64(len(m.events)) + 1, key: item.Key, kind: item.Type, state: item.State, run: 1, content: item.Content,
		body: string(r.Body), part: item.Part, plan: p, lane: item.Lane, skip: item.LaneSkip}
	if e.lane != "" {
		e.rank, _ = event.Rank(item.Version)
	}
	free := e.lane == "" || !slices.ContainsFunc(m.events, func(o *kept) bool { return o.lane == e.lane && o.open() })
	m.events, m.byKey[e.key] = append(m.events, e), e
	claim, isHanded := handed[e.seq]
	switch {
	case e.state != event.Pending:
	case item.Inline != nil && free && !overtaken(r.Items, i):
		m.inline(e, item.Inline, r.At)
	case isHanded:
		if !free || overtaken(r.Items, i) {
			m.problem("event %d was handed to the worker out of its order", e.seq)
		}
		e.take(claim)
	}
	m.arrange()
	return event.AcceptedItem{Key: e.key, Seq: e.seq, Result: event.New}
}

// overtaken tells whether a later item of the same receipt has to go first.
func overtaken(items []event.Item, i int) bool {
	rank, _ := event.Rank(items[i].Version)
	return items[i].Lane != "" && slices.ContainsFunc(items[i+1:], func(other event.Item) bool {
		later, _ := event.Rank(other.Version)
		return other.Lane == items[i].Lane && other.State == event.Pending && later < rank
	})
}

// inline completes an event at once, or leaves it to the worker.
func (m *model) inline(e *kept, decided *event.Finish, now time.Time) {
	e.take("inline")
	f := *decided
	f.Seq, f.Claim, f.Run = e.seq, "inline", 1
	if _, err := m.finish(&f, now); err != nil {
		e.state, e.claim, e.held, e.revivable, e.passes, e.attempts = event.Pending, "", false, false, false, 0
		m.arrange()
	}
}

func (m *model) duplicate(e *kept) event.AcceptedItem {
	e.duplicates++
	revived := e.revivable && (e.state == event.Dead || e.state == event.Done || e.state == event.Ignored)
	if revived {
		m.requeue(e)
	}
	return event.AcceptedItem{Key: e.key, Seq: e.seq, Result: event.Duplicate, Duplicates: e.duplicates, Conflicts: e.conflicts, Revived: revived}
}

// conflict keeps another body beside the first.
func (m *model) conflict(e *kept, item *event.Item) event.AcceptedItem {
	if !slices.Contains(e.others, item.Content) {
		e.conflicts++
		if len(e.others) < maxOthers {
			e.others = append(e.others, item.Content)
		}
	}
	return event.AcceptedItem{Key: e.key, Seq: e.seq, Result: event.Conflict, Duplicates: e.duplicates, Conflicts: e.conflicts}
}

// replay, discard and skip are an operator's acts on one event; false is that
// it was refused.
func (m *model) replay(e *kept) bool {
	if e.state != event.Dead && e.state != event.Done && e.state != event.Ignored {
		return false
	}
	m.requeue(e)
	return true
}

func (m *model) discard(e *kept) (any bool) {
	if e.state == event.Pending || e.state == event.Claimed {
		return false
	}
	if any = e.state == event.Dead; any {
		e.state = event.Discarded
	}
	for _, p := range m.parcels {
		if p.of == e && p.state == event.DeliveryDead {
			p.state, any = event.DeliveryDiscarded, true
		}
	}
	if any {
		e.revivable = false
		m.arrange()
	}
	return any
}

func (m *model) skip(e *kept) (any bool) {
	if e.state == event.Dead && e.lane != "" && !e.passes {
		e.passes, any = true, true
	}
	for _, p := range m.parcels {
		if p.of == e && p.stuck() && p.lane != "" && !p.passes {
			p.passes, any = true, true
		}
	}
	m.arrange()
	return any
}

// decide is an operator's word on a delivery in doubt.
func (m *model) decide(p *parcel, kind event.ActionKind) bool {
	if p.state != event.DeliveryInDoubt {
		return false
	}
	switch kind {
	case event.ActionWasSent:
		p.state = event.DeliverySent
	case event.ActionSendAgain:
		p.again()
	default:
		p.state, p.of.revivable = event.DeliveryDead, true
	}
	m.arrange()
	return true
}

// deadLetters are the events that are dead or have a dead delivery.
func (m *model) deadLetters() (list []*kept) {
	for _, e := range m.events {
		if e.state == event.Dead || slices.ContainsFunc(m.parcels, func(p *parcel) bool { return p.of == e && p.state == event.DeliveryDead }) {
			list = append(list, e)
		}
	}
	return list
}
