package store

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// maxOwn is how many statements of the owner's a connection keeps compiled.
const maxOwn = 256

// ownSide is what a connection has for the owner's statements. They are compiled
// under the guard and kept apart from those of this program.
type ownSide struct {
	guard      *guard
	statements map[string]*statement
}

// runOwn runs one statement of the owner's until deadline. It is the only call
// that can be interrupted: it is made in a transaction that has nothing of
// anybody else in it, because an interrupt may end that transaction.
func (c *connection) runOwn(text string, args bound, deadline time.Time) error {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	return c.licensed(ownStatements, func() error {
		s, err := c.prepareOwn(text)
		if err != nil {
			return err
		}
		_, err = s.execer.ExecContext(ctx, args)
		return err
	})
}

// prepareOwn compiles a statement under the license in force.
func (c *connection) prepareOwn(text string) (*statement, error) {
	if s, ok := c.own.statements[text]; ok {
		return s, nil
	}
	if len(c.own.statements) >= maxOwn { // those of rules that a reload took away
		if err := c.forgetOwn(); err != nil {
			return nil, err
		}
	}
	s, err := c.compile(text)
	if err != nil {
		return nil, err
	}
	if c.own.statements == nil {
		c.own.statements = map[string]*statement{}
	}
	c.own.statements[text] = s
	return s, nil
}

// runStep runs one statement of the owner's migrations.
func (c *connection) runStep(text string) error {
	return c.licensed(ownSteps, func() error {
		s, err := c.compile(text)
		if err != nil {
			return err
		}
		_, err = s.execer.ExecContext(context.Background(), nil)
		return errors.Join(err, s.closer.Close())
	})
}

// forgetOwn finalizes the owner's statements.
func (c *connection) forgetOwn() error {
	var failed error
	for _, s := range c.own.statements {
		failed = errors.Join(failed, s.closer.Close())
	}
	clear(c.own.statements)
	return failed
}

var resultNumber = regexp.MustCompile(` \(\d+\)$`)

// saying is what SQLite said about a statement of the owner's, without the names
// that the driver and the library give its result.
func saying(err error) string {
	if errors.Is(err, errDenied) {
		return strings.TrimPrefix(err.Error(), errDenied.Error()+": ")
	}
	text := strings.TrimPrefix(err.Error(), "prepare: ")
	text = resultNumber.ReplaceAllString(text, "")
	for _, prefix := range []string{"SQL logic error: ", "constraint failed: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}

// ownFault tells whether an error of a statement of the owner's is that
// statement's, and comes again whenever it is run on the same rows.
func ownFault(err error) bool {
	if errors.Is(err, errDenied) {
		return true
	}
	switch resultCode(err) & 0xff {
	case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG,
		sqlite3.SQLITE_RANGE, sqlite3.SQLITE_AUTH:
		return true
	}
	return false
}

// checkVerb refuses what no license is needed for and what can not be undone
// with the transaction, or does nothing.
func checkVerb(p *sqlPart, verbs ...string) error {
	for _, verb := range verbs {
		if p.verb() == verb {
			return nil
		}
	}
	return fmt.Errorf("it begins with %q; it may begin with %s", p.verb(), strings.ToUpper(strings.Join(verbs, ", ")))
}
