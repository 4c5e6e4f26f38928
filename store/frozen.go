package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"creel/event"
)

// Frozen is what an action selected at one moment, event by event with the run
// that each was in: what an operator looked at before he said yes. It holds two
// or three bytes for an event.
type Frozen struct {
	picks []byte
	n     int
}

// Len is how many events are in it.
func (f Frozen) Len() int { return f.n }

// Freeze selects the events that an action means now. Nothing is changed.
func (r *Reader) Freeze(ctx context.Context, a event.Action) (Frozen, error) {
	picks, err := r.pick(ctx, a)
	if err != nil {
		return Frozen{}, fmt.Errorf("freeze a selection: %w", err)
	}
	return Frozen{picks: freeze(picks), n: len(picks)}, nil
}

// FrozenEvents reads the first events of a frozen selection as they are now, at
// most limit, in the order in which they would be taken.
func (r *Reader) FrozenEvents(ctx context.Context, f Frozen, limit int) ([]event.Event, error) {
	picks, err := thaw(f.picks)
	if err != nil {
		return nil, err
	}
	return r.picked(ctx, picks[:min(limit, len(picks))])
}

func (r *Reader) picked(ctx context.Context, picks []pick) (list []event.Event, err error) {
	err = r.snapshot(ctx, func(s snapshot) error {
		for _, p := range picks {
			err := s.list(sqlEventOf, []any{p.seq}, func(r row) error {
				list = append(list, eventOf(r))
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read a frozen selection: %w", err)
	}
	return list, nil
}

// WalkFrozen reads the events of a frozen selection as they are now, some at a
// time, in the order in which they would be taken.
func (r *Reader) WalkFrozen(ctx context.Context, f Frozen, some int, visit func(event.Event) error) error {
	picks, err := thaw(f.picks)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(picks, some) {
		list, err := r.picked(ctx, part)
		if err != nil {
			return err
		}
		for _, e := range list {
			if err := visit(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// ActFrozen does a replay or a discard on a frozen selection, as Replay and
// Discard do on one that is made now. An event that another replay took since
// it was frozen is refused.
func (s *Store) ActFrozen(ctx context.Context, now time.Time, a event.Action, f Frozen) (event.Action, error) {
	do, err := actOf(a)
	if err != nil {
		return event.Action{}, err
	}
	picks, err := thaw(f.picks)
	if err != nil {
		return event.Action{}, fmt.Errorf("%s: %w", a.Kind, err)
	}
	return s.carry(ctx, now, a, picks, do)
}
