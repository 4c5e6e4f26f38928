package store

import (
	"context"
	"fmt"

	"creel/event"
)

// Census is how much work is open, and how much of it is dead. It says nothing
// of what is done: that is most, and is counted as it happens.
type Census struct {
	Events     map[event.State]int64                    // pending, claimed and dead
	Deliveries map[string]map[event.DeliveryState]int64 // by destination: ready, waiting, in doubt and dead
	Incidents  map[event.Cause]int64                    // open ones
}

// Each statement reads a partial index and no row, and none the dead letters. What is claimed for sending
// is not among it: the dispatcher has it in memory.
const (
	sqlCensusEvents = `SELECT state, count(*) FROM event INDEXED BY event_open
		WHERE state <> 'done' AND (state = 'pending' OR state = 'claimed') GROUP BY state`
	sqlCensusReady = `SELECT destination, 'ready', count(*) FROM delivery INDEXED BY delivery_due
		WHERE state = 'ready' GROUP BY destination`
	sqlCensusStuck = `SELECT destination, state, count(*) FROM delivery INDEXED BY delivery_stuck
		WHERE (state = 'in_doubt' OR state = 'waiting') GROUP BY destination, state`
	// Dead letters are counted as they die; an alert that could not be sent is none.
	sqlCensusDead = `SELECT kind, destination, sum(dead) FROM failure INDEXED BY failure_dead WHERE dead > 0 GROUP BY 1, 2
		UNION ALL SELECT 'delivery', destination, count(*) FROM delivery INDEXED BY delivery_dead
		WHERE state = 'dead' AND event IS NULL GROUP BY 2`
	sqlCensusIncidents = `SELECT cause, count(*) FROM incident INDEXED BY incident_open WHERE resolved_at IS NULL GROUP BY cause`
)

// Census counts on one state of the database. It costs some tenths of
// a microsecond for each open row, so whoever asks often keeps the answer.
func (r *Reader) Census(ctx context.Context) (Census, error) {
	c := Census{Events: map[event.State]int64{}, Deliveries: map[string]map[event.DeliveryState]int64{}, Incidents: map[event.Cause]int64{}}
	err := r.snapshot(ctx, func(snap snapshot) error {
		err := snap.list(sqlCensusEvents, nil, func(r row) error {
			c.Events[event.State(r.text(0))] = r.int64(1)
			return nil
		})
		if err != nil {
			return err
		}
		for _, query := range []string{sqlCensusReady, sqlCensusStuck} {
			err := snap.list(query, nil, func(r row) error {
				c.add(r.text(0), event.DeliveryState(r.text(1)), r.int64(2))
				return nil
			})
			if err != nil {
				return err
			}
		}
		err = snap.list(sqlCensusDead, nil, func(r row) error {
			if event.FailureKind(r.text(0)) == event.FailedEvent {
				c.Events[event.Dead] += r.int64(2)
			} else {
				c.add(r.text(1), event.DeliveryDead, r.int64(2))
			}
			return nil
		})
		if err != nil {
			return err
		}
		return snap.list(sqlCensusIncidents, nil, func(r row) error {
			c.Incidents[event.Cause(r.text(0))] = r.int64(1)
			return nil
		})
	})
	if err != nil {
		return Census{}, fmt.Errorf("take a census: %w", err)
	}
	return c, nil
}

func (c *Census) add(destination string, state event.DeliveryState, n int64) {
	of := c.Deliveries[destination]
	if of == nil {
		of = map[event.DeliveryState]int64{}
		c.Deliveries[destination] = of
	}
	of[state] += n
}
