package store

import (
	"context"
	"encoding/json"
	"fmt"

	"creel/event"
)

const (
	// CROSS JOIN keeps the given keys outside: each is one look-up.
	sqlKnownKeys = `SELECT event.account, event.id, event.seq, event.content FROM json_each(?2) AS asked
		CROSS JOIN event ON event.source = ?1 AND event.account = asked.value ->> 0 AND event.id = asked.value ->> 1`
	// One look-up an account, whatever number of events each has.
	sqlAccounts = `WITH RECURSIVE known(account) AS (
			SELECT min(account) FROM event WHERE source = ?1
			UNION ALL
			SELECT (SELECT min(account) FROM event WHERE source = ?1 AND account > known.account)
			FROM known WHERE known.account IS NOT NULL)
		SELECT account FROM known WHERE account IS NOT NULL`
	sqlKnownIDs = `SELECT DISTINCT event.id FROM json_each(?2) AS account CROSS JOIN json_each(?3) AS asked
		CROSS JOIN event ON event.source = ?1 AND event.account = account.value AND event.id = asked.value`
)

// Said is what is there under a known key.
type Said struct {
	Seq     int64
	Content [16]byte
}

// Known tells which keys of a source are in the inbox, whatever became of their
// events and of what these carried.
func (r *Reader) Known(ctx context.Context, source string, keys []event.Key) (map[event.Key]Said, error) {
	pairs := make([][2]string, len(keys))
	for i, key := range keys {
		pairs[i] = [2]string{key.Account, key.ID}
	}
	known := make(map[event.Key]Said, len(keys))
	err := r.list(ctx, sqlKnownKeys, []any{source, jsonText(pairs)}, func(r row) error {
		said := Said{Seq: r.int64(2)}
		copy(said.Content[:], r.blob(3))
		known[event.Key{Source: source, Account: r.text(0), ID: r.text(1)}] = said
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look up keys of %s: %w", source, err)
	}
	return known, nil
}

// KnownIDs tells which ids of a source are in the inbox, under any account.
func (r *Reader) KnownIDs(ctx context.Context, source string, ids []string) (map[string]bool, error) {
	accounts := []string{}
	err := r.list(ctx, sqlAccounts, []any{source}, func(r row) error {
		accounts = append(accounts, r.text(0))
		return nil
	})
	known := make(map[string]bool, len(ids))
	if err == nil {
		err = r.list(ctx, sqlKnownIDs, []any{source, jsonText(accounts), jsonText(ids)}, func(r row) error {
			known[r.text(0)] = true
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("look up ids of %s: %w", source, err)
	}
	return known, nil
}

func jsonText(list any) string {
	text, _ := json.Marshal(list) // lists of texts always can be
	return string(text)
}
