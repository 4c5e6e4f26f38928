package deliver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

const (
	// mostTogether is the longest body, in bytes, that is written in one call
	// with the headers, before the answer is read: as much as the buffers of
	// the kernels between us and a peer that reads nothing take. A longer one
	// is written while the answer is read, because a peer that wants no more
	// of it (413) may answer and stop reading.
	mostTogether = 64 << 10
	// writeGrace is how long a connection waits after its answer for the end of a
	// long body's writing, which the peer may have read before we know.
	writeGrace = 50 * time.Millisecond
	// mostMedia bounds the media type that is kept of an answer, in bytes.
	mostMedia = 100
)

// request is one request as it is written.
type request struct {
	first    []byte // the headers, and the body where it is short
	rest     []byte // a long body
	deadline time.Time
	way      way
}

// way is where a request goes: how it begins, and over whose connections.
type way struct {
	target *target
	pool   *pool
}

// writing is the state of a request that is being written.
type writing struct {
	done chan error // nil where err is the end
	err  error
}

// wait returns what the writing ended with.
func (w *writing) wait() error {
	if w.done != nil {
		w.err, w.done = <-w.done, nil
	}
	return w.err
}

// isOver tells whether all is written, now or within the grace.
func (w *writing) isOver() bool {
	if w.done == nil {
		return w.err == nil
	}
	timer := time.NewTimer(writeGrace)
	defer timer.Stop()
	select {
	case w.err = <-w.done:
		w.done = nil
		return w.err == nil
	case <-timer.C:
		return false
	}
}

// write writes a short request, or starts the writing of a long one. A peer
// that broke the connection may have answered before: reading goes on, but
// not for long.
func (c *conn) write(r *request) *writing {
	if r.rest == nil {
		_, err := c.stream.Write(r.first)
		if err != nil {
			c.hurry(r.deadline)
		}
		return &writing{err: err}
	}
	done := make(chan error, 1)
	go func() {
		_, err := c.stream.Write(r.first)
		if err == nil {
			_, err = c.stream.Write(r.rest)
		}
		if err != nil {
			c.hurry(r.deadline)
		}
		done <- err
	}()
	return &writing{done: done}
}

func (c *conn) hurry(deadline time.Time) {
	_ = c.stream.SetReadDeadline(earlier(deadline, time.Now().Add(drainTime)))
}

// send writes one request over a connection, once, and reads its answer. The
// end of ctx closes the socket, so that whatever waits for it ends at once.
// Afterwards the connection is kept or closed, and nothing uses it any more.
func (d *Destination) send(ctx context.Context, c *conn, r *request) (Reply, answer) {
	if err := c.begin(r.deadline); err != nil {
		c.abort()
		return Reply{Err: &sendError{err: err, connected: true}}, answer{}
	}
	detach := context.AfterFunc(ctx, c.abort)
	defer detach()
	writing := c.write(r)
	if writing.done == nil && writing.err != nil && !c.wrote() {
		return d.unsent(ctx, c, writing, writing.err)
	}
	res, err := c.readHead(r.way.target.asked)
	if err != nil {
		return d.unsent(ctx, c, writing, err)
	}
	kept, whole := c.readBody(res, r.deadline)
	reply := Reply{Status: res.StatusCode, Wrote: true}
	found := answer{header: res.Header, location: res.Header.Get("Location"), text: d.shownAnswer(res.Header.Get("Content-Type"), kept)}
	// The order counts: after detach has returned true nothing closes the
	// socket any more, and another attempt may have it.
	if whole && !res.Close && c.failed == nil && c.reader.Buffered() == 0 && writing.isOver() && detach() {
		r.way.pool.put(c)
		return reply, found
	}
	c.abort()
	_ = writing.wait()
	return reply, found
}

// shownAnswer is an answer as it is kept. One that is neither plain text nor
// JSON begins with its type: a page of HTML under 200 may be somebody else's
// word than the app's.
func (d *Destination) shownAnswer(kind string, kept []byte) string {
	text := d.shownText(kept)
	media, _, _ := strings.Cut(strings.ToLower(kind), ";")
	media = strings.TrimSpace(media)
	first, second, ok := strings.Cut(media, "/")
	if text == "" || media == "text/plain" || isJSON(media) || !ok || !isToken(first) || !isToken(second) || len(media) > mostMedia {
		return text
	}
	return printable(d.masked(media)+": "+text, mostKept)
}

// shownText is the text of an answer as it is kept.
func (d *Destination) shownText(kept []byte) string {
	text := string(kept)
	if len(kept) < mostKept {
		return printable(d.masked(text), mostKept)
	}
	return printable(d.maskedCut(text), mostKept)
}

// unsent ends a send without an answer. What the writing broke with says more
// than what the reading found then, unless we ended both.
func (d *Destination) unsent(ctx context.Context, c *conn, writing *writing, err error) (Reply, answer) {
	c.abort()
	if broken := writing.wait(); broken != nil && !errors.Is(broken, net.ErrClosed) {
		err = broken
	}
	if cause := ctx.Err(); cause != nil {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return Reply{Err: &sendError{err: err, connected: true}, Wrote: c.wrote()}, answer{}
}
