package api

import (
	"fmt"

	"creel/admin"
	"creel/event"
)

// laneHeads are what holds up a lane, for an act on it.
func laneHeads(c *call) (ask askLane, heads []event.ParkedLane, err error) {
	if err := c.read(&ask); err != nil {
		return ask, nil, err
	}
	if (ask.Lane == "") == (ask.Key == event.Key{}) {
		return ask, nil, invalid(`{"lane": "stripe/acct_1/sub_1Mo"} or {"key": "stripe/acct_1/evt_1M2"}`, "this names no lane")
	}
	if ask.Lane == "" {
		return ask, nil, nil
	}
	if heads, err = c.data().Lane(c.ctx, ask.Lane); err == nil && len(heads) == 0 {
		err = fmt.Errorf("%w: no lane %q is parked", event.ErrNotFound, ask.Lane)
	}
	return ask, heads, err
}

func skipLane(c *call) (any, error) {
	ask, heads, err := laneHeads(c)
	if err != nil {
		return nil, err
	}
	keys := []event.Key{ask.Key}
	if ask.Lane != "" {
		keys = admin.LaneKeys(heads)
	}
	return c.act(event.Action{Kind: event.ActionLaneSkip, Target: ask.Lane, Selector: event.Selector{Keys: keys}, Reason: ask.Reason}, ask)
}

func retryLane(c *call) (any, error) {
	ask, heads, err := laneHeads(c)
	if err != nil {
		return nil, err
	}
	keys := []event.Key{ask.Key}
	if ask.Lane != "" {
		if keys = admin.LaneKeys(admin.LaneDead(heads)); len(keys) == 0 {
			return nil, invalid("POST "+Prefix+"/resolve", "delivery %d is in doubt: ask its destination whether it arrived", heads[0].Delivery)
		}
	}
	return c.act(event.Action{Kind: event.ActionReplay, Selector: event.Selector{Keys: keys}, Reason: ask.Reason}, ask)
}
