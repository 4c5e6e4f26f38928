package deliver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"
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

// sign returns the values of webhook-timestamp and webhook-signature as the
// Standard Webhooks specification has them: v1 and the HMAC-SHA256 over
// id.timestamp.body in base64.
func sign(key []byte, id string, at time.Time, body []byte) (timestamp, signature string) {
	timestamp = strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return timestamp, "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
