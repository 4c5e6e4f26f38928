package source

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"creel/path"
)

// Flaw is a fault that Sign puts into a request on purpose.
type Flaw string

// The flaws. NoFlaw is a request that verifies.
const (
	NoFlaw           Flaw = ""
	CorruptBody      Flaw = "body"      // a byte is changed after signing
	CorruptSignature Flaw = "signature" // a digit of the signature is changed
	WrongSecret      Flaw = "secret"    // signed with another secret
	Stale            Flaw = "stale"     // signed longer ago than the window
	Future           Flaw = "future"    // signed further ahead than the window
	Unsigned         Flaw = "unsigned"  // no signature at all
	Doubled          Flaw = "doubled"   // the signature header twice
)

// Flaws lists the flaws, for help texts and tests.
func Flaws() []Flaw {
	return []Flaw{CorruptBody, CorruptSignature, WrongSecret, Stale, Future, Unsigned, Doubled}
}

// The errors of signing.
var (
	ErrCannotSign = errors.New("a request of this scheme can not be signed here")
	ErrNoWindow   = errors.New("the scheme signs no time, so that no request is stale")
)

// Signing says how a request is signed.
type Signing struct {
	At      time.Time     // the signed time
	Flaw    Flaw          // what is wrong with it
	Secret  int           // which of the source's keys, from 0
	Private crypto.Signer // for schemes with a key pair
}

// Sign makes the request that the source's sender would send for a draft: the
// same headers, signed by the same scheme. It is for test events.
func (s *Source) Sign(d Draft, how Signing) (*Request, error) {
	at, err := s.signingTime(how)
	if err != nil {
		return nil, err
	}
	req := &Request{Method: http.MethodPost, Query: d.Query, Header: d.Header.Clone(), Body: d.Body}
	if req.Header == nil {
		req.Header = http.Header{}
	}
	s.scheme.dress(s, req, d)
	v, why := s.open(req)
	if why != nil {
		return nil, fmt.Errorf("sign: %s", why.detail)
	}
	stamp, err := s.scheme.stamp(v, at)
	if err != nil {
		return nil, err
	}
	if s.scheme.auth == "none" || how.Flaw == Unsigned {
		return req, nil
	}
	text, err := s.signature(v, at, how)
	if err != nil {
		return nil, err
	}
	if how.Flaw == CorruptSignature {
		text = spoilText(text)
	}
	if err := s.scheme.place(req, s.scheme.sig.write(stamp, text)); err != nil {
		return nil, err
	}
	return s.spoil(req, how.Flaw), nil
}

// signingTime is the time that is signed, moved out of the window where that
// is the flaw.
func (s *Source) signingTime(how Signing) (time.Time, error) {
	w := s.scheme.window
	switch how.Flaw {
	case Stale, Future:
		if len(s.scheme.timestamp) == 0 {
			return how.At, ErrNoWindow
		}
	}
	switch how.Flaw {
	case Stale:
		return how.At.Add(-w.late - 10*time.Minute), nil
	case Future:
		return how.At.Add(w.early + 10*time.Minute), nil
	}
	return how.At, nil
}

// dress sets what the scheme wants beside the signature.
func (s *scheme) dress(src *Source, req *Request, d Draft) {
	set := func(p place, text string) {
		if p.kind == inHeader && req.Header.Get(p.name) == "" && text != "" {
			req.Header.Set(p.name, text)
		}
	}
	if req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if len(s.id) > 0 && s.id[0].single() {
		set(s.id[0].pieces[0].place, d.ID)
	}
	for _, t := range s.kind {
		if t.single() {
			set(t.pieces[0].place, d.Type)
			break
		}
	}
	for _, e := range s.equal {
		set(e.place, strings.Trim(e.want.text, "{}"))
	}
	if s.keyBy.kind != 0 && len(src.keys) > 0 {
		set(s.keyBy, src.keys[0].name)
	}
	if s.bodyHash.kind == inRequest && s.bodyHash.path.Root() == path.Query {
		sum := sha256.Sum256(req.Body)
		req.Query = joinQuery(req.Query, s.bodyHash.path.Name(), s.bodyHashEnc.encode(sum[:]))
	}
}

func joinQuery(query, name, value string) string {
	pair := url.QueryEscape(name) + "=" + url.QueryEscape(value)
	if query == "" {
		return pair
	}
	return query + "&" + pair
}

// stamp writes the signed time where the scheme has it and gives the label
// that carries it, where it is one.
func (s *scheme) stamp(v *view, at time.Time) (label, error) {
	if len(s.timestamp) == 0 || !s.timestamp[0].single() {
		return label{}, nil
	}
	text := s.window.format(at)
	v.setWord("ts", text)
	switch p := s.timestamp[0].pieces[0].place; p.kind {
	case inLabel:
		v.labels = []label{{name: p.name, value: text}}
		return v.labels[0], nil
	case inHeader:
		v.req.Header.Set(p.name, text)
	case inClaim:
	default:
		if _, ok, _ := v.first(s.timestamp, false, false); !ok {
			return label{}, fmt.Errorf("sign: the time stands at %s: %w", p.text, ErrCannotSign)
		}
	}
	return label{}, nil
}

func (w window) format(at time.Time) string {
	switch w.unit {
	case milliseconds:
		return strconv.FormatInt(at.UnixMilli(), 10)
	case rfc3339:
		return at.UTC().Format(time.RFC3339Nano)
	}
	return strconv.FormatInt(at.Unix(), 10)
}

// signature is the text of one signature.
func (s *Source) signature(v *view, at time.Time, how Signing) (string, error) {
	if !s.scheme.each.IsZero() {
		return "", fmt.Errorf("sign: every item is signed by itself: %w", ErrCannotSign)
	}
	k, err := s.signingKey(how)
	if err != nil {
		return "", err
	}
	if s.scheme.auth == "token" || s.scheme.auth == "basic" {
		return s.scheme.sig.enc.encode(k.raw), nil
	}
	if s.scheme.auth == "jwt-hs256" {
		return s.token(v, k, at)
	}
	if why := s.scheme.needed(v); why != nil {
		return "", fmt.Errorf("sign: %s", why.detail)
	}
	v.url = s.scheme.urls(s.publicURL, v.req.Query)[0]
	signed, why := s.scheme.content(v)
	if why != nil {
		return "", fmt.Errorf("sign: %s", why.detail)
	}
	if !s.scheme.rule.asymmetric() {
		return s.scheme.sig.enc.encode(signed.sum(hmac.New(hashOf(s.scheme.auth), k.raw))), nil
	}
	if how.Private == nil {
		return "", fmt.Errorf("sign: only the sender has the private key: %w", ErrCannotSign)
	}
	message, options := signed.bytes(), crypto.SignerOpts(crypto.Hash(0))
	if s.scheme.auth != "ed25519" {
		message, options = signed.sum(sha256.New()), crypto.SHA256
	}
	raw, err := how.Private.Sign(rand.Reader, message, options)
	return s.scheme.sig.enc.encode(raw), err
}

func (s *Source) signingKey(how Signing) (key, error) {
	if s.scheme.rule.asymmetric() {
		return key{}, nil
	}
	if how.Secret < 0 || how.Secret >= len(s.keys) {
		return key{}, fmt.Errorf("sign: there is no secret %d, the source has %d, from 0", how.Secret, len(s.keys))
	}
	k := s.keys[how.Secret]
	if how.Flaw == WrongSecret {
		k.raw = []byte("creel: not the secret of this source")
	}
	return k, nil
}

// token is a JWT with the claims that the scheme looks at.
func (s *Source) token(v *view, k key, at time.Time) (string, error) {
	claims := map[string]any{"iat": at.Unix(), "nbf": at.Unix(), "exp": at.Add(5 * time.Minute).Unix()}
	v.url = s.publicURL
	for _, e := range s.scheme.equal {
		if e.place.kind == inClaim {
			text, _, err := v.render(e.want, true, false)
			if err != nil {
				return "", err
			}
			claims[strings.TrimPrefix(e.place.text, "claim.")] = text
		}
	}
	if s.scheme.bodyHash.kind == inClaim {
		sum := sha256.Sum256(v.signed)
		claims[strings.TrimPrefix(s.scheme.bodyHash.text, "claim.")] = s.scheme.bodyHashEnc.encode(sum[:])
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed := encURL.encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encURL.encode(payload)
	return signed + "." + encURL.encode(content{[]byte(signed)}.sum(hmac.New(sha256.New, k.raw))), nil
}

// write makes the value of the signature header.
func (s *signatures) write(stamp label, text string) string {
	if s.take != "" {
		text = s.take + s.pair + text
	}
	if stamp.name != "" {
		text = stamp.name + s.pair + stamp.value + s.list + text
	}
	return text
}

func (s *scheme) place(req *Request, value string) error {
	p := s.sig.places[0]
	switch {
	case p.kind == inHeader:
		req.Header.Set(p.name, value)
	case p.kind == inHeaders:
		req.Header.Set(p.names[0], value)
	case p.kind == inRequest && p.path.Root() == path.Query:
		req.Query = joinQuery(req.Query, p.path.Name(), value)
	default:
		return fmt.Errorf("sign: the signature stands at %s: %w", p.text, ErrCannotSign)
	}
	return nil
}

// spoil puts in the flaws that come after signing.
func (s *Source) spoil(req *Request, flaw Flaw) *Request {
	switch flaw {
	case CorruptBody:
		body := append([]byte(nil), req.Body...)
		if len(body) == 0 {
			body = []byte("x")
		} else {
			body[len(body)/2] ^= 1
		}
		req.Body = body
	case Doubled:
		for _, p := range s.scheme.sig.places {
			if lines := req.Header[p.name]; p.kind == inHeader && len(lines) == 1 {
				req.Header[p.name] = append(lines, lines[0])
			}
		}
	}
	return req
}

// spoilText changes a character in the middle of a signature, so that it
// stays readable.
func spoilText(text string) string {
	at := len(text) / 2
	other := "0"
	if text[at] == '0' {
		other = "1"
	}
	return text[:at] + other + text[at+1:]
}
