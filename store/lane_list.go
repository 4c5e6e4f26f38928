package store

import (
	"context"
	"fmt"

	"creel/event"
)

const (
	// The next lane with a member that is dead or in doubt steps over the
	// indexes, one entry a lane.
	sqlNextLane = `SELECT min(lane) FROM (
		SELECT min(lane) AS lane FROM event INDEXED BY event_lane WHERE ` + openInLane + ` AND state = 'dead' AND lane > ?1
		UNION ALL SELECT min(lane) FROM delivery INDEXED BY delivery_lane WHERE ` + openDelivery + ` AND state = 'dead' AND lane > ?1
		UNION ALL SELECT min(lane) FROM delivery INDEXED BY delivery_lane WHERE ` + openDelivery + ` AND state = 'in_doubt' AND lane > ?1)`

	sqlParkedEvent  = `SELECT source, account, id, state, error, finished_at FROM event WHERE seq = ?`
	sqlEventsBehind = `SELECT count(*) FROM (SELECT 1 FROM event INDEXED BY event_lane
		WHERE ` + openInLane + ` AND state = 'pending' AND lane = ?1 LIMIT ?2)`

	sqlStuckTargets = `SELECT DISTINCT destination, target FROM delivery INDEXED BY delivery_lane
		WHERE ` + openDelivery + ` AND (state = 'dead' OR state = 'in_doubt') AND lane = ?1 ORDER BY destination, target LIMIT ?2`
	sqlParkedDelivery = `SELECT event.source, event.account, event.id, delivery.state, delivery.error,
		ifnull(delivery.finished_at, (SELECT max(start + duration) FROM attempt WHERE delivery = delivery.id))
		FROM delivery JOIN event ON event.seq = delivery.event WHERE delivery.id = ?`
	sqlDeliveriesBehind = `SELECT count(*) FROM (SELECT 1 FROM delivery INDEXED BY delivery_lane
		WHERE ` + openDelivery + ` AND (state = 'waiting' OR state = 'ready') AND lane = ?1 AND destination = ?2 AND target = ?3 LIMIT ?4)`
)

// Lanes lists up to limit (at most 500) parked lanes in the order of their
// names, those after a name: lanes of events, and of deliveries at each
// destination and target, with the head that holds up the others. What they
// say of one lane is one state of the database.
func (r *Reader) Lanes(ctx context.Context, after string, limit int) ([]event.ParkedLane, error) {
	_, limit = bounds(event.Page{Limit: limit})
	var list []event.ParkedLane
	for lanes := 0; lanes < limit; {
		next, err := r.nextLane(ctx, after)
		if err != nil || next == "" {
			return list, err
		}
		after = next
		parked, err := r.Lane(ctx, next)
		if err != nil {
			return list, err
		}
		list = append(list, parked...)
		lanes += min(len(parked), 1)
	}
	return list, nil
}

func (r *Reader) nextLane(ctx context.Context, after string) (next string, err error) {
	err = r.list(ctx, sqlNextLane, []any{after}, func(r row) error {
		next = r.text(0)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("look for parked lanes: %w", err)
	}
	return next, nil
}

// Lane tells where a lane is parked; nothing where it is not.
func (r *Reader) Lane(ctx context.Context, lane string) ([]event.ParkedLane, error) {
	var list []event.ParkedLane
	err := r.snapshot(ctx, func(s snapshot) error {
		list = nil
		if err := s.parkedEvents(lane, &list); err != nil {
			return err
		}
		var targets []deliveryLane
		err := s.list(sqlStuckTargets, []any{lane, maxPage}, func(r row) error {
			targets = append(targets, deliveryLane{lane, r.text(0), r.text(1)})
			return nil
		})
		for i := 0; err == nil && i < len(targets); i++ {
			err = s.parkedDeliveries(targets[i], &list)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read lane %q: %w", lane, err)
	}
	return list, nil
}

// parkedEvents adds a lane whose head is dead.
func (s snapshot) parkedEvents(lane string, list *[]event.ParkedLane) error {
	var members []member
	err := s.list(sqlLaneMembers, []any{lane}, func(r row) error {
		members = append(members, memberOf(r))
		return nil
	})
	head := headOf(members)
	if err != nil || head == nil || head.state != event.Dead {
		return err
	}
	p := event.ParkedLane{Lane: lane}
	if err := s.list(sqlParkedEvent, []any{head.seq}, readHead(&p)); err != nil {
		return err
	}
	if err := s.row(sqlEventsBehind, []any{lane, event.MaxWaiting}, &p.Waiting); err != nil {
		return err
	}
	*list = append(*list, p)
	return nil
}

// parkedDeliveries adds a lane to a target whose head is dead or in doubt.
func (s snapshot) parkedDeliveries(l deliveryLane, list *[]event.ParkedLane) error {
	var members []laneDelivery
	err := s.list(sqlDeliveryMembers, []any{l.lane, l.destination, l.target}, func(r row) error {
		members = append(members, laneDeliveryOf(r))
		return nil
	})
	head := headDelivery(members)
	if err != nil || head == nil || !stuck(head.state) {
		return err
	}
	p := event.ParkedLane{Lane: l.lane, Destination: l.destination, Target: l.target, Delivery: head.id}
	if err := s.list(sqlParkedDelivery, []any{head.id}, readHead(&p)); err != nil {
		return err
	}
	if err := s.row(sqlDeliveriesBehind, []any{l.lane, l.destination, l.target, event.MaxWaiting}, &p.Waiting); err != nil {
		return err
	}
	*list = append(*list, p)
	return nil
}

func readHead(p *event.ParkedLane) func(row) error {
	return func(r row) error {
		p.Event, p.State, p.Error, p.Since = keyOf(r, 0), r.text(3), r.text(4), timeOf(r, 5)
		return nil
	}
}
