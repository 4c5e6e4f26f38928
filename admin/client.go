package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"

	"creel/event"
)

// ErrNoServer says that no server listens on the control socket.
var ErrNoServer = errors.New("no server runs on this database")

// Client talks to a running server through its control socket.
type Client struct {
	http *http.Client
}

// Dial connects to the control socket at path. It returns ErrNoServer when
// nobody listens there.
func Dial(ctx context.Context, path string) (*Client, error) {
	conn, err := dialSocket(ctx, path)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, ErrNoServer
	}
	if err != nil {
		return nil, fmt.Errorf("dial the control socket: %w", err)
	}
	_ = conn.Close()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialSocket(ctx, path)
	}}
	return &Client{http: &http.Client{Transport: transport}}, nil
}

func dialSocket(ctx context.Context, path string) (net.Conn, error) {
	short, done, err := shortPath(path)
	if err != nil {
		return nil, err
	}
	defer done()
	var dialer net.Dialer
	return dialer.DialContext(ctx, "unix", short)
}

// Act asks the server to do an action.
func (c *Client) Act(ctx context.Context, action event.Action) (event.Action, error) {
	var done event.Action
	err := c.call(ctx, http.MethodPost, "/api/v1/actions", action, &done)
	return done, err
}

// Reload asks the server to apply its configuration file again.
func (c *Client) Reload(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/api/v1/reload", nil, nil)
}

// Status decodes what the server knows about itself into status.
func (c *Client) Status(ctx context.Context, status any) error {
	return c.call(ctx, http.MethodGet, "/api/v1/status", nil, status)
}

// Ready asks for readiness; the report is filled whether it is ready or not.
func (c *Client) Ready(ctx context.Context) (Readiness, error) {
	var report Readiness
	err := c.call(ctx, http.MethodGet, "/readyz", nil, &report)
	return report, err
}

func (c *Client) call(ctx context.Context, method, path string, body, into any) error {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encode the request: %w", err)
		}
		reader = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://creel"+path, reader)
	if err != nil {
		return fmt.Errorf("build the request: %w", err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("ask the server: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK && path != "/readyz" {
		return refusal(response)
	}
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return fmt.Errorf("read the server's answer: %w", err)
	}
	return nil
}

func refusal(response *http.Response) error {
	var said Problem
	if err := json.NewDecoder(io.LimitReader(response.Body, maxRequest)).Decode(&said); err != nil {
		return fmt.Errorf("the server answered %s", response.Status)
	}
	if response.StatusCode == http.StatusNotFound {
		return fmt.Errorf("%w: %s", event.ErrNotFound, said.Error)
	}
	return errors.New(said.Error)
}
