package receiver

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// neverKept are the headers that say something about the connection, or that
// prove who a client is; they are not a part of the event. A destination's
// pass_headers can ask for the second kind.
var neverKept = map[string]bool{
	"Connection":          true,
	"Keep-Alive":          true,
	"Proxy-Authenticate":  true,
	"Proxy-Connection":    true,
	"Te":                  true,
	"Trailer":             true,
	"Transfer-Encoding":   true,
	"Upgrade":             true,
	"Expect":              true,
	"Authorization":       true,
	"Cookie":              true,
	"Proxy-Authorization": true,
}

// keepable are those of neverKept that may be asked for.
var keepable = map[string]bool{
	"Authorization":       true,
	"Cookie":              true,
	"Proxy-Authorization": true,
}

// filter decides which header lines of a source's requests are stored.
type filter struct {
	dropped map[string]bool // canonical names
}

// newFilter drops what is never kept, less the names in keep, and always the
// headers in secret: those that carry a source's secret itself.
func newFilter(keep, secret []string) *filter {
	f := &filter{dropped: make(map[string]bool, len(neverKept)+len(secret))}
	for name := range neverKept {
		f.dropped[name] = true
	}
	for _, name := range keep {
		if name = textproto.CanonicalMIMEHeaderKey(name); keepable[name] {
			delete(f.dropped, name)
		}
	}
	for _, name := range secret {
		f.dropped[textproto.CanonicalMIMEHeaderKey(name)] = true
	}
	return f
}

// lines writes one "Name: value" line for each header line that is kept, by
// name, the lines of one name in the order in which they came. Values are
// the bytes that came: net/http has refused line ends and NUL in them.
func (f *filter) lines(header http.Header) string {
	var room [32]string
	names := room[:0]
	size := 0
	for name, values := range header {
		if f.dropped[name] || connectionNames(header, name) {
			continue
		}
		names = append(names, name)
		for _, value := range values {
			size += len(name) + len(value) + 3
		}
	}
	slices.Sort(names)
	var text strings.Builder
	text.Grow(size)
	for _, name := range names {
		for _, value := range header[name] {
			text.WriteString(name)
			text.WriteString(": ")
			text.WriteString(value)
			text.WriteByte('\n')
		}
	}
	return text.String()
}

// connectionNames tells whether the Connection header declares name to be a
// matter of this connection alone (RFC 9110, section 7.6.1).
func connectionNames(header http.Header, name string) bool {
	for _, line := range header["Connection"] {
		if len(line) < len(name) {
			continue
		}
		for token := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(token), name) {
				return true
			}
		}
	}
	return false
}
