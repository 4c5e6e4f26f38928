package receiver_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"creel/event"
	"creel/receiver"
)

// instant is an inbox that costs nothing.
type instant struct{ accepted event.Accepted }

func (i *instant) Accept(context.Context, *event.Receipt) (event.Accepted, error) {
	return i.accepted, nil
}

// nowhere takes an answer and forgets it.
type nowhere struct {
	header http.Header
	status int
}

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n *nowhere) WriteHeader(status int)      { n.status = status }

// BenchmarkReceive is the receiver and the source without net/http and the
// store: what a 1 KiB event costs before it is stored.
func BenchmarkReceive(b *testing.B) {
	body := `{"id":"e-1","type":"t","data":"` + strings.Repeat("x", 1000) + `"}`
	sources := realSources(b)
	v, err := receiver.New(receiver.Options{
		Sources: func(name string) (receiver.Source, bool) { src, ok := sources[name]; return src, ok },
		Inbox:   &instant{event.Accepted{Items: []event.AcceptedItem{{Result: event.New}}}},
		Clock:   time.Now,
		Log:     zerolog.Nop(),
	})
	if err != nil {
		b.Fatal(err)
	}
	req, err := http.NewRequest("POST", "/in/gen", nil)
	if err != nil {
		b.Fatal(err)
	}
	req.Header = genHeader(body)
	req.Header.Set("User-Agent", "sender/1.0")
	req.ContentLength = int64(len(body))
	reader := bytes.NewReader([]byte(body))
	req.Body = io.NopCloser(reader)
	w := &nowhere{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		reader.Reset([]byte(body))
		clear(w.header)
		v.ServeHTTP(w, req)
		if w.status != 200 {
			b.Fatal(w.status)
		}
	}
}
