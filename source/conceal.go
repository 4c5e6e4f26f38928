package source

import (
	"encoding/base64"
	"encoding/hex"
	"html"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
)

// concealed is what stands for a value that is not shown.
const concealed = "[not shown]"

// telling are parts of names whose values may be a secret, or be made with
// one. The values of these are not shown, whatever scheme the source has.
func telling() []string {
	return []string{"auth", "token", "secret", "password", "passwd", "apikey", "api-key", "api_key", "cookie", "signature", "hmac", "sig", "session", "credential",
		"access-key", "access_key", "accesskey", "private"}
}

// Conceal is what an operator may see of a request: without the values of
// headers and parameters that carry a signature or a secret, and without the
// source's own secrets, wherever they stand. The source may be nil: one that
// is not configured any more.
func (s *Source) Conceal(req *Request) *Request {
	out := &Request{Method: req.Method, Header: make(http.Header, len(req.Header)), Query: s.concealQuery(req.Query)}
	for name, lines := range req.Header {
		shown := slices.Clone(lines)
		for i := range shown {
			if s.conceals(name) {
				shown[i] = concealed
			}
			shown[i] = s.concealText(shown[i])
		}
		out.Header[name] = shown
	}
	out.Body = []byte(s.concealText(string(req.Body)))
	return out
}

func (s *Source) concealQuery(query string) string {
	if query == "" {
		return ""
	}
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || value == "" {
			continue
		}
		plain, err := url.QueryUnescape(value)
		if s.conceals(name) || err == nil && s.concealText(plain) != plain {
			pairs[i] = name + "=" + concealed
		}
	}
	return s.concealText(strings.Join(pairs, "&"))
}

// conceals tells whether the value of a header or parameter is not shown.
func (s *Source) conceals(name string) bool {
	lower := strings.ToLower(name)
	if lower == "key" || lower == "pass" || lower == "pwd" {
		return true
	}
	if slices.ContainsFunc(telling(), func(part string) bool { return strings.Contains(lower, part) }) {
		return true
	}
	if s == nil {
		return false
	}
	return slices.ContainsFunc(s.scheme.sig.places, func(p place) bool {
		return strings.EqualFold(p.name, name) || slices.Contains(p.names, textproto.CanonicalMIMEHeaderKey(name)) ||
			p.kind == inRequest && strings.EqualFold(p.path.Name(), name)
	})
}

// minConcealed is the shortest secret that is looked for in a text, in bytes:
// a shorter one stands in every text by chance.
const minConcealed = 6

// concealText takes the source's own secrets out of a text, however they are
// written.
func (s *Source) concealText(text string) string {
	if s == nil {
		return text
	}
	for _, k := range s.keys {
		if len(k.raw) < minConcealed {
			continue
		}
		plain := string(k.raw)
		for _, written := range []string{plain, url.QueryEscape(plain), url.PathEscape(plain), html.EscapeString(plain),
			base64.RawStdEncoding.EncodeToString(k.raw), base64.RawURLEncoding.EncodeToString(k.raw),
			hex.EncodeToString(k.raw), strings.ToUpper(hex.EncodeToString(k.raw))} {
			text = strings.ReplaceAll(text, written, concealed)
		}
	}
	return text
}
