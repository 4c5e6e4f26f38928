package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// ownPrefix begins the name of every table, index, view and trigger of the
// owner's. Names are compared as SQLite compares them, without letter case.
const ownPrefix = "app_"

// ownBytes bounds every text, blob and row that statements of the owner's make
// or get, in bytes.
const ownBytes = 32 << 20

// ownPattern bounds the pattern of a LIKE or GLOB, in bytes. One comparison is
// one step, which no deadline interrupts, and takes the product of pattern and
// text: both may be what a sender wrote.
const ownPattern = 256

// license is what may be done on a connection at the moment.
type license int

const (
	ours          license = iota // everything: the statements are this program's
	ownStatements                // read all, write tables of the owner's
	ownSteps                     // the same, and make, alter and drop them
)

// guard is asked by SQLite for each thing that a statement would do, when it is
// compiled: also when a cached one is compiled again because the schema
// changed, and for each statement in a trigger that it would fire. So the
// license has to hold while a statement runs, not only while it is prepared.
//
// It belongs to one connection and stays on it: to put one in place makes every
// compiled statement of the connection void, to change its license does not.
type guard struct {
	license license
	denied  string                          // the first thing that was refused
	touched func(table string, writes bool) // told of each table that a statement would read or write; nil tells nobody
}

// errDenied says that a statement would do what the owner's may not.
var errDenied = errors.New("it is not allowed")

// licensed runs do with a license. What the guard refused is errDenied with
// what it was, in words.
func (c *connection) licensed(l license, do func() error) (err error) {
	if c.own.guard == nil {
		g := &guard{}
		asks, ok := c.conn.(sqlite.AuthorizerRegisterer)
		if !ok {
			return errors.New("guard a connection: the driver has no authorizer")
		}
		if err := asks.RegisterAuthorizer(g.decide); err != nil {
			return fmt.Errorf("guard a connection: %w", err)
		}
		c.own.guard = g
	}
	before, err := limit(c.conn, ceilings{ownBytes, ownPattern})
	if err != nil {
		return err
	}
	*c.own.guard = guard{license: l, touched: c.own.guard.touched}
	defer func() {
		c.own.guard.license = ours // also when do panics
		_, restored := limit(c.conn, before)
		err = errors.Join(err, restored)
	}()
	err = do()
	if err != nil && c.own.guard.denied != "" {
		return fmt.Errorf("%w: %s", errDenied, c.own.guard.denied)
	}
	return err
}

// decide is the authorizer. What it does not know it refuses. What each action
// names is documented at https://www.sqlite.org/c3ref/c_alter_table.html.
func (g *guard) decide(action sqlite.AuthorizerActionCode, first, second, database, _ string) sqlite.AuthorizerReturnCode {
	if g.license == ours {
		return sqlite.AuthorizerOK
	}
	g.tell(action, first)
	switch action {
	case sqlite.AuthSelect, sqlite.AuthRead, sqlite.AuthRecursive:
		return sqlite.AuthorizerOK
	case sqlite.AuthFunction:
		if second == "load_extension" {
			return g.deny("would load an extension")
		}
		return sqlite.AuthorizerOK
	case sqlite.AuthInsert, sqlite.AuthUpdate, sqlite.AuthDelete:
		return g.write(first, database)
	}
	if g.license == ownSteps {
		return g.define(action, first, second, database)
	}
	return g.deny("would %s, and a rule inserts, updates and deletes only", actionName(action))
}

// tell passes on which table a statement would read or write.
func (g *guard) tell(action sqlite.AuthorizerActionCode, table string) {
	if g.touched == nil {
		return
	}
	switch action {
	case sqlite.AuthRead:
		g.touched(table, false)
	case sqlite.AuthInsert, sqlite.AuthUpdate, sqlite.AuthDelete:
		g.touched(table, true)
	}
}

// write decides about a change of rows.
func (g *guard) write(table, database string) sqlite.AuthorizerReturnCode {
	switch {
	case isOwn(table) && database == "main":
		return sqlite.AuthorizerOK
	case g.license == ownSteps && (table == "sqlite_master" || table == "sqlite_temp_master" || table == "sqlite_sequence"):
		// SQLite asks for its own rows about a table that is made, altered or
		// dropped, and which temporary ones mention it. A statement that writes
		// these itself is refused by SQLite, and sqlite_sequence has rows of the
		// owner's tables alone.
		return sqlite.AuthorizerOK
	}
	return g.deny("would write the table %q; it may write tables whose names begin with %s", table, ownPrefix)
}

// define decides about a change of the schema.
func (g *guard) define(action sqlite.AuthorizerActionCode, first, second, database string) sqlite.AuthorizerReturnCode {
	switch action {
	case sqlite.AuthPragma:
		// ALTER TABLE … ADD COLUMN asks it about the rows that are there.
		if first == "quick_check" {
			return sqlite.AuthorizerOK
		}
		return g.deny("would %s", actionName(action))
	case sqlite.AuthAlterTable:
		database, first = first, second
		if database == "main" && isOwn(first) {
			return sqlite.AuthorizerOK
		}
	case sqlite.AuthCreateTable, sqlite.AuthDropTable, sqlite.AuthCreateView, sqlite.AuthDropView, sqlite.AuthReindex:
		if database == "main" && (isOwn(first) || first == "sqlite_sequence" && action == sqlite.AuthCreateTable) {
			return sqlite.AuthorizerOK
		}
	case sqlite.AuthCreateIndex, sqlite.AuthDropIndex, sqlite.AuthCreateTrigger, sqlite.AuthDropTrigger:
		if database == "main" && isOwn(first) && isOwn(second) {
			return sqlite.AuthorizerOK
		}
		if isOwn(first) && !isOwn(second) {
			return g.deny("would put %q on the table %q; it may on tables whose names begin with %s", first, second, ownPrefix)
		}
	default:
		return g.deny("would %s", actionName(action))
	}
	if database != "main" {
		return g.deny("would %s %q of the database %q", actionName(action), first, database)
	}
	return g.deny("would %s %q; every name begins with %s", actionName(action), first, ownPrefix)
}

func (g *guard) deny(format string, args ...any) sqlite.AuthorizerReturnCode {
	if g.denied == "" {
		g.denied = "it " + fmt.Sprintf(format, args...)
	}
	return sqlite.AuthorizerDeny
}

// isOwn tells whether a name is the owner's: also that of the index which SQLite
// makes for a constraint of an own table.
func isOwn(name string) bool {
	name = strings.ToLower(name)
	return strings.HasPrefix(strings.TrimPrefix(name, "sqlite_autoindex_"), ownPrefix)
}

var actionNames = map[sqlite.AuthorizerActionCode]string{
	sqlite.AuthCreateIndex: "create the index", sqlite.AuthCreateTable: "create the table",
	sqlite.AuthCreateTempIndex: "create a temporary index", sqlite.AuthCreateTempTable: "create a temporary table",
	sqlite.AuthCreateTempTrigger: "create a temporary trigger", sqlite.AuthCreateTempView: "create a temporary view",
	sqlite.AuthCreateTrigger: "create the trigger", sqlite.AuthCreateView: "create the view",
	sqlite.AuthDropIndex: "drop the index", sqlite.AuthDropTable: "drop the table",
	sqlite.AuthDropTempIndex: "drop a temporary index", sqlite.AuthDropTempTable: "drop a temporary table",
	sqlite.AuthDropTempTrigger: "drop a temporary trigger", sqlite.AuthDropTempView: "drop a temporary view",
	sqlite.AuthDropTrigger: "drop the trigger", sqlite.AuthDropView: "drop the view",
	sqlite.AuthPragma: "run a PRAGMA", sqlite.AuthTransaction: "begin or end a transaction",
	sqlite.AuthAttach: "attach a database", sqlite.AuthDetach: "detach a database",
	sqlite.AuthAlterTable: "alter the table", sqlite.AuthReindex: "rebuild the index",
	sqlite.AuthAnalyze: "run ANALYZE", sqlite.AuthCreateVTable: "create a virtual table",
	sqlite.AuthDropVTable: "drop a virtual table", sqlite.AuthSavepoint: "set or release a savepoint",
}

func actionName(action sqlite.AuthorizerActionCode) string {
	if name, ok := actionNames[action]; ok {
		return name
	}
	return fmt.Sprintf("do something unknown (action %d)", action)
}

// ceilings are limits of a connection, in bytes.
type ceilings struct{ length, pattern int }

// limit sets the limits of a connection and returns those before.
func limit(conn driver.Conn, to ceilings) (before ceilings, err error) {
	db := sql.OpenDB(lender{conn})
	defer func() { err = errors.Join(err, db.Close()) }()
	lent, err := db.Conn(context.Background())
	if err != nil {
		return before, fmt.Errorf("set a limit: %w", err)
	}
	defer func() { err = errors.Join(err, lent.Close()) }()
	if before.length, err = sqlite.Limit(lent, sqlite3.SQLITE_LIMIT_LENGTH, to.length); err != nil {
		return before, fmt.Errorf("set a limit: %w", err)
	}
	if before.pattern, err = sqlite.Limit(lent, sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, to.pattern); err != nil {
		return before, fmt.Errorf("set a limit: %w", err)
	}
	return before, nil
}

// lender lends a connection of ours to database/sql, through which alone the
// driver sets a limit. It stays open when it is given back.
type lender struct{ driver.Conn }

// Connect implements driver.Connector.
func (l lender) Connect(context.Context) (driver.Conn, error) { return l, nil }

// Driver implements driver.Connector.
func (l lender) Driver() driver.Driver { return nil }

// Close implements driver.Conn.
func (l lender) Close() error { return nil }

// Unwrap is what the driver looks for.
func (l lender) Unwrap() driver.Conn { return l.Conn }
