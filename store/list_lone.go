package store

import (
	"context"
	"fmt"

	"creel/event"
)

// lone reads the one dead letter of a group; the second row says that there are
// more.
func (k deadKind) lone(group int64) (query string, args []any) {
	over, base, args := k.all(group)
	if k == deadDeliveries {
		over += ofItsEvent
	}
	return k.columns() + " FROM " + over + " WHERE " + base + " LIMIT 2", args
}

// Lone reads the events of groups that have one dead letter each, by the numbers
// of the groups. A group that has another number by now is not there.
func (r *Reader) Lone(ctx context.Context, groups []event.Failure) (map[int64]event.Event, error) {
	found := map[int64]event.Event{}
	for _, g := range groups {
		kind := deadDeliveries
		if g.Kind == event.FailedEvent {
			kind = deadEvents
		}
		query, args := kind.lone(g.ID)
		list, err := r.letters(ctx, kind, query, args)
		if err != nil {
			return nil, fmt.Errorf("read the dead letter of group %d: %w", g.ID, err)
		}
		if len(list) == 1 {
			found[g.ID] = list[0].Event
		}
	}
	return found, nil
}
