package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// conn speaks just enough HTTP/1.1 over one kept connection: net/http's client
// would cost as much as the server that is measured.
type conn struct {
	addr string
	raw  net.Conn
	in   *bufio.Reader
}

// exchangeLimit is how long one request may take.
const exchangeLimit = 30 * time.Second

func dial(addr string) (*conn, error) {
	raw, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", addr, err)
	}
	return &conn{addr: addr, raw: raw, in: bufio.NewReaderSize(raw, 4096)}, nil
}

func (c *conn) close() { _ = c.raw.Close() }

// redial replaces a connection that broke.
func (c *conn) redial() error {
	c.close()
	fresh, err := dial(c.addr)
	if err != nil {
		return err
	}
	*c = *fresh
	return nil
}

// exchange sends one request and reads its answer whole.
func (c *conn) exchange(request []byte) (status int, err error) {
	if err := c.raw.SetDeadline(time.Now().Add(exchangeLimit)); err != nil {
		return 0, fmt.Errorf("set the deadline: %w", err)
	}
	if _, err := c.raw.Write(request); err != nil {
		return 0, fmt.Errorf("send: %w", err)
	}
	return c.answer()
}

func (c *conn) answer() (status int, err error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return 0, fmt.Errorf("read the answer: %w", err)
	}
	if len(line) < 12 {
		return 0, fmt.Errorf("not an answer: %q", line)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, fmt.Errorf("not an answer: %q", line)
	}
	length, chunked := 0, false
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return 0, fmt.Errorf("read the answer: %w", err)
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case len(name) == 14 && bytes.EqualFold(name, []byte("content-length")):
			if length, err = strconv.Atoi(string(value)); err != nil {
				return 0, fmt.Errorf("not a length: %q", value)
			}
		case len(name) == 17 && bytes.EqualFold(name, []byte("transfer-encoding")):
			chunked = true
		}
	}
	if chunked {
		return status, c.skipChunks()
	}
	if _, err := c.in.Discard(length); err != nil {
		return 0, fmt.Errorf("read the answer: %w", err)
	}
	return status, nil
}

func (c *conn) skipChunks() error {
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return fmt.Errorf("read a chunk: %w", err)
		}
		size, err := strconv.ParseInt(string(bytes.TrimRight(line, "\r\n")), 16, 32)
		if err != nil {
			return errors.New("not a chunk")
		}
		if _, err := c.in.Discard(int(size) + 2); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read a chunk: %w", err)
		}
		if size == 0 {
			return nil
		}
	}
}
