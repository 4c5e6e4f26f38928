package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"modernc.org/sqlite"
)

// connection is one connection of the driver with its prepared statements,
// without the pool of database/sql between them (which costs 3–15 % of the
// writer's throughput). It belongs to one goroutine.
//
// Every call gets a context that can not be cancelled: an interrupt would roll
// back the whole transaction, the units of others included.
type connection struct {
	conn       driver.Conn
	statements map[string]*statement
	scratch    bound
	parcels    parcels // of the open transaction
	own        ownSide
	spoken     spoken
}

// statement is the driver's compiled statement behind the two interfaces that
// take ordinals.
type statement struct {
	closer driver.Stmt
	execer driver.StmtExecContext
	query  driver.StmtQueryContext
}

// connect opens a connection by its data source name.
func connect(dsn string) (*connection, error) {
	// The driver value carries registrations alone; ours has none.
	conn, err := new(sqlite.Driver).Open(dsn)
	if err != nil {
		return nil, err
	}
	return &connection{conn: conn, statements: map[string]*statement{}, spoken: spoken{}}, nil
}

// bind is bind into memory that the next call of this connection reuses.
func (c *connection) bind(args []any) bound {
	c.scratch = c.scratch[:0]
	for i, a := range args {
		c.scratch = append(c.scratch, driver.NamedValue{Ordinal: i + 1, Value: value(a)})
	}
	return c.scratch
}

func (c *connection) exec(sql string, args bound) (driver.Result, error) {
	s, err := c.prepare(sql)
	if err != nil {
		return nil, err
	}
	return s.execer.ExecContext(context.Background(), args)
}

func (c *connection) query(sql string, args bound) (driver.Rows, error) {
	s, err := c.prepare(sql)
	if err != nil {
		return nil, err
	}
	return s.query.QueryContext(context.Background(), args)
}

// prepare returns the statement of a text, compiled once.
func (c *connection) prepare(sql string) (*statement, error) {
	if s, ok := c.statements[sql]; ok {
		return s, nil
	}
	s, err := c.compile(sql)
	if err != nil {
		return nil, err
	}
	c.statements[sql] = s
	return s, nil
}

// compile compiles a text, whose statement is the caller's to close.
func (c *connection) compile(sql string) (*statement, error) {
	prepared, err := c.conn.Prepare(sql)
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	s := &statement{closer: prepared}
	var ok bool
	if s.execer, ok = prepared.(driver.StmtExecContext); !ok {
		return nil, errors.New("prepare: the driver has no ExecContext")
	}
	if s.query, ok = prepared.(driver.StmtQueryContext); !ok {
		return nil, errors.New("prepare: the driver has no QueryContext")
	}
	return s, nil
}

// sqlAsk fails inside a transaction and opens one outside, without any lock:
// the driver does not export sqlite3_get_autocommit.
const sqlAsk = "BEGIN DEFERRED"

// inTransaction tells whether a transaction is open.
func (c *connection) inTransaction() bool {
	if _, err := c.exec(sqlAsk, nil); err != nil {
		return refusesNesting(err)
	}
	_, _ = c.exec(sqlRollback, nil) // the one that the question opened
	return false
}

// value runs a statement that gives one value, a PRAGMA for example.
func (c *connection) value(sql string) (driver.Value, error) {
	t := tx{c: c}
	var first driver.Value
	err := t.query(sql, nil, func(r row) error {
		if first == nil && len(r.values) > 0 {
			first = r.values[0]
		}
		return nil
	})
	return first, err
}

// close finalizes the statements and closes the connection. The last
// connection of a database also checkpoints it and removes its WAL.
func (c *connection) close() error {
	var failed error
	for _, s := range c.statements {
		failed = errors.Join(failed, s.closer.Close())
	}
	clear(c.statements)
	return errors.Join(failed, c.forgetOwn(), c.conn.Close())
}

// script runs a text of several statements, once.
func (c *connection) script(sql string) error {
	execer, ok := c.conn.(driver.ExecerContext)
	if !ok {
		return errors.New("run a script: the driver has no ExecContext")
	}
	if _, err := execer.ExecContext(context.Background(), sql, nil); err != nil {
		return fmt.Errorf("run a script: %w", err)
	}
	return nil
}
