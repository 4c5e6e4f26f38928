package deliver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"hash"
	"strings"
	"sync"
)

// The bounds of a signing secret in bytes. 24 and 64 are those of the
// Standard Webhooks specification for a key written as whsec_ and base64.
const (
	secretPrefix = "whsec_"
	leastKey     = 24
	mostKey      = 64
	leastText    = 16
	mostText     = 1024
)

// The reasons why a secret can not sign.
var (
	errSecretEmpty       = errors.New("the secret is empty")
	errSecretBase64      = errors.New("what follows whsec_ is not base64")
	errSecretKeySize     = errors.New("a whsec_ secret has 24 to 64 bytes after decoding")
	errSecretTextShort   = errors.New("the secret has fewer than 16 bytes")
	errSecretTextLong    = errors.New("the secret has more than 1024 bytes")
	errSecretPlaceholder = errors.New("the secret is a placeholder")
)

// signingKey turns the text of a secret into the key: the decoded bytes after
// whsec_, else the text as it is.
func signingKey(secret []byte) ([]byte, error) {
	text := string(secret)
	if strings.TrimSpace(text) == "" {
		return nil, errSecretEmpty
	}
	if encoded, ok := strings.CutPrefix(text, secretPrefix); ok {
		key, err := decodeBase64(encoded)
		if err != nil {
			return nil, errSecretBase64
		}
		if len(key) < leastKey || len(key) > mostKey {
			return nil, errSecretKeySize
		}
		return key, nil
	}
	switch {
	case len(text) < leastText:
		return nil, errSecretTextShort
	case len(text) > mostText:
		return nil, errSecretTextLong
	case isPlaceholder(text):
		return nil, errSecretPlaceholder
	}
	return secret, nil
}

func decodeBase64(text string) ([]byte, error) {
	if key, err := base64.StdEncoding.DecodeString(text); err == nil {
		return key, nil
	}
	return base64.RawStdEncoding.DecodeString(text)
}

// isPlaceholder finds secrets that were never set: one character repeated, or
// the words that examples use.
func isPlaceholder(text string) bool {
	if strings.Trim(text, text[:1]) == "" {
		return true
	}
	lower := strings.ToLower(text)
	for _, word := range []string{"changeme", "change-me", "change_me", "your-secret", "your_secret", "placeholder", "replace-me", "replace_me"} {
		if strings.Contains(lower, word) {
			return true
		}
	}
	return false
}

// signer signs with one key. Hashes that have taken the key already are used
// again: setting one up costs as much as hashing a short body.
type signer struct {
	hashes sync.Pool
}

// keyedHash is one hash with room for what goes into it and comes out of it.
type keyedHash struct {
	hash.Hash
	text []byte
}

func newSigner(key []byte) *signer {
	return &signer{hashes: sync.Pool{New: func() any { return &keyedHash{Hash: hmac.New(sha256.New, key)} }}}
}

// appendSignature appends the value of webhook-signature as the Standard
// Webhooks specification has it: v1 and the HMAC-SHA256 over id.timestamp.body
// in base64.
func (s *signer) appendSignature(out []byte, id, timestamp string, body []byte) []byte {
	h, ok := s.hashes.Get().(*keyedHash)
	if !ok {
		return out // the pool holds nothing else
	}
	defer s.hashes.Put(h)
	h.Reset()
	h.text = append(append(append(append(h.text[:0], id...), '.'), timestamp...), '.')
	_, _ = h.Write(h.text) // a hash takes everything
	_, _ = h.Write(body)
	h.text = h.Sum(h.text[:0])
	return base64.StdEncoding.AppendEncode(append(out, "v1,"...), h.text)
}
