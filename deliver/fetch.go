package deliver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	defaultFetch = 5 * time.Second
	// mostFetched bounds the answer to a fetch, in bytes.
	mostFetched = 1 << 20
	// MaxFetchRetryAfter is the longest wait that the answer to a fetch can ask
	// for.
	MaxFetchRetryAfter = defaultMaxRetryAfter
	// idleFetch is how long a connection is kept for the next fetch. A GET may
	// be sent again, so one that breaks in between costs nothing.
	idleFetch = 30 * time.Second
)

// Fetcher gets the current object of one rule from its owner. It asks only the
// scheme, host and port that the configuration writes: what an event puts into
// the URL stands behind them, so that no event decides whom the token is sent
// to, and the address needs no other check than the owner's own word for it.
// It is safe for concurrent use.
type Fetcher struct {
	mask
	scheme, host string
	place        string // the template as it may be shown
	header       http.Header
	sentHost     string // of the fetch's own headers
	timeout      time.Duration
	client       *http.Client
	clock        func() time.Time
}

// FetchError says why an object could not be had. Its text holds no secret,
// no query and nothing of the event.
type FetchError struct {
	Reason string
	Status int // HTTP status, 0 where no answer came
	// Permanent says that the same request will not go better later.
	Permanent bool
	// RetryAfter is how long the answer asked to wait, within MaxFetchRetryAfter;
	// 0 where it did not ask.
	RetryAfter time.Duration
}

// Error implements error.
func (e *FetchError) Error() string { return e.Reason }

// Close drops the connections that are kept for reuse. Running fetches are not
// touched.
func (f *Fetcher) Close() { f.client.CloseIdleConnections() }

// Fetch sends one GET and returns the JSON text of the answer. target is the
// rule's template with an event's values in it. The error is a *FetchError, or
// wraps context.Canceled where ctx was cancelled; a deadline of ctx counts as
// a timeout.
func (f *Fetcher) Fetch(ctx context.Context, target string) ([]byte, error) {
	req, err := f.request(target)
	if err != nil {
		return nil, err
	}
	own, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	res, err := f.client.Do(req.WithContext(own))
	if err != nil {
		return nil, f.unanswered(ctx, err)
	}
	defer res.Body.Close()
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return nil, f.refused(req.URL, res)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, mostFetched+1))
	switch {
	case err != nil:
		return nil, f.unanswered(ctx, err)
	case len(body) > mostFetched:
		return nil, f.failed(FetchError{Status: res.StatusCode, Permanent: true,
			Reason: fmt.Sprintf("the answer is larger than %d bytes", mostFetched)})
	case !json.Valid(body):
		// A page that says "maintenance" under 200 is no fault of the event.
		return nil, f.failed(FetchError{Status: res.StatusCode, Reason: fmt.Sprintf("HTTP %d with an answer that is not JSON", res.StatusCode)})
	}
	return body, nil
}

// request builds the request and makes sure that it goes where the
// configuration says.
func (f *Fetcher) request(target string) (*http.Request, error) {
	req, err := http.NewRequest(http.MethodGet, target, nil)
	if err != nil {
		// The error quotes the text, which holds what the event put into it.
		return nil, f.failed(FetchError{Permanent: true, Reason: "the event's values do not make a URL"})
	}
	if u := req.URL; u.Scheme != f.scheme || u.Host != f.host || u.User != nil || u.Opaque != "" || u.Fragment != "" {
		return nil, f.failed(FetchError{Permanent: true, Reason: "the event's values would lead to another address"})
	}
	for name, values := range f.header {
		req.Header[name] = values
	}
	req.Host = f.sentHost // "" is the URL's
	return req, nil
}

// failed completes an error: what is told names the template and hides what
// must not be seen.
func (f *Fetcher) failed(e FetchError) *FetchError {
	e.Reason = printable("GET "+f.place+": "+f.masked(strings.ReplaceAll(e.Reason, "\n", " ")), mostError)
	return &e
}

// refused classifies an answer that is no success. 408, 425, 429 and 5xx are
// transient, and so is a status that HTTP does not define.
func (f *Fetcher) refused(asked *url.URL, res *http.Response) error {
	e := FetchError{Status: res.StatusCode, Reason: strings.TrimSpace(fmt.Sprintf("HTTP %d %s", res.StatusCode, http.StatusText(res.StatusCode)))}
	switch status := res.StatusCode; {
	case status == http.StatusNotModified:
		e.Permanent = true
	case status >= 300 && status <= 399:
		e.Permanent = true
		e.Reason = fmt.Sprintf("HTTP %d redirects to %s, which is not followed: set the url of the fetch to where it should go",
			status, f.shownTarget(asked, res.Header.Get("Location")))
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		e.Permanent = true
		e.Reason += ": look at the token and what it may read"
	case status == http.StatusNotFound, status == http.StatusGone:
		e.Permanent = true
		e.Reason += ": there is no such object"
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests:
	case status >= 400 && status <= 499, status < 200:
		e.Permanent = true
	}
	if !e.Permanent {
		e.RetryAfter = retryAfter(res.Header, f.clock(), MaxFetchRetryAfter)
	}
	return f.failed(e)
}

// shownTarget is where a redirect points, without what the event put into the
// path that was asked for.
func (f *Fetcher) shownTarget(asked *url.URL, location string) string {
	target, query, asks := strings.Cut(shownLocation(asked, location), "?")
	steps, own := strings.Split(target, "/"), strings.Split(f.place, "/")
	for i, step := range strings.Split(asked.EscapedPath(), "/") {
		if i == 0 || step == "" || slices.Contains(own, step) {
			continue
		}
		for k := range steps {
			if steps[k] == step {
				steps[k] = "…"
			}
		}
	}
	if target = strings.Join(steps, "/"); asks {
		target += "?" + query
	}
	return target
}

// unanswered says why there was no answer, or not a whole one. All of it is
// transient.
func (f *Fetcher) unanswered(ctx context.Context, err error) error {
	switch cause := ctx.Err(); {
	case errors.Is(cause, context.Canceled):
		return fmt.Errorf("fetch: %w", cause)
	case cause != nil:
		return f.failed(FetchError{Reason: "no whole answer within the worker's timeout"})
	}
	return f.failed(FetchError{Reason: f.reason(err)})
}

func (f *Fetcher) reason(err error) string {
	var name *net.DNSError
	switch {
	case errors.As(err, &name):
		return fmt.Sprintf("the name %s was not found: %s", name.Name, name.Err)
	case isTimeout(err):
		return fmt.Sprintf("no whole answer within %s", f.timeout)
	case isTLS(err):
		return "TLS: " + bare(err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return f.host + " refused the connection"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return f.host + " reset the connection"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return f.host + " closed the connection before the answer was whole"
	}
	return bare(err)
}
