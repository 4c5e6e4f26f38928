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
		text = d.unanswered(reply)
	case reply.Status >= 300 && reply.Status <= 399:
		text = fmt.Sprintf("HTTP %d redirects to %s, which is not followed: set the destination's url to where it should go",
			reply.Status, shownLocation(d.url, kept.location))
	case reply.Status == http.StatusGone:
		text = "HTTP 410 Gone: the destination wants no more deliveries"
	default:
		text = strings.TrimSpace(fmt.Sprintf("HTTP %d %s", reply.Status, http.StatusText(reply.Status)))
	}
	return printable(d.masked(strings.ReplaceAll(text, "\n", " ")), mostError)
}

// unanswered says why there was no answer, and whether the request may have
// been received nevertheless.
func (d *Destination) unanswered(reply Reply) string {
	text := d.reason(reply.Err)
	if reply.Wrote {
		text += "; the request was sent, so the destination may have received it"
	}
	return text
}

func (d *Destination) reason(err error) string {
	var sent *sendError
	connected := errors.As(err, &sent) && sent.connected
	var name *net.DNSError
	switch {
	case errors.Is(err, context.Canceled):
		return "interrupted by the stop of the server"
	case errors.As(err, &name):
		return fmt.Sprintf("the name %s was not found: %s", name.Name, name.Err)
	case isTimeout(err) && connected:
		return fmt.Sprintf("no answer within %s", d.timeout)
	case isTimeout(err):
		return fmt.Sprintf("no connection to %s within %s", d.url.Host, d.connect)
	case isTLS(err):
		return "TLS: " + bare(err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("%s refused the connection", d.url.Host)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return fmt.Sprintf("%s reset the connection", d.url.Host)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Sprintf("%s closed the connection without an answer", d.url.Host)
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
