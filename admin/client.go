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
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"creel/event"
)

// ErrNoServer says that no server listens on the control socket.
var ErrNoServer = errors.New("no server runs on this database")

// ErrLost says that the server did not answer: it may have done what it was
// asked for all the same.
var ErrLost = errors.New("the server did not answer")

// ErrHung says that the server has the control socket open and answers nothing,
// not even that it lives.
var ErrHung = errors.New("the server does not answer: it hangs or is stopped (SIGSTOP). Look at its log, then restart it; what it was asked for it may do when it goes on")

// patience is how long the server may take to say that it lives, and how often
// it is asked while it is busy with something else.
const patience = 5 * time.Second

// Client talks to a running server through its control socket.
type Client struct {
	http     *http.Client
	patience time.Duration
}

// Dial connects to the control socket at path. It returns ErrNoServer when
// nobody listens there.
func Dial(ctx context.Context, path string) (*Client, error) {
	conn, err := dialSocket(ctx, path)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, ErrNoServer
	case errors.Is(err, os.ErrPermission):
		return nil, fmt.Errorf("the control socket %s is closed to this user (uid %d): be the server's user or root", path, os.Geteuid())
	case errors.Is(err, syscall.EAGAIN):
		return nil, ErrHung // nobody takes the connections that wait
	case err != nil:
		return nil, fmt.Errorf("dial the control socket: %w", err)
	}
	_ = conn.Close()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialSocket(ctx, path)
	}}
	return &Client{http: &http.Client{Transport: transport}, patience: patience}, nil
}

// attend watches the server while it works on a question: the context that it
// returns ends with ErrHung when the server no longer says that it lives.
func (c *Client) attend(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		ticker := time.NewTicker(c.patience)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if !c.lives(ctx) {
				cancel(ErrHung)
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// lives tells whether the server answers at all. A socket that is gone is the
// business of whoever waits for an answer over it.
func (c *Client) lives(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://creel/healthz", nil)
	if err != nil {
		return true
	}
	response, err := c.http.Do(request)
	if err != nil {
		return ctx.Err() == nil || !errors.Is(ctx.Err(), context.DeadlineExceeded)
	}
	_ = response.Body.Close()
	return true
}

// lost is why a question has no answer.
func lost(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), ErrHung) || errors.Is(err, context.DeadlineExceeded) {
		return ErrHung
	}
	if inner := (*url.Error)(nil); errors.As(err, &inner) {
		err = inner.Err // the address says nothing
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
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

// Act asks the server to do an action. It waits so long for its end: what takes
// longer goes on, and is returned as far as it is.
func (c *Client) Act(ctx context.Context, action event.Action, wait time.Duration) (event.Action, error) {
	var done event.Action
	err := c.call(ctx, http.MethodPost, "/api/v1/actions?wait="+wait.String(), action, &done)
	return done, err
}

// AwaitAction waits so long for the end of an action that goes on, and returns
// it as far as it is.
func (c *Client) AwaitAction(ctx context.Context, id int64, wait time.Duration) (event.Action, error) {
	var done event.Action
	err := c.call(ctx, http.MethodPost, fmt.Sprintf("/api/v1/actions/%d/await?wait=%s", id, wait), nil, &done)
	return done, err
}

// Reload asks the server to apply its configuration file again, and returns what
// is odd about it.
func (c *Client) Reload(ctx context.Context) (warnings []string, err error) {
	var done reloaded
	err = c.call(ctx, http.MethodPost, "/api/v1/reload", nil, &done)
	return done.Warnings, err
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
	ctx, done := c.attend(ctx)
	defer done()
	request, err := http.NewRequestWithContext(ctx, method, "http://creel"+path, reader)
	if err != nil {
		return fmt.Errorf("build the request: %w", err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return lost(ctx, err)
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
	err := json.NewDecoder(io.LimitReader(response.Body, maxRequest)).Decode(&said)
	switch {
	case err != nil && (response.StatusCode == http.StatusNotFound || response.StatusCode == http.StatusMethodNotAllowed):
		return errors.New("the running server does not know this command: it is of another version than this creel; restart it with this one")
	case err != nil:
		return fmt.Errorf("the server answered %s", response.Status)
	case response.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%w: %s", event.ErrNotFound, strings.TrimPrefix(said.Error, event.ErrNotFound.Error()+": "))
	}
	return hinted{said}
}
