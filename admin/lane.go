package admin

import (
	"slices"

	"creel/event"
)

// LaneKeys are the events that hold up a lane.
func LaneKeys(parked []event.ParkedLane) (keys []event.Key) {
	for _, l := range parked {
		if !slices.Contains(keys, l.Event) {
			keys = append(keys, l.Event)
		}
	}
	return keys
}

// LanesNext is the lane behind which the next page of a list begins, "" on the
// last page. limit is how many lanes were asked for: one may have several rows,
// at more than one destination.
func LanesNext(parked []event.ParkedLane, limit int) string {
	lanes, last := 0, ""
	for _, l := range parked {
		if l.Lane != last {
			lanes, last = lanes+1, l.Lane
		}
	}
	if lanes < limit {
		return ""
	}
	return last
}

// LaneDead are those that hold up a lane and can run again: about one in doubt
// somebody has to decide.
func LaneDead(parked []event.ParkedLane) []event.ParkedLane {
	return slices.DeleteFunc(slices.Clone(parked), func(l event.ParkedLane) bool { return l.State == string(event.DeliveryInDoubt) })
}
