package deliver

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"creel/config"
	"creel/event"
)

// An app that answers 101 and keeps the connection must not keep the attempt:
// it ends with the answer, which is no success.
func TestGateD1SwitchingProtocolsEndsTheAttempt(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			_, _ = conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"))
		}
		<-t.Context().Done()
		_ = conn.Close()
	}()
	cfg := config.DefaultDestination()
	cfg.URL = "http://" + listener.Addr().String()
	d, problems := New("app", cfg, "destination.app", Options{Clock: time.Now})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	result := d.Attempt(context.Background(), event.Shipment{Delivery: event.Delivery{ID: 1, Key: "k", Destination: "app", Run: 1, Tries: 1},
		Payload: event.Payload{Body: []byte(`{}`)}}, time.Now())
	if result.Attempt.Status != http.StatusSwitchingProtocols || result.Attempt.Outcome != event.Transient {
		t.Errorf("the attempt ended with %d, %s: %s", result.Attempt.Status, result.Attempt.Outcome, result.Attempt.Error)
	}
	if result.Attempt.Duration > 5*time.Second {
		t.Errorf("it took %s", result.Attempt.Duration)
	}
}
