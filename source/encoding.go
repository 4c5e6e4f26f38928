package source

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// encoding is how bytes are written as text.
type encoding string

const (
	encHex       encoding = "hex"       // in either case
	encHexLower  encoding = "hex-lower" // lower case alone
	encBase64    encoding = "base64"    // RFC 4648 section 4, padded
	encBase64Raw encoding = "base64-raw"
	encURL       encoding = "base64url" // RFC 4648 section 5, without padding, as in a JWS
	encURLPadded encoding = "base64url-padded"
	encText      encoding = "text" // the bytes themselves
)

func encodings() []string {
	return []string{string(encHex), string(encHexLower), string(encBase64), string(encBase64Raw),
		string(encURL), string(encURLPadded), string(encText)}
}

func (e encoding) base64() *base64.Encoding {
	switch e {
	case encBase64:
		return base64.StdEncoding
	case encBase64Raw:
		return base64.RawStdEncoding
	case encURL:
		return base64.RawURLEncoding
	case encURLPadded:
		return base64.URLEncoding
	}
	return nil
}

// decode takes the one canonical spelling (and hex in either case): two texts
// for one signature would make two requests of one.
func (e encoding) decode(text string) ([]byte, bool) {
	if text == "" {
		return nil, false
	}
	switch e {
	case encText:
		return []byte(text), true
	case encHex, encHexLower:
		if e == encHexLower && strings.ToLower(text) != text {
			return nil, false
		}
		raw, err := hex.DecodeString(text)
		return raw, err == nil
	}
	// The decoder skips line ends even when it is strict.
	if strings.ContainsAny(text, "\r\n") {
		return nil, false
	}
	raw, err := e.base64().Strict().DecodeString(text)
	return raw, err == nil
}

func (e encoding) encode(raw []byte) string {
	switch e {
	case encText:
		return string(raw)
	case encHex, encHexLower:
		return hex.EncodeToString(raw)
	}
	return e.base64().EncodeToString(raw)
}
