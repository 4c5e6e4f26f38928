package deliver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

const (
	// idleConnection is how long a connection is kept for the next attempt.
	// Many application servers close theirs after 5 s (Node's default); a
	// request that crosses such a close on the wire has an unknown outcome.
	idleConnection = 4 * time.Second
	// mostAnswerHeader bounds the headers of an answer, in bytes.
	mostAnswerHeader = 64 << 10
)

// newTransport makes the connections of one destination: no proxy, because
// what the configuration names is what is dialled; HTTP/1.1 only, because one
// connection then carries one attempt at a time and its bytes say whether
// anything of the attempt was written.
func newTransport(connect time.Duration, inFlight int, roots *x509.CertPool) *http.Transport {
	dialer := &net.Dialer{Timeout: connect}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &countedConn{Conn: conn}, nil
		},
		Protocols:              protocols,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    connect,
		MaxIdleConns:           inFlight,
		MaxIdleConnsPerHost:    inFlight,
		IdleConnTimeout:        idleConnection,
		DisableCompression:     true,
		MaxResponseHeaderBytes: mostAnswerHeader,
	}
}

// countedConn counts what the kernel took. net/http's own trace reports a
// header as written while it is still in a buffer.
type countedConn struct {
	net.Conn
	written atomic.Int64
}

// Write implements net.Conn.
func (c *countedConn) Write(data []byte) (int, error) {
	n, err := c.Conn.Write(data)
	c.written.Add(int64(n))
	return n, err
}

// wire follows one request to its connection.
type wire struct {
	conn   atomic.Pointer[countedConn]
	before atomic.Int64 // bytes of the connection before this request
	reused atomic.Bool
}

func (w *wire) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{GotConn: w.gotConn}
}

// gotConn runs before the first byte of the request and, with TLS, after the
// handshake.
func (w *wire) gotConn(got httptrace.GotConnInfo) {
	conn := got.Conn
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	counted, ok := conn.(*countedConn)
	if !ok {
		return
	}
	w.before.Store(counted.written.Load())
	w.reused.Store(got.Reused)
	w.conn.Store(counted)
}

// connected tells whether there was a connection at all.
func (w *wire) connected() bool { return w.conn.Load() != nil }

// wrote tells whether anything of the request left this machine.
func (w *wire) wrote() bool {
	conn := w.conn.Load()
	return conn != nil && conn.written.Load() > w.before.Load()
}
