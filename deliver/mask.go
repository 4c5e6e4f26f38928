package deliver

import (
	"net"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// shownSecret stands where a secret was.
const shownSecret = "[secret]"

// leastHidden is the length from which a text is looked for in what is kept.
// Shorter ones are no secrets worth the name and would tear holes into words.
const leastHidden = 8

// hide adds texts that nothing may show.
func (d *Destination) hide(texts ...string) {
	for _, text := range texts {
		if len(text) >= leastHidden {
			d.hidden = append(d.hidden, text)
		}
	}
}

// masked takes the destination's secrets out of a text: a server may echo the
// request that it got.
func (d *Destination) masked(text string) string {
	for _, secret := range d.hidden {
		text = strings.ReplaceAll(text, secret, shownSecret)
	}
	return text
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
