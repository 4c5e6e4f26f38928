package deliver

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"time"
)

const (
	// mostAnswerHeader bounds the headers of an answer, interim answers
	// included, in bytes.
	mostAnswerHeader = 64 << 10
	// mostInterim bounds the interim answers (1xx) before the answer.
	mostInterim = 16
	// mostKept is how much of an answer's body stays on the attempt, in bytes.
	mostKept = 1 << 10
	// mostDrained is how much of it is read at all, so that the connection can
	// be used again. A longer one costs its connection.
	mostDrained = 64 << 10
	// drainTime bounds the reading of a body that never ends: the status is
	// known by then.
	drainTime = 2 * time.Second
)

// The answers that are none.
var (
	errAnswerHeader = fmt.Errorf("the headers of the answer are over %d bytes", mostAnswerHeader)
	errInterim      = fmt.Errorf("over %d interim answers and no final one", mostInterim)
	errStatus       = errors.New("the status of the answer is under 100")
)

// answer is what is kept of an answer beside its status.
type answer struct {
	header   http.Header
	location string
	text     string
	host     string // that was asked
}

// readHead reads the answer up to its body, past the interim ones. 101 is
// final: it hands over the connection, which then ends with nobody's word.
func (c *conn) readHead(asked *http.Request) (*http.Response, error) {
	c.budget = mostAnswerHeader
	for range mostInterim + 1 {
		res, err := http.ReadResponse(c.reader, asked)
		switch {
		case err != nil:
			return nil, c.unreadable(err)
		case res.StatusCode < http.StatusContinue:
			return nil, errStatus
		case res.StatusCode == http.StatusSwitchingProtocols || res.StatusCode >= http.StatusOK:
			c.budget = math.MaxInt
			return res, nil
		}
	}
	return nil, errInterim
}

// unreadable is the error of an answer that could not be read. A line that was
// cut off is malformed too, so what cut it off comes first. What net/http says
// about an answer that is not HTTP quotes it, and it may repeat our request:
// what is kept says only what is wrong.
func (c *conn) unreadable(err error) error {
	switch {
	case c.budget <= 0:
		return errAnswerHeader
	case c.failed == io.EOF:
		return io.ErrUnexpectedEOF
	case c.failed != nil:
		return c.failed
	}
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "net/"), "http: ")
	if end := strings.IndexAny(text, `":;`); end >= 0 {
		text = text[:end]
	}
	return fmt.Errorf("the answer is not valid HTTP: %s", strings.TrimSpace(text))
}

// readBody reads a bounded part of the body, at most until a time, and tells
// whether that was all of it. A body that breaks changes nothing: the status
// was the answer. It is not closed: that would read on to its end.
func (c *conn) readBody(res *http.Response, deadline time.Time) (kept []byte, whole bool) {
	if res.StatusCode < http.StatusOK {
		return nil, false
	}
	if res.Body == http.NoBody {
		return nil, true
	}
	size := int64(mostKept)
	if res.ContentLength < 0 || res.ContentLength > int64(c.reader.Buffered()) {
		_ = c.stream.SetReadDeadline(earlier(deadline, time.Now().Add(drainTime)))
	}
	if res.ContentLength >= 0 {
		size = min(size, res.ContentLength)
	}
	kept = make([]byte, size)
	n := 0
	var err error
	for n < len(kept) && err == nil {
		var read int
		read, err = res.Body.Read(kept[n:])
		n += read
	}
	if err == nil {
		_, err = io.CopyN(io.Discard, res.Body, mostDrained-int64(n)+1)
	}
	return kept[:n], err == io.EOF
}
