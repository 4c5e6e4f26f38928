package store

import (
	"context"
	"fmt"
	"time"

	"creel/event"
)

const (
	sqlTallies = `SELECT kind, subject, minute, n FROM tally`
	// The whole count of the minute, not what came to it: a unit may run twice.
	sqlSaveTally = `INSERT INTO tally (kind, subject, minute, n) VALUES (?,?,?,?)
		ON CONFLICT (kind, subject, minute) DO UPDATE SET n = excluded.n`
	// All but the newest; and what a clock wrote that was set back since.
	sqlPruneTally = `DELETE FROM tally WHERE kind = ?1 AND subject = ?2 AND (minute > ?3 OR minute <= ?4 AND minute <
		(SELECT max(minute) FROM tally WHERE kind = ?1 AND subject = ?2 AND minute <= ?3))`
)

// Tallies lists what was counted by the minute, as far as it is kept.
func (r *Reader) Tallies(ctx context.Context) ([]event.MinuteCount, error) {
	var list []event.MinuteCount
	err := r.list(ctx, sqlTallies, nil, func(r row) error {
		list = append(list, event.MinuteCount{Kind: event.TallyKind(r.text(0)), Subject: r.text(1), Minute: r.int64(2), N: r.int64(3)})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list tallies: %w", err)
	}
	return list, nil
}

// SaveTallies stores the counts of minutes, each as it is by now, and drops
// those of the same kinds and subjects that are older than keep, but for the
// newest of each. It notes the time.
//
// A crash before it loses the counts of the minutes since the last one, and
// nothing else.
func (s *Store) SaveTallies(ctx context.Context, now time.Time, counts []event.MinuteCount, keep time.Duration) error {
	minute, oldest := now.Unix()/60, now.Add(-keep).Unix()/60
	err := s.write(ctx, work, 2*len(counts), func(t *tx) error {
		for i := range counts {
			c := &counts[i]
			if _, err := t.exec(sqlSaveTally, string(c.Kind), c.Subject, c.Minute, c.N); err != nil {
				return err
			}
			if i+1 < len(counts) && counts[i+1].Kind == c.Kind && counts[i+1].Subject == c.Subject {
				continue
			}
			if _, err := t.exec(sqlPruneTally, string(c.Kind), c.Subject, minute, oldest); err != nil {
				return err
			}
		}
		return noteSeen(t, now)
	})
	if err != nil {
		return fmt.Errorf("save tallies: %w", err)
	}
	return nil
}
