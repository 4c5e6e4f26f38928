package deliver

import (
	"io"
	"net/http"
	"time"
)

const (
	// mostKept is how much of an answer's body stays on the attempt, in bytes.
	mostKept = 1 << 10
	// mostDrained is how much of it is read at all, so that the connection can
	// be used again. A longer one costs its connection.
	mostDrained = 64 << 10
	// drainTime bounds the reading of a body that never ends: the status is
	// known by then.
	drainTime = 2 * time.Second
)

// answer is what is kept of an answer beside its status.
type answer struct {
	header   http.Header
	location string
	text     string
}

// readAnswer reads a bounded part of the body and closes it. A body that
// breaks changes nothing: the status was the answer. stop ends the exchange.
func readAnswer(res *http.Response, stop func()) answer {
	defer res.Body.Close()
	if res.StatusCode < http.StatusOK {
		// 101 hands over the connection, which then ends with nobody's word.
		return answer{header: res.Header}
	}
	timer := time.AfterFunc(drainTime, stop)
	defer timer.Stop()
	kept := make([]byte, mostKept)
	n, err := io.ReadFull(res.Body, kept)
	if err == nil {
		_, _ = io.CopyN(io.Discard, res.Body, mostDrained-mostKept)
	}
	return answer{header: res.Header, location: res.Header.Get("Location"), text: string(kept[:n])}
}
