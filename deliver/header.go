package deliver

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"creel/event"
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

func isPassed(name string, listed map[string]bool) bool {
	switch {
	case neverPassed[name]:
		return false
	case listed[name]:
		return true
	}
	return !passedIfListed[name] && !strings.HasPrefix(name, "X-Forwarded-")
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

// header makes the headers of one attempt, least important first: the
// sender's, ours, the destination's own.
func (d *Destination) header(s *event.Shipment, body []byte, now time.Time) http.Header {
	header := make(http.Header, 24)
	d.passHeaders(header, s.Payload.Header)
	if isElement(s.Payload.Part) {
		header.Del("Content-Encoding")
		if !strings.Contains(strings.ToLower(header.Get("Content-Type")), "json") {
			header.Set("Content-Type", "application/json")
		}
	}
	if header.Get("User-Agent") == "" {
		header.Set("User-Agent", d.agent)
	}
	id := event.WebhookID(s.Key, d.name)
	header[headerID] = []string{id}
	header[headerIdempotent] = []string{id}
	if d.key != nil {
		timestamp, signature := sign(d.key, id, now, body)
		header[headerTimestamp] = []string{timestamp}
		header[headerSignature] = []string{signature}
	}
	header[headerSource] = []string{headerText(s.Event.Source)}
	if s.Event.Account != "" {
		header[headerAccount] = []string{headerText(s.Event.Account)}
	}
	header[headerType] = []string{headerText(s.Type)}
	header[headerEvent] = []string{headerKey(s.Event)}
	header[headerAttempt] = []string{strconv.Itoa(s.Tries)}
	for name, values := range d.own {
		header[name] = values
	}
	return header
}

// passHeaders copies the sender's headers from their stored lines.
func (d *Destination) passHeaders(into http.Header, lines string) {
	dropped := connectionNames(lines)
	for line := range strings.Lines(lines) {
		name, value, ok := headerLine(line)
		if !ok || dropped[name] || !isPassed(name, d.pass) {
			continue
		}
		if isOurs(name) || isOurs(http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))) {
			name = originalPrefix + name // an app behind CGI takes _ for -
		}
		into[name] = append(into[name], value)
	}
}

// connectionNames are the headers that the sender's Connection lines name:
// they were meant for that connection only (RFC 9110, section 7.6.1).
func connectionNames(lines string) map[string]bool {
	var names map[string]bool
	for line := range strings.Lines(lines) {
		name, value, ok := headerLine(line)
		if !ok || name != "Connection" {
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
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9',
			strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
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

// headerKey writes an event key into a header: the parts escaped, the slashes
// between them plain.
func headerKey(key event.Key) string {
	return escapeHeader(key.Source, true) + "/" + escapeHeader(key.Account, true) + "/" + escapeHeader(key.ID, true)
}

// headerText percent-encodes a text from a payload, at most mostHeaderText
// bytes of it, so that every byte sequence can travel in a header.
func headerText(text string) string {
	return escapeHeader(text, false)
}

func escapeHeader(text string, slash bool) string {
	if len(text) > mostHeaderText {
		text = text[:mostHeaderText]
	}
	plain := func(c byte) bool { return c > ' ' && c < 0x7f && c != '%' && (c != '/' || !slash) }
	var out strings.Builder
	for i := range len(text) {
		c := text[i]
		if plain(c) {
			out.WriteByte(c)
			continue
		}
		const digits = "0123456789ABCDEF"
		out.WriteByte('%')
		out.WriteByte(digits[c>>4])
		out.WriteByte(digits[c&15])
	}
	return out.String()
}
