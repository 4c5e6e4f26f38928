package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"
)

// randomKeySize is the size of a key, in bytes.
const randomKeySize = 32

const sqlMakeSetting = `INSERT INTO setting (name, value, at) VALUES (?,?,?) ON CONFLICT (name) DO NOTHING`

// RandomKey is a random key of this database under the name of a setting, 32
// bytes: made when it is first asked for, and the same ever after.
func (s *Store) RandomKey(ctx context.Context, now time.Time, name string) ([]byte, error) {
	fresh := make([]byte, randomKeySize)
	_, _ = rand.Read(fresh) // it never fails
	text := ""
	err := s.write(ctx, work, 1, func(t *tx) error {
		if _, err := t.exec(sqlMakeSetting, name, hex.EncodeToString(fresh), now.UnixMilli()); err != nil {
			return err
		}
		return t.query(sqlSetting, []any{name}, func(r row) error {
			text = r.text(0)
			return nil
		})
	})
	key, odd := hex.DecodeString(text)
	if err == nil && (odd != nil || len(key) != randomKeySize) {
		err = errRandomKey
	}
	if err != nil {
		return nil, fmt.Errorf("read the key %s: %w", name, err)
	}
	return key, nil
}

// errRandomKey says that somebody has written over a key.
var errRandomKey = fmt.Errorf("the setting is not %d bytes in hex", randomKeySize)
