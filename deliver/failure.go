package deliver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
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
)

// mostError bounds an error text, in bytes.
const mostError = 500

// sendError is a send without an answer.
type sendError struct {
	err       error
	connected bool
}

// Error implements error.
func (e *sendError) Error() string { return e.err.Error() }

// Unwrap implements errors.Unwrap.
func (e *sendError) Unwrap() error { return e.err }

// failure is the text of a failed attempt for the operator. It holds neither
// user information nor a query nor any secret of the destination.
func (d *Destination) failure(reply Reply, kept answer) string {
	text := ""
	switch {
	case reply.Unsendable:
		text = "the delivery can not be sent: " + reply.Err.Error()
	case reply.Status == 0:
		text = d.unanswered(reply, kept.host)
	case reply.Status >= 300 && reply.Status <= 399 && kept.location == "":
		text = fmt.Sprintf("%s, with no Location: set the destination's url to what answers 2xx", statusLine(reply.Status))
	case reply.Status >= 300 && reply.Status <= 399:
		text = fmt.Sprintf("HTTP %d redirects to %s, which is not followed: set the destination's url to where it should go",
			reply.Status, d.shownRedirect(kept.location))
	case reply.Status == http.StatusGone:
		text = "HTTP 410 Gone: the destination wants no more deliveries"
	default:
		text = statusLine(reply.Status)
		if reply.Success != nil && reply.Status < 300 {
			text += ", which is not among the destination's success statuses"
		}
	}
	return printable(d.masked(strings.ReplaceAll(text, "\n", " ")), mostError)
}

func statusLine(status int) string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", status, http.StatusText(status)))
}

// unanswered says why there was no answer, and whether the request may have
// been received nevertheless.
func (d *Destination) unanswered(reply Reply, host string) string {
	text := d.reason(reply.Err, host)
	if reply.Wrote {
		text += "; the request was sent, so the destination may have received it"
	}
	return text
}

// reason says why there was no answer. A host that an event named is none of
// the error's business, and neither is the address that it led to.
func (d *Destination) reason(err error, host string) string {
	var system *net.OpError
	if d.pools != nil && errors.As(err, &system) && !isKnown(err) {
		return bare(system.Err)
	}
	text := whyUnanswered(err, d.url.Host, d.timeout, d.connect)
	var name *net.DNSError
	switch {
	case d.pools != nil && errors.As(err, &name):
		return "the name in the url was not found: " + name.Err
	case d.pools != nil:
		text = strings.ReplaceAll(text, host, someAddress)
	}
	return text
}

// isKnown tells whether whyUnanswered has words of its own for an error.
func isKnown(err error) bool {
	var name *net.DNSError
	return errors.As(err, &name) || isTimeout(err) || isTLS(err) || errors.Is(err, context.Canceled) ||
		errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// shownRedirect writes where a redirect points. What an event put into the path
// that was asked may stand in it again.
func (d *Destination) shownRedirect(location string) string {
	if d.address == nil {
		return shownLocation(d.url, location)
	}
	target, err := d.url.Parse(location)
	if d.address.free || err != nil || target.Host != d.url.Host {
		return "another address"
	}
	return "another path of " + d.url.Host
}

// whyUnanswered says why a server gave no answer, within the times that it had.
func whyUnanswered(err error, host string, timeout, connect time.Duration) string {
	var sent *sendError
	connected := errors.As(err, &sent) && sent.connected
	var name *net.DNSError
	switch {
	case errors.Is(err, context.Canceled):
		return "interrupted by the stop of the server"
	case errors.As(err, &name):
		return fmt.Sprintf("the name %s was not found: %s", name.Name, name.Err)
	case isTimeout(err) && connected:
		return fmt.Sprintf("no answer within %s", timeout)
	case isTimeout(err):
		return fmt.Sprintf("no connection to %s within %s", host, connect)
	case isTLS(err):
		return "TLS: " + bare(err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("%s refused the connection", host)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return fmt.Sprintf("%s reset the connection", host)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Sprintf("%s closed the connection without an answer", host)
	}
	return bare(err)
}

func isTimeout(err error) bool {
	var timed interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &timed) && timed.Timeout()
}

func isTLS(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		record       tls.RecordHeaderError
		alert        tls.AlertError
		authority    x509.UnknownAuthorityError
		hostname     x509.HostnameError
		invalid      x509.CertificateInvalidError
	)
	return errors.As(err, &verification) || errors.As(err, &record) || errors.As(err, &alert) ||
		errors.As(err, &authority) || errors.As(err, &hostname) || errors.As(err, &invalid) ||
		strings.Contains(err.Error(), "tls: ")
}

// bare is the text of an error without the URL that net/http puts around it.
func bare(err error) string {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return err.Error()
}

// shownLocation writes where a redirect points, as it may be shown, resolved
// against the URL that was asked.
func shownLocation(asked *url.URL, location string) string {
	if location == "" {
		return "no Location"
	}
	target, err := asked.Parse(location)
	if err != nil {
		return "a Location that is no URL"
	}
	if target.Opaque != "" || target.Host == "" {
		return "a Location with the scheme " + target.Scheme
	}
	return shownURL(target)
}
