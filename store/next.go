package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"creel/event"
)

const (
	sqlNextEvent    = `SELECT next_at FROM event INDEXED BY event_due WHERE state = 'pending' AND waits = 0 ORDER BY next_at, seq LIMIT 1`
	sqlNextDelivery = `SELECT next_at FROM delivery INDEXED BY delivery_due WHERE state = 'ready' AND destination = ?
		ORDER BY next_at, id LIMIT 1`
)

// NextEvent tells when the earliest pending event is due, if there is one.
func (r *Reader) NextEvent(ctx context.Context) (time.Time, bool, error) {
	return r.next(ctx, sqlNextEvent)
}

// NextDelivery tells when the earliest ready delivery of a destination is due,
// if there is one, whatever state the destination is in.
func (r *Reader) NextDelivery(ctx context.Context, destination string) (time.Time, bool, error) {
	return r.next(ctx, sqlNextDelivery, destination)
}

func (r *Reader) next(ctx context.Context, query string, args ...any) (time.Time, bool, error) {
	var at int64
	found, err := none(r.row(ctx, query, args, &at))
	if err != nil {
		return time.Time{}, false, fmt.Errorf("look for the next due time: %w", err)
	}
	if !found {
		return time.Time{}, false, nil
	}
	return time.UnixMilli(at).UTC(), true, nil
}

// none turns "no row" into a plain no.
func none(err error) (bool, error) {
	if errors.Is(err, event.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// sqlNextDestination steps over an index, one entry a destination.
const sqlNextDestination = `SELECT destination FROM delivery INDEXED BY delivery_due
	WHERE state = 'ready' AND destination > ? ORDER BY destination LIMIT 1`

// WaitingDestinations names, in order, the destinations that have ready
// deliveries, whether the configuration still knows them or not.
func (r *Reader) WaitingDestinations(ctx context.Context) ([]string, error) {
	var names []string
	for name := ""; ; {
		found, err := none(r.row(ctx, sqlNextDestination, []any{name}, &name))
		if err != nil {
			return nil, fmt.Errorf("look for waiting deliveries: %w", err)
		}
		if !found {
			return names, nil
		}
		names = append(names, name)
	}
}
