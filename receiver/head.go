package receiver

import (
	"bytes"
	"errors"
	"sync/atomic"
)

// errBadHead makes net/http answer 400 and close the connection.
var errBadHead = errors.New("the head of the request could be read in two ways")

// head looks at the raw bytes of a request's head for what net/http tolerates
// and two servers in a row may read differently, which is how requests are
// smuggled past a proxy: lines that end in a bare LF, lines that continue the
// one before, and both a Content-Length and a Transfer-Encoding. It refuses
// more than it has to and allows nothing by itself: net/http still decides.
//
// It is armed when a request's head is awaited and disarmed by its end or by
// the handler, whichever comes first, so it never looks at a body. What a
// sender pipelines behind a request may be in net/http's buffer already and
// is then looked at in part only; see endsConnection for the rest.
type head struct {
	armed    atomic.Bool
	line     []byte // the start of an unfinished line, up to maxLine bytes
	length   bool   // a Content-Length was seen
	transfer bool   // a Transfer-Encoding was seen
	first    bool   // the request line is behind us
	last     byte   // the last byte of the read before
}

// maxLine is how much of a line is needed to know its name.
const maxLine = 32

func (h *head) arm() {
	h.line = h.line[:0]
	h.length, h.transfer, h.first, h.last = false, false, false, 0
	h.armed.Store(true)
}

func (h *head) disarm() { h.armed.Store(false) }

// look inspects bytes that were read.
func (h *head) look(p []byte) error {
	if !h.armed.Load() {
		return nil
	}
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			h.keep(p)
			return nil
		}
		before := h.last
		if end > 0 {
			before = p[end-1]
		}
		h.keep(p[:end])
		p = p[end+1:]
		h.last = 0
		done, err := h.finish(before)
		if done || err != nil {
			h.disarm()
			return err
		}
	}
	return nil
}

// keep remembers the start of a line.
func (h *head) keep(p []byte) {
	if len(p) == 0 {
		return
	}
	h.last = p[len(p)-1]
	h.line = append(h.line, p[:min(len(p), maxLine-min(maxLine, len(h.line)))]...)
}

// finish judges a line that has ended, given the byte before its LF. It tells
// whether that was the end of the head.
func (h *head) finish(before byte) (done bool, err error) {
	if before != '\r' {
		return true, errBadHead
	}
	line := h.line
	h.line = h.line[:0]
	switch {
	case len(line) == 1: // the empty line; before the request line it is tolerated
		return h.first, nil
	case !h.first:
		h.first = true
	case line[0] == ' ' || line[0] == '\t':
		return true, errBadHead
	case named(line, "content-length"):
		h.length = true
	case named(line, "transfer-encoding"):
		h.transfer = true
	}
	if h.length && h.transfer {
		return true, errBadHead
	}
	return false, nil
}

// named tells whether a header line has the name, given in lower case.
func named(line []byte, name string) bool {
	if len(line) <= len(name) || line[len(name)] != ':' {
		return false
	}
	return bytes.EqualFold(line[:len(name)], []byte(name))
}
