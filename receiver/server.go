package receiver

import (
	"context"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"creel/event"
)

// The bounds of a connection. Senders give up after 5 to 30 seconds; nothing
// honest needs longer.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 15 * time.Second
	idleTimeout   = 60 * time.Second
	// writeTimeout runs from the end of the head: it covers a body that takes
	// its whole time, then the wait for the store, then the answer.
	writeTimeout = readTimeout + defaultStoreWait + 7*time.Second
	// net/http allows 4 KiB more than MaxHeaderBytes: this makes 16 KiB.
	maxHeaderBytes = 12 << 10
)

type connKey struct{}

// NewServer makes a server that strangers may reach, senders or whoever finds
// the operator's page: HTTP/1 in cleartext, behind a proxy or on loopback, with
// bounded times and heads. A handler whose answer takes longer sets a deadline
// of its own. Serve it on a listener from Listen, which bounds the connections.
func NewServer(handler http.Handler, logger zerolog.Logger) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			disarm(r)
			handler.ServeHTTP(w, r)
		}),
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            headerTimeout,
		ReadTimeout:                  readTimeout,
		WriteTimeout:                 writeTimeout,
		IdleTimeout:                  idleTimeout,
		MaxHeaderBytes:               maxHeaderBytes,
		Protocols:                    protocols,
		ConnState:                    connState,
		ErrorLog:                     log.New(serverLog{logger}, "", 0),
		ConnContext: func(ctx context.Context, raw net.Conn) context.Context {
			if c, ok := raw.(*conn); ok {
				return context.WithValue(ctx, connKey{}, c)
			}
			return ctx
		},
	}
}

// disarm ends the look at the request's head: what follows is its body.
func disarm(r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*conn); ok {
		c.head.disarm()
	}
}

// serverLog takes what net/http says about connections. Strangers cause most
// of it, so it is debug output.
type serverLog struct{ logger zerolog.Logger }

// Write implements io.Writer.
func (l serverLog) Write(line []byte) (int, error) {
	l.logger.Debug().Str(event.FieldReason, strings.TrimSpace(string(line))).Msg("http server")
	return len(line), nil
}
