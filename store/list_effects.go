package store

import (
	"context"
	"fmt"
	"strings"

	"creel/event"
)

const (
	withEvent = `event.source, event.account, event.id FROM `

	recordColumns     = `record.id, record.rule, record.kind, record.key, record.long_key, record.fields, record.at, `
	entryColumns      = `ledger.id, ledger.rule, ledger.key, ledger.long_key, ledger.holder, ledger.unit, ledger.amount, ledger.balance, ledger.reverses, ledger.at, `
	transitionColumns = `transition.id, transition.rule, transition.key, transition.long_key, transition.object, transition.from_state,
		transition.state, transition.version, transition.fields, transition.at, `

	sqlEntries = `SELECT ` + entryColumns + withEvent + `ledger CROSS JOIN event ON event.seq = ledger.event
		WHERE ledger.id < ? ORDER BY ledger.id DESC LIMIT ?`
	// The chain of one balance's rows, from its newest or from the one before
	// another.
	sqlLedgerOf = `WITH RECURSIVE chain (id, n) AS (
			SELECT CASE WHEN ?3 = 0 THEN (SELECT last FROM balance WHERE holder = ?1 AND unit = ?2)
				ELSE (SELECT previous FROM ledger WHERE id = ?3 AND holder = ?1 AND unit = ?2) END, 1
			UNION ALL SELECT ledger.previous, n + 1 FROM chain JOIN ledger ON ledger.id = chain.id WHERE n < ?4)
		SELECT ` + entryColumns + withEvent + `chain CROSS JOIN ledger ON ledger.id = chain.id
		CROSS JOIN event ON event.seq = ledger.event`
	sqlBalances = `SELECT holder, unit, amount, at FROM balance WHERE (holder, unit) > (?, ?) ORDER BY holder, unit LIMIT ?`
	sqlHoldings = `SELECT holder, unit, amount, at FROM balance WHERE holder = ? AND unit > ? ORDER BY unit LIMIT ?`

	sqlObjectState = `SELECT state.object, state.long_object, state.state, state.fields, state.version, state.at, ` + withEvent + `
		state JOIN event ON event.seq = state.event WHERE state.object = ?`
	sqlHistoryOf = `WITH RECURSIVE chain (id, n) AS (
			SELECT CASE WHEN ?2 = 0 THEN (SELECT transition FROM state WHERE object = ?1)
				ELSE (SELECT previous FROM transition WHERE id = ?2 AND object = ?1) END, 1
			UNION ALL SELECT transition.previous, n + 1 FROM chain JOIN transition ON transition.id = chain.id WHERE n < ?3)
		SELECT ` + transitionColumns + withEvent + `chain CROSS JOIN transition ON transition.id = chain.id
		CROSS JOIN event ON event.seq = transition.event`

	sqlRecordsOf     = `SELECT ` + recordColumns + withEvent + `record JOIN event ON event.seq = record.event WHERE record.event = ? ORDER BY record.id LIMIT ?`
	sqlEntriesOf     = `SELECT ` + entryColumns + withEvent + `ledger JOIN event ON event.seq = ledger.event WHERE ledger.event = ? ORDER BY ledger.id LIMIT ?`
	sqlTransitionsOf = `SELECT ` + transitionColumns + withEvent + `transition JOIN event ON event.seq = transition.event
		WHERE transition.event = ? ORDER BY transition.id LIMIT ?`
)

// RecordFilter narrows a list of records. Empty fields take everything.
type RecordFilter struct {
	Kind string
	Key  string // business key
}

// Records lists records, newest first. Page.Before is a record's id.
func (r *Reader) Records(ctx context.Context, f RecordFilter, page event.Page) ([]event.KeptRecord, error) {
	before, limit := bounds(page)
	query, args, err := r.recordQuery(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("list records: %w", err)
	}
	var list []event.KeptRecord
	err = r.list(ctx, query, append(args, before, limit), func(r row) error {
		list = append(list, keptRecord(r))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list records: %w", err)
	}
	return list, nil
}

func (r *Reader) recordQuery(ctx context.Context, f RecordFilter) (string, []any, error) {
	const end = ` AND record.id < ? ORDER BY record.id DESC LIMIT ?`
	query := `SELECT ` + recordColumns + withEvent + `record CROSS JOIN event ON event.seq = record.event WHERE 1`
	if f.Key == "" && f.Kind == "" {
		return query + end, nil, nil
	}
	if f.Key == "" {
		return query + ` AND record.kind = ?` + end, []any{f.Kind}, nil
	}
	forms, err := r.storedForms(ctx, f.Key)
	if err != nil {
		return "", nil, err
	}
	query += ` AND record.key IN (?` + strings.Repeat(",?", len(forms)-1) + `)`
	if f.Kind != "" {
		query += ` AND record.kind = ?`
		forms = append(forms, f.Kind)
	}
	return query + end, forms, nil
}

func keptRecord(r row) event.KeptRecord {
	k := event.KeptRecord{ID: r.int64(0), Rule: r.text(1), Kind: r.text(2), Fields: readFields(r.text(5)), At: timeOf(r, 6), Event: keyOf(r, 7)}
	k.Key, k.LongKey = showKey(r.text(3), r.text(4), k.Event)
	return k
}

// Ledger lists the entries of one holder and unit, or of all where both are
// empty, newest first. Page.Before is an entry's id.
func (r *Reader) Ledger(ctx context.Context, holder, unit string, page event.Page) ([]event.Entry, error) {
	before, limit := bounds(page)
	query, args := sqlEntries, []any{before, limit}
	if holder != "" || unit != "" {
		query, args = sqlLedgerOf, []any{holder, unit, max(page.Before, 0), limit}
	}
	var list []event.Entry
	err := r.list(ctx, query, args, func(r row) error {
		list = append(list, entryOf(r))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the ledger: %w", err)
	}
	return list, nil
}

func entryOf(r row) event.Entry {
	n := event.Entry{
		ID: r.int64(0), Rule: r.text(1), Holder: r.text(4), Unit: r.text(5), Amount: r.int64(6), Balance: r.int64(7),
		Reverses: r.int64(8), At: timeOf(r, 9), Event: keyOf(r, 10),
	}
	n.Key, n.LongKey = showKey(r.text(2), r.text(3), n.Event)
	return n
}

// Balances lists balances in the order of holder and unit, up to limit of those
// behind after (the zero Balance starts at the first), of one holder alone
// where holder is not empty.
func (r *Reader) Balances(ctx context.Context, holder string, after event.Balance, limit int) ([]event.Balance, error) {
	_, limit = bounds(event.Page{Limit: limit})
	query, args := sqlBalances, []any{after.Holder, after.Unit, limit}
	if holder != "" {
		query, args = sqlHoldings, []any{holder, after.Unit, limit}
	}
	var list []event.Balance
	err := r.list(ctx, query, args, func(r row) error {
		list = append(list, event.Balance{Holder: r.text(0), Unit: r.text(1), Amount: r.int64(2), At: timeOf(r, 3)})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list balances: %w", err)
	}
	return list, nil
}

// ObjectState reads the current state of an object; event.ErrNotFound.
func (r *Reader) ObjectState(ctx context.Context, object string) (event.ObjectState, error) {
	stored, _ := event.Fold(object)
	var s event.ObjectState
	err := event.ErrNotFound
	failed := r.list(ctx, sqlObjectState, []any{stored}, func(r row) error {
		s = event.ObjectState{
			Object: r.text(0), LongObject: r.text(1), State: r.text(2), Fields: readFields(r.text(3)), Version: r.text(4),
			At: timeOf(r, 5), Event: keyOf(r, 6),
		}
		err = nil
		return nil
	})
	if failed != nil {
		err = failed
	}
	if err != nil {
		return s, fmt.Errorf("read the state of %s: %w", object, err)
	}
	return s, nil
}

// ObjectHistory lists the transitions of an object, newest first. Page.Before
// is a transition's id.
func (r *Reader) ObjectHistory(ctx context.Context, object string, page event.Page) ([]event.Transition, error) {
	_, limit := bounds(page)
	stored, _ := event.Fold(object)
	var list []event.Transition
	err := r.list(ctx, sqlHistoryOf, []any{stored, max(page.Before, 0), limit}, func(r row) error {
		list = append(list, transitionOf(r))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the history of %s: %w", object, err)
	}
	return list, nil
}

func transitionOf(r row) event.Transition {
	n := event.Transition{
		ID: r.int64(0), Rule: r.text(1), Object: r.text(4), From: r.text(5), State: r.text(6), Version: r.text(7),
		Fields: readFields(r.text(8)), At: timeOf(r, 9), Event: keyOf(r, 10),
	}
	if !r.null(2) {
		n.Key, n.LongKey = showKey(r.text(2), r.text(3), n.Event)
	}
	return n
}

// readEffects reads what an event did in this file.
func (d *EventDetail) readEffects(s snapshot, seq int64) error {
	err := s.list(sqlRecordsOf, []any{seq, maxPage}, func(r row) error {
		d.Records = append(d.Records, keptRecord(r))
		return nil
	})
	if err != nil {
		return err
	}
	err = s.list(sqlEntriesOf, []any{seq, maxPage}, func(r row) error {
		d.Entries = append(d.Entries, entryOf(r))
		return nil
	})
	if err != nil {
		return err
	}
	err = s.list(sqlTransitionsOf, []any{seq, maxPage}, func(r row) error {
		d.Transitions = append(d.Transitions, transitionOf(r))
		return nil
	})
	if err != nil {
		return err
	}
	return s.list(sqlOperationsOf, []any{seq, maxPage}, func(r row) error {
		d.Operations = append(d.Operations, operationOf(r))
		return nil
	})
}
