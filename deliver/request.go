package deliver

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"creel/event"
)

// fate is what happens to a header of the sender.
type fate int

const (
	passed fate = iota
	dropped
	renamed // travels as an original
)

// outline is what the requests of a destination have in common beside their
// head: it is made once, so that an attempt only writes.
type outline struct {
	// fates has the names whose fate the destination's configuration or the
	// contract decides; fateOf knows the rest.
	fates map[string]fate
	own   []byte // the destination's own headers as they are written
	// replaces tells that the destination's own headers replace some of ours,
	// or originals of the sender.
	replaces bool
}

// newOutline works out the order of precedence, least important first: the
// sender's headers, ours, the destination's own.
func (d *Destination) newOutline() outline {
	o := outline{fates: map[string]fate{}}
	for name := range neverPassed {
		o.fates[name] = dropped
	}
	for name := range passedIfListed {
		o.fates[name] = dropped
	}
	for name := range d.pass {
		if !isClaimed(name) {
			o.fates[name] = passed
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.own)) {
		if isClaimed(name) {
			o.replaces = true
		} else {
			o.fates[name] = dropped
		}
		for _, value := range d.own[name] { // none of a template
			o.own = appendLine(o.own, name, strings.Trim(value, " \t"))
		}
	}
	return o
}

func (o *outline) fateOf(name string) fate {
	if known, ok := o.fates[name]; ok {
		return known
	}
	plain := dashed(name)
	switch {
	case o.fates[plain] == dropped, strings.HasPrefix(plain, "X-Forwarded-"):
		return dropped
	case isClaimed(name):
		return renamed
	}
	return passed
}

// isOwn tells whether the destination has a header of its own that replaces
// this one of ours.
func (d *Destination) isOwn(name string) bool {
	if !d.outline.replaces {
		return false
	}
	_, own := d.own[name]
	return own
}

// appendHead appends all of a request that stands before its body.
func (d *Destination) appendHead(out []byte, s *event.Shipment, c *content, now time.Time) []byte {
	out = append(out, c.way.target.head...)
	if d.method != http.MethodGet {
		out = append(out, "Content-Length: "...)
		out = strconv.AppendInt(out, int64(len(c.body)), 10)
		out = append(out, "\r\n"...)
	}
	out = d.appendSenders(out, &s.Payload, c)
	out = d.appendOurs(out, s, c.body, now)
	out = append(out, d.outline.own...)
	for _, h := range c.worded {
		out = appendLine(out, h.name, h.value)
	}
	return append(out, "\r\n"...)
}

// appendOurs appends the headers that say which delivery this is.
func (d *Destination) appendOurs(out []byte, s *event.Shipment, body []byte, now time.Time) []byte {
	id := event.WebhookID(s.Key, d.name)
	line := func(name, value string) {
		if !d.isOwn(name) {
			out = appendLine(out, name, value)
		}
	}
	line(headerID, id)
	line(headerIdempotent, id)
	if d.signer != nil {
		timestamp := strconv.FormatInt(now.Unix(), 10)
		line(headerTimestamp, timestamp)
		if !d.isOwn(headerSignature) {
			out = append(out, headerSignature+": "...)
			out = d.signer.appendSignature(out, id, timestamp, body)
			out = append(out, "\r\n"...)
		}
	}
	text := func(name, value string) {
		if !d.isOwn(name) {
			out = append(append(out, name...), ": "...)
			out = append(appendEscaped(out, value, false), "\r\n"...)
		}
	}
	if s.Alert == 0 { // an alert has no event
		text(headerSource, s.Event.Source)
		if s.Event.Account != "" {
			text(headerAccount, s.Event.Account)
		}
		if !d.isOwn(headerEvent) {
			out = append(out, headerEvent+": "...)
			out = append(appendKey(out, s.Event), "\r\n"...)
		}
	}
	if s.Alert == 0 || s.Type != "" {
		text(headerType, s.Type)
	}
	line(headerAttempt, strconv.Itoa(s.Tries))
	return out
}

// appendSenders appends the sender's headers from their stored lines. One
// event of several is JSON and nothing else, whatever the whole was. With a
// body that is not the sender's his headers stay here, but for those that the
// owner lists; they still come with an envelope, for whoever fetches the body.
func (d *Destination) appendSenders(out []byte, payload *event.Payload, c *content) []byte {
	element := isElement(payload.Part) && !c.replaced
	gone := connectionNames(payload.Header)
	agent, kind, json := false, false, false
	for line := range strings.Lines(payload.Header) {
		name, value, ok := headerLine(line)
		if !ok || gone[name] {
			continue
		}
		switch d.outline.fateOf(name) {
		case dropped:
			continue
		case renamed:
			name = originalPrefix + name
			if d.isOwn(name) {
				continue
			}
		case passed:
		}
		switch {
		case c.own && !d.pass[name], c.replaced && (name == "Content-Type" || name == "Content-Encoding"):
			continue
		case name == "User-Agent":
			if agent || value == "" {
				continue
			}
			agent = true
		case element && name == "Content-Encoding":
			continue
		case element && name == "Content-Type":
			if !kind {
				kind, json = true, strings.Contains(strings.ToLower(value), "json")
			}
			if !json {
				continue
			}
		}
		out = appendLine(out, name, value)
	}
	if !agent && d.outline.fateOf("User-Agent") == passed {
		out = appendLine(out, "User-Agent", d.agent)
	}
	switch {
	case d.outline.fateOf("Content-Type") != passed:
	case element && !json:
		out = appendLine(out, "Content-Type", typeJSON)
	case c.kind != "":
		out = appendLine(out, "Content-Type", c.kind)
	}
	return out
}

func appendLine(out []byte, name, value string) []byte {
	out = append(out, name...)
	out = append(out, ": "...)
	out = append(out, value...)
	return append(out, "\r\n"...)
}

// appendKey appends an event key: the parts escaped, the slashes between them
// plain.
func appendKey(out []byte, key event.Key) []byte {
	out = append(appendEscaped(out, key.Source, true), '/')
	out = append(appendEscaped(out, key.Account, true), '/')
	return appendEscaped(out, key.ID, true)
}

// appendEscaped percent-encodes a text from a payload, at most mostHeaderText
// bytes of it, so that every byte sequence can travel in a header.
func appendEscaped(out []byte, text string, slash bool) []byte {
	if len(text) > mostHeaderText {
		text = text[:mostHeaderText]
	}
	const digits = "0123456789ABCDEF"
	for i := range len(text) {
		c := text[i]
		if c > ' ' && c < 0x7f && c != '%' && (c != '/' || !slash) {
			out = append(out, c)
		} else {
			out = append(out, '%', digits[c>>4], digits[c&15])
		}
	}
	return out
}

// mostBuffer is the largest buffer that is kept for another request, in bytes.
const mostBuffer = 128 << 10

// buffers lends the memory that requests are written into.
type buffers struct{ pool sync.Pool }

func (b *buffers) get() *[]byte {
	if kept, ok := b.pool.Get().(*[]byte); ok {
		return kept
	}
	fresh := make([]byte, 0, 2<<10)
	return &fresh
}

func (b *buffers) put(buffer *[]byte) {
	if cap(*buffer) <= mostBuffer {
		b.pool.Put(buffer)
	}
}
