package receiver_test

import (
	"net"
	"testing"

	"creel/receiver"
)

// lateConn gives its bytes at the moment at which it is closed, as a Read does
// that came back and was not looked at yet.
type lateConn struct {
	net.Conn
	closed chan struct{}
}

func (c *lateConn) Read(p []byte) (int, error) {
	<-c.closed
	return copy(p, "POST /in/gen HTTP/1.1\r\nHost: x\r\n\r\n"), nil
}

func (c *lateConn) Close() error {
	close(c.closed)
	return nil
}

// handed gives connections out one by one.
type handed struct {
	net.Listener
	conns chan net.Conn
}

func (l *handed) Accept() (net.Conn, error) { return <-l.conns, nil }

// A connection that had to make room begins no request, not even one whose bytes
// were read at that moment: its sender would never have the answer.
func TestNoRequestOfAConnectionThatMadeRoom(t *testing.T) {
	t.Parallel()
	inner := &handed{conns: make(chan net.Conn, 2)}
	listener := receiver.Listen(inner, 1)
	inner.conns <- &lateConn{closed: make(chan struct{})}
	first, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	type read struct {
		n   int
		err error
	}
	got := make(chan read, 1)
	go func() {
		n, err := first.Read(make([]byte, 1024))
		got <- read{n, err}
	}()
	inner.conns <- &lateConn{closed: make(chan struct{})}
	if _, err := listener.Accept(); err != nil { // takes the place of the first
		t.Fatal(err)
	}
	if r := <-got; r.n != 0 || r.err == nil {
		t.Errorf("the evicted connection read %d bytes, %v: its request is begun", r.n, r.err)
	}
	if n := listener.Open(); n != 1 {
		t.Errorf("%d connections are open", n)
	}
}
