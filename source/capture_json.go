package source

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strings"
	"unicode/utf8"
)

// The errors of reading captures that are JSON.
var (
	ErrNoCapture   = errors.New(`the JSON is no capture: an object with url, headers and body or body_base64, or a HAR file`)
	ErrManyCapture = errors.New("the file has several requests")
)

// ReadCaptures reads the requests of a file: one raw HTTP/1 request, or JSON:
// objects one after another or in an array, or an HTTP Archive (HAR 1.2).
func ReadCaptures(data []byte) ([]*Capture, error) {
	text := bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\ufeff")), " \t\r\n")
	if len(text) == 0 || text[0] != '{' && text[0] != '[' {
		c, err := readRaw(data)
		if err != nil {
			return nil, err
		}
		return []*Capture{c}, nil
	}
	var all []*Capture
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		var value json.RawMessage
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoCapture, err)
		}
		if all, err = appendCaptures(all, value, 0); err != nil {
			return nil, fmt.Errorf("request %d: %w", len(all)+1, err)
		}
	}
}

// writtenRequest is a request as somebody wrote it down in JSON. The members of
// HAR stand beside those that people write.
type writtenRequest struct {
	Method  string          `json:"method"`
	URL     string          `json:"url"`
	Path    string          `json:"path"`
	Headers json.RawMessage `json:"headers"`
	Body    json.RawMessage `json:"body"`
	Base64  *string         `json:"body_base64"`
	B64     *string         `json:"body_b64"`
	Coded   bool            `json:"isBase64Encoded"` // says it of body
	Post    *struct {
		Text     string `json:"text"`
		Encoding string `json:"encoding"`
	} `json:"postData"`

	// what has requests in it
	Request json.RawMessage `json:"request"`
	Log     *struct {
		Entries []json.RawMessage `json:"entries"`
	} `json:"log"`
}

// deepestCapture is a HAR entry in a log in an array.
const deepestCapture = 4

func appendCaptures(all []*Capture, value json.RawMessage, depth int) ([]*Capture, error) {
	if depth > deepestCapture {
		return all, ErrNoCapture
	}
	if value[0] == '[' {
		var list []json.RawMessage
		if err := json.Unmarshal(value, &list); err != nil {
			return all, fmt.Errorf("%w: %w", ErrNoCapture, err)
		}
		return appendEach(all, list, depth)
	}
	var w writtenRequest
	if value[0] != '{' {
		return all, ErrNoCapture
	}
	if err := json.Unmarshal(value, &w); err != nil {
		return all, fmt.Errorf("%w: %w", ErrNoCapture, err)
	}
	switch {
	case w.Log != nil:
		return appendEach(all, w.Log.Entries, depth)
	case w.Request != nil:
		return appendCaptures(all, w.Request, depth+1)
	}
	c, err := w.capture()
	if err != nil {
		return all, err
	}
	return append(all, c), nil
}

func appendEach(all []*Capture, list []json.RawMessage, depth int) (_ []*Capture, err error) {
	for _, one := range list {
		if all, err = appendCaptures(all, one, depth+1); err != nil {
			return all, err
		}
	}
	return all, nil
}

func (w *writtenRequest) capture() (*Capture, error) {
	if w.Headers == nil && w.Body == nil && w.Base64 == nil && w.B64 == nil && w.Post == nil {
		return nil, ErrNoCapture
	}
	c := &Capture{Request: Request{Method: strings.ToUpper(orElse(w.Method, http.MethodPost)), Header: http.Header{}}}
	if !headerName(c.Method) {
		return nil, fmt.Errorf("%w: its method is no word", ErrNoCapture)
	}
	target := orElse(w.URL, orElse(w.Path, "/"))
	if !strings.HasPrefix(target, "/") && !strings.Contains(target, "://") || strings.ContainsFunc(target, notInTarget) {
		return nil, fmt.Errorf(`%w: its url is none, such as "https://hooks.example.com/in/stripe"`, ErrNoCapture)
	}
	c.aim(target)
	if err := c.readHeaders(w.Headers); err != nil {
		return nil, err
	}
	return c, c.readBody(w)
}

// isNull tells whether a member is absent or null.
func isNull(value json.RawMessage) bool { return len(value) == 0 || value[0] == 'n' }

// notInTarget tells what can not stand in a request line.
func notInTarget(r rune) bool { return r <= ' ' || r == 0x7f }

// readHeaders takes an object of texts or lists of texts, or HAR's list of
// names and values.
func (c *Capture) readHeaders(value json.RawMessage) error {
	if isNull(value) {
		return nil
	}
	var list []struct {
		Name  string `json:"name"`
		Value any    `json:"value"`
	}
	if value[0] == '[' {
		if err := json.Unmarshal(value, &list); err != nil {
			return fmt.Errorf("%w: its headers are no list of name and value", ErrNoCapture)
		}
		for _, one := range list {
			if err := c.header(one.Name, one.Value); err != nil {
				return err
			}
		}
		return nil
	}
	var object map[string]any
	if err := json.Unmarshal(value, &object); err != nil {
		return fmt.Errorf("%w: its headers are no object", ErrNoCapture)
	}
	for _, name := range sortedKeys(object) {
		values, several := object[name].([]any)
		if !several {
			values = []any{object[name]}
		}
		for _, one := range values {
			if err := c.header(name, one); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Capture) header(name string, value any) error {
	if strings.HasPrefix(name, ":") {
		return nil // of HTTP/2: what the request line says
	}
	text, ok := value.(string)
	if number, is := value.(float64); is {
		text, ok = fmt.Sprint(number), true
	}
	if !ok || !headerName(name) || strings.ContainsAny(text, "\r\n\x00") {
		return fmt.Errorf("header %q: %w", name, ErrNoHeader)
	}
	name = textproto.CanonicalMIMEHeaderKey(name)
	c.Header[name] = append(c.Header[name], strings.Trim(text, " \t"))
	return nil
}

// readBody takes the bytes as they were, from base64 or a text. A body that is
// JSON inside the JSON was written by whoever captured it.
func (c *Capture) readBody(w *writtenRequest) (err error) {
	text, coded, given := "", w.Coded, 0
	for _, base64 := range []*string{w.Base64, w.B64} {
		if base64 != nil {
			text, coded, given = *base64, true, given+1
		}
	}
	if w.Post != nil {
		text, coded, given = w.Post.Text, strings.EqualFold(w.Post.Encoding, "base64"), given+1
	}
	if !isNull(w.Body) {
		given++
		if w.Body[0] != '"' {
			c.Body = w.Body
			c.Notes = append(c.Notes, "the body is JSON inside the capture, and not a text: the sender may have written it otherwise. body_base64 keeps the bytes")
		} else if err := json.Unmarshal(w.Body, &text); err != nil {
			return fmt.Errorf("%w: %w", ErrNoCapture, err)
		}
	}
	switch {
	case given > 1:
		return fmt.Errorf("%w: it has two bodies", ErrNoCapture)
	case c.Body != nil:
		return nil
	case coded:
		if c.Body, err = base64.StdEncoding.DecodeString(strings.TrimSpace(text)); err != nil {
			return fmt.Errorf("%w: its body is not base64", ErrNoCapture)
		}
		return nil
	}
	if c.Body = []byte(text); strings.ContainsRune(text, utf8.RuneError) {
		c.Notes = append(c.Notes, "the body has characters that stand for bytes that no text can have: body_base64 keeps the bytes")
	}
	return nil
}
