package deliver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"time"

	"creel/event"
)

// Result is what one attempt came to.
type Result struct {
	// Attempt is the row to keep: start, duration, status, outcome, error and
	// the first bytes of the answer, with the shipment's numbers.
	Attempt event.Attempt
	// RetryAfter is how long the answer asked to wait from the end of the
	// attempt, within the destination's cap; 0 where it did not ask.
	RetryAfter time.Duration
	Gone       bool // 410: the destination wants no more
	Wrote      bool // something of the request left this machine
}

// Answered tells whether the destination gave an HTTP answer of any kind: it
// is alive then, whatever it thinks of the delivery.
func (r Result) Answered() bool { return r.Attempt.Status != 0 }

// Attempt sends a shipment once and waits for the answer, at most the
// destination's timeout. now is the attempt's start and the time it is signed
// for. It never returns an error of its own: what went wrong is in the result.
func (d *Destination) Attempt(ctx context.Context, s event.Shipment, now time.Time) Result {
	began := d.clock()
	reply, answer := d.exchange(ctx, &s, now)
	took := max(d.clock().Sub(began), 0)
	reply.Retry4xx = d.retry4xx
	result := Result{
		Attempt: event.Attempt{
			Delivery: s.ID,
			Run:      s.Run,
			Number:   s.Tries,
			Spent:    !s.Probe,
			Start:    now,
			Duration: took,
			Status:   reply.Status,
			Outcome:  Classify(reply),
			Answer:   answer.text,
		},
		Gone:  reply.Status == http.StatusGone,
		Wrote: reply.Wrote,
	}
	if result.Attempt.Outcome != event.OK {
		result.Attempt.Error = d.failure(reply, answer)
		result.RetryAfter = retryAfter(answer.header, now.Add(took), d.maxRetryAfter)
	}
	return result
}

// exchange sends the request. Where a kept connection turned out to be closed
// before anything of the request was written to it, a new connection is tried
// at once: nothing was sent, so this is still the one send of this attempt.
func (d *Destination) exchange(ctx context.Context, s *event.Shipment, now time.Time) (Reply, answer) {
	body, err := partOf(s.Payload)
	if err != nil {
		return Reply{Err: err, Unsendable: true}, answer{}
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	header := d.header(s, body, now)
	for {
		sent := &wire{}
		req, err := d.request(httptrace.WithClientTrace(ctx, sent.trace()), header, body)
		if err != nil {
			return Reply{Err: err, Unsendable: true}, answer{}
		}
		res, err := d.transport.RoundTrip(req)
		if err == nil {
			kept := readAnswer(res, cancel)
			kept.text = printable(d.masked(kept.text), mostKept)
			return Reply{Status: res.StatusCode, Wrote: true}, kept
		}
		if ctx.Err() == nil && sent.reused.Load() && !sent.wrote() {
			continue // each round takes a connection out of the pool: a new one is not reused
		}
		if cause := ctx.Err(); cause != nil {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		return Reply{Err: &sendError{err: err, connected: sent.connected()}, Wrote: sent.wrote()}, answer{}
	}
}

// request builds the request of one send. Without GetBody the transport can
// not send it a second time by itself, which it does otherwise for a POST with
// an Idempotency-Key when a kept connection breaks. An empty body has to be a
// reader too: http.NoBody can always be sent again.
func (d *Destination) request(ctx context.Context, header http.Header, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("building the request: %w", err)
	}
	req.Header = header
	req.Host = d.host // "" is the URL's
	req.Body = io.NopCloser(bytes.NewReader(body))
	req.ContentLength = int64(len(body))
	req.GetBody = nil
	return req, nil
}
