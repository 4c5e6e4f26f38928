package store

import (
	"context"
	"fmt"

	"creel/event"
)

const (
	sqlRhythms = `SELECT source, since, last_at FROM rhythm ORDER BY source`
	sqlPauses  = `SELECT source, day, length, n FROM pause ORDER BY source, day, length`

	sqlSaveRhythm = `INSERT INTO rhythm (source, since, last_at) VALUES (?,?,?)
		ON CONFLICT (source) DO UPDATE SET since = excluded.since, last_at = excluded.last_at`
	// The whole count, not what came to it: a unit may run twice.
	sqlSavePause = `INSERT INTO pause (source, day, length, n) VALUES (?,?,?,?)
		ON CONFLICT (source, day, length) DO UPDATE SET n = excluded.n`
	sqlPrunePauses = `DELETE FROM pause WHERE source = ?1 AND (day < ?2 OR day > ?3)`

	sqlGaps    = `SELECT source, at, missing, from_at, until_at FROM gap ORDER BY source`
	sqlSaveGap = `INSERT INTO gap (source, at, missing, from_at, until_at) VALUES (?,?,?,?,?)
		ON CONFLICT (source) DO UPDATE SET at = excluded.at, missing = excluded.missing,
			from_at = excluded.from_at, until_at = excluded.until_at`
)

// Rhythms lists what is learned of the pauses of sources.
func (r *Reader) Rhythms(ctx context.Context) ([]event.Rhythm, error) {
	var list []event.Rhythm
	at := map[string]int{}
	err := r.list(ctx, sqlRhythms, nil, func(r row) error {
		at[r.text(0)] = len(list)
		list = append(list, event.Rhythm{Source: r.text(0), Since: timeOf(r, 1), Last: timeOf(r, 2)})
		return nil
	})
	if err == nil {
		err = r.list(ctx, sqlPauses, nil, func(r row) error {
			if i, known := at[r.text(0)]; known {
				list[i].Pauses = append(list[i].Pauses, event.Pause{Day: r.int64(1), Length: r.int(2), N: r.int64(3)})
			}
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("list rhythms: %w", err)
	}
	return list, nil
}

// SaveRhythms stores what was learned since: of each source the pauses that
// changed, each as it is by now, and drops those of days outside first to last.
//
// A crash before it loses what was learned since the last one.
func (s *Store) SaveRhythms(ctx context.Context, rhythms []event.Rhythm, first, last int64) error {
	err := s.write(ctx, work, 4*len(rhythms), func(t *tx) error {
		for _, m := range rhythms {
			if _, err := t.exec(sqlSaveRhythm, m.Source, m.Since.UnixMilli(), ms(m.Last)); err != nil {
				return err
			}
			for _, p := range m.Pauses {
				if _, err := t.exec(sqlSavePause, m.Source, p.Day, p.Length, p.N); err != nil {
					return err
				}
			}
			if _, err := t.exec(sqlPrunePauses, m.Source, first, last); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("save rhythms: %w", err)
	}
	return nil
}

// Gaps lists what providers had that the inbox did not, by the last
// reconciliation of each source.
func (r *Reader) Gaps(ctx context.Context) ([]event.Gap, error) {
	var list []event.Gap
	err := r.list(ctx, sqlGaps, nil, func(r row) error {
		list = append(list, event.Gap{Source: r.text(0), At: timeOf(r, 1), Missing: r.int(2), From: timeOf(r, 3), Until: timeOf(r, 4)})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list gaps: %w", err)
	}
	return list, nil
}

// SetGap stores what the last reconciliation of a source found; 0 missing ends
// an earlier gap.
func (s *Store) SetGap(ctx context.Context, g event.Gap) error {
	err := s.write(ctx, work, 1, func(t *tx) error {
		_, err := t.exec(sqlSaveGap, g.Source, g.At.UnixMilli(), g.Missing, g.From.UnixMilli(), g.Until.UnixMilli())
		return err
	})
	if err != nil {
		return fmt.Errorf("set gap of %s: %w", g.Source, err)
	}
	return nil
}
