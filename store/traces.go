package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"creel/event"
)

// Trace is one thing that events left in this file, without what differs
// from one run of the same events to the next: ids, times and attempts.
type Trace struct {
	Table string // event, record, ledger, balance, state, transition, operation or delivery
	Rule  string // that left it; of a dead event the one that failed; "" of a balance
	Event event.Key
	Name  string // what it is called: the same in two databases is the same thing
	Value string // what it says
	// Path says that it is how something came about and not what it came to: of
	// another order of the same events it may be another one.
	Path bool
}

const (
	sqlTracedEvents = `SELECT event.source, event.account, event.id, event.state, event.error,
		ifnull((SELECT v.rule FROM verdict AS v WHERE v.event = event.seq AND v.run = event.run AND v.decision = 'dead' AND v.rule <> '' LIMIT 1), '')
		FROM event ORDER BY event.seq`
	sqlTracedRecords = `SELECT event.source, event.account, event.id, record.rule, record.key, record.long_key, record.kind, record.fields
		FROM record JOIN event ON event.seq = record.event ORDER BY record.id`
	sqlTracedEntries = `SELECT event.source, event.account, event.id, ledger.rule, ledger.key, ledger.long_key,
		ledger.amount, ledger.unit, ledger.holder FROM ledger JOIN event ON event.seq = ledger.event ORDER BY ledger.id`
	sqlTracedBalances = `SELECT holder, unit, amount FROM balance`
	sqlTracedStates   = `SELECT event.source, event.account, event.id, transition.rule, state.object, state.long_object, state.state, state.fields, state.version
		FROM state JOIN event ON event.seq = state.event JOIN transition ON transition.id = state.transition`
	sqlTracedTransitions = `SELECT event.source, event.account, event.id, transition.rule, transition.key, transition.long_key,
		transition.object, transition.from_state, transition.state, transition.fields, transition.version
		FROM transition JOIN event ON event.seq = transition.event ORDER BY transition.id`
	sqlTracedOperations = `SELECT event.source, event.account, event.id, operation.rule, operation.key, operation.long_key, operation.params
		FROM operation JOIN event ON event.seq = operation.event ORDER BY operation.id`
	sqlTracedDeliveries = `SELECT event.source, event.account, event.id, delivery.rule, delivery.key, delivery.long_key,
		delivery.destination, delivery.target, delivery.message FROM delivery JOIN event ON event.seq = delivery.event ORDER BY delivery.id`
)

// Traces reads all that events left, but for the owner's tables (OwnRows). It is
// for small databases: nothing bounds it.
func (r *Reader) Traces(ctx context.Context) ([]Trace, error) {
	var all []Trace
	read := func(query string, of func(row) Trace) error {
		return r.list(ctx, query, nil, func(r row) error {
			all = append(all, of(r))
			return nil
		})
	}
	for _, one := range []struct {
		query string
		of    func(row) Trace
	}{
		{sqlTracedEvents, tracedEvent}, {sqlTracedRecords, tracedRecord}, {sqlTracedEntries, tracedEntry},
		{sqlTracedBalances, tracedBalance}, {sqlTracedStates, tracedState}, {sqlTracedTransitions, tracedTransition},
		{sqlTracedOperations, tracedOperation}, {sqlTracedDeliveries, tracedDelivery},
	} {
		if err := read(one.query, one.of); err != nil {
			return nil, fmt.Errorf("read what events left: %w", err)
		}
	}
	return all, nil
}

func tracedEvent(r row) Trace {
	key := keyOf(r, 0)
	t := Trace{Table: "event", Rule: r.text(5), Event: key, Name: key.String(), Value: r.text(3)}
	if why := r.text(4); why != "" {
		t.Value += ": " + why
	}
	return t
}

// keyed is a trace whose row has its rule and its key behind its event's key.
func keyed(r row, table string) Trace {
	t := Trace{Table: table, Event: keyOf(r, 0), Rule: r.text(3)}
	key, long := showKey(r.text(4), r.text(5), t.Event)
	t.Name = orElse(long, key)
	return t
}

func tracedRecord(r row) Trace {
	t := keyed(r, "record")
	t.Name, t.Value = r.text(6)+" "+t.Name, r.text(7)
	return t
}

func tracedEntry(r row) Trace {
	t := keyed(r, "ledger")
	t.Value = fmt.Sprintf("%d %s to %s", r.int64(6), r.text(7), r.text(8))
	return t
}

func tracedBalance(r row) Trace {
	return Trace{Table: "balance", Name: r.text(0) + " " + r.text(1), Value: fmt.Sprint(r.int64(2))}
}

func tracedState(r row) Trace {
	t := Trace{Table: "state", Event: keyOf(r, 0), Rule: r.text(3), Name: orElse(r.text(5), r.text(4))}
	t.Value = withFields(r.text(6), r.text(7))
	if version := r.text(8); version != "" {
		t.Value += " at version " + version
	}
	return t
}

func tracedTransition(r row) Trace {
	if r.null(4) { // by a version: it comes again with its event
		t := Trace{Table: "transition", Event: keyOf(r, 0), Rule: r.text(3), Path: true}
		t.Name = r.text(6) + " by " + t.Event.String()
		t.Value = withFields(r.text(8), r.text(9)) + " at version " + r.text(10)
		return t
	}
	t := keyed(r, "transition")
	t.Value = r.text(6) + " to " + withFields(r.text(8), r.text(9))
	return t
}

func tracedOperation(r row) Trace {
	t := keyed(r, "operation")
	t.Value = r.text(6)
	return t
}

func tracedDelivery(r row) Trace {
	t := keyed(r, "delivery")
	t.Name += " to " + r.text(6)
	if target := r.text(7); target != "" {
		t.Name += " " + target
	}
	t.Value = r.text(8)
	return t
}

func withFields(state, fields string) string {
	if fields == "{}" {
		return state
	}
	return state + " " + fields
}

// OwnTable is a table of the owner's with its rows, each value as SQL writes it.
type OwnTable struct {
	Name    string
	Columns []OwnColumn
	Rows    [][]string
}

// OwnColumn is a column of a table of the owner's.
type OwnColumn struct {
	Name string
	Key  bool // part of the primary key
	// Counted says that SQLite counts its values up where nobody gives one, or
	// that it refers to such a column.
	Counted bool
}

const (
	sqlOwnColumns = `SELECT x.name, x.pk, x.pk = 1 AND upper(x.type) = 'INTEGER' AND NOT l.wr
			AND (SELECT count(*) FROM pragma_table_xinfo(?1) WHERE pk > 0) = 1
		FROM pragma_table_xinfo(?1) AS x, pragma_table_list(?1) AS l WHERE x.hidden <> 1 AND l.schema = 'main' ORDER BY x.cid`
	sqlOwnReferences = `SELECT "from", "table", ifnull("to", '') FROM pragma_foreign_key_list(?)`
)

// OwnRows reads tables of the owner's.
func (r *Reader) OwnRows(ctx context.Context, tables []string) ([]OwnTable, error) {
	var all []OwnTable
	for _, name := range tables {
		t, err := r.ownTable(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("read the table %s: %w", name, err)
		}
		all = append(all, t)
	}
	return all, nil
}

func (r *Reader) ownTable(ctx context.Context, name string) (OwnTable, error) {
	t := OwnTable{Name: name}
	var err error
	if t.Columns, err = r.ownColumns(ctx, name); err != nil {
		return t, err
	}
	if err := r.referTo(ctx, &t); err != nil {
		return t, err
	}
	quoted := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		quoted[i] = "quote(" + named(c.Name) + ")"
	}
	err = r.list(ctx, "SELECT "+strings.Join(quoted, ", ")+" FROM "+named(name), nil, func(r row) error {
		cells := make([]string, len(t.Columns))
		for i := range cells {
			cells[i] = r.text(i)
		}
		t.Rows = append(t.Rows, cells)
		return nil
	})
	return t, err
}

func (r *Reader) ownColumns(ctx context.Context, table string) (columns []OwnColumn, err error) {
	err = r.list(ctx, sqlOwnColumns, []any{table}, func(r row) error {
		columns = append(columns, OwnColumn{Name: r.text(0), Key: r.int64(1) > 0, Counted: r.bool(2)})
		return nil
	})
	return columns, err
}

// referTo marks the columns that refer to a counted one.
func (r *Reader) referTo(ctx context.Context, t *OwnTable) error {
	type reference struct{ from, table, to string }
	var all []reference
	err := r.list(ctx, sqlOwnReferences, []any{t.Name}, func(r row) error {
		all = append(all, reference{r.text(0), r.text(1), r.text(2)})
		return nil
	})
	for _, ref := range all {
		parent, parentErr := r.ownColumns(ctx, ref.table)
		if parentErr != nil {
			return parentErr
		}
		for _, column := range parent {
			mine := slices.IndexFunc(t.Columns, func(c OwnColumn) bool { return strings.EqualFold(c.Name, ref.from) })
			if column.Counted && mine >= 0 && (ref.to == "" || strings.EqualFold(ref.to, column.Name)) {
				t.Columns[mine].Counted = true
			}
		}
	}
	return err
}
