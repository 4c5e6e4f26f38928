package deliver

import (
	"bytes"
	"net"
	"syscall"
	"testing"
	"time"

	"creel/config"
	"creel/event"
)

// echoless is the cheapest destination there is: it answers every request of
// one size, and spends two system calls and a search on it.
func echoless(b *testing.B, bodySize int, answer string) (url string) {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				into := make([]byte, 64<<10)
				for n := 0; ; {
					read, err := conn.Read(into[n:])
					if err != nil {
						return
					}
					n += read
					if end := bytes.Index(into[:n], []byte("\r\n\r\n")); end < 0 || n < end+4+bodySize {
						continue
					}
					n = 0
					if _, err := conn.Write([]byte(answer)); err != nil {
						return
					}
				}
			}()
		}
	}()
	return "http://" + listener.Addr().String() + "/hook"
}

// realistic is a delivery of 1 KiB with the headers that a provider sends.
func realistic() event.Shipment {
	s := shipment()
	s.Payload.Body = bytes.Repeat([]byte(`{"id":"evt_1"} `), 1024/15)
	s.Payload.Header = "Accept: */*\nCache-Control: no-cache\nContent-Type: application/json; charset=utf-8\n" +
		"Stripe-Signature: t=1492774577,v1=5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd\n" +
		"User-Agent: Stripe/1.0 (+https://stripe.com/docs/webhooks)\nX-Request-Id: req_0123456789\n"
	return s
}

const (
	bareAnswer  = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	usualAnswer = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nDate: Mon, 02 Jan 2006 15:04:05 GMT\r\nContent-Length: 2\r\n\r\nok"
)

func BenchmarkAttempt(b *testing.B) {
	s := realistic()
	for name, answer := range map[string]string{"bare": bareAnswer, "usual": usualAnswer} {
		b.Run(name, func(b *testing.B) {
			d := compiled(b, config.Destination{URL: echoless(b, len(s.Payload.Body), answer), MaxInFlight: 8})
			d.Attempt(b.Context(), s, time.Now())
			b.ReportAllocs()
			start := spent(b)
			for b.Loop() {
				if result := d.Attempt(b.Context(), s, time.Now()); result.Attempt.Outcome != event.OK {
					b.Fatal(result.Attempt.Error)
				}
			}
			b.ReportMetric(float64(spent(b)-start)/float64(b.N), "cpu-ns/op")
		})
	}
}

// spent is the CPU time of the process, the destination's included.
func spent(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
