package testkit

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
)

// mailListener hands each connection its part of the script.
type mailListener struct {
	net.Listener
	server *MailServer
}

// Accept implements net.Listener.
func (l *mailListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &mailConn{Conn: conn, server: l.server, answer: l.server.next()}, nil
}

// mailConn is a connection whose server says something else at the stages that
// the server's library does not ask about, and whose client is listened to.
type mailConn struct {
	net.Conn
	server *MailServer
	answer MailAnswer
}

// plainConn is the connection below TLS.
func plainConn(c net.Conn) (conn *mailConn, secured bool) {
	if above, ok := c.(*tls.Conn); ok {
		c, secured = above.NetConn(), true
	}
	conn, _ = c.(*mailConn)
	return conn, secured
}

// Read implements io.Reader.
func (c *mailConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.server.mu.Lock()
	c.server.heard = append(c.server.heard, p[:n]...)
	c.server.mu.Unlock()
	return n, err
}

// Write implements io.Writer.
func (c *mailConn) Write(p []byte) (int, error) {
	code := map[MailStage]string{AtGreeting: "220 ", AtData: "354 "}[c.answer.Stage]
	if code == "" || !bytes.HasPrefix(p, []byte(code)) {
		return c.Conn.Write(p)
	}
	switch {
	case c.answer.Hang:
		<-c.server.done
	case c.answer.Code != 0:
		_, _ = fmt.Fprintf(c.Conn, "%d %s\r\n", c.answer.Code, c.answer.Text)
	}
	if c.answer.Code == 0 || c.answer.Stage == AtData {
		_ = c.Close()
		return 0, net.ErrClosed
	}
	return len(p), nil
}
