package store

import (
	"database/sql/driver"

	"creel/event"
)

// The places of what an item in a lane binds besides, see sqlInsertInLane.
const (
	stateArg, attemptsArg = 3, 4
	nextArg, claimArg     = 6, 8
	laneArg               = payloadArg + payloadArgs
	waitsArg              = laneArg + 3
)

// bindLane adds what sqlInsertInLane takes besides.
func (a *acceptance) bindLane(args bound, item *event.Item) bound {
	a.store.desk.lanes.Store(true)
	item.Lane, _ = event.Fold(item.Lane)
	rank, _ := event.Rank(item.Version)
	for _, v := range []any{item.Lane, rank, item.LaneSkip, false} {
		args = append(args, driver.NamedValue{Ordinal: len(args) + 1, Value: value(v)})
	}
	return args
}

// overtaken tells of which items a later one of the same receipt has to go
// first: they can not be born claimed. It is nil where that can not be asked.
func overtaken(items []event.Item) map[int]bool {
	if len(items) < 2 {
		return nil
	}
	late := map[int]bool{}
	lowest := map[string]string{} // of the items behind, by lane
	for i := len(items) - 1; i >= 0; i-- {
		lane := items[i].Lane
		if lane == "" || items[i].State != event.Pending {
			continue
		}
		rank, _ := event.Rank(items[i].Version)
		if least, known := lowest[lane]; known && least < rank {
			late[i] = true
		} else {
			lowest[lane] = rank
		}
	}
	return late
}

// choose gives the statement of an item and its arguments. One whose lane has
// another open member can not be born claimed: it waits, until its lane is
// arranged.
func (a *acceptance) choose(t *tx, i int) (insert string, args bound, err error) {
	item := &a.receipt.Items[i]
	if item.Lane == "" {
		return sqlInsertEvent, a.inserts[i], nil
	}
	args = append(bound(nil), a.inserts[i]...)
	if item.State != event.Pending {
		return sqlInsertInLane, args, nil
	}
	members, err := membersOf(t, item.Lane)
	if err != nil {
		return "", nil, err
	}
	if len(members) > 0 {
		args[stateArg].Value, args[attemptsArg].Value = string(event.Pending), int64(0)
		args[nextArg].Value, args[claimArg].Value = a.at, nil
		args[waitsArg].Value = int64(1)
	}
	return sqlInsertInLane, args, nil
}

// queue follows up the insert of an event that nobody has in his hands.
func (a *acceptance) queue(t *tx, args bound, seq int64) error {
	if len(args) <= waitsArg || args[waitsArg].Value == int64(0) {
		a.waiting = true
		return nil
	}
	due, err := keepLane(t, a.at, seq)
	a.waiting = a.waiting || due
	return err
}
