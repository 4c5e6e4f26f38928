package source

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
)

// ListError says why a list could not be read, and what to do.
type ListError struct {
	reason, hint string
	err          error
}

// Error implements error.
func (e *ListError) Error() string { return e.reason }

// Unwrap returns the cause.
func (e *ListError) Unwrap() error { return e.err }

// Hint is what to do next.
func (e *ListError) Hint() string { return e.hint }

// lookAtURL is the hint where something else than a list answers.
const lookAtURL = "curl the address with the token, and compare with reconcile.url and what settings put into it"

// failed names the request without its query, and no secret.
func (l *Lister) failed(target *url.URL, hint, reason string) error {
	text := fmt.Sprintf("list the events at %s://%s%s: %s", target.Scheme, target.Host, target.Path, reason)
	for _, secret := range l.secret {
		text = strings.ReplaceAll(text, secret, "[secret]")
	}
	return &ListError{reason: text, hint: hint}
}

// unreached is a request without an answer.
func (l *Lister) unreached(target *url.URL, err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err // the rest is the address with its query
	}
	failed := l.failed(target, unreachedHint(target, err), "no answer: "+err.Error()).(*ListError)
	failed.err = err
	return failed
}

func unreachedHint(target *url.URL, err error) string {
	var lookup *net.DNSError
	var certificate *tls.CertificateVerificationError
	var late interface{ Timeout() bool }
	switch {
	case errors.Is(err, context.Canceled):
		return ""
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return fmt.Sprintf("look whether %s in reconcile.url is spelt right, and what this machine's DNS says of it: getent hosts %s", target.Hostname(), target.Hostname())
	case errors.As(err, &lookup):
		return "this machine's DNS does not answer: look at /etc/resolv.conf and the network, then again"
	case errors.As(err, &certificate):
		return "look at this machine's clock and its CA certificates, and whether something opens TLS on the way: curl -v https://" + target.Host
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there: look at host and port of reconcile.url"
	case errors.As(err, &late) && late.Timeout(), errors.Is(err, os.ErrDeadlineExceeded):
		return "a firewall may be in the way (no proxy is used), or reconcile.timeout is too short: curl -v " + target.Scheme + "://" + target.Host
	}
	return "see from this machine whether it can be reached (no proxy is used): curl -v " + target.Scheme + "://" + target.Host
}

// refused is an answer that is no list: what it says about the configuration
// stands in the text too, which also log lines and incidents show.
func (l *Lister) refused(target *url.URL, res *http.Response, wait time.Duration) error {
	why, hint := fmt.Sprintf("HTTP %d %s", res.StatusCode, http.StatusText(res.StatusCode)), lookAtURL
	switch status := res.StatusCode; {
	case status == http.StatusTooManyRequests, status == http.StatusForbidden && wait > 0:
		hint = "again in some minutes; a smaller reconcile.rate asks less often, a later --since asks for less"
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		why += ": reconcile.token is not accepted, or may not read events"
		hint = "make a token that may read events at the sender, put it where reconcile.token says, then creel reload"
	case status == http.StatusNotFound:
		why += ": look at reconcile.url and what settings put into it"
	case status >= 300 && status <= 399:
		if to, err := res.Location(); err == nil {
			why += " to " + to.Scheme + "://" + to.Host + ", which is not followed: look at reconcile.url"
		}
	case status >= 500, status == http.StatusRequestTimeout:
		hint = "the sender has trouble of its own: look at its status page, and again later"
	}
	if wait > 0 {
		hint = "again in " + wait.Round(time.Second).String() + ", as the sender asks"
	}
	if wait > mostListWait {
		why += fmt.Sprintf(", and it asks to wait for %s: try again then", wait.Round(time.Second))
	}
	return l.failed(target, hint, why)
}
