package deliver

import (
	"cmp"
	"encoding/base64"
	"net"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// shownSecret stands where a secret was.
const shownSecret = "[secret]"

// leastHidden is the length from which a text is looked for in what is kept.
// Shorter ones are no secrets worth the name and would tear holes into words.
const leastHidden = 8

// mask has the secrets of a destination, which no error and no kept answer may
// show: the other side may echo what it got.
type mask struct{ hidden []string } // the longest first: one may begin another

// hide adds texts that nothing may show.
func (m *mask) hide(texts ...string) {
	for _, text := range texts {
		if len(text) >= leastHidden && !slices.Contains(m.hidden, text) {
			m.hidden = append(m.hidden, text)
		}
	}
	slices.SortStableFunc(m.hidden, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
}

// credential hides what the owner keeps secret, and each part of it that may be
// the secret proper: what stands behind a scheme ("Bearer x", "Basic x"), in a
// parameter (token="x"), or before the host of an address. Who refuses it
// quotes that alone.
func (m *mask) credential(text string) {
	m.conceal(text)
	rest := strings.TrimSpace(text)
	if scheme, behind, ok := strings.Cut(rest, " "); ok && isToken(scheme) {
		rest = strings.TrimSpace(behind)
		m.conceal(rest)
		if plain, err := base64.StdEncoding.DecodeString(rest); err == nil && strings.EqualFold(scheme, "Basic") {
			m.conceal(string(plain))
			_, password, _ := strings.Cut(string(plain), ":")
			m.conceal(password)
		}
	}
	for part := range strings.FieldsFuncSeq(rest, func(r rune) bool { return strings.ContainsRune(" ,;", r) }) {
		if _, value, ok := strings.Cut(part, "="); ok {
			m.conceal(strings.Trim(value, `"'`))
		}
	}
	if u, err := url.Parse(rest); err == nil && u.User != nil {
		password, _ := u.User.Password()
		m.conceal(password)
	}
}

// conceal hides a text in every form in which it may travel. Of an address the
// path alone tells the secret too.
func (m *mask) conceal(text string) {
	written := string(appendJSON(nil, text))
	m.hide(text, url.QueryEscape(text), url.PathEscape(text), written[1:len(written)-1])
	whole := text
	if !strings.Contains(text, "://") {
		whole = "http://host/" + text
	}
	if u, err := url.Parse(whole); err == nil {
		m.hide(strings.TrimPrefix(u.RequestURI(), "/"), strings.TrimPrefix(u.EscapedPath(), "/"), u.RawQuery)
	}
}

// hideQuery hides what the configuration itself writes into the query of a
// template, which often is a key.
func (m *mask) hideQuery(query string) {
	for pair := range strings.SplitSeq(query, "&") {
		if _, value, ok := strings.Cut(pair, "="); ok && !strings.ContainsAny(value, "{}") {
			m.conceal(value)
		}
	}
}

// masked takes the secrets out of a text.
func (m *mask) masked(text string) string {
	for _, secret := range m.hidden {
		text = strings.ReplaceAll(text, secret, shownSecret)
	}
	return text
}

// maskedCut is masked for a text that was cut off: the beginning of a secret
// at its end goes too.
func (m *mask) maskedCut(text string) string {
	most := 0
	for _, secret := range m.hidden {
		for n := min(len(secret), len(text)); n >= leastHidden/2 && n > most; n-- {
			if strings.HasSuffix(text, secret[:n]) {
				most = n
			}
		}
	}
	if most == 0 {
		return m.masked(text)
	}
	return m.masked(text[:len(text)-most]) + shownSecret
}

// shownURL writes a URL without user information, and without the query's
// text, which often is a token.
func shownURL(u *url.URL) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath, Opaque: u.Opaque}
	text := shown.String()
	if u.RawQuery != "" {
		text += "?…"
	}
	return text
}

// isLocal tells whether a host can only be this machine.
func isLocal(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// printable makes text fit for a page, a terminal and a log line, at most
// limit bytes of it: what is not UTF-8 and every control character but line
// ends and tabs becomes the replacement character.
func printable(text string, limit int) string {
	if len(text) <= limit && isPrintable(text) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		switch {
		case r == '\n', r == '\t':
		case r == '\r':
			continue
		case !unicode.IsGraphic(r):
			r = utf8.RuneError
		}
		if out.Len()+utf8.RuneLen(r) > limit {
			break
		}
		out.WriteRune(r)
	}
	return out.String()
}

// isPrintable tells whether every byte is a printable character or a line end.
func isPrintable(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < ' ' || c >= 0x7f) && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}
