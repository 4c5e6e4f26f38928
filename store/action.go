package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"creel/event"
)

const (
	// actionChunk is how many events one transaction of a bulk action takes:
	// intake waits for no more than that.
	actionChunk = 250
	// actionPause is how long a bulk action waits when the writer's queue is
	// full or the store can not write.
	actionPause = 50 * time.Millisecond

	sqlInsertAction = `INSERT INTO action (kind, actor, reason, selector, target, at, selected, done, refused,
		finished_at, selection) VALUES (?,?,?,?,?,?,?,?,?,?,?)`
	sqlActionItem = `INSERT INTO action_item (action, n, event, result) VALUES (?,?,?,?)`
	sqlProgress   = `UPDATE action SET done = ?1, refused = ?2, finished_at = ?3,
		selection = CASE WHEN ?3 IS NULL THEN selection END WHERE id = ?4`

	sqlProgressOf = `SELECT done, refused FROM action WHERE id = ?`

	actionColumns = `id, kind, actor, reason, selector, target, at, selected, done, refused, finished_at`
	sqlRunning    = `SELECT ` + actionColumns + `, selection FROM action WHERE finished_at IS NULL ORDER BY id`
	sqlActions    = `SELECT ` + actionColumns + ` FROM action WHERE id < ? ORDER BY id DESC LIMIT ?`
	sqlActionsOf  = `SELECT ` + actionColumns + ` FROM action WHERE id IN
		(SELECT action FROM action_item WHERE event = ?) ORDER BY id DESC LIMIT ?`
	sqlItems = `SELECT event.source, event.account, event.id, action_item.result
		FROM action_item JOIN event ON event.seq = action_item.event
		WHERE action_item.action = ? AND action_item.n > ? ORDER BY action_item.n LIMIT ?`
)

// act does an action to one event and tells what came of it.
type act func(t *tx, now int64, p pick) (result string, done bool, err error)

// bulk is an action on a frozen selection. Its row, its progress and the
// results of a chunk commit with the chunk, so it goes on where a crash cut
// it, and every event is audited once.
type bulk struct {
	store  *Store
	act    act
	action event.Action
	picks  []pick
	cause  error // the last error, of a chunk that was not stored

	// What the last run of a chunk came to; a rerun writes it anew.
	next event.Action
}

// perform freezes the selection, does the first chunk in the transaction that
// writes the action, and the others after it in the background. It waits for
// the end; when ctx ends first the action goes on and is returned as far as it
// is, with the context's error.
func (s *Store) perform(ctx context.Context, now time.Time, a event.Action, do act) (event.Action, error) {
	picks, err := s.pick(ctx, a.Selector)
	if err != nil {
		return event.Action{}, fmt.Errorf("%s: %w", a.Kind, err)
	}
	if len(picks) == 0 && len(a.Selector.Keys) > 0 {
		return event.Action{}, fmt.Errorf("%s: no event has that key: %w", a.Kind, event.ErrNotFound)
	}
	a.At, a.Selected, a.Done, a.Refused, a.Finished = now, len(picks), 0, 0, time.Time{}
	b := &bulk{store: s, act: do, action: a, picks: picks}
	if err := b.chunk(); err != nil {
		return event.Action{}, fmt.Errorf("%s: %w", a.Kind, err)
	}
	if b.over() {
		return b.action, nil
	}
	first, through := b.action, make(chan struct{})
	s.background(func() {
		defer close(through)
		b.rest()
	})
	select {
	case <-through:
		return b.action, b.cause
	case <-ctx.Done():
		return first, fmt.Errorf("%s %d goes on: %w", a.Kind, first.ID, context.Cause(ctx))
	}
}

func (s *Store) background(run func()) { s.desk.actions.running.Go(run) }

func (b *bulk) over() bool { return b.action.Done+b.action.Refused == b.action.Selected }

// rest does the chunks that are left. It ends early when the store is
// closed; Recover goes on from there.
func (b *bulk) rest() {
	for !b.over() {
		err := b.chunk()
		if err == nil {
			continue
		}
		if errors.Is(err, ErrClosed) || !errors.Is(err, event.ErrBusy) && !errors.Is(err, event.ErrUnavailable) {
			b.cause = fmt.Errorf("%s %d stopped after %d of %d: %w", b.action.Kind, b.action.ID,
				b.action.Done+b.action.Refused, b.action.Selected, err)
			b.store.log.Error().Err(err).Int64(event.FieldAction, b.action.ID).Msg("bulk action stopped, a restart goes on with it")
			return
		}
		select {
		case <-time.After(actionPause):
		case <-b.store.stopped:
		}
	}
}

// chunk does the next events in one transaction, with their results and the
// action's progress.
func (b *bulk) chunk() error {
	if err := b.store.write(context.Background(), work, actionChunk, b.run); err != nil {
		return err
	}
	b.action = b.next
	ring(b.store.desk.events)
	ring(b.store.desk.deliveries)
	return nil
}

// run is one chunk in the writer's transaction.
//
// A crash before the commit leaves the action at the chunk before; after it,
// at this one. The first chunk brings the action's row along.
func (b *bulk) run(t *tx) error {
	a, err := b.standing(t)
	if err != nil {
		return err
	}
	from := a.Done + a.Refused
	chunk := b.picks[from:min(from+actionChunk, len(b.picks))]
	for i, p := range chunk {
		result, done, err := b.act(t, a.At.UnixMilli(), p)
		if err != nil {
			return err
		}
		if done {
			a.Done++
		} else {
			a.Refused++
		}
		if _, err := t.exec(sqlActionItem, a.ID, from+i+1, p.seq, result); err != nil {
			return fmt.Errorf("store result: %w", err)
		}
	}
	if a.Done+a.Refused == a.Selected {
		a.Finished = b.store.options.Clock()
	}
	if _, err := t.exec(sqlProgress, a.Done, a.Refused, ms(a.Finished), a.ID); err != nil {
		return fmt.Errorf("store progress: %w", err)
	}
	b.next = a
	return nil
}

// standing is the action as its row says: a chunk whose commit had no known
// end may have been stored. The first chunk inserts the row.
func (b *bulk) standing(t *tx) (event.Action, error) {
	a := b.action
	if a.ID == 0 {
		id, err := insertAction(t, &a, freeze(b.picks))
		a.ID = id
		return a, err
	}
	err := t.query(sqlProgressOf, []any{a.ID}, func(r row) error {
		a.Done, a.Refused = r.int(0), r.int(1)
		return nil
	})
	if err != nil {
		return a, fmt.Errorf("read progress: %w", err)
	}
	return a, nil
}

func insertAction(t *tx, a *event.Action, selection []byte) (int64, error) {
	selector, err := json.Marshal(a.Selector)
	if err != nil {
		return 0, fmt.Errorf("write selector: %w", err)
	}
	id, _, err := t.insert(sqlInsertAction, string(a.Kind), a.Actor, a.Reason, string(selector), a.Target,
		a.At.UnixMilli(), a.Selected, a.Done, a.Refused, ms(a.Finished), selection)
	if err != nil {
		return 0, fmt.Errorf("store action: %w", err)
	}
	return id, nil
}

// resumeActions goes on with what a crash cut short, in the background.
func (s *Store) resumeActions(ctx context.Context) (int, error) {
	var cut []*bulk
	err := s.list(ctx, sqlRunning, nil, func(r row) error {
		picks, err := thaw(r.blob(11))
		if err != nil {
			return err
		}
		b := &bulk{store: s, action: actionOf(r), picks: picks}
		switch b.action.Kind {
		case event.ActionReplay:
			b.act = replay
		case event.ActionDiscard:
			b.act = discard
		default:
			return fmt.Errorf("action %d: unknown kind %q", b.action.ID, b.action.Kind)
		}
		cut = append(cut, b)
		return nil
	})
	if err != nil || len(cut) == 0 {
		return 0, err
	}
	s.background(func() {
		for _, b := range cut {
			b.rest()
		}
	})
	return len(cut), nil
}

func actionOf(r row) event.Action {
	a := event.Action{
		ID: r.int64(0), Kind: event.ActionKind(r.text(1)), Actor: r.text(2), Reason: r.text(3), Target: r.text(5),
		At: timeOf(r, 6), Selected: r.int(7), Done: r.int(8), Refused: r.int(9), Finished: timeOf(r, 10),
	}
	// A selector that a newer version wrote is shown as far as it is known.
	_ = json.Unmarshal([]byte(r.text(4)), &a.Selector)
	return a
}

// Actions lists the audit trail, newest first. Page.Before is an action's id.
func (r *Reader) Actions(ctx context.Context, page event.Page) ([]event.Action, error) {
	before, limit := bounds(page)
	var list []event.Action
	err := r.list(ctx, sqlActions, []any{before, limit}, func(r row) error {
		list = append(list, actionOf(r))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list actions: %w", err)
	}
	return list, nil
}

// ActionItems lists the keys of an action in the order in which they were
// acted on, after the n-th, at most 500.
func (r *Reader) ActionItems(ctx context.Context, action int64, after int) ([]event.ActionItem, error) {
	var list []event.ActionItem
	err := r.list(ctx, sqlItems, []any{action, after, maxPage}, func(r row) error {
		list = append(list, event.ActionItem{Action: action, Event: keyOf(r, 0), Result: r.text(3)})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list items of action %d: %w", action, err)
	}
	return list, nil
}
