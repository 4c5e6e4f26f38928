package source

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"time"

	"creel/event"
	"creel/path"
)

// clockSkew is how far the clock of who issued a JWT may be from ours.
const clockSkew = time.Minute

// matchJWT verifies a compact JWS (RFC 7515) with HMAC-SHA256. The algorithm
// is the scheme's: a token that names another is refused.
func matchJWT(v *view, keys []key, candidates []candidate) (int, *refusal) {
	why := refuse(MalformedSignature, "no JWS in its compact form")
	for _, one := range candidates {
		signed, claims, mac, ok := splitJWS(one.text)
		if !ok {
			continue
		}
		why = refuse(WrongSignature, "no signature fits any secret")
		index := -1
		for _, k := range keys {
			sum := content{[]byte(signed)}.sum(hmac.New(sha256.New, k.raw))
			if sameBytes(sum, mac) && index < 0 {
				index = k.index
			}
		}
		if index >= 0 {
			v.claims = path.NewDocument(event.Payload{Body: claims})
			if err := v.claims.Check(); err != nil {
				return -1, refuse(MalformedSignature, "the claims are not JSON")
			}
			return index, nil
		}
	}
	return -1, why
}

func splitJWS(text string) (signed string, claims, mac []byte, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return "", nil, nil, false
	}
	head, ok1 := encURL.decode(parts[0])
	claims, ok2 := encURL.decode(parts[1])
	mac, ok3 := encURL.decode(parts[2])
	if !ok1 || !ok2 || !ok3 {
		return "", nil, nil, false
	}
	var header struct {
		Algorithm string   `json:"alg"`
		Critical  []string `json:"crit"`
	}
	if json.Unmarshal(head, &header) != nil || header.Algorithm != "HS256" || len(header.Critical) > 0 {
		return "", nil, nil, false
	}
	return parts[0] + "." + parts[1], claims, mac, true
}

// claimTimes checks exp and nbf (RFC 7519) where they are there.
func claimTimes(v *view, now time.Time) *refusal {
	for _, name := range []string{"exp", "nbf"} {
		p, err := path.Parse("body." + name)
		if err != nil {
			return refuse(MalformedTimestamp, err.Error())
		}
		at, err := get(v.claims, p)
		if err != nil {
			return refuse(MalformedTimestamp, err.Error())
		}
		if !at.ok {
			continue
		}
		whole, _, _ := strings.Cut(at.text, ".")
		n, ok := digits(whole)
		if !ok {
			return refuse(MalformedTimestamp, "claim."+name+" is no time")
		}
		if name == "exp" && now.After(time.Unix(n, 0).Add(clockSkew)) {
			return refuse(TooOld, "the token has expired")
		}
		if name == "nbf" && now.Before(time.Unix(n, 0).Add(-clockSkew)) {
			return refuse(TooNew, "the token is not valid yet")
		}
	}
	return nil
}
