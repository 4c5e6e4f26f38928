package store

import (
	"context"
	"fmt"

	"creel/event"
)

// Stats counts what is in the database. Rows are never deleted, so totals are
// the highest row ids; only what is not done or sent is counted, over its
// partial index.
type Stats struct {
	Events     map[event.State]int64         // every state but done
	Done       int64                         // events that are done
	Deliveries map[event.DeliveryState]int64 // every state but sent
	Sent       int64                         // deliveries that are sent
	Bytes      int64                         // size of the database, without its WAL
}

const (
	sqlEventTotal    = `SELECT ifnull(max(seq), 0) FROM event`
	sqlEventStates   = `SELECT state, count(*) FROM event INDEXED BY event_open WHERE state <> 'done' GROUP BY state`
	sqlOutboxTotal   = `SELECT ifnull(max(id), 0) FROM delivery`
	sqlOutboxStates  = `SELECT state, count(*) FROM delivery INDEXED BY delivery_open WHERE state <> 'sent' GROUP BY state`
	sqlDatabaseBytes = `SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()`
)

// Stats reads the counts on one state of the database.
func (r *Reader) Stats(ctx context.Context) (Stats, error) {
	s := Stats{Events: map[event.State]int64{}, Deliveries: map[event.DeliveryState]int64{}}
	err := r.snapshot(ctx, func(snap snapshot) error {
		if err := snap.row(sqlEventTotal, nil, &s.Done); err != nil {
			return err
		}
		err := snap.list(sqlEventStates, nil, func(r row) error {
			s.Events[event.State(r.text(0))] = r.int64(1)
			s.Done -= r.int64(1)
			return nil
		})
		if err != nil {
			return err
		}
		if err := snap.row(sqlOutboxTotal, nil, &s.Sent); err != nil {
			return err
		}
		err = snap.list(sqlOutboxStates, nil, func(r row) error {
			s.Deliveries[event.DeliveryState(r.text(0))] = r.int64(1)
			s.Sent -= r.int64(1)
			return nil
		})
		if err != nil {
			return err
		}
		return snap.row(sqlDatabaseBytes, nil, &s.Bytes)
	})
	if err != nil {
		return Stats{}, fmt.Errorf("read stats: %w", err)
	}
	return s, nil
}
