package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"creel/event"
)

// Most business keys are the key of their event and the name of a rule. Such a
// key is stored with the event's sequence instead of its key: as unique as
// before, shorter, and in the order of receipt, so that the unique index grows
// at its end instead of touching a page of its own for every row. Other keys
// are stored as they are. A key that begins like a short one gets another "=".
const shortMark = "="

// shortKey is the stored form of a key that begins with its event's.
func shortKey(seq int64, rest string) string {
	return fmt.Sprintf("%s%010x/%s", shortMark, seq, rest)
}

// isShort tells whether a stored key is the number of an event and what is
// left of the text.
func isShort(stored string) bool {
	return strings.HasPrefix(stored, shortMark) && !strings.HasPrefix(stored, shortMark+shortMark)
}

// storeKey gives the stored form of a business key that an event names, and
// the readable text where the stored form does not hold it.
func storeKey(seq int64, of event.Key, key string) (stored, long string) {
	if rest, own := strings.CutPrefix(key, of.String()+"/"); own {
		if short := shortKey(seq, rest); len(short) <= event.MaxKey {
			return short, ""
		}
	}
	return storeForeignKey(key)
}

// storeForeignKey is storeKey for a key that does not begin with its event's.
func storeForeignKey(key string) (stored, long string) {
	if strings.HasPrefix(key, shortMark) {
		key = shortMark + key
	}
	return event.Fold(key)
}

// keyspace is a table in which a business key names an operation.
type keyspace int

const (
	deliveryKeys keyspace = iota
	recordKeys
	ledgerKeys
	transitionKeys
	operationKeys
)

const (
	sqlNamedEvent = `SELECT seq FROM event WHERE source = ? AND account = ? AND id = ?`

	sqlNamedDelivery   = `SELECT 1 FROM delivery WHERE key = ? AND destination = ? AND target = ?`
	sqlNamedRecord     = `SELECT 1 FROM record WHERE key = ? AND kind = ?`
	sqlNamedEntry      = `SELECT 1 FROM ledger WHERE key = ?`
	sqlNamedTransition = `SELECT 1 FROM transition WHERE key = ?`

	// Whether a key of a table begins with a source, or is a hash.
	sqlSpokenDelivery = `SELECT 1 FROM delivery WHERE key >= ?1 AND key < ?2 UNION ALL
		SELECT 1 FROM delivery WHERE key >= 'sha256:' AND key < 'sha256;' LIMIT 1`
	sqlSpokenRecord = `SELECT 1 FROM record WHERE key >= ?1 AND key < ?2 UNION ALL
		SELECT 1 FROM record WHERE key >= 'sha256:' AND key < 'sha256;' LIMIT 1`
	sqlSpokenEntry = `SELECT 1 FROM ledger WHERE key >= ?1 AND key < ?2 UNION ALL
		SELECT 1 FROM ledger WHERE key >= 'sha256:' AND key < 'sha256;' LIMIT 1`
	sqlSpokenTransition = `SELECT 1 FROM transition WHERE key >= ?1 AND key < ?2 UNION ALL
		SELECT 1 FROM transition WHERE key >= 'sha256:' AND key < 'sha256;' LIMIT 1`
)

// statements are the look-ups of a keyspace: for one operation, and whether
// any key may name an event of a source.
func (k keyspace) statements() (named, spoken string) {
	switch k {
	case recordKeys:
		return sqlNamedRecord, sqlSpokenRecord
	case ledgerKeys:
		return sqlNamedEntry, sqlSpokenEntry
	case transitionKeys:
		return sqlNamedTransition, sqlSpokenTransition
	case operationKeys:
		return sqlNamedOperation, sqlSpokenOperation
	}
	return sqlNamedDelivery, sqlSpokenDelivery
}

// spoken remembers whether a keyspace has keys, in the form of foreign ones,
// that may name events of a source: for most there are none, and nobody has to
// look for one. The writer's goroutine owns it. A rollback may leave a yes that
// is none any more, which costs a look-up.
type spoken map[spokenOf]bool

type spokenOf struct {
	space  keyspace
	source string
}

// ask reads what is not known yet: two look-ups for each source and table.
func (s spoken) ask(t reading, space keyspace, source string) (bool, error) {
	of := spokenOf{space, source}
	yes, known := s[of]
	if known {
		return yes, nil
	}
	_, query := space.statements()
	from, _ := storeForeignKey(event.EscapePart(source) + "/")
	err := t.query(query, []any{from, from[:len(from)-1] + "0"}, func(row) error {
		yes = true
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("look for keys that name events: %w", err)
	}
	s[of] = yes
	return yes, nil
}

// keyFor is the stored form under which an operation stands or is to stand. A
// key may name another event's operation, before that event came or after:
// one operation has one form all the same. rest are the columns that the key
// is unique with.
func keyFor(t *tx, space keyspace, seq int64, of event.Key, key string, rest ...any) (stored, long string, err error) {
	return t.c.spoken.keyFor(t, space, seq, of, key, rest...)
}

func (s spoken) keyFor(t reading, space keyspace, seq int64, of event.Key, key string, rest ...any) (stored, long string, err error) {
	foreign, foreignLong := storeForeignKey(key)
	stored, long = storeKey(seq, of, key)
	if stored == foreign {
		var named bool
		if of, named = ownerOf(key); !named {
			return stored, long, nil
		}
		err = t.query(sqlNamedEvent, []any{of.Source, of.Account, of.ID}, func(r row) error {
			named := r.int64(0)
			if stored, long = storeKey(named, of, key); named != seq && stored != foreign {
				long = key // the row's own event does not tell it
			}
			return nil
		})
		if err != nil {
			return "", "", fmt.Errorf("look for the event of a key: %w", err)
		}
		if stored == foreign {
			s[spokenOf{space, of.Source}] = true
			return stored, long, nil
		}
	}
	if spoken, err := s.ask(t, space, of.Source); err != nil || !spoken {
		return stored, long, err
	}
	named, _ := space.statements()
	err = t.query(named, append([]any{foreign}, rest...), func(row) error {
		stored, long = foreign, foreignLong
		return nil
	})
	if err != nil {
		return "", "", fmt.Errorf("look for a key: %w", err)
	}
	return stored, long, nil
}

// formsOf are the forms under which an operation that a key names may stand.
func formsOf(t reading, key string) ([]string, error) {
	foreign, _ := storeForeignKey(key)
	forms := []string{foreign}
	of, named := ownerOf(key)
	if !named {
		return forms, nil
	}
	err := t.query(sqlNamedEvent, []any{of.Source, of.Account, of.ID}, func(r row) error {
		if short, _ := storeKey(r.int64(0), of, key); short != foreign {
			forms = append(forms, short)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for the event of a key: %w", err)
	}
	return forms, nil
}

// ownerOf reads the event's key that a business key may begin with.
func ownerOf(key string) (event.Key, bool) {
	parts := strings.SplitN(key, "/", 4)
	if len(parts) < 4 {
		return event.Key{}, false
	}
	of, err := event.ParseKey(strings.Join(parts[:3], "/"))
	return of, err == nil
}

// showKey gives a business key as everybody else knows it: folded where it is
// long, with the readable text beside it. of is the event of the row.
func showKey(stored, long string, of event.Key) (key, readable string) {
	text, short := strings.CutPrefix(stored, shortMark)
	switch {
	case !short, strings.HasPrefix(stored, alertMark):
		return stored, long
	case long != "": // it names another event than that of the row
		return event.Fold(long)
	}
	if !strings.HasPrefix(text, shortMark) {
		_, rest, _ := strings.Cut(text, "/")
		text = of.String() + "/" + rest
	}
	return event.Fold(text)
}

// storedForms are the forms under which a key may be stored.
func (r *Reader) storedForms(ctx context.Context, key string) ([]any, error) {
	foreign, _ := storeForeignKey(key)
	forms := []any{foreign}
	of, ok := ownerOf(key)
	if !ok {
		return forms, nil
	}
	found, err := r.Find(ctx, of)
	if errors.Is(err, event.ErrNotFound) {
		return forms, nil
	}
	if err != nil {
		return nil, err
	}
	short, _ := storeKey(found.Seq, found.Key, key)
	return append(forms, short), nil
}
