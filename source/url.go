package source

import (
	"net/url"
	"strings"
)

// urls are the forms of the public URL that the signature may be over: what
// the owner registered, with the query that this request came with (senders
// add to it), and, where the scheme says so, the same with the other form of
// its default port. Host and X-Forwarded-* take no part.
func (s *scheme) urls(public, query string) []string {
	if public == "" {
		return []string{""}
	}
	base, _, _ := strings.Cut(public, "?")
	full := public
	if query != "" {
		full = base + "?" + query
	}
	out := []string{full}
	if other := otherPort(full); s.urlPorts && other != "" {
		out = append(out, other)
	}
	return out
}

// otherPort takes the port off a URL, or adds the default one of its scheme.
func otherPort(full string) string {
	protocol, rest, ok := strings.Cut(full, "://")
	if !ok {
		return ""
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, tail := rest[:end], rest[end:]
	host := authority[strings.LastIndexByte(authority, '@')+1:]
	user := authority[:len(authority)-len(host)]
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		return protocol + "://" + user + host[:i] + tail
	}
	switch protocol {
	case "https":
		return protocol + "://" + user + host + ":443" + tail
	case "http":
		return protocol + "://" + user + host + ":80" + tail
	}
	return ""
}

// pathOf is the path and query of a URL, as they are written.
func pathOf(full string) string {
	_, rest, ok := strings.Cut(full, "://")
	if !ok {
		return ""
	}
	start := strings.IndexAny(rest, "/?")
	if start < 0 {
		return "/"
	}
	return rest[start:]
}

// validURL tells whether a text can be the public URL of a source.
func validURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.Fragment == ""
}
