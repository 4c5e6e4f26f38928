package store

import (
	"context"
	"fmt"

	"creel/event"
)

// Behind tells in which lane a dead letter holds up others, and counts those, as
// far as most; 0 where it holds up none: it is in no lane, they may pass it, or
// another one is before it.
func (r *Reader) Behind(ctx context.Context, d *DeadLetter, most int) (lane string, n int, err error) {
	err = r.snapshot(ctx, func(s snapshot) (err error) {
		if d.Delivery != nil {
			lane, n, err = s.behindDelivery(d.Delivery.ID, most)
		} else {
			lane, n, err = s.behindEvent(&d.Event, most)
		}
		return err
	})
	if err != nil {
		return "", 0, fmt.Errorf("look behind a dead letter: %w", err)
	}
	return lane, n, nil
}

func (s snapshot) behindEvent(e *event.Event, most int) (lane string, n int, err error) {
	if e.Lane == "" || e.Passes {
		return "", 0, nil
	}
	var members []member
	err = s.list(sqlLaneMembers, []any{e.Lane}, func(r row) error {
		members = append(members, memberOf(r))
		return nil
	})
	if head := headOf(members); err != nil || head == nil || head.seq != e.Seq {
		return "", 0, err
	}
	err = s.row(sqlEventsBehind, []any{e.Lane, most}, &n)
	return e.Lane, n, err
}

func (s snapshot) behindDelivery(id int64, most int) (lane string, n int, err error) {
	var l deliveryLane
	err = s.list(sqlDeliveryLaneOf, []any{id}, func(r row) error {
		l = deliveryLane{r.text(0), r.text(1), r.text(2)}
		return nil
	})
	if err != nil || l.lane == "" {
		return "", 0, err
	}
	var members []laneDelivery
	err = s.list(sqlDeliveryMembers, []any{l.lane, l.destination, l.target}, func(r row) error {
		members = append(members, laneDeliveryOf(r))
		return nil
	})
	// One that may be passed is no member.
	if head := headDelivery(members); err != nil || head == nil || head.id != id {
		return "", 0, err
	}
	err = s.row(sqlDeliveriesBehind, []any{l.lane, l.destination, l.target, most}, &n)
	return l.lane, n, err
}
