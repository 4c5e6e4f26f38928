package store

import (
	"context"
	"database/sql"
	"fmt"
)

// knownRows is how many of the newest deliveries are looked at for the names
// of rules: a bound, because no index has them.
const knownRows = 10_000

const sqlKnownRules = `SELECT DISTINCT rule FROM (SELECT rule FROM delivery ORDER BY id DESC LIMIT ?)
	WHERE rule <> '' ORDER BY rule` // an alert is of none

// KnownRules names, in order, the rules that the newest deliveries came from.
// A rule's name is its identity, so one that the configuration no longer has
// was renamed or removed.
func (r *Reader) KnownRules(ctx context.Context) ([]string, error) {
	var names []string
	err := r.rows(ctx, sqlKnownRules, []any{knownRows}, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		names = append(names, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list known rules: %w", err)
	}
	return names, nil
}
