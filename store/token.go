package store

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"creel/event"
)

const (
	sqlSetting     = `SELECT value FROM setting WHERE name = ?`
	sqlKeepSetting = `INSERT INTO setting (name, value, at) VALUES (?,?,?)
		ON CONFLICT (name) DO UPDATE SET value = excluded.value, at = excluded.at`

	tokenColumns   = `SELECT id, name, scope, created_at, revoked_at FROM token`
	sqlTokens      = tokenColumns + ` ORDER BY id LIMIT ?`
	sqlTokenOf     = tokenColumns + ` WHERE hash = ? AND revoked_at IS NULL`
	sqlAddToken    = `INSERT INTO token (name, hash, scope, created_at) VALUES (?,?,?,?)`
	sqlRevokeToken = `UPDATE token SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL RETURNING name`
)

// Setting reads what the server made up for itself; false says that it never
// did.
func (r *Reader) Setting(ctx context.Context, name string) (value string, ok bool, err error) {
	err = r.list(ctx, sqlSetting, []any{name}, func(r row) error {
		value, ok = r.text(0), true
		return nil
	})
	if err != nil {
		return "", false, fmt.Errorf("read setting %s: %w", name, err)
	}
	return value, ok, nil
}

// KeepSetting keeps what the server made up for itself.
func (s *Store) KeepSetting(ctx context.Context, now time.Time, name, value string) error {
	err := s.write(ctx, work, 1, func(t *tx) error {
		_, err := t.exec(sqlKeepSetting, name, value, now.UnixMilli())
		return err
	})
	if err != nil {
		return fmt.Errorf("keep setting %s: %w", name, err)
	}
	return nil
}

// AddToken keeps a token by the hash of what its owner will show, with the
// action that made it.
func (s *Store) AddToken(ctx context.Context, now time.Time, a event.Action, token event.Token, hash [32]byte) (event.Token, error) {
	token.Created = now
	a.Kind, a.Target = event.ActionNewToken, token.Name
	err := s.write(ctx, work, 2, func(t *tx) (err error) {
		if token.ID, _, err = t.insert(sqlAddToken, token.Name, hash[:], string(token.Scope), now.UnixMilli()); err != nil {
			return err
		}
		return insertActed(t, a, now)
	})
	if err != nil {
		return event.Token{}, fmt.Errorf("keep token: %w", err)
	}
	return token, nil
}

// RevokeToken ends a token at once. event.ErrNotFound says that no token that
// holds has that number.
func (s *Store) RevokeToken(ctx context.Context, now time.Time, a event.Action, id int64) error {
	a.Kind = event.ActionNoToken
	err := s.write(ctx, work, 2, func(t *tx) error {
		a.Target = ""
		err := t.query(sqlRevokeToken, []any{now.UnixMilli(), id}, func(r row) error {
			a.Target = r.text(0)
			return nil
		})
		if err != nil {
			return err
		}
		if a.Target == "" {
			return event.ErrNotFound
		}
		return insertActed(t, a, now)
	})
	if err != nil {
		return fmt.Errorf("revoke token %s: %w", strconv.FormatInt(id, 10), err)
	}
	return nil
}

// insertActed writes the row of an act that is over with its transaction.
func insertActed(t *tx, a event.Action, now time.Time) error {
	a.At, a.Finished, a.Selected, a.Done = now, now, 1, 1
	_, err := insertAction(t, &a, nil)
	return err
}

// Tokens lists all tokens, the revoked ones too, at most 500.
func (r *Reader) Tokens(ctx context.Context) ([]event.Token, error) {
	var list []event.Token
	err := r.list(ctx, sqlTokens, []any{maxPage}, func(r row) error {
		list = append(list, tokenOf(r))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	return list, nil
}

// TokenOf finds the token that holds for a hash; false says that there is none.
func (r *Reader) TokenOf(ctx context.Context, hash [32]byte) (token event.Token, ok bool, err error) {
	err = r.list(ctx, sqlTokenOf, []any{hash[:]}, func(r row) error {
		token, ok = tokenOf(r), true
		return nil
	})
	if err != nil {
		return event.Token{}, false, fmt.Errorf("look for token: %w", err)
	}
	return token, ok, nil
}

func tokenOf(r row) event.Token {
	return event.Token{ID: r.int64(0), Name: r.text(1), Scope: event.Scope(r.text(2)), Created: timeOf(r, 3), Revoked: timeOf(r, 4)}
}
