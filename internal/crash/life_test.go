package crash

import (
	"context"
	"net"
	"sync/atomic"
)

// withLife marks each connection with the life of the server that is running
// when it is accepted. The harness waits until no connection of the old life
// is open before it starts the next.
func withLife(life *atomic.Int64) func(context.Context, net.Conn) context.Context {
	return func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, lifeKey{}, life.Load())
	}
}
