package testkit

import (
	"net"
	"net/http"
	"strings"
)

// say writes the answer, or does the fault, of one request.
func (d *Destination) say(w http.ResponseWriter, r *http.Request, answer Answer) {
	switch answer.Fault {
	case Hang:
		select {
		case <-r.Context().Done():
		case <-d.done:
		}
	case Close, Reset:
		d.drop(w, answer.Fault == Reset)
	case HalfAnswer:
		w.Header().Set("Content-Length", "1000")
		w.WriteHeader(status(answer))
		_, _ = w.Write([]byte("half"))
		panic(http.ErrAbortHandler)
	case Endless:
		d.pour(w, r, answer)
	default:
		for name, value := range answer.Header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status(answer))
		_, _ = w.Write([]byte(answer.Body))
	}
}

func status(answer Answer) int {
	if answer.Status == 0 {
		return http.StatusOK
	}
	return answer.Status
}

// drop ends the connection without an answer.
func (d *Destination) drop(w http.ResponseWriter, reset bool) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// pour writes until the sender or the test ends.
func (d *Destination) pour(w http.ResponseWriter, r *http.Request, answer Answer) {
	w.WriteHeader(status(answer))
	chunk := []byte(strings.Repeat("x", 4096))
	for {
		select {
		case <-r.Context().Done():
			return
		case <-d.done:
			return
		default:
		}
		if _, err := w.Write(chunk); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
	}
}
