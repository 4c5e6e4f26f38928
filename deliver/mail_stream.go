package deliver

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"time"
)

// mostSpoken bounds what a mail server may say in one conversation, in bytes.
const mostSpoken = 1 << 20

// errSpoken says that a server talks without an end.
var errSpoken = errors.New("the server's answers are over 1 MiB")

// stream is the socket of a conversation, below TLS. It is used by one
// goroutine; closing it from another ends what waits.
type stream struct {
	net.Conn
	ahead  []byte // read already
	budget int    // that the server may still say
	broken error  // the first failed write
}

func newStream(socket net.Conn) *stream { return &stream{Conn: socket, budget: mostSpoken} }

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	if len(s.ahead) > 0 {
		n := copy(p, s.ahead)
		s.ahead = s.ahead[n:]
		return n, nil
	}
	if s.budget <= 0 {
		return 0, errSpoken
	}
	n, err := s.Conn.Read(p[:min(len(p), s.budget)])
	s.budget -= n
	return n, err
}

// Write implements io.Writer.
func (s *stream) Write(p []byte) (int, error) {
	n, err := s.Conn.Write(p)
	if err != nil && s.broken == nil {
		s.broken = err
	}
	return n, err
}

// await waits for the first bytes and leaves them to be read.
func (s *stream) await(until time.Time) error {
	if err := s.SetReadDeadline(until); err != nil {
		return err
	}
	first := make([]byte, 512)
	n, err := s.Read(first)
	s.ahead = first[:n]
	if n > 0 {
		return nil
	}
	return err
}

// awaitGreeting waits for the first words of a server that speaks first. One
// that keeps silent, or hangs up, may be waiting for TLS: it is asked on a
// connection beside this one, so that the error can name the mode to set.
func (s *session) awaitGreeting(ctx context.Context, deadline time.Time) error {
	err := s.stream.await(earlier(deadline, time.Now().Add(s.silence)))
	if err == nil {
		return s.stream.SetReadDeadline(deadline)
	}
	if ctx.Err() != nil {
		return err
	}
	if s.speaksTLS(ctx) {
		return errTLSFirst
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		if err = s.stream.await(deadline); err == nil {
			return nil
		}
	}
	return err
}

// askTime bounds the question whether a port wants TLS first.
const askTime = 3 * time.Second

// speaksTLS tells whether the port answers a TLS handshake, with whatever
// certificate. Nothing else is sent.
func (m *Mailer) speaksTLS(ctx context.Context) bool {
	socket, err := m.dial(ctx, time.Now().Add(askTime))
	if err != nil {
		return false
	}
	defer func() { _ = socket.Close() }()
	if socket.SetDeadline(time.Now().Add(askTime)) != nil {
		return false
	}
	err = tls.Client(socket, m.tls).HandshakeContext(ctx)
	var certificate *tls.CertificateVerificationError
	var alert tls.AlertError
	return err == nil || errors.As(err, &certificate) || errors.As(err, &alert)
}

// handshakeTime bounds the handshake on a port where TLS comes first, so that
// a port where it does not is told within ten seconds of the dial.
const handshakeTime = 4 * time.Second

// handshake secures a connection from its first byte.
func (s *session) handshake(ctx context.Context, secured *tls.Conn) error {
	limited, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	err := secured.HandshakeContext(limited)
	var record tls.RecordHeaderError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &record):
		return errPlainFirst
	case limited.Err() != nil && ctx.Err() == nil:
		return errNoHandshake
	}
	return err
}
