package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	sqlIdentities   = `SELECT source, fingerprint FROM source_identity`
	sqlHasEvents    = `SELECT EXISTS (SELECT 1 FROM event WHERE source = ?)`
	sqlSaveIdentity = `INSERT INTO source_identity (source, fingerprint, at) VALUES (?,?,?)
		ON CONFLICT (source) DO UPDATE SET fingerprint = excluded.fingerprint, at = excluded.at
		WHERE fingerprint <> excluded.fingerprint`
)

// ChangedIdentities names, in order, the sources whose identity settings are
// not those that their stored events were told apart by: fingerprints maps a
// source's name to the fingerprint of its settings now. Sources without events
// and sources that were never seen are not changed.
func (r *Reader) ChangedIdentities(ctx context.Context, fingerprints map[string]string) ([]string, error) {
	var changed []string
	err := r.snapshot(ctx, func(s snapshot) error {
		known := map[string]string{}
		err := s.list(sqlIdentities, nil, func(r row) error {
			known[r.text(0)] = r.text(1)
			return nil
		})
		if err != nil {
			return err
		}
		for _, source := range slices.Sorted(maps.Keys(fingerprints)) {
			if was, ok := known[source]; !ok || was == fingerprints[source] {
				continue
			}
			var events bool
			if err := s.row(sqlHasEvents, []any{source}, &events); err != nil {
				return err
			}
			if events {
				changed = append(changed, source)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("compare source identities: %w", err)
	}
	return changed, nil
}

// SaveIdentities stores the fingerprints of the sources that are served now.
// The caller has refused, or accepted, what ChangedIdentities named.
func (s *Store) SaveIdentities(ctx context.Context, now time.Time, fingerprints map[string]string) error {
	err := s.write(ctx, work, len(fingerprints), func(t *tx) error {
		for _, source := range slices.Sorted(maps.Keys(fingerprints)) {
			if _, err := t.exec(sqlSaveIdentity, source, fingerprints[source], now.UnixMilli()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("save source identities: %w", err)
	}
	return nil
}
