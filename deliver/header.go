package deliver

import (
	"net/http"
	"strings"
)

// The names of the headers that we set, in the canonical form of net/http.
const (
	headerID         = "Webhook-Id"
	headerTimestamp  = "Webhook-Timestamp"
	headerSignature  = "Webhook-Signature"
	headerIdempotent = "Idempotency-Key"
	headerSource     = "Creel-Source"
	headerAccount    = "Creel-Account"
	headerType       = "Creel-Type"
	headerEvent      = "Creel-Event"
	headerAttempt    = "Creel-Attempt"

	ourPrefix      = "Creel-"
	originalPrefix = "Creel-Original-"
)

// mostHeaderText bounds a value that comes from a payload: servers refuse
// requests whose headers are too large, and a type has no length of its own.
const mostHeaderText = 1024

// neverPassed belong to one connection, or are made anew for each request;
// nobody can list them.
var neverPassed = map[string]bool{
	"Connection": true, "Proxy-Connection": true, "Keep-Alive": true, "Proxy-Authenticate": true,
	"Proxy-Authorization": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
	"Host": true, "Content-Length": true, "Expect": true, "Accept-Encoding": true,
}

// passedIfListed say who the sender is to us, or which proxies stood between;
// they mean something else at the destination.
var passedIfListed = map[string]bool{
	"Authorization": true, "Cookie": true, "Forwarded": true, "Via": true, "X-Real-Ip": true,
}

// isOurs tells whether a name is one that we set, so that the sender's header
// of that name travels as an original.
func isOurs(name string) bool {
	switch name {
	case headerID, headerTimestamp, headerSignature, headerIdempotent:
		return true
	}
	return strings.HasPrefix(name, ourPrefix)
}

// isClaimed tells whether a sender's header has to make room for one of ours.
func isClaimed(name string) bool { return isOurs(name) || isOurs(dashed(name)) }

// dashed is the name for which an app behind CGI takes a header: there _ is -.
func dashed(name string) string {
	if strings.IndexByte(name, '_') < 0 {
		return name
	}
	return http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
}

// connectionNames are the headers that the sender's Connection lines name:
// they were meant for that connection only (RFC 9110, section 7.6.1).
func connectionNames(lines string) map[string]bool {
	var names map[string]bool
	for line := range strings.Lines(lines) {
		const wanted = "Connection"
		if len(line) <= len(wanted) || line[len(wanted)] != ':' || !strings.EqualFold(line[:len(wanted)], wanted) {
			continue
		}
		_, value, ok := headerLine(line)
		if !ok {
			continue
		}
		if names == nil {
			names = map[string]bool{}
		}
		for part := range strings.SplitSeq(value, ",") {
			names[http.CanonicalHeaderKey(strings.TrimSpace(part))] = true
		}
	}
	return names
}

// headerLine reads one stored line. A line that net/http would refuse to send
// is left out: it must not make a delivery impossible.
func headerLine(line string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(strings.TrimRight(line, "\r\n"), ":")
	value = strings.Trim(value, " \t")
	if !ok || !isToken(name) || !isFieldValue(value) {
		return "", "", false
	}
	return http.CanonicalHeaderKey(name), value, true
}

// isToken tells whether net/http would send text as the name of a header.
func isToken(text string) bool {
	for i := range len(text) {
		c := text[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '-', c >= '0' && c <= '9',
			strings.IndexByte("!#$%&'*+.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return text != ""
}

// isFieldValue tells whether net/http would send text as the value of one.
func isFieldValue(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
