package source

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"html"
	"slices"
	"strings"
)

// minKey is the shortest shared key that is no weak one, in bytes (128 bits,
// OWASP ASVS 5.0 11.2.3).
const minKey = 16

// key is one secret, ready to verify with.
type key struct {
	name   string // with key_by: what names it
	raw    []byte // shared key, token or user:password
	public any    // ed25519.PublicKey, *ecdsa.PublicKey, *rsa.PublicKey
	index  int    // of the configured secret
}

// keyRule says how a configured secret becomes a key.
type keyRule struct {
	auth  string
	form  string
	strip []string
	list  string
	named bool
}

// The reasons why a secret can not be a key. None quotes the secret.
var (
	errEmptyKey    = errors.New("is empty: with an empty key anybody can sign")
	errShortKey    = errors.New("is shorter than 16 bytes after decoding")
	errPlaceholder = errors.New("is a placeholder, not a secret")
	errNotBase64   = errors.New("is not base64")
	errNotHex      = errors.New("is not hex")
	errNotNamed    = errors.New("is not written name:secret")
	errNotKey      = errors.New("is not a public key of the scheme")
)

// keys makes the keys of one configured secret.
func (r keyRule) keys(secret []byte, index int) ([]key, error) {
	parts := []string{string(secret)}
	if r.list != "" {
		parts = strings.Split(parts[0], r.list)
	}
	out := make([]key, 0, len(parts))
	for _, part := range parts {
		made, err := r.either(part)
		if err != nil {
			return nil, err
		}
		for _, k := range made {
			k.index = index
			out = append(out, k)
		}
	}
	return out, nil
}

// either makes the keys of one text. Of base64-or-utf8, where a sender changed
// how it reads the secrets that it hands out and no secret says of which time it
// is, that is two: whoever has one has the other.
func (r keyRule) either(text string) ([]key, error) {
	if r.form != "base64-or-utf8" {
		k, err := r.key(text)
		return []key{k}, err
	}
	coded, plain := r, r
	coded.form, plain.form, plain.strip = "prefixed-base64", "utf8", nil
	whole, err := plain.key(text)
	if err != nil {
		return nil, err
	}
	first, err := coded.key(text)
	if err != nil || first.same(whole) || first.weak() {
		return []key{whole}, nil
	}
	return []key{first, whole}, nil
}

func (r keyRule) key(text string) (key, error) {
	var k key
	if r.named {
		name, rest, ok := strings.Cut(text, ":")
		if !ok || name == "" {
			return k, errNotNamed
		}
		k.name, text = name, rest
	}
	if strings.TrimSpace(text) == "" {
		return k, errEmptyKey
	}
	if placeholder(text) {
		return k, errPlaceholder
	}
	stripped := false
	for _, prefix := range r.strip {
		rest, ok := strings.CutPrefix(text, prefix)
		text, stripped = rest, stripped || ok
	}
	raw, err := r.decode(text, stripped)
	if err != nil {
		return k, err
	}
	if len(raw) == 0 {
		return k, errEmptyKey
	}
	if !r.asymmetric() {
		k.raw = raw
		return k, nil
	}
	k.public, err = publicKey(r.auth, raw)
	return k, err
}

func (r keyRule) asymmetric() bool {
	return r.auth == "ed25519" || r.auth == "ecdsa-p256" || r.auth == "rsa-sha256"
}

func (r keyRule) decode(text string, stripped bool) ([]byte, error) {
	form := r.form
	if form == "prefixed-base64" {
		form = "utf8"
		if stripped {
			form = "base64"
		}
	}
	switch form {
	case "base64", "spki-base64":
		// Secrets are pasted by people and made by senders, whose decoders are
		// lenient about padding and unused bits: a key has no second spelling
		// that anybody could gain from.
		raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
		if err != nil || strings.ContainsAny(text, "\r\n") {
			return nil, errNotBase64
		}
		return raw, nil
	case "hex":
		raw, err := hex.DecodeString(text)
		if err != nil {
			return nil, errNotHex
		}
		return raw, nil
	case "html":
		return []byte(html.UnescapeString(text)), nil
	case "pem":
		block, rest := pem.Decode([]byte(text))
		if block == nil || len(bytes.TrimSpace(rest)) > 0 {
			return nil, errNotKey
		}
		return block.Bytes, nil
	}
	return []byte(text), nil
}

// publicKey reads a raw Ed25519 key of 32 bytes or a SubjectPublicKeyInfo.
func publicKey(auth string, raw []byte) (any, error) {
	if auth == "ed25519" && len(raw) == ed25519.PublicKeySize {
		return ed25519.PublicKey(raw), nil
	}
	parsed, err := x509.ParsePKIXPublicKey(raw)
	if err != nil {
		return nil, errNotKey
	}
	switch k := parsed.(type) {
	case ed25519.PublicKey:
		if auth == "ed25519" {
			return k, nil
		}
	case *ecdsa.PublicKey:
		if auth == "ecdsa-p256" && k.Curve == elliptic.P256() {
			return k, nil
		}
	case *rsa.PublicKey:
		if auth == "rsa-sha256" && k.N.BitLen() >= 2048 {
			return k, nil
		}
	}
	return nil, errNotKey
}

// weak tells whether a key is too short to be one.
func (k key) weak() bool { return k.public == nil && len(k.raw) < minKey }

// same tells whether two keys are one, in constant time.
func (k key) same(other key) bool {
	if k.public != nil {
		known, ok := k.public.(interface{ Equal(x any) bool })
		return ok && known.Equal(other.public)
	}
	return sameBytes(k.raw, other.raw) && k.name == other.name
}

// placeholders are texts that stand in examples where the secret should be.
// Cal.com sends no-secret-provided as its signature when it has no secret.
func placeholders() []string {
	return []string{"changeme", "change-me", "change_me", "changeit", "change-this", "replaceme", "replace-me",
		"replace_me", "placeholder", "todo", "tbd", "none", "null", "nil", "undefined", "no-secret-provided",
		"your-secret", "your_secret", "yoursecret", "your-webhook-secret", "your_webhook_secret",
		"your-signing-secret", "your_signing_secret", "insert-secret-here", "secret-here"}
}

// placeholder tells whether a secret is the text of an example.
func placeholder(text string) bool {
	lower := strings.ToLower(strings.TrimSpace(text))
	for _, prefix := range []string{"v1,", "whsec_", "whpk_"} {
		lower = strings.TrimPrefix(lower, prefix)
	}
	if slices.Contains(placeholders(), lower) || strings.Contains(lower, "...") || strings.Contains(lower, "…") {
		return true
	}
	if strings.HasPrefix(lower, "<") && strings.HasSuffix(lower, ">") {
		return true
	}
	if strings.HasPrefix(lower, "${") || strings.HasPrefix(lower, "{{") {
		return true
	}
	return lower == "" || len(lower) > 2 && (strings.Trim(lower, "x") == "" || strings.Trim(lower, "*") == "")
}
