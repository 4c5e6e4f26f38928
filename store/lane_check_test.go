package store

import (
	"context"

	"creel/event"
)

// laneRow is an event or a delivery as checkLanes sees it.
type laneRow struct {
	lane, state, rank    string
	id                   int64
	waits, passes, parks bool
}

// checkLanes demands the invariant of every lane: at most one member is in
// hand, and only the head may be taken.
func (sc *scene) checkLanes() {
	sc.t.Helper()
	parked := map[string]int{}
	check := func(query string, hand, free, wait string, stuck ...string) {
		sc.t.Helper()
		lanes := map[string][]laneRow{}
		must(sc.t, sc.list(context.Background(), query, nil, func(r row) error {
			m := laneRow{r.text(0), r.text(1), r.text(2), r.int64(3), r.bool(4), r.bool(5), r.bool(6)}
			lanes[m.lane] = append(lanes[m.lane], m)
			if m.parks {
				parked[r.text(7)]++
			}
			return nil
		}))
		for lane, members := range lanes {
			sc.checkLane(lane, members, hand, free, wait, stuck)
		}
	}
	check(`SELECT lane, CASE WHEN state = 'pending' AND waits THEN 'waiting' ELSE state END, rank, seq, waits, passes, parks, source
		FROM event WHERE lane <> '' ORDER BY rank, seq`, "claimed", "pending", "waiting", "dead")
	check(`SELECT lane || ' to ' || destination || ' for ' || target, state, '', id, 0, passes, parks, destination
		FROM delivery WHERE lane <> '' ORDER BY id`, "sending", "ready", "waiting", "dead", "in_doubt")
	open, err := sc.Incidents(context.Background(), true)
	must(sc.t, err)
	for _, i := range open {
		if i.Cause != event.CauseLaneParked {
			continue
		}
		want(sc.t, "lanes counted on the incident of "+i.Subject,
			sc.number("SELECT dead FROM incident WHERE id = ?", i.ID), parked[i.Subject])
		delete(parked, i.Subject)
	}
	if len(parked) > 0 {
		sc.t.Errorf("parked lanes without an incident: %v", parked)
	}
}

// checkLane looks at the members of one lane, in their order.
func (sc *scene) checkLane(lane string, members []laneRow, hand, free, wait string, stuck []string) {
	sc.t.Helper()
	is := func(m laneRow, states ...string) bool {
		for _, s := range states {
			if m.state == s {
				return true
			}
		}
		return false
	}
	var open []laneRow
	hands, behind := 0, 0
	for _, m := range members {
		dead := is(m, stuck...)
		if m.passes && !dead || m.parks && (!dead || m.passes) {
			sc.t.Errorf("lane %s: %+v passes or parks", lane, m)
		}
		if is(m, hand, free, wait) || dead && !m.passes {
			open = append(open, m)
		}
		if is(m, hand) {
			hands++
		}
		if is(m, free, wait) {
			behind++
		}
	}
	if hands > 1 {
		sc.t.Errorf("lane %s: %d are in hand: %+v", lane, hands, open)
	}
	for i, m := range open {
		mayGo := i == 0 && hands == 0
		if is(m, free) && !mayGo || is(m, wait) && mayGo {
			sc.t.Errorf("lane %s: %+v is not in its place: %+v", lane, m, open)
		}
		if i == 0 && hands == 0 && is(m, stuck...) && m.parks != (behind > 0) && !m.parks {
			sc.t.Errorf("lane %s: nobody was told that it is parked: %+v", lane, open)
		}
	}
}
