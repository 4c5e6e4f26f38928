package handlers

import (
	"fmt"
	"strconv"

	"creel/config"
	"creel/event"
	"creel/path"
)

// Lane is the order that an event has to keep, "" for none, and whether a dead
// one lets those behind it pass. It is asked before the event is stored: the
// first rule with an order_by that takes its source and type decides, whatever
// its condition. Where the order_by finds nothing there is no lane, and the
// rule says so when it is applied.
func (rs *Rules) Lane(e event.Event, p event.Payload) (lane string, skip bool) {
	for _, r := range rs.rules {
		if r.order == nil || !r.matches(&e) {
			continue
		}
		s := &subject{work: event.Work{Event: e, Payload: p}, doc: path.NewDocument(p)}
		s.tenant = rs.accounts[e.Key.Source][e.Key.Account]
		lane, err := r.laneOf(s)
		if err != nil {
			return "", false
		}
		return lane, r.skip
	}
	return "", false
}

// Ordered tells whether any rule that takes events of a source orders them.
func (rs *Rules) Ordered(source string) bool {
	for _, r := range rs.rules {
		if r.order != nil && event.MatchAny(r.sources, source) {
			return true
		}
	}
	return false
}

// laneOf names the lane of an event: lanes of two sources or accounts are
// never one. It is folded as keys are.
func (r *rule) laneOf(s *subject) (string, error) {
	if r.order == nil {
		return "", nil
	}
	lane, err := r.order.ExecuteKey(s.doc, s.name)
	if err == nil && lane == "" {
		err = errEmpty
	}
	if err != nil {
		return "", err
	}
	key := s.work.Key
	stored, _ := event.Fold(event.EscapePart(key.Source) + "/" + event.EscapePart(key.Account) + "/" + lane)
	return stored, nil
}

// order reads order_by and on_dead.
func (c *compiler) order(at string, r *config.Rule, out *rule) {
	text := r.OrderBy
	const object = "{object}"
	if text == "" && r.Fetch != nil {
		text = object // nothing else of the object may change while it is fetched
	}
	if r.Fetch != nil && text != object {
		c.warn(config.Join(at, "order_by"), "stands beside a fetch: of two events about one object in different lanes the older answer could stay",
			`leave it out: a fetch brings order_by = "{object}"`)
	}
	if text == "" {
		if r.OnDead != "" {
			c.fault(config.Join(at, "on_dead"), "goes with order_by", "it says what a dead event does to those behind it in its lane")
		}
		return
	}
	out.order = c.varying(config.Join(at, "order_by"), text, "such as {object}; {source} is one order for all")
	switch r.OnDead {
	case "", "block":
	case "skip":
		out.skip = true
	default:
		c.fault(config.Join(at, "on_dead"), strconv.Quote(r.OnDead)+" is not known here", "one of: block, skip")
	}
}

// oneLane refuses two rules that would put one event into two lanes.
func (c *compiler) oneLane() {
	for i, r := range c.rules {
		for j, other := range c.rules[:i] {
			if r.order == nil || other.order == nil || !c.meet(r, other) {
				continue
			}
			hint := "an event keeps one order: write the same order_by and on_dead in both, or let them match different events"
			if r.order.String() != other.order.String() {
				c.fault(config.Join(config.Item("rule", i), "order_by"),
					fmt.Sprintf("%q differs from %q of rule[%d], which can match the same event", r.order, other.order, j), hint)
			} else if r.skip != other.skip {
				c.fault(config.Join(config.Item("rule", i), "on_dead"), fmt.Sprintf("differs from that of rule[%d], which can match the same event", j), hint)
			}
		}
	}
}

// meet tells whether an event may be for both of two rules. Sources are those
// that there are; types are unknown.
func (c *compiler) meet(a, b *rule) bool {
	shared := false
	for _, s := range c.cfg.Sources {
		shared = shared || event.MatchAny(a.sources, s.Name) && event.MatchAny(b.sources, s.Name)
	}
	return shared && anyOverlap(a.types, b.types)
}

func anyOverlap(a, b []string) bool {
	if len(a) == 0 || len(b) == 0 {
		return true
	}
	for _, one := range a {
		for _, other := range b {
			if overlap(one, other) {
				return true
			}
		}
	}
	return false
}

// overlap tells whether some text fits both globs (see event.MatchGlob). Its
// cost is bounded by the product of their lengths.
func overlap(a, b string) bool {
	// fits[j]: the rest of a and the rest of b from j on share a text.
	fits := make([]bool, len(b)+1)
	for i := len(a); i >= 0; i-- {
		diagonal := false // fits[j+1] of the row before
		for j := len(b); j >= 0; j-- {
			below := fits[j] // of the row before
			switch {
			case i == len(a) && j == len(b):
				fits[j] = true
			case i < len(a) && a[i] == '*':
				fits[j] = below || j < len(b) && fits[j+1]
			case j < len(b) && b[j] == '*':
				fits[j] = fits[j+1] || i < len(a) && below
			default:
				fits[j] = i < len(a) && j < len(b) && diagonal && (a[i] == b[j] || a[i] == '?' || b[j] == '?')
			}
			diagonal = below
		}
	}
	return fits[0]
}
