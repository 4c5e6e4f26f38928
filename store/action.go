package store

import (
	"context"
	"encoding/json"
	"fmt"

	"creel/event"
)

const (
	sqlInsertAction = `INSERT INTO action (kind, actor, reason, selector, target, at, selected, done, refused,
		finished_at, selection, once, once_what, resend, rate) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`
	sqlActionItem = `INSERT INTO action_item (action, n, event, result) VALUES (?,?,?,?)`

	actionColumns = `id, kind, actor, reason, selector, target, at, selected, done, refused, finished_at, resend, rate`
	actionWidth   = 13 // how many they are
	sqlActions    = `SELECT ` + actionColumns + ` FROM action WHERE id < ? ORDER BY id DESC LIMIT ?`
	sqlActionsOf  = `SELECT ` + actionColumns + ` FROM action WHERE id IN
		(SELECT action FROM action_item WHERE event = ?) ORDER BY id DESC LIMIT ?`
	sqlItems = `SELECT event.source, event.account, event.id, action_item.result
		FROM action_item JOIN event ON event.seq = action_item.event
		WHERE action_item.action = ? AND action_item.n > ? ORDER BY action_item.n LIMIT ?`
)

func insertAction(t *tx, a *event.Action, selection []byte) (int64, error) {
	selector, err := json.Marshal(a.Selector)
	if err != nil {
		return 0, fmt.Errorf("write selector: %w", err)
	}
	var by, what any
	if a.Once != (event.Once{}) {
		by, what = a.Once.By[:], a.Once.What[:]
	}
	id, _, err := t.insert(sqlInsertAction, string(a.Kind), a.Actor, a.Reason, string(selector), a.Target,
		a.At.UnixMilli(), a.Selected, a.Done, a.Refused, ms(a.Finished), selection, by, what, a.Resend, a.Rate)
	if err != nil {
		return 0, fmt.Errorf("store action: %w", err)
	}
	return id, nil
}

func actionOf(r row) event.Action {
	a := event.Action{
		ID: r.int64(0), Kind: event.ActionKind(r.text(1)), Actor: r.text(2), Reason: r.text(3), Target: r.text(5),
		At: timeOf(r, 6), Selected: r.int(7), Done: r.int(8), Refused: r.int(9), Finished: timeOf(r, 10),
		Resend: r.bool(11), Rate: r.real(12),
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
