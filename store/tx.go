package store

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"
)

// errTransactionOver is what a unit gets for a statement that follows one
// which may have ended the transaction: such a statement would commit alone.
var errTransactionOver = errors.New("the transaction is over")

// tx is the writer's open transaction, as one unit sees it. It belongs to the
// writer's goroutine and is dead when the unit's function has returned.
type tx struct {
	c    *connection
	desk *desk // nil where it is not the writer of a server
	// err is the error after which this unit can not succeed any more: it
	// ended the transaction, or it is the store's.
	err error
}

// bound is a statement's arguments, ready for the driver.
type bound []driver.NamedValue

// bind prepares arguments ahead of time: whoever submits a unit does it in its
// own goroutine, so that the writer has nothing to do but SQL. Integers,
// floats, booleans, strings (named string types too), []byte and nil are
// taken; times are the caller's to turn into milliseconds.
func bind(args ...any) bound {
	b := make(bound, len(args))
	for i, a := range args {
		b[i] = driver.NamedValue{Ordinal: i + 1, Value: value(a)}
	}
	return b
}

// exec runs a statement and returns how many rows it changed.
func (t *tx) exec(sql string, args ...any) (int64, error) {
	return t.execBound(sql, t.c.bind(args))
}

// execBound is exec with arguments that were bound ahead of time.
func (t *tx) execBound(sql string, args bound) (int64, error) {
	result, err := t.result(sql, args)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// insert runs an INSERT and returns the row id of the last row that the
// connection inserted and the number of rows inserted: where that is 0 (ON
// CONFLICT DO NOTHING) the row id is of some earlier insert and says nothing.
func (t *tx) insert(sql string, args ...any) (rowid, changes int64, err error) {
	return t.insertBound(sql, t.c.bind(args))
}

// insertBound is insert with arguments that were bound ahead of time.
func (t *tx) insertBound(sql string, args bound) (rowid, changes int64, err error) {
	result, err := t.result(sql, args)
	if err != nil {
		return 0, 0, err
	}
	if changes, err = result.RowsAffected(); err != nil {
		return 0, 0, err
	}
	rowid, err = result.LastInsertId()
	return rowid, changes, err
}

func (t *tx) result(sql string, args bound) (driver.Result, error) {
	if t.err != nil {
		return nil, fmt.Errorf("%w: %w", errTransactionOver, t.err)
	}
	result, err := t.c.exec(sql, args)
	if err != nil {
		return nil, t.note(err)
	}
	return result, nil
}

// query runs a statement that returns rows (INSERT … RETURNING too) and gives
// each to scan, which keeps nothing of the row itself. An error of scan ends
// the query and is returned as it is.
func (t *tx) query(sql string, args []any, scan func(row) error) error {
	return t.queryBound(sql, t.c.bind(args), scan)
}

// queryBound is query with arguments that were bound ahead of time.
func (t *tx) queryBound(sql string, args bound, scan func(row) error) (err error) {
	if t.err != nil {
		return fmt.Errorf("%w: %w", errTransactionOver, t.err)
	}
	rows, err := t.c.query(sql, args)
	if err != nil {
		return t.note(err)
	}
	// Also when scan panics: a statement left open would keep the transaction.
	defer func() {
		if closing := rows.Close(); closing != nil && err == nil {
			err = t.note(closing)
		}
	}()
	values := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(values); {
		case err == io.EOF:
			return nil
		case err != nil:
			return t.note(err)
		}
		if err := scan(row{values}); err != nil {
			return err
		}
	}
}

// note remembers an error that the unit must not pass over. Which errors end
// the whole transaction depends on more than their code
// (https://www.sqlite.org/lang_transaction.html), so the connection is asked.
func (t *tx) note(err error) error {
	if damageOf(err) > unitOnly || !t.c.inTransaction() {
		t.err = err
	}
	return err
}

// row is one row of a query. A getter asked for a column of another type, or
// for NULL, returns the zero value: the schema is STRICT, so the type is the
// statement's to know.
type row struct{ values []driver.Value }

func (r row) null(i int) bool { return r.values[i] == nil }

func (r row) int64(i int) int64 {
	v, _ := r.values[i].(int64)
	return v
}

func (r row) int(i int) int { return int(r.int64(i)) }

func (r row) bool(i int) bool { return r.int64(i) != 0 }

func (r row) real(i int) float64 {
	v, _ := r.values[i].(float64)
	return v
}

func (r row) text(i int) string {
	v, _ := r.values[i].(string)
	return v
}

func (r row) blob(i int) []byte {
	v, _ := r.values[i].([]byte)
	return v
}

// value turns an argument into one of the driver's types.
func value(a any) driver.Value {
	switch v := a.(type) {
	case nil, int64, float64, string, []byte:
		return v
	case int:
		return int64(v)
	case bool:
		if v {
			return int64(1)
		}
		return int64(0)
	}
	switch v := reflect.ValueOf(a); v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int()
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return int64(v.Uint())
	case reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			bytes := make([]byte, v.Len())
			reflect.Copy(reflect.ValueOf(bytes), v)
			return bytes
		}
	}
	return a // the driver refuses it by name
}
