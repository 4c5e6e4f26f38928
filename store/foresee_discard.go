package store

import (
	"context"
	"fmt"

	"creel/event"
)

const (
	sqlEventOf        = `SELECT ` + eventColumns + ` FROM event WHERE seq = ?`
	sqlWouldDiscard   = `SELECT count(*) FROM delivery INDEXED BY delivery_event WHERE event = ? AND state = 'dead'`
	sqlWouldDiscardTo = `SELECT count(*) FROM delivery INDEXED BY delivery_event WHERE event = ? AND destination = ? AND ` + openTo
)

// DiscardOutlook is what a discard would do to one event.
type DiscardOutlook struct {
	Event      event.Event
	Whole      bool   // the event itself would be discarded
	Deliveries int    // how many of its deliveries would be
	Refused    string // why nothing would; "" where something would
}

// ForeseeDiscard tells, event by event in the order in which they would be
// taken, what a discard would do. It only reads.
func (r *Reader) ForeseeDiscard(ctx context.Context, a event.Action, visit func(DiscardOutlook) error) error {
	a.Kind = event.ActionDiscard
	picks, err := r.pick(ctx, a)
	for i := 0; err == nil && i < len(picks); i++ {
		var o DiscardOutlook
		if o, err = r.foreseeDiscard(ctx, picks[i].seq, a.Target); err == nil {
			err = visit(o)
		}
	}
	if err != nil {
		return fmt.Errorf("foresee a discard: %w", err)
	}
	return nil
}

func (r *Reader) foreseeDiscard(ctx context.Context, seq int64, destination string) (o DiscardOutlook, err error) {
	query, args := sqlWouldDiscard, []any{seq}
	if destination != "" {
		query, args = sqlWouldDiscardTo, []any{seq, destination}
	}
	err = r.snapshot(ctx, func(s snapshot) error {
		err := s.list(sqlEventOf, []any{seq}, func(r row) error {
			o.Event = eventOf(r)
			return nil
		})
		if err != nil {
			return err
		}
		return s.row(query, args, &o.Deliveries)
	})
	o.Whole = destination == "" && o.Event.State == event.Dead
	switch {
	case destination != "" && o.Deliveries == 0:
		o.Refused = refusedNothingTo
	case destination != "":
	case o.Event.State == event.Pending || o.Event.State == event.Claimed:
		o.Refused = refusedQueued
	case o.Event.State == event.Discarded && o.Deliveries == 0:
		o.Refused = refusedGone
	case !o.Whole && o.Deliveries == 0:
		o.Refused = refusedAlive
	}
	if o.Refused != "" {
		o.Deliveries = 0
	}
	return o, err
}
