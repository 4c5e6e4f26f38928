package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// sink is a destination that answers 200 to every request and costs as little
// as it can: the cores belong to the server that is measured.
type sink struct {
	listener net.Listener
	delay    time.Duration
	down     atomic.Bool // answers by closing the connection
	count    atomic.Int64
	open     sync.Map // connections
	// received is told the id of each event when its request was read whole.
	received atomic.Pointer[func(id []byte, at time.Time)]
}

// newSink listens; addr may have port 0.
func newSink(addr string, delay time.Duration) (*sink, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	s := &sink{listener: listener, delay: delay}
	go s.accept()
	return s, nil
}

func (s *sink) url() string { return "http://" + s.listener.Addr().String() + "/webhooks" }

// close stops listening and ends every connection.
func (s *sink) close() {
	_ = s.listener.Close()
	s.open.Range(func(key, _ any) bool {
		if c, ok := key.(net.Conn); ok {
			_ = c.Close()
		}
		return true
	})
}

func (s *sink) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.open.Store(c, nil)
		go func() {
			defer func() { s.open.Delete(c); _ = c.Close() }()
			s.serve(c)
		}()
	}
}

var okAnswer = []byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

func (s *sink) serve(c net.Conn) {
	in := bufio.NewReaderSize(c, 8192)
	body := make([]byte, 0, 4096)
	for {
		var err error
		if body, err = readRequest(in, body[:0]); err != nil || s.down.Load() {
			return
		}
		now := time.Now()
		if s.delay > 0 {
			timer := time.NewTimer(s.delay)
			<-timer.C
		}
		if _, err := c.Write(okAnswer); err != nil {
			return
		}
		s.count.Add(1)
		if tell := s.received.Load(); tell != nil {
			if id := idOf(body); id != nil {
				(*tell)(id, now)
			}
		}
	}
}

// readRequest reads the head of one request and appends its body.
func readRequest(in *bufio.Reader, body []byte) ([]byte, error) {
	if _, err := in.ReadSlice('\n'); err != nil {
		return body, err
	}
	length := 0
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return body, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		if len(line) > 15 && bytes.EqualFold(line[:15], []byte("content-length:")) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[15:]))); err != nil {
				return body, err
			}
		}
	}
	if length < 0 || length > maxBody {
		return body, errors.New("too long")
	}
	if cap(body) < length {
		body = make([]byte, length)
	}
	body = body[:length]
	_, err := io.ReadFull(in, body)
	return body, err
}

// idOf finds the id that a maker wrote.
func idOf(body []byte) []byte {
	start := bytes.Index(body, []byte(`"id":"`))
	if start < 0 || start+6+idSize > len(body) {
		return nil
	}
	return body[start+6 : start+6+idSize]
}

// serveSink is the mode that runs a sink alone and prints what it counts.
func serveSink(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("sink", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:9099", "address to listen on")
	delay := flags.Duration("delay", 0, "wait before each answer")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s, err := newSink(*listen, *delay)
	if err != nil {
		return err
	}
	defer s.close()
	fmt.Fprintln(os.Stderr, "listening on", s.url())
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for before := int64(0); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if now := s.count.Load(); now != before {
				fmt.Printf("%d received, %d in this second\n", now, now-before)
				before = now
			}
		}
	}
}
