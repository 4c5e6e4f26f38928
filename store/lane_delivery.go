package store

import (
	"fmt"

	"creel/event"
)

// The deliveries of a lane to one destination and target keep the order in
// which they were stored: at most one is in flight, only the head may be sent,
// the others are waiting. A dead head, or one in doubt, parks them. All that
// moves a delivery calls keepDelivery in the same transaction; nobody else
// makes one wait, but for the insert of a delivery that finds its lane taken.
const (
	// openDelivery are the words of delivery_lane.
	openDelivery = `lane <> '' AND passes = 0 AND state <> 'sent' AND state <> 'discarded'`

	deliveryMember = `SELECT id, state, parks FROM delivery INDEXED BY delivery_lane WHERE ` + openDelivery +
		` AND lane = ?1 AND destination = ?2 AND target = ?3 AND state = `
	sqlDeliveryMembers = `SELECT * FROM (` + deliveryMember + `'sending' LIMIT 1)
		UNION ALL SELECT * FROM (` + deliveryMember + `'ready')
		UNION ALL SELECT * FROM (` + deliveryMember + `'waiting' ORDER BY id LIMIT 1)
		UNION ALL SELECT * FROM (` + deliveryMember + `'dead' ORDER BY id LIMIT 1)
		UNION ALL SELECT * FROM (` + deliveryMember + `'in_doubt' ORDER BY id LIMIT 1)`
	sqlDeliveryLaneOf = `SELECT lane, destination, target, state, lane_skip, passes, parks FROM delivery WHERE id = ? AND lane <> ''`
	sqlLaneDeliveries = `SELECT id FROM delivery INDEXED BY delivery_event WHERE event = ? AND lane <> ''`

	sqlDeliveryWait = `UPDATE delivery SET state = 'waiting', next_at = NULL WHERE id = ? AND state = 'ready'`
	// It is due by the time of its receipt: that is its place among those to the
	// same destination.
	sqlDeliveryGo     = `UPDATE delivery SET state = 'ready', next_at = min(created_at, ?) WHERE id = ? AND state = 'waiting'`
	sqlDeliveryStance = `UPDATE delivery SET passes = ?, parks = ? WHERE id = ?`

	sqlAnyDeliveryLane = `SELECT count(*) FROM (SELECT 1 FROM delivery INDEXED BY delivery_lane WHERE ` + openDelivery + ` LIMIT 1)`
)

// deliveryLane is the part of a lane that leads to one target.
type deliveryLane struct{ lane, destination, target string }

// finishInLane is finish, and what it means to the lane of the delivery.
func (sh *shipping) finishInLane(t *tx, i int) error {
	if err := sh.finish(t, i); err != nil || !sh.store.desk.lanes.Load() {
		return err
	}
	due, err := keepDelivery(t, sh.at, sh.finishes[i].ID)
	sh.due = sh.due || due
	return err
}

// laneDelivery is an open delivery of a lane.
type laneDelivery struct {
	id    int64
	state event.DeliveryState
	parks bool
}

// stuck tells whether a delivery waits for an operator, and those behind it
// with it.
func stuck(state event.DeliveryState) bool {
	return state == event.DeliveryDead || state == event.DeliveryInDoubt
}

func laneDeliveryOf(r row) laneDelivery {
	return laneDelivery{r.int64(0), event.DeliveryState(r.text(1)), r.bool(2)}
}

// headDelivery is the delivery that is in flight, or the one whose turn it is;
// nil where there is none.
func headDelivery(members []laneDelivery) (head *laneDelivery) {
	for i := range members {
		m := &members[i]
		if m.state == event.DeliverySending {
			return m
		}
		if head == nil || m.id < head.id {
			head = m
		}
	}
	return head
}

func deliveriesOf(t *tx, l deliveryLane) (members []laneDelivery, err error) {
	err = t.query(sqlDeliveryMembers, []any{l.lane, l.destination, l.target}, func(r row) error {
		members = append(members, laneDeliveryOf(r))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look at lane to %s: %w", l.destination, err)
	}
	return members, nil
}

// isBehind tells whether a delivery that is about to be stored has others of
// its lane before it: then nobody may have it in his hands.
func (a *application) isBehind(t *tx, o *outgoing) (bool, error) {
	if o.lane == "" {
		return false, nil
	}
	a.ordered = true
	o.lane, _ = event.Fold(o.lane)
	members, err := deliveriesOf(t, deliveryLane{o.lane, o.destination, o.target})
	return len(members) > 0, err
}

// keepDelivery is called after a delivery has moved, or may have. It does
// nothing for one without a lane. due says that a delivery may be sent that
// might not be before.
func keepDelivery(t *tx, now, id int64) (due bool, err error) {
	var (
		l                   deliveryLane
		state               event.DeliveryState
		skip, passed, parks bool
	)
	err = t.query(sqlDeliveryLaneOf, []any{id}, func(r row) error {
		l = deliveryLane{r.text(0), r.text(1), r.text(2)}
		state, skip, passed, parks = event.DeliveryState(r.text(3)), r.bool(4), r.bool(5), r.bool(6)
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("look at lane of delivery %d: %w", id, err)
	}
	if l.lane == "" {
		return false, nil
	}
	t.desk.lanes.Store(true)
	passes := stuck(state) && (skip || passed)
	blocks := stuck(state) && !passes
	if passes != passed || parks && !blocks {
		if _, err := t.exec(sqlDeliveryStance, passes, parks && blocks, id); err != nil {
			return false, fmt.Errorf("change delivery %d in its lane: %w", id, err)
		}
	}
	if parks && !blocks {
		if err := unpark(t, now, l.destination); err != nil {
			return false, err
		}
	}
	return arrangeDeliveries(t, now, l)
}

// keepDeliveries is keepDelivery for all deliveries of an event.
func keepDeliveries(t *tx, now, seq int64) (due bool, err error) {
	var ids []int64
	err = t.query(sqlLaneDeliveries, []any{seq}, func(r row) error {
		ids = append(ids, r.int64(0))
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("look for lanes of event %d: %w", seq, err)
	}
	for _, id := range ids {
		one, err := keepDelivery(t, now, id)
		if due = due || one; err != nil {
			return due, err
		}
	}
	return due, nil
}

// arrangeDeliveries makes the head ready and lets all others wait, if none is
// in flight. Only the old and the new head are written.
func arrangeDeliveries(t *tx, now int64, l deliveryLane) (due bool, err error) {
	members, err := deliveriesOf(t, l)
	if err != nil {
		return false, err
	}
	head, behind := headDelivery(members), false
	for i := range members {
		m := &members[i]
		if stuck(m.state) || m == head {
			continue
		}
		behind = true
		if m.state == event.DeliveryReady {
			if _, err := t.exec(sqlDeliveryWait, m.id); err != nil {
				return false, fmt.Errorf("let delivery %d wait: %w", m.id, err)
			}
		}
	}
	switch {
	case head == nil:
		return false, nil
	case stuck(head.state) && behind && !head.parks:
		return false, parkDeliveries(t, now, l, head)
	case head.state == event.DeliveryWaiting:
		if _, err := t.exec(sqlDeliveryGo, now, head.id); err != nil {
			return false, fmt.Errorf("let delivery %d go: %w", head.id, err)
		}
		return true, nil
	}
	return false, nil
}

// parkDeliveries tells that others wait behind a head that is dead or in
// doubt, once for each.
func parkDeliveries(t *tx, now int64, l deliveryLane, head *laneDelivery) error {
	if _, err := t.exec(sqlDeliveryStance, false, true, head.id); err != nil {
		return fmt.Errorf("mark delivery %d in its lane: %w", head.id, err)
	}
	next := "Repair the cause, then: creel lane retry"
	if head.state == event.DeliveryInDoubt {
		next = "Ask whether it arrived, then: creel resolve. creel lane shows the lane"
	}
	_, err := raise(t, now, event.Incident{
		Cause:   event.CauseLaneParked,
		Subject: l.destination,
		Detail: fmt.Sprintf("delivery %d to %s is %s and others of its lane %q wait behind it. %s. Or let them pass: creel lane skip.",
			head.id, l.destination, head.state, l.lane, next),
	}, 1)
	return err
}
