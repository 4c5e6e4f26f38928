package deliver

import (
	"bufio"
	"math"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// answerBuffer is what a connection reads at once, in bytes: the headers of an
// answer and a short body in one call.
const answerBuffer = 4 << 10

// socket counts what the kernel took of what was written to it, below TLS.
type socket struct {
	net.Conn
	written atomic.Int64
}

// Write implements net.Conn.
func (s *socket) Write(data []byte) (int, error) {
	n, err := s.Conn.Write(data)
	s.written.Add(int64(n))
	return n, err
}

// conn is a connection to a destination, used by one attempt at a time.
type conn struct {
	socket *socket
	stream net.Conn        // the socket, or TLS over it
	system syscall.RawConn // of the socket; nil where it is none of the kernel's
	reader *bufio.Reader   // over the conn itself
	before int64           // bytes on the socket before the request at hand
	budget int             // bytes that may still be read of an answer's head
	failed error           // what the last read of the stream ended with
	since  time.Time       // kept since
	abort  func()          // closes the socket, from any goroutine and for good
}

// newConn takes a socket over which stream writes and reads.
func newConn(s *socket, stream net.Conn) *conn {
	c := &conn{socket: s, stream: stream, budget: math.MaxInt}
	c.abort = func() { _ = s.Close() }
	c.reader = bufio.NewReaderSize(c, answerBuffer)
	if direct, ok := s.Conn.(syscall.Conn); ok {
		if system, err := direct.SyscallConn(); err == nil {
			c.system = system
		}
	}
	return c
}

// Read implements io.Reader for the connection's own reader.
func (c *conn) Read(into []byte) (int, error) {
	if c.budget <= 0 {
		return 0, errAnswerHeader
	}
	if len(into) > c.budget {
		into = into[:c.budget]
	}
	n, err := c.stream.Read(into)
	c.budget -= n
	if err != nil {
		c.failed = err
	}
	return n, err
}

// begin starts a request that has to be over at a time.
func (c *conn) begin(deadline time.Time) error {
	c.before = c.socket.written.Load()
	return c.stream.SetDeadline(deadline)
}

// wrote tells whether anything of the request at hand left this machine.
func (c *conn) wrote() bool { return c.socket.written.Load() > c.before }

// isQuiet tells whether a kept connection is as it was left: open, and with
// nothing to read. A server that ended it, or said something that it was not
// asked for (408 and a close, say), must get no request over it. Looking at
// the socket is right for TLS too: what an end or an alert needs are bytes.
func (c *conn) isQuiet() bool {
	if c.failed != nil || c.reader.Buffered() > 0 {
		return false
	}
	if c.system == nil {
		return true
	}
	var seen error
	var one [1]byte
	err := c.system.Control(func(fd uintptr) {
		_, _, seen = syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	})
	return err == nil && (seen == syscall.EAGAIN || seen == syscall.EWOULDBLOCK)
}
