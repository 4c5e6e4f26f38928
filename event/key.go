package event

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"
)

// MaxKey is the longest key or event id, in bytes, that is stored as it is. A
// longer one is stored as its SHA-256 with the readable form beside it.
const MaxKey = 256

// ErrBadKey says that a text is not an event key.
var ErrBadKey = errors.New("an event key is source/account/id, with an empty account written as source//id")

// Key is the identity of an event: which source sent it, for which of the
// sender's accounts ("" where a source has none), and the sender's own id.
// Keys are compared exactly, letter case included.
type Key struct {
	Source  string
	Account string
	ID      string
}

// String writes the key as source/account/id with "/" and "%" inside a part
// percent-escaped, so that two different keys never print alike.
func (k Key) String() string {
	return EscapePart(k.Source) + "/" + EscapePart(k.Account) + "/" + EscapePart(k.ID)
}

// MarshalText writes the key as String does: in JSON a key is one text.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (k *Key) UnmarshalText(text []byte) (err error) {
	*k, err = ParseKey(string(text))
	return err
}

// ParseKey reads what String wrote. It also takes source/id, the short form
// of a key without an account.
func ParseKey(text string) (Key, error) {
	parts := strings.Split(text, "/")
	if len(parts) == 2 {
		parts = []string{parts[0], "", parts[1]}
	}
	if len(parts) != 3 || parts[0] == "" || parts[2] == "" {
		return Key{}, fmt.Errorf("%q: %w", text, ErrBadKey)
	}
	for i, part := range parts {
		plain, err := url.PathUnescape(part)
		if err != nil {
			return Key{}, fmt.Errorf("%q: %w", text, ErrBadKey)
		}
		parts[i] = plain
	}
	return Key{Source: parts[0], Account: parts[1], ID: parts[2]}, nil
}

// EscapePart makes a value safe inside a key: "a/b" + "c" stays different
// from "a" + "b/c". Bytes that no terminal and no JSON text carries unharmed
// (control characters, line separators, invalid UTF-8) are escaped too, so
// that a key can be shown, copied and given back.
func EscapePart(value string) string {
	plain := true
	for _, r := range value {
		if escaped(r) {
			plain = false
			break
		}
	}
	if plain {
		return value
	}
	var b strings.Builder
	for len(value) > 0 {
		r, size := utf8.DecodeRuneInString(value)
		if escaped(r) && (r != utf8.RuneError || size == 1) {
			for i := range size {
				fmt.Fprintf(&b, "%%%02X", value[i])
			}
		} else {
			b.WriteString(value[:size])
		}
		value = value[size:]
	}
	return b.String()
}

func escaped(r rune) bool {
	return r == '/' || r == '%' || r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == utf8.RuneError
}

// Fold returns the form of a key or id that is stored and compared, and, only
// where that is a hash because the text is longer than MaxKey, the readable
// text beside it.
func Fold(text string) (stored, readable string) {
	if len(text) <= MaxKey {
		return text, ""
	}
	return HashID([]byte(text)), text
}

// WebhookID is the webhook-id of a delivery at its destination: derived from
// what makes the delivery unique (its stored business key and the name of the
// destination), so that it is the same on every attempt and replay, short, and
// without dots (the signed content of Standard Webhooks is split at dots).
func WebhookID(key, destination string) string {
	sum := sha256.Sum256([]byte(key + "\x00" + destination))
	return "msg_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// HashID is the id of what has none of its own: "sha256:" and the hash in hex.
func HashID(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
