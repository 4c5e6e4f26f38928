package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"modernc.org/sqlite"

	"creel/event"
)

const (
	readers    = 4
	readBudget = 5 * time.Second
	// maxStatements is how many texts a reader keeps compiled.
	maxStatements = 128
)

// Reader is the reading side of a database: a small pool of read-only
// connections. Each read has a time budget, because a long one keeps the WAL
// from starting over.
type Reader struct {
	db         *sql.DB
	path       string
	search     searchBounds
	mu         sync.Mutex
	statements map[string]*sql.Stmt
}

// OpenRead opens a database for plain reads, beside a running server or
// without one. It never creates, migrates or changes anything; a schema that
// it does not know is ErrOlder or ErrNewer.
func OpenRead(ctx context.Context, path string) (*Reader, error) {
	if err := prepareLibrary(); err != nil {
		return nil, fmt.Errorf("open store for reading: %w", err)
	}
	full, err := locate(path, false)
	if err != nil {
		return nil, fmt.Errorf("open store for reading: %w", err)
	}
	if _, err := os.Stat(full); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("open store for reading: %s does not exist: start creel serve once, or set database", full)
	}
	r, err := newReader(ctx, full, 2*time.Second)
	if err != nil {
		return nil, fmt.Errorf("open store for reading: %w", whatToDo(full, err))
	}
	if err := r.known(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open store for reading: %w", whatToDo(full, err)), r.Close())
	}
	return r, nil
}

// newReader opens the pool and one connection of it, to see that it works.
// Each connection, also one that replaces a failed one, gets its settings by
// the data source name.
func newReader(ctx context.Context, path string, busy time.Duration, extra ...string) (*Reader, error) {
	connector, err := sqlite.NewConnector(dataSource(path, readerSettings(busy), append(extra, "mode=ro")...))
	if err != nil {
		return nil, fmt.Errorf("name the reading connection: %w", err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(readers)
	db.SetMaxIdleConns(readers)
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open a reading connection: %w", err), db.Close())
	}
	return &Reader{db: db, path: path, search: usualSearch(), statements: map[string]*sql.Stmt{}}, nil
}

// Close closes the pool.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var failed error
	for _, s := range r.statements {
		failed = errors.Join(failed, s.Close())
	}
	clear(r.statements)
	if err := errors.Join(failed, r.db.Close()); err != nil {
		return fmt.Errorf("close readers: %w", err)
	}
	return nil
}

// rows runs one SELECT within the time budget and gives each row to scan.
// Arguments are taken as bind takes them.
func (r *Reader) rows(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	ctx, cancel := context.WithTimeout(ctx, readBudget)
	defer cancel()
	rows, err := r.query(ctx, query, values(args))
	if err != nil {
		return readError(err)
	}
	return drain(rows, scan)
}

// row runs one SELECT of one row; no row is event.ErrNotFound.
func (r *Reader) row(ctx context.Context, query string, args []any, dest ...any) error {
	found := false
	err := r.rows(ctx, query, args, func(rows *sql.Rows) error {
		if found {
			return nil
		}
		found = true
		return rows.Scan(dest...)
	})
	if err == nil && !found {
		return event.ErrNotFound
	}
	return err
}

// snapshot runs several SELECTs on one state of the database, within one time
// budget.
func (r *Reader) snapshot(ctx context.Context, read func(snapshot) error) error {
	ctx, cancel := context.WithTimeout(ctx, readBudget)
	defer cancel()
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return readError(err)
	}
	// Nothing was written: a rollback is the cheapest end.
	defer func() { _ = tx.Rollback() }()
	return read(snapshot{ctx, tx})
}

// snapshot is one state of the database.
type snapshot struct {
	ctx context.Context
	tx  *sql.Tx
}

// rows is Reader.rows on the snapshot.
func (s snapshot) rows(query string, args []any, scan func(*sql.Rows) error) error {
	rows, err := s.tx.QueryContext(s.ctx, query, values(args)...)
	if err != nil {
		return readError(err)
	}
	return drain(rows, scan)
}

// row is Reader.row on the snapshot.
func (s snapshot) row(query string, args []any, dest ...any) error {
	err := s.tx.QueryRowContext(s.ctx, query, values(args)...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return event.ErrNotFound
	}
	return readError(err)
}

func drain(rows *sql.Rows, scan func(*sql.Rows) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return readError(rows.Err())
}

// query runs a text, compiled once for each connection. The texts that filters
// put together are many: past a bound they are compiled each time.
func (r *Reader) query(ctx context.Context, text string, args []any) (*sql.Rows, error) {
	r.mu.Lock()
	s, full := r.statements[text], len(r.statements) >= maxStatements
	r.mu.Unlock()
	if s == nil && full {
		return r.db.QueryContext(ctx, text, args...)
	}
	if s == nil {
		var err error
		if s, err = r.keep(ctx, text); err != nil {
			return nil, err
		}
	}
	return s.QueryContext(ctx, args...)
}

// keep compiles a text without the lock, because that may wait for a free
// connection; of two that did it at once the first stays.
func (r *Reader) keep(ctx context.Context, text string) (*sql.Stmt, error) {
	mine, err := r.db.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if first := r.statements[text]; first != nil {
		return first, mine.Close()
	}
	r.statements[text] = mine
	return mine, nil
}

func values(args []any) []any {
	out := make([]any, len(args))
	for i, a := range args {
		out[i] = value(a)
	}
	return out
}

// readError names the operation; trouble of the store wraps ErrUnavailable.
func readError(err error) error {
	if err == nil {
		return nil
	}
	if damageOf(err) > unitOnly || errors.Is(err, context.DeadlineExceeded) {
		return unavailable("read", err)
	}
	return fmt.Errorf("read: %w", err)
}
