package store

import (
	"fmt"

	"creel/event"
)

const (
	sqlInsertRecord = `INSERT INTO record (event, rule, kind, key, long_key, fields, at) VALUES (?,?,?,?,?,?,?)
		ON CONFLICT (key, kind) DO NOTHING`
	sqlExistingRecord = `SELECT record.event, record.long_key, record.fields, event.source, event.account, event.id
		FROM record JOIN event ON event.seq = record.event WHERE record.key = ? AND record.kind = ?`
)

// record inserts a row of a kind. The unique key decides; a row that is there
// already has to have the same fields.
func (a *application) record(t *tx, i int, e event.Record) (answer, error) {
	if err := recordable(e); err != nil {
		return answer{}, err
	}
	f, fields := a.finish, a.texts[i]
	key, long, err := keyFor(t, recordKeys, f.Seq, a.of, e.Key, e.Of)
	if err != nil {
		return answer{}, err
	}
	inserted, err := t.exec(sqlInsertRecord, f.Seq, e.Rule, e.Of, key, long, fields, a.at)
	if err != nil {
		return answer{}, fmt.Errorf("insert record: %w", err)
	}
	if inserted > 0 {
		return answer{}, nil
	}
	return a.existingRecord(t, e, key, long, fields)
}

// recordable objects to a record that no row can hold.
func recordable(e event.Record) error {
	if e.Of == "" || len(e.Of) > event.MaxKey {
		return denied(e, "a record needs a kind of 1 to %d bytes", event.MaxKey)
	}
	return nil
}

// existingRecord compares the record that has the key with the one that is
// asked for; the zero answer is that there is none.
func (a *application) existingRecord(t reading, e event.Record, key, long, fields string) (answer, error) {
	var owner earlierEffect
	stored := ""
	err := t.query(sqlExistingRecord, []any{key, e.Of}, func(r row) error {
		owner = earlierEffect{seq: r.int64(0), long: r.text(1), of: keyOf(r, 3)}
		stored = r.text(2)
		return nil
	})
	if err != nil {
		return answer{}, fmt.Errorf("read existing record: %w", err)
	}
	if owner.seq == 0 {
		return answer{}, nil
	}
	if err := owner.sameKey(e, key, long); err != nil {
		return answer{}, err
	}
	if have, want := unlike(stored, fields); have != want {
		return answer{}, mismatch(e, fmt.Sprintf("a record of kind %s with %s", quoted(e.Of), have), want)
	}
	return owner.answer(a.finish.Seq, fmt.Sprintf("the record of kind %s is there", quoted(e.Of))), nil
}

// earlierEffect is what is known about an effect that was stored before.
type earlierEffect struct {
	seq  int64 // of the event that brought it
	long string
	of   event.Key
}

// sameKey objects where the stored key is a hash of another text, or the text
// that another key's hash is. A short key is no hash: it names one operation,
// and its text stands beside it only where another event brought it.
func (w *earlierEffect) sameKey(e event.Effect, key, long string) error {
	if w.long == long || isShort(key) {
		return nil
	}
	return mismatch(e, described(key, w.long), described(key, long))
}

// answer says that the effect was there, and by whom where it was another
// event.
func (w *earlierEffect) answer(seq int64, note string) answer {
	if w.seq != seq {
		note = fmt.Sprintf("%s did this operation: %s", w.of, note)
	}
	return answer{before: true, note: note}
}

func described(key, long string) string {
	if long == "" {
		return fmt.Sprintf("the key %q", key)
	}
	return fmt.Sprintf("the long key %q", long)
}
