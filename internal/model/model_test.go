package model

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"creel/event"
)

// kept is an event as the model knows it.
type kept struct {
	seq                 int64
	key                 event.Key
	kind                string
	state               event.State
	run, attempts       int
	duplicates          int
	conflicts           int
	others              [][16]byte // contents of the other bodies that are kept
	content             [16]byte
	body, part          string
	plan                plan
	lane, rank          string
	skip, passes, waits bool
	alone, revivable    bool
	held                bool // it was told to wait for what has to come first, under this claim
	claim               event.Claim
	from                time.Time // it may not be tried before; zero is at any time
}

// parcel is a delivery as the model knows it.
type parcel struct {
	id              int64
	of              *kept
	key, to, target string
	state           event.DeliveryState
	run             int
	attempts, tries int
	probe           bool
	rows            int // attempts that are stored, of all runs
	lost            int // of this run, those whose answer was lost
	lane            string
	skip, passes    bool
	claim           event.Claim
	from            time.Time
}

// seen is when a body came first, and with which event.
type seen struct {
	at    time.Time
	event *kept
}

// model is what the contract says is stored. It is told every call that the
// rooms make on the store, in its order, and says what has to come of it.
type model struct {
	facts
	events   []*kept
	byKey    map[event.Key]*kept
	parcels  []*parcel
	bodies   map[[32]byte]seen
	places   map[string]event.DestinationState
	undo     []func() // takes back what the finish in hand did to the facts
	problems []string
}

func newModel() *model {
	return &model{facts: newFacts(), byKey: map[event.Key]*kept{}, bodies: map[[32]byte]seen{}, places: map[string]event.DestinationState{}}
}

func (m *model) problem(format string, args ...any) {
	m.problems = append(m.problems, fmt.Sprintf(format, args...))
}

func (m *model) event(seq int64) *kept {
	if seq < 1 || seq > int64(len(m.events)) {
		m.problem("there is no event %d", seq)
		return &kept{}
	}
	return m.events[seq-1]
}

func (m *model) parcel(id int64) *parcel {
	if id < 1 || id > int64(len(m.parcels)) {
		m.problem("there is no delivery %d", id)
		return &parcel{of: &kept{}}
	}
	return m.parcels[id-1]
}

// finish is what has to come of one finish: the answer, and the decision of
// each verdict.
func (m *model) finish(f *event.Finish, now time.Time) (decisions []event.Decision, err error) {
	e := m.event(f.Seq)
	if e.state != event.Claimed || e.claim != f.Claim {
		return nil, event.ErrClaimLost
	}
	before := *e
	e.claim, e.held = "", false
	switch {
	case f.Release && f.State != event.Dead:
		e.state, e.from = event.Pending, f.NextAt
		e.attempts--
	case f.State == event.Pending:
		e.state, e.from, e.alone = event.Pending, f.NextAt, false
	default:
		e.state, e.alone = f.State, false
	}
	if f.State == event.Dead {
		e.revivable = true
		if f.Release {
			e.attempts--
		}
	}
	m.undo = nil
	known := len(m.parcels)
	decisions, err = m.apply(e, f, now)
	if err == nil {
		m.arrange()
		return decisions, nil
	}
	m.back(0)
	m.parcels = m.parcels[:known]
	if errors.Is(err, event.ErrNotYet) || errors.Is(err, event.ErrTie) {
		*e = before
		e.held = true
		return nil, err
	}
	e.state, e.revivable = event.Dead, true
	m.arrange()
	return []event.Decision{event.Failed}, err
}

// back takes back what was done to the facts after a mark.
func (m *model) back(mark int) {
	for len(m.undo) > mark {
		m.undo[len(m.undo)-1]()
		m.undo = m.undo[:len(m.undo)-1]
	}
}

// claim is the claim of an event that is due.
func (m *model) claim(w *event.Work, now time.Time) {
	e := m.event(w.Seq)
	if e.state != event.Pending || e.waits {
		m.problem("event %d was claimed, it is %s, waits %v", e.seq, e.state, e.waits)
	}
	if e.from.After(now) {
		m.problem("event %d was claimed at %v, it is due at %v", e.seq, now, e.from)
	}
	if e.alone != w.Alone {
		m.problem("event %d was claimed alone: %v, want %v", e.seq, w.Alone, e.alone)
	}
	e.take(w.Claim)
	if w.Run != e.run || w.Attempts != e.attempts || w.Key != e.key || string(w.Body) != e.body || w.Part != e.part {
		m.problem("event %d was claimed as %+v, it is %+v", e.seq, w.Event, e)
	}
	m.arrange()
}

func (e *kept) take(claim event.Claim) {
	e.state, e.claim, e.from, e.held = event.Claimed, claim, time.Time{}, false
	e.attempts++
}

// requeue is the next run of an event and of its dead deliveries.
func (m *model) requeue(e *kept) {
	e.state, e.from, e.alone, e.revivable = event.Pending, time.Time{}, false, false
	e.run, e.attempts = e.run+1, 0
	for _, p := range m.parcels {
		if p.of == e && p.state == event.DeliveryDead {
			p.again()
		}
	}
	m.arrange()
}

func (p *parcel) again() {
	p.state, p.from = event.DeliveryReady, time.Time{}
	p.run, p.attempts, p.tries, p.lost = p.run+1, 0, 0, 0
}

// ship is what has to come of one finish of a delivery.
func (m *model) ship(f *event.DeliveryFinish) error {
	p := m.parcel(f.ID)
	if p.state != event.DeliverySending || p.claim != f.Claim {
		return event.ErrClaimLost
	}
	p.claim = ""
	if f.Release {
		if !p.probe {
			p.attempts--
		}
		p.tries--
		p.state, p.from, p.probe = event.DeliveryReady, f.NextAt, false
		m.arrange()
		return nil
	}
	if !p.probe {
		p.attempts--
	}
	if f.Attempt.Spent {
		p.attempts++
	}
	if f.Attempt.Number != p.tries || f.Attempt.Run != p.run {
		m.problem("delivery %d: attempt %d of run %d, want %d of %d", p.id, f.Attempt.Number, f.Attempt.Run, p.tries, p.run)
	}
	p.note(f.Attempt.Outcome)
	p.probe = false
	p.state, p.from = f.State, f.NextAt
	if p.state == event.DeliveryDead {
		p.of.revivable = true
	}
	m.arrange()
	return nil
}

// note counts an attempt that is stored.
func (p *parcel) note(outcome event.Outcome) {
	p.rows++
	if outcome == event.Unknown {
		p.lost++
	}
}

// send is the claim of a delivery.
func (m *model) send(s *event.Shipment, now time.Time) {
	p := m.parcel(s.ID)
	if p.state != event.DeliveryReady {
		m.problem("delivery %d was claimed, it is %s", p.id, p.state)
	}
	state := cmp.Or(m.places[p.to], event.DestinationEnabled)
	if s.Probe && state == event.DestinationPaused || !s.Probe && state != event.DestinationEnabled {
		m.problem("delivery %d was claimed (probe %v), %s is %s", p.id, s.Probe, p.to, state)
	}
	if !s.Probe && p.from.After(now) {
		m.problem("delivery %d was claimed at %v, it is due at %v", p.id, now, p.from)
	}
	p.state, p.claim, p.from, p.probe = event.DeliverySending, s.Claim, time.Time{}, s.Probe
	p.tries++
	if !s.Probe {
		p.attempts++
	}
	key, long := event.Fold(p.key)
	if s.Tries != p.tries || s.Attempts != p.attempts || s.Run != p.run || s.Key != key || s.LongKey != long || s.Destination != p.to || s.Target != p.target || s.EventSeq != p.of.seq {
		m.problem("delivery %d was claimed as %+v, it is %+v", p.id, s.Delivery, p)
	}
	m.arrange()
}

// recover is what a start makes of the claims of a dead boot.
func (m *model) recover(inDoubt func(destination string, lost int) bool) {
	var claimed []*kept
	for _, e := range m.events {
		if e.state == event.Claimed {
			claimed = append(claimed, e)
		}
	}
	for _, e := range claimed {
		if !e.alone && len(claimed) > 1 {
			e.attempts = max(e.attempts-1, 0)
		}
		e.state, e.claim, e.alone, e.held = event.Pending, "", true, false
	}
	for _, p := range m.parcels {
		if p.state != event.DeliverySending {
			continue
		}
		p.note(event.Unknown)
		p.state = event.DeliveryReady
		switch {
		case inDoubt(p.to, p.lost):
			p.state = event.DeliveryInDoubt
		case !p.probe:
			p.attempts--
		}
		p.claim, p.probe = "", false
	}
	m.arrange()
}

// setBack moves what is due later than now with a clock that was set back.
func (m *model) setBack(now time.Time, by time.Duration) {
	pull := func(at *time.Time) {
		if at.After(now) {
			if *at = at.Add(-by); at.Before(now) {
				*at = now
			}
		}
	}
	for _, e := range m.events {
		pull(&e.from)
	}
	for _, p := range m.parcels {
		pull(&p.from)
	}
}

// clamp is what a clock that was set back makes of what is due too late.
func (m *model) clamp(now time.Time, events time.Duration, deliveries map[string]time.Duration) {
	for _, e := range m.events {
		if latest := now.Add(events); e.from.After(latest) {
			e.from = latest
		}
	}
	for _, p := range m.parcels {
		if latest := now.Add(deliveries[p.to]); p.from.After(latest) {
			p.from = latest
		}
	}
}

// arrange gives every member of a lane its stance: only the head is due.
func (m *model) arrange() {
	lanes := map[string][]*kept{}
	for _, e := range m.events {
		e.passes = e.state == event.Dead && e.lane != "" && (e.skip || e.passes)
		e.waits = false
		if e.lane != "" && e.open() {
			lanes[e.lane] = append(lanes[e.lane], e)
		}
	}
	for _, members := range lanes {
		slices.SortFunc(members, func(a, b *kept) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.seq, b.seq)) })
		taken := slices.ContainsFunc(members, func(e *kept) bool { return e.state == event.Claimed })
		for i, e := range members {
			if e.waits = e.state == event.Pending && (taken || i > 0); e.waits {
				e.from = time.Time{}
			}
		}
	}
	ways := map[[3]string][]*parcel{}
	for _, p := range m.parcels { // in the order of their ids
		p.passes = p.stuck() && p.lane != "" && (p.skip || p.passes)
		if p.lane != "" && p.open() {
			ways[p.way()] = append(ways[p.way()], p)
		}
	}
	for _, members := range ways {
		taken := slices.ContainsFunc(members, func(p *parcel) bool { return p.state == event.DeliverySending })
		for i, p := range members {
			switch {
			case p.state == event.DeliveryReady && (taken || i > 0):
				p.state, p.from = event.DeliveryWaiting, time.Time{}
			case p.state == event.DeliveryWaiting && !taken && i == 0:
				p.state = event.DeliveryReady
			}
		}
	}
}

// open tells whether an event holds up those behind it in its lane.
func (e *kept) open() bool {
	return e.state == event.Pending || e.state == event.Claimed || e.state == event.Dead && !e.passes
}

func (p *parcel) stuck() bool {
	return p.state == event.DeliveryDead || p.state == event.DeliveryInDoubt
}

func (p *parcel) open() bool {
	return p.state != event.DeliverySent && p.state != event.DeliveryDiscarded && !(p.stuck() && p.passes)
}

func (p *parcel) way() [3]string { return [3]string{p.lane, p.to, p.target} }
