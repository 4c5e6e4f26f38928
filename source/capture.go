package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"strings"
)

// Capture is a request as somebody wrote it down.
type Capture struct {
	Request
	Path string // as it was asked for, without the query
	// Notes are what reading it found odd: nothing of the request itself.
	Notes []string
}

// The errors of reading a capture.
var (
	ErrNoRequestLine = errors.New(`the capture does not start with a request line such as "POST /in/stripe HTTP/1.1"`)
	ErrNoHeader      = errors.New(`a line of the head is no "Name: value"`)
	ErrNoBlankLine   = errors.New("no blank line ends the head of the capture")
)

// ReadCapture reads the one request of a file, as ReadCaptures does.
func ReadCapture(data []byte) (*Capture, error) {
	all, err := ReadCaptures(data)
	switch {
	case err != nil:
		return nil, err
	case len(all) == 0:
		return nil, ErrNoCapture
	case len(all) > 1:
		return nil, fmt.Errorf("%w: %d", ErrManyCapture, len(all))
	}
	return all[0], nil
}

// readRaw reads a raw HTTP/1 request: the request line, the header, a blank
// line, and the body to the last byte. Lines of the head may end in a line feed
// alone. A chunked body is put together; nothing else is changed, whatever
// Content-Length says.
func readRaw(data []byte) (*Capture, error) {
	line, rest, ok := headLine(data)
	method, target, version, whole := requestLine(line)
	if !ok || !whole {
		return nil, ErrNoRequestLine
	}
	c := &Capture{Request: Request{Method: method, Header: http.Header{}}}
	c.aim(target)
	if version != "HTTP/1.1" && version != "HTTP/1.0" {
		c.Notes = append(c.Notes, "the request line names no version of HTTP/1")
	}
	for number := 2; ; number++ {
		if line, rest, ok = headLine(rest); !ok {
			return nil, ErrNoBlankLine
		}
		if len(line) == 0 {
			break
		}
		name, value, colon := strings.Cut(string(line), ":")
		if !colon || !headerName(name) {
			return nil, fmt.Errorf("line %d: %w", number, ErrNoHeader)
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		c.Header[name] = append(c.Header[name], strings.Trim(value, " \t"))
	}
	c.Body = rest
	c.dechunk()
	return c, nil
}

// aim takes the path and the query of what was asked for.
func (c *Capture) aim(target string) {
	c.Path, c.Query, _ = strings.Cut(target, "?")
	if _, after, absolute := strings.Cut(c.Path, "://"); absolute {
		_, c.Path, _ = strings.Cut(after, "/")
		c.Path = "/" + c.Path
	}
}

// headLine cuts off one line of a head.
func headLine(data []byte) (line, rest []byte, ok bool) {
	line, rest, ok = bytes.Cut(data, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), rest, ok
}

func requestLine(line []byte) (method, target, version string, ok bool) {
	parts := strings.Split(strings.TrimPrefix(string(line), "\ufeff"), " ")
	if len(parts) != 2 && len(parts) != 3 || !headerName(parts[0]) {
		return "", "", "", false
	}
	if len(parts) == 3 {
		version = parts[2]
	}
	target = parts[1]
	return parts[0], target, version, strings.HasPrefix(target, "/") || strings.Contains(target, "://")
}

// headerName tells whether a text can be the name of a header: a token of
// RFC 9110, section 5.6.2.
func headerName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return name != ""
}

// dechunk puts a chunked body together. One that is not chunked, though the
// head says so, was put together by whoever captured it.
func (c *Capture) dechunk() {
	if !strings.EqualFold(c.Header.Get("Transfer-Encoding"), "chunked") {
		return
	}
	delete(c.Header, "Transfer-Encoding")
	whole, err := io.ReadAll(io.LimitReader(httputil.NewChunkedReader(bytes.NewReader(c.Body)), int64(len(c.Body))))
	if err != nil {
		c.Notes = append(c.Notes, "the head says that the body is chunked and it is not: it was taken as it stands")
		return
	}
	c.Body = whole
}

// WriteCapture writes a request as ReadCapture reads it. Header lines stand in
// the order of their names.
func WriteCapture(req *Request, path string) []byte {
	var b bytes.Buffer
	target := path
	if req.Query != "" {
		target += "?" + req.Query
	}
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", req.Method, target)
	for _, name := range sortedKeys(req.Header) {
		for _, value := range req.Header[name] {
			fmt.Fprintf(&b, "%s: %s\r\n", name, value)
		}
	}
	b.WriteString("\r\n")
	b.Write(req.Body)
	return b.Bytes()
}

// ReadHeaderLines reads "Name: value" lines, as they are stored, back into a
// header. Lines that are none are left out.
func ReadHeaderLines(lines string) http.Header {
	header := http.Header{}
	for line := range strings.Lines(lines) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if !ok || name == "" {
			continue
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		header[name] = append(header[name], value)
	}
	return header
}
