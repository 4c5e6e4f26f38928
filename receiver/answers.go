package receiver

import (
	"io"
	"net/http"
	"strconv"

	"creel/source"
)

// result is what became of a request. Its name is the label of its counter.
type result int

// The results. Those before firstFailure are successes to the sender.
const (
	resultNew result = iota
	resultDuplicate
	resultConflict
	resultSkipped   // verified, nothing to store: test mode on a live-only source
	resultHandshake // what is answered comes from the source
	resultProbe
	resultAlive
	resultRejected
	resultRefusedProbe // the source answers probes with 405
	resultUnknown
	resultMethod
	resultTooLarge
	resultEncoding
	resultTruncated
	resultTooSlow
	resultOverBudget
	resultAwaiting
	resultBusy
	resultUnavailable
	resultTimeout
	resultPanic
	resultStopping
	results // how many there are
)

// answer is what a sender gets for a result: a status and a constant body. A
// body for a stranger names no reason.
type answer struct {
	name   string
	status int
	body   string
	retry  bool // with Retry-After
	end    ending
}

// ending says whether the connection ends after an answer.
type ending int

const (
	stays      ending = iota
	whenUnread        // it ends when the request has a body, which was not read
	ends
)

// answers is the one table from reason to status. A source can set the status
// of three of them: duplicate, rejected and probe.
var answers = [results]answer{
	resultNew:          {"new", http.StatusOK, "ok\n", false, stays},
	resultDuplicate:    {"duplicate", http.StatusOK, "ok\n", false, stays},
	resultConflict:     {"conflict", http.StatusOK, "ok\n", false, stays},
	resultSkipped:      {"skipped", http.StatusOK, "ok\n", false, stays},
	resultHandshake:    {"handshake", http.StatusOK, "", false, stays},
	resultProbe:        {"probe", http.StatusOK, "", false, stays},
	resultAlive:        {"alive", http.StatusOK, "ok\n", false, stays},
	resultRejected:     {"rejected", http.StatusUnauthorized, "rejected\n", false, stays},
	resultRefusedProbe: {"method", http.StatusMethodNotAllowed, "method not allowed\n", false, whenUnread},
	resultUnknown:      {"unknown", http.StatusNotFound, "not found\n", false, whenUnread},
	resultMethod:       {"method", http.StatusMethodNotAllowed, "method not allowed\n", false, whenUnread},
	resultTooLarge:     {"too_large", http.StatusRequestEntityTooLarge, "too large\n", false, whenUnread},
	resultEncoding:     {"content_encoding", http.StatusUnsupportedMediaType, "unsupported content encoding\n", false, whenUnread},
	resultTruncated:    {"truncated", http.StatusBadRequest, "bad request\n", false, ends},
	resultTooSlow:      {"too_slow", http.StatusRequestTimeout, "too slow\n", false, ends},
	resultOverBudget:   {"over_budget", http.StatusServiceUnavailable, "come again later\n", true, whenUnread},
	resultAwaiting:     {"awaiting_secret", http.StatusServiceUnavailable, "come again later\n", true, whenUnread},
	resultBusy:         {"busy", http.StatusServiceUnavailable, "come again later\n", true, stays},
	resultUnavailable:  {"unavailable", http.StatusServiceUnavailable, "come again later\n", true, stays},
	resultTimeout:      {"timeout", http.StatusServiceUnavailable, "come again later\n", true, stays},
	resultPanic:        {"panic", http.StatusServiceUnavailable, "come again later\n", true, ends},
	resultStopping:     {"stopping", http.StatusServiceUnavailable, "come again later\n", true, ends},
}

// String is the label of the result's counter.
func (r result) String() string { return answers[r].name }

// The values of headers that are the same on every answer; net/http only
// reads them.
var (
	textPlain  = []string{"text/plain; charset=utf-8"}
	nosniff    = []string{"nosniff"}
	closing    = []string{"close"}
	retryAfter = []string{"5"} // seconds; senders that read it come back soon
	lengths    = precountedLengths()
)

func precountedLengths() (lengths [results][]string) {
	for i := range answers {
		lengths[i] = []string{strconv.Itoa(len(answers[i].body))}
	}
	return lengths
}

// reply answers with the result's constant body. A status other than 0
// replaces the table's.
func reply(w http.ResponseWriter, r *http.Request, res result, status int) {
	a := &answers[res]
	header := w.Header()
	header["Content-Type"] = textPlain
	header["X-Content-Type-Options"] = nosniff
	header["Content-Length"] = lengths[res]
	if a.retry {
		header["Retry-After"] = retryAfter
	}
	if endsConnection(r, a.end) {
		header["Connection"] = closing
	}
	if status == 0 {
		status = a.status
	}
	w.WriteHeader(status)
	if a.body != "" {
		_, _ = io.WriteString(w, a.body) // the sender may have gone; its retry is a duplicate
	}
}

// endsConnection tells whether the connection is closed after the answer:
// when the result says so, and after every chunked request. A request with
// both Transfer-Encoding and Content-Length is read as chunked by net/http,
// which no longer shows the other; where a proxy before us read it the other
// way, what follows on the connection would be taken for the next request.
func endsConnection(r *http.Request, end ending) bool {
	return end == ends || len(r.TransferEncoding) > 0 || end == whenUnread && r.ContentLength != 0
}

// replyWith answers with what the source made for its provider: plain text
// where it names no type, never to be taken for another.
func replyWith(w http.ResponseWriter, r *http.Request, a *source.Answer) {
	header := w.Header()
	header["Content-Type"] = textPlain
	for name, value := range a.Header {
		header.Set(name, value)
	}
	if a.Type != "" {
		header["Content-Type"] = []string{a.Type}
	}
	header["X-Content-Type-Options"] = nosniff
	header["Content-Length"] = []string{strconv.Itoa(len(a.Body))}
	if endsConnection(r, stays) {
		header["Connection"] = closing
	}
	status := a.Status
	if status == 0 {
		status = http.StatusOK
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, a.Body)
}
