package page

import (
	"fmt"
	"net/textproto"
	"slices"
	"strings"
	"unicode/utf8"

	"creel/deliver"
	"creel/event"
	"creel/path"
)

const (
	// anyApp stands for the address of the app that a request is tried out on.
	// What is sent by hand has no signature of ours, so that it is none of an
	// app that is in use.
	anyApp = "http://localhost:3000/"
	// curlMost is how many headers a command names; a shell takes no more than
	// some megabytes.
	curlMost = 200
	// curlLongest is the longest header that a command names, in bytes.
	curlLongest = 16 << 10
)

// curled is a command that sends a body by hand as its request came in.
type curled struct {
	Text string
	File string // where it reads the body
	App  string // the address in it that is to be changed
	Left int    // headers that can not be said in a shell
}

// asCurl writes an event's request as a command for a POSIX shell: its body from
// the downloaded file, with the headers as they are stored.
func asCurl(key event.Key, payload *event.Payload) *curled {
	c := &curled{File: fileName(key), App: anyApp}
	address := anyApp
	if payload.Query != "" {
		if sayable(payload.Query) {
			address += "?" + payload.Query
		} else {
			c.Left++
		}
	}
	words := []string{"curl -X POST " + always(address)}
	if payload.Query != "" {
		words[0] = "curl --globoff -X POST " + always(address)
	}
	kind := deliver.TypeOf(payload)
	if sayable(kind) {
		words = append(words, "-H "+always("Content-Type: "+kind))
	}
	own := ofTheWay(payload.Header)
	path.Headers(payload.Header, func(name, value string) bool {
		value = strings.TrimSpace(value)
		switch {
		case slices.Contains(own, textproto.CanonicalMIMEHeaderKey(name)):
		case !isToken(name) || !sayable(value) || len(name)+len(value) > curlLongest || len(words) > curlMost:
			c.Left++
		case value == "":
			words = append(words, "-H "+always(name+";")) // with a colon curl would leave it out
		default:
			words = append(words, "-H "+always(name+": "+value))
		}
		return true
	})
	c.Text = strings.Join(append(words, "--data-binary @"+c.File), " \\\n  ")
	return c
}

// ofTheWay are the headers that belong to the connection on which a request came
// (RFC 9110 section 7.6.1) or that curl writes by itself, and those of which
// there is one already.
func ofTheWay(lines string) []string {
	names := []string{"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade", "Host", "Content-Length", "Content-Type", "Accept-Encoding", "Expect"}
	path.Headers(lines, func(name, value string) bool {
		if strings.EqualFold(name, "Connection") {
			for one := range strings.SplitSeq(value, ",") {
				names = append(names, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(one)))
			}
		}
		return true
	})
	return names
}

// sayable tells whether a text comes out of a terminal as it went in: it has no
// control character, and none that the page shows as its code.
func sayable(text string) bool {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return false
	}
	shown, _ := visible([]byte(text))
	return shown == text
}

// isToken tells whether a text is the name of a header (RFC 9110 section 5.6.2).
func isToken(name string) bool {
	return name != "" && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~") == ""
}

// always is a text in the quotes of a shell, in which nothing has a meaning but
// the quote.
func always(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// Without says how many headers are left out.
func (c *curled) Without() string {
	switch c.Left {
	case 0:
		return ""
	case 1:
		return "One header or query that can not be said in a shell is left out."
	}
	return fmt.Sprintf("%s headers that can not be said in a shell are left out.", count(c.Left))
}
