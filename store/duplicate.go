package store

import (
	"errors"
	"fmt"

	"creel/event"
)

const (
	maxConflicts = 3 // bodies kept beside the first; further ones are counted

	// The row of a new event gets the number after the highest, so a body's
	// key can name it before it is there.
	sqlClaimBody = `INSERT INTO body_key (source, sum, seen_at, event)
		VALUES (?, ?, ?, (SELECT ifnull(max(seq), 0) + 1 FROM event))
		ON CONFLICT (source, sum) DO UPDATE SET seen_at = excluded.seen_at, event = excluded.event
		WHERE seen_at < ?`
	sqlBodyEvent = `SELECT event FROM body_key WHERE source = ? AND sum = ?`
	sqlNameBody  = `UPDATE body_key SET event = ? WHERE source = ? AND sum = ? AND event <> ?`
	sqlSibling   = `SELECT seq FROM event WHERE seq BETWEEN ? AND ? AND part = ?`

	knownColumns = `seq, source, account, id, state, content, duplicates, conflicts, revivable, origin`
	sqlKnownKey  = `SELECT ` + knownColumns + ` FROM event WHERE source = ? AND account = ? AND id = ?`
	sqlKnownSeq  = `SELECT ` + knownColumns + ` FROM event WHERE seq = ?`

	sqlCountDuplicate = `UPDATE event SET duplicates = duplicates + 1, duplicate_at = ? WHERE seq = ?`

	sqlConflictSeen   = `UPDATE conflict SET seen = seen + 1, last_at = ? WHERE event = ? AND content = ?`
	sqlInsertConflict = `INSERT INTO conflict (event, n, content, at, last_at, part, body, header, query)
		SELECT ?1, count(*) + 1, ?2, ?3, ?3, ?4, ?5, ?6, ?7 FROM conflict WHERE event = ?1 HAVING count(*) < ?8`
	sqlCountConflict = `UPDATE event SET conflicts = conflicts + 1 WHERE seq = ?`
)

// errGone says that a row which a constraint named is not there.
var errGone = errors.New("the constraint named a row that is not there")

// earlier is an event that was there before.
type earlier struct {
	seq        int64
	key        event.Key
	state      event.State
	content    string
	duplicates int
	conflicts  int
	revivable  bool
	brought    bool // by its owner
}

func earlierEvent(t *tx, query string, args ...any) (earlier, error) {
	var s earlier
	err := t.query(query, args, func(r row) error {
		s = earlier{
			seq: r.int64(0), key: keyOf(r, 1), state: event.State(r.text(4)), content: string(r.blob(5)),
			duplicates: r.int(6), conflicts: r.int(7), revivable: r.bool(8), brought: r.text(9) != "",
		}
		return nil
	})
	if err == nil && s.seq == 0 {
		err = errGone
	}
	if err != nil {
		return earlier{}, fmt.Errorf("read known event: %w", err)
	}
	return s, nil
}

// claimBody takes the body's key for this receipt. Where it is taken already
// within its window, it names the event that has it.
func (a *acceptance) claimBody(t *tx) (first int64, known bool, err error) {
	cutoff := a.at - a.receipt.BodyWindow.Milliseconds()
	changes, err := t.exec(sqlClaimBody, a.receipt.Source, a.receipt.BodyKey[:16], a.at, cutoff)
	if err != nil {
		return 0, false, fmt.Errorf("claim body key: %w", err)
	}
	if changes > 0 {
		return 0, false, nil
	}
	err = t.query(sqlBodyEvent, []any{a.receipt.Source, a.receipt.BodyKey[:16]}, func(r row) error {
		first = r.int64(0)
		return nil
	})
	if err != nil {
		return 0, false, fmt.Errorf("read body key: %w", err)
	}
	return first, true, nil
}

// nameBody lets the body's key name the first event of the receipt, where that
// was there before (its key is known, its body was not).
func (a *acceptance) nameBody(t *tx) error {
	if len(a.result.Items) == 0 {
		return nil
	}
	seq := a.result.Items[0].Seq
	if _, err := t.exec(sqlNameBody, seq, a.receipt.Source, a.receipt.BodyKey[:16], seq); err != nil {
		return fmt.Errorf("name body key: %w", err)
	}
	return nil
}

// sameBody counts every item on the event that brought the same body, whatever
// id it comes under now.
func (a *acceptance) sameBody(t *tx, first int64) error {
	for i := range a.receipt.Items {
		seq := first
		if len(a.receipt.Items) > 1 {
			last := first + int64(len(a.receipt.Items)) - 1
			err := t.query(sqlSibling, []any{first, last, a.receipt.Items[i].Part}, func(r row) error {
				seq = r.int64(0)
				return nil
			})
			if err != nil {
				return fmt.Errorf("read sibling: %w", err)
			}
		}
		s, err := earlierEvent(t, sqlKnownSeq, seq)
		if err != nil {
			return err
		}
		if err := a.duplicate(t, i, s); err != nil {
			return err
		}
	}
	return nil
}

// known decides what an item is whose key was there before: the same content
// is a duplicate, another is a conflict.
func (a *acceptance) known(t *tx, i int) error {
	item := &a.receipt.Items[i]
	s, err := earlierEvent(t, sqlKnownKey, item.Key.Source, item.Key.Account, item.Key.ID)
	if err != nil {
		return err
	}
	same := s.content == string(item.Content[:])
	if !same && (s.brought || a.receipt.Origin != event.FromWebhook) {
		if same, err = a.alike(t, item, s.seq); err != nil {
			return err
		}
	}
	if same {
		return a.duplicate(t, i, s)
	}
	return a.conflict(t, i, s)
}

// alike tells whether an item says what the stored event says, where one of the
// two was brought by its owner and is written in another way.
func (a *acceptance) alike(t *tx, item *event.Item, seq int64) (same bool, err error) {
	if a.receipt.Alike == nil {
		return false, nil
	}
	err = t.query(sqlWork, []any{seq}, func(r row) error {
		stored, err := carriedWork(r)
		if err != nil || stored.Body == nil {
			return err
		}
		same = a.receipt.Alike.Alike(stored.Payload, event.Payload{Body: a.receipt.Body, Part: item.Part})
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("compare with the event there: %w", err)
	}
	return same, nil
}

// duplicate counts a redelivery. One of an event that died, or has a dead
// delivery, makes it run again: once for each death.
func (a *acceptance) duplicate(t *tx, i int, s earlier) error {
	if _, err := t.exec(sqlCountDuplicate, a.at, s.seq); err != nil {
		return fmt.Errorf("count duplicate: %w", err)
	}
	revived := false
	if s.revivable && event.CanMove(s.state, event.Pending) && s.state != event.Claimed {
		if _, err := requeue(t, a.at, s.seq); err != nil {
			return err
		}
		revived, a.waiting, a.revived = true, true, true
		a.store.desk.lanes.Store(true) // it may be in one
	}
	a.result.Items[i] = event.AcceptedItem{
		Key: s.key, Seq: s.seq, Result: event.Duplicate,
		Duplicates: s.duplicates + 1, Conflicts: s.conflicts, Revived: revived,
	}
	return nil
}

// conflict keeps another body under a known key, beside the first, which
// stands: up to three, each once.
func (a *acceptance) conflict(t *tx, i int, s earlier) error {
	item := &a.receipt.Items[i]
	seen, err := t.exec(sqlConflictSeen, a.at, s.seq, item.Content[:])
	if err != nil {
		return fmt.Errorf("count conflict: %w", err)
	}
	if seen == 0 { // else it is no news
		s.conflicts++
		if _, err := t.exec(sqlCountConflict, s.seq); err != nil {
			return fmt.Errorf("count conflict: %w", err)
		}
		body := a.receipt.Body
		if body == nil {
			body = []byte{} // nil would be NULL
		}
		_, err := t.exec(sqlInsertConflict, s.seq, item.Content[:], a.at, item.Part,
			body, a.receipt.Header, a.receipt.Query, maxConflicts)
		if err != nil {
			return fmt.Errorf("insert conflict: %w", err)
		}
		if err := a.raiseConflict(t, s.key); err != nil {
			return err
		}
	}
	a.result.Items[i] = event.AcceptedItem{
		Key: s.key, Seq: s.seq, Result: event.Conflict,
		Duplicates: s.duplicates, Conflicts: s.conflicts,
	}
	return nil
}

// raiseConflict tells of another body that was not there yet.
func (a *acceptance) raiseConflict(t *tx, key event.Key) error {
	_, err := raise(t, a.at, event.Incident{
		Cause:   event.CauseConflict,
		Subject: key.Source,
		Detail:  fmt.Sprintf("%s came again with another body. The first one stands and is the only one applied: compare both on the event's page, and ask the sender which is right.", key),
	}, 0)
	return err
}
