package model

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"creel/event"
)

// facts are what rules did inside the file, each under its business key.
type facts struct {
	records map[[2]string]string // key and kind: fields
	ledger  map[string]entry     // by key
	taken   map[string]string    // key of a grant: key of its reversal
	balance map[[2]string]int64  // holder and unit
	objects map[string]object
	changes map[string]change // compare-and-sets by key
	history map[string]int    // object: transitions
}

type entry struct {
	holder, unit string
	amount       int64
	reverses     string
}

type object struct {
	state, fields string
	rank, tie     string
	event         *kept
}

type change struct{ object, state, fields string }

func newFacts() facts {
	return facts{map[[2]string]string{}, map[string]entry{}, map[string]string{}, map[[2]string]int64{},
		map[string]object{}, map[string]change{}, map[string]int{}}
}

// put sets a fact so that it can be taken back.
func put[K comparable, V any](m *model, facts map[K]V, key K, value V) {
	old, was := facts[key]
	m.undo = append(m.undo, func() {
		if was {
			facts[key] = old
		} else {
			delete(facts, key)
		}
	})
	facts[key] = value
}

// errStale says that a rule does nothing, because what is stored is newer.
var errStale = errors.New("stale")

// apply applies the effects of a finish rule by rule and returns the decision
// of each verdict.
func (m *model) apply(e *kept, f *event.Finish, now time.Time) ([]event.Decision, error) {
	became := map[string]event.Decision{}
	for _, first := range f.Effects {
		rule := first.RuleName()
		if _, through := became[rule]; through {
			continue
		}
		decision, err := m.rule(e, f, rule, now)
		if err != nil {
			return nil, err
		}
		became[rule] = decision
	}
	decisions := make([]event.Decision, len(f.Verdicts))
	for i, v := range f.Verdicts {
		decisions[i] = v.Decision
		if decision, spoken := became[v.Rule]; spoken && v.Decision == event.Applied {
			decisions[i] = decision
		}
	}
	return decisions, nil
}

// rule applies the effects of one rule: all of them, or none where one is
// stale. States go first.
func (m *model) rule(e *kept, f *event.Finish, rule string, now time.Time) (event.Decision, error) {
	mark, known := len(m.undo), len(m.parcels)
	all, there := 0, 0
	for _, states := range []bool{true, false} {
		for _, effect := range f.Effects {
			if _, is := effect.(event.SetState); is != states || effect.RuleName() != rule {
				continue
			}
			before, err := m.effect(e, effect, now)
			if errors.Is(err, errStale) {
				m.back(mark)
				m.parcels = m.parcels[:known]
				return event.Stale, nil
			}
			if err != nil {
				return "", err
			}
			all++
			if before {
				there++
			}
		}
	}
	if there == all {
		return event.AlreadyApplied, nil
	}
	return event.Applied, nil
}

// effect applies one effect; before says that it was there.
func (m *model) effect(e *kept, effect event.Effect, now time.Time) (before bool, err error) {
	switch x := effect.(type) {
	case event.Record:
		return m.record(x)
	case event.Grant:
		return m.grant(x)
	case event.SetState:
		if x.From != nil {
			return m.compareAndSet(e, x)
		}
		return m.newer(e, x)
	case event.Forward:
		return m.deliver(parcel{of: e, key: x.Key, to: x.Destination, lane: x.Lane, skip: x.LaneSkip}, x.Claimed), nil
	case event.Email:
		return m.deliver(parcel{of: e, key: x.Key, to: event.Mail, target: x.To, lane: x.Lane, skip: x.LaneSkip}, false), nil
	}
	return false, fmt.Errorf("no effect of kind %s", effect.Kind())
}

func (m *model) record(x event.Record) (bool, error) {
	id, fields := [2]string{x.Key, x.Of}, text(x.Fields)
	if have, there := m.records[id]; there {
		return true, sameOr(have == fields)
	}
	put(m, m.records, id, fields)
	return false, nil
}

func sameOr(same bool) error {
	if same {
		return nil
	}
	return event.ErrMismatch
}

func (m *model) grant(x event.Grant) (bool, error) {
	n := entry{x.To, x.Unit, x.Amount, ""}
	if x.Reverse != "" {
		granted, there := m.ledger[x.Reverse]
		if !there {
			return false, event.ErrNotYet
		}
		n = entry{granted.holder, granted.unit, -granted.amount, x.Reverse}
		if x.Amount != 0 {
			n.amount = -x.Amount
		}
		by := m.taken[x.Reverse]
		switch {
		case granted.amount < 0:
			return false, event.ErrRefused
		case x.To != "" && x.To != n.holder || x.Unit != "" && x.Unit != n.unit:
			return false, event.ErrMismatch
		case -n.amount > granted.amount, by != "" && by != x.Key:
			return false, event.ErrRefused
		}
	}
	if have, there := m.ledger[x.Key]; there {
		return true, sameOr(have == n)
	}
	of := [2]string{n.holder, n.unit}
	after := m.balance[of] + n.amount
	if n.amount < 0 && x.Floor != nil && after < *x.Floor {
		return false, event.ErrRefused
	}
	put(m, m.ledger, x.Key, n)
	put(m, m.balance, of, after)
	if x.Reverse != "" {
		put(m, m.taken, x.Reverse, x.Key)
	}
	return false, nil
}

// newer applies a state by its version.
func (m *model) newer(e *kept, x event.SetState) (bool, error) {
	rank, _ := event.Rank(x.Version)
	tie, now := e.key.String(), m.objects[x.Object]
	switch {
	case rank < now.rank:
		return false, errStale
	case rank == now.rank && tie == now.tie:
		return true, sameOr(now.event != e || now.state == x.To && now.fields == text(x.Fields))
	case rank == now.rank && tie < now.tie:
		return false, errStale
	}
	m.become(x.Object, object{x.To, text(x.Fields), rank, tie, e})
	return false, nil
}

// compareAndSet leaves one of the expected states, once for its key.
func (m *model) compareAndSet(e *kept, x event.SetState) (bool, error) {
	c := change{x.Object, x.To, text(x.Fields)}
	if have, there := m.changes[x.Key]; there {
		return true, sameOr(have == c)
	}
	now := m.objects[x.Object]
	if !slices.Contains(x.From, now.state) {
		return false, map[event.OnRefuse]error{event.RefuseStale: errStale, event.RefuseDead: event.ErrRefused, event.RefuseLater: event.ErrNotYet}[x.OnRefuse]
	}
	put(m, m.changes, x.Key, c)
	m.become(x.Object, object{c.state, c.fields, now.rank, now.tie, e})
	return false, nil
}

func (m *model) become(name string, o object) {
	put(m, m.objects, name, o)
	put(m, m.history, name, m.history[name]+1)
}

// deliver stores a delivery, once for its key, destination and target.
func (m *model) deliver(p parcel, claimed bool) (before bool) {
	behind := false
	for _, other := range m.parcels {
		if other.key == p.key && other.to == p.to && other.target == p.target {
			return true
		}
		behind = behind || p.lane != "" && other.way() == p.way() && other.open()
	}
	p.id, p.run, p.state = int64(len(m.parcels))+1, 1, event.DeliveryReady
	switch {
	case behind:
		p.state = event.DeliveryWaiting
	case claimed:
		p.state, p.attempts, p.tries = event.DeliverySending, 1, 1
	}
	m.parcels = append(m.parcels, &p)
	return false
}

// text writes fields as both sides compare them.
func text(fields []event.Field) string {
	texts := map[string]string{}
	for _, f := range fields {
		texts[f.Name] = f.Value
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		fmt.Fprintf(&b, "%s=%s ", name, texts[name])
	}
	return b.String()
}
