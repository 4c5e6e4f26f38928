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

const (
	sqlNamedKey   = `SELECT 1 FROM delivery WHERE key = ? AND destination = ?`
	sqlNamedEvent = `SELECT seq FROM event WHERE source = ? AND account = ? AND id = ?`
)

// keyFor is the stored form under which an operation stands or is to stand. A
// key may name another event's operation, before that event came or after:
// one operation has one form all the same.
func keyFor(t *tx, seq int64, of event.Key, key, destination string) (stored, long string, err error) {
	foreign, foreignLong := storeForeignKey(key)
	stored, long = storeKey(seq, of, key)
	if stored == foreign {
		other, ok := ownerOf(key)
		if !ok {
			return stored, long, nil
		}
		err = t.query(sqlNamedEvent, []any{other.Source, other.Account, other.ID}, func(r row) error {
			stored, long = storeKey(r.int64(0), other, key)
			return nil
		})
		if err != nil {
			return "", "", fmt.Errorf("look for the event of a key: %w", err)
		}
		if stored == foreign {
			return stored, long, nil
		}
	}
	err = t.query(sqlNamedKey, []any{foreign, destination}, func(row) error {
		stored, long = foreign, foreignLong
		return nil
	})
	if err != nil {
		return "", "", fmt.Errorf("look for a key: %w", err)
	}
	return stored, long, nil
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
// long, with the readable text beside it.
func showKey(stored, long string, of event.Key) (key, readable string) {
	text, short := strings.CutPrefix(stored, shortMark)
	if !short {
		return stored, long
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
