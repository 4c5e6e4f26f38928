package store

import (
	"context"
	"fmt"

	"creel/event"
)

const sqlOutgoing = `SELECT state, count(*) FROM delivery INDEXED BY delivery_event WHERE event = ? GROUP BY state`

// Outgoing counts the deliveries of each of some events by their states, for
// lists of events. Events without a delivery are not there.
func (r *Reader) Outgoing(ctx context.Context, seqs []int64) (map[int64]event.Outgoing, error) {
	counts := map[int64]event.Outgoing{}
	err := r.snapshot(ctx, func(s snapshot) error {
		clear(counts)
		for _, seq := range seqs {
			err := s.list(sqlOutgoing, []any{seq}, func(r row) error {
				if counts[seq] == nil {
					counts[seq] = event.Outgoing{}
				}
				counts[seq][event.DeliveryState(r.text(0))] = r.int(1)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count deliveries of events: %w", err)
	}
	return counts, nil
}
