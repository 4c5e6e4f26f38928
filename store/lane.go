package store

import (
	"context"
	"fmt"

	"creel/event"
)

// A lane is an order that events keep: at most one of it is claimed, and only
// its head is due, the open member with the lowest version, then the oldest.
// Open are those that are pending or claimed, and the dead that nobody may
// pass. A dead head parks the lane. All that moves an event calls keepLane in
// the same transaction, which keeps this true: nobody else writes waits,
// passes or parks, but for the insert of an event that finds its lane taken.
const (
	// openInLane are the words of event_lane: a query that wants the index
	// repeats them.
	openInLane = `lane <> '' AND passes = 0 AND state <> 'done' AND state <> 'ignored' AND state <> 'discarded'`

	memberColumns = `SELECT seq, state, waits, parks, rank FROM event INDEXED BY event_lane WHERE ` + openInLane
	// Those who may be the head, or forbid one: the claimed, what is due, the
	// first of those that wait and of the dead. One look costs the same however
	// many wait.
	sqlLaneMembers = `SELECT * FROM (` + memberColumns + ` AND state = 'claimed' AND lane = ?1 LIMIT 1)
		UNION ALL SELECT * FROM (` + memberColumns + ` AND state = 'pending' AND lane = ?1 AND waits = 0)
		UNION ALL SELECT * FROM (` + memberColumns + ` AND state = 'pending' AND lane = ?1 AND waits = 1 ORDER BY rank, seq LIMIT 1)
		UNION ALL SELECT * FROM (` + memberColumns + ` AND state = 'dead' AND lane = ?1 AND waits = 0 ORDER BY rank, seq LIMIT 1)`
	sqlLaneOf = `SELECT lane, state, lane_skip, passes, parks, source FROM event WHERE seq = ? AND lane <> ''`

	sqlLaneWait = `UPDATE event SET waits = 1 WHERE seq = ? AND state = 'pending'`
	// Whoever waited is due when its turn comes, by whatever clock it came.
	sqlLaneGo     = `UPDATE event SET waits = 0, next_at = min(next_at, ?) WHERE seq = ? AND state = 'pending'`
	sqlLaneStance = `UPDATE event SET passes = ?, parks = ? WHERE seq = ?`

	sqlAnyLane = `SELECT count(*) FROM (SELECT 1 FROM event INDEXED BY event_lane WHERE ` + openInLane + ` LIMIT 1)`
)

// findLanes tells whether some event or delivery is in a lane. Until one is,
// no finish looks for its lane.
func (s *Store) findLanes(ctx context.Context) error {
	for _, query := range []string{sqlAnyLane, sqlAnyDeliveryLane} {
		var some int
		if err := s.row(ctx, query, nil, &some); err != nil {
			return fmt.Errorf("look for lanes: %w", err)
		}
		if some > 0 {
			s.desk.lanes.Store(true)
		}
	}
	return nil
}

// finishInLane is finish, and what it means to the lane of the event.
func (st *settlement) finishInLane(t *tx, i int) error {
	err := st.finish(t, i)
	if st.effects[i].ordered {
		st.store.desk.lanes.Store(true)
	}
	if err != nil || !st.store.desk.lanes.Load() {
		return err
	}
	due, err := keepLane(t, st.at, st.finishes[i].Seq)
	st.due = st.due || due
	return err
}

// member is an open event of a lane.
type member struct {
	seq          int64
	state        event.State
	waits, parks bool
	rank         string
}

// before tells whether m goes before another.
func (m *member) before(other *member) bool {
	if m.rank != other.rank {
		return m.rank < other.rank
	}
	return m.seq < other.seq
}

func memberOf(r row) member {
	return member{r.int64(0), event.State(r.text(1)), r.bool(2), r.bool(3), r.text(4)}
}

// headOf is the member that is claimed, or the one whose turn it is; nil where
// there is none.
func headOf(members []member) (head *member) {
	for i := range members {
		m := &members[i]
		if m.state == event.Claimed {
			return m
		}
		if head == nil || m.before(head) {
			head = m
		}
	}
	return head
}

func membersOf(t *tx, lane string) (members []member, err error) {
	err = t.query(sqlLaneMembers, []any{lane}, func(r row) error {
		members = append(members, memberOf(r))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look at lane: %w", err)
	}
	return members, nil
}

// keepLane is called after an event has moved, or may have. It does nothing
// for one without a lane. due says that a member may be claimed that might not
// be before.
func keepLane(t *tx, now, seq int64) (due bool, err error) {
	var (
		lane, source        string
		state               event.State
		skip, passed, parks bool
	)
	err = t.query(sqlLaneOf, []any{seq}, func(r row) error {
		lane, state, skip, passed, parks, source = r.text(0), event.State(r.text(1)), r.bool(2), r.bool(3), r.bool(4), r.text(5)
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("look at lane of event %d: %w", seq, err)
	}
	if lane == "" {
		return false, nil
	}
	t.desk.lanes.Store(true)
	passes := state == event.Dead && (skip || passed)
	blocks := state == event.Dead && !passes
	if passes != passed || parks && !blocks {
		if _, err := t.exec(sqlLaneStance, passes, parks && blocks, seq); err != nil {
			return false, fmt.Errorf("change event %d in its lane: %w", seq, err)
		}
	}
	if parks && !blocks {
		if err := unpark(t, now, source); err != nil {
			return false, err
		}
	}
	return arrangeLane(t, now, lane)
}

// moveAll runs an UPDATE that returns the row ids that it moved, and keeps the
// lane of each.
func moveAll(t *tx, query string, args []any, now int64, keep func(t *tx, now, id int64) (bool, error)) (moved int, err error) {
	var ids []int64
	err = t.query(query, args, func(r row) error {
		ids = append(ids, r.int64(0))
		return nil
	})
	if err != nil {
		return 0, err
	}
	for _, id := range ids {
		if _, err := keep(t, now, id); err != nil {
			return 0, err
		}
	}
	return len(ids), nil
}

// arrangeLane makes the head of a lane due and lets all others wait, if nobody
// is claimed. Only the old and the new head are written.
func arrangeLane(t *tx, now int64, lane string) (due bool, err error) {
	members, err := membersOf(t, lane)
	if err != nil {
		return false, err
	}
	head, behind := headOf(members), false
	for i := range members {
		m := &members[i]
		if m.state != event.Pending || m == head {
			continue
		}
		behind = true
		if !m.waits {
			if _, err := t.exec(sqlLaneWait, m.seq); err != nil {
				return false, fmt.Errorf("let event %d wait: %w", m.seq, err)
			}
		}
	}
	switch {
	case head == nil:
		return false, nil
	case head.state == event.Dead && behind && !head.parks:
		return false, parkLane(t, now, lane, head.seq)
	case head.state == event.Pending && head.waits:
		if _, err := t.exec(sqlLaneGo, now, head.seq); err != nil {
			return false, fmt.Errorf("let event %d go: %w", head.seq, err)
		}
		return true, nil
	}
	return false, nil
}

// parkLane tells that others wait behind a dead head, once for each.
func parkLane(t *tx, now int64, lane string, head int64) error {
	var of event.Key
	err := t.query(sqlKeyOf, []any{head}, func(r row) error {
		of = keyOf(r, 0)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read event key: %w", err)
	}
	if _, err := t.exec(sqlLaneStance, false, true, head); err != nil {
		return fmt.Errorf("mark event %d in its lane: %w", head, err)
	}
	_, err = raise(t, now, event.Incident{
		Cause:   event.CauseLaneParked,
		Subject: of.Source,
		Detail:  fmt.Sprintf("%s is dead and others of its lane %q wait behind it. Repair the cause, then: creel lane retry %s. Or let them pass: creel lane skip %s.", of, lane, of, of),
	}, 1)
	return err
}

// unpark takes a lane off the incident of its source or destination. With the
// last one it is over.
func unpark(t *tx, now int64, subject string) error {
	const sqlUnpark = `UPDATE incident SET dead = max(dead - 1, 0), resolved_at = CASE WHEN dead <= 1 THEN ? END
		WHERE family = 'lane_parked' AND subject = ? AND resolved_at IS NULL RETURNING id, resolved_at IS NOT NULL`
	ended := int64(0)
	err := t.query(sqlUnpark, []any{now, subject}, func(r row) error {
		if r.bool(1) {
			ended = r.int64(0)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("relieve the incident of a lane: %w", err)
	}
	if ended != 0 {
		return over(t, now, ended)
	}
	return nil
}
