package store

import (
	"context"
	"fmt"
	"time"

	"creel/event"
)

// AcceptFor is Accept on behalf of an operator: the audit row, with the events
// that the receipt came to, commits with them.
func (s *Store) AcceptFor(ctx context.Context, receipt *event.Receipt, action event.Action) (event.Accepted, event.Action, error) {
	a := s.newAcceptance(receipt)
	var done event.Action
	// A crash before the commit leaves neither events nor action; after it, both.
	a.unit.run = func(t *tx) (err error) {
		if err := a.run(t); err != nil {
			return err
		}
		done, err = auditAccepted(t, action, a.result.Items)
		return err
	}
	if err := s.submit(intake, &a.unit); err != nil {
		a.release(a.reserved)
		return event.Accepted{}, action, fmt.Errorf("accept: %w", err)
	}
	select {
	case <-a.answered:
		return a.result, done, a.err
	case <-ctx.Done():
		return event.Accepted{}, action, unavailable("accept", context.Cause(ctx))
	}
}

func auditAccepted(t *tx, a event.Action, items []event.AcceptedItem) (event.Action, error) {
	a.Finished, a.Selected, a.Done, a.Refused = a.At, len(items), len(items), 0
	id, err := insertAction(t, &a, nil)
	if err != nil {
		return a, err
	}
	a.ID = id
	for i, item := range items {
		result := "accepted"
		if item.Result != event.New {
			result = string(item.Result)
		}
		if _, err := t.exec(sqlActionItem, id, i+1, item.Seq, result); err != nil {
			return a, fmt.Errorf("store result: %w", err)
		}
	}
	return a, nil
}

// Note writes an act of an operator that changes nothing in the database.
func (s *Store) Note(ctx context.Context, now time.Time, a event.Action) (event.Action, error) {
	var done event.Action
	err := s.write(ctx, work, 1, func(t *tx) (err error) {
		done = a
		done.At, done.Finished, done.Selected, done.Done = now, now, 1, 1
		done.ID, err = insertAction(t, &done, nil)
		return err
	})
	if err != nil {
		return a, fmt.Errorf("%s %s: %w", a.Kind, a.Target, err)
	}
	return done, nil
}
