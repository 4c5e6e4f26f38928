package deliver

import (
	"context"
	"fmt"
	"net/http"
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
	Wrote      bool // something of the request left this machine; of a mail, its last line
	// Alive says of a transient answer that it is about this delivery alone: a
	// mailbox that is full, a sender that is made to wait, a host that the event
	// named.
	Alive bool
}

// Answered tells whether the destination gave an answer of any kind: it
// is alive then, whatever it thinks of the delivery.
func (r Result) Answered() bool { return r.Attempt.Status != 0 }

// Attempt sends a shipment once and waits for the answer, at most the
// destination's timeout. now is the attempt's start and the time it is signed
// for. It never returns an error of its own: what went wrong is in the result.
func (d *Destination) Attempt(ctx context.Context, s event.Shipment, now time.Time) Result {
	began := d.clock()
	reply, answer := d.exchange(ctx, &s, now)
	took := max(d.clock().Sub(began), 0)
	reply.Retry4xx, reply.Success = d.retry4xx, d.success
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
		Wrote: reply.Wrote,
	}
	if result.Attempt.Outcome != event.OK {
		result.Gone = reply.Status == http.StatusGone
		result.Attempt.Error = d.failure(reply, answer)
		result.Alive = d.pools != nil // what one event named says nothing of the others
		result.RetryAfter = retryAfter(answer.header, now.Add(took), d.maxRetryAfter)
	}
	return result
}

// exchange sends the request. Where a kept connection turned out to be closed
// before anything of the request was written to it, a new connection is tried
// at once: nothing was sent, so this is still the one send of this attempt.
func (d *Destination) exchange(ctx context.Context, s *event.Shipment, now time.Time) (Reply, answer) {
	content, err := d.contentOf(s, now)
	if err != nil {
		return Reply{Err: err, Unsendable: true}, answer{}
	}
	buffer := d.buffers.get()
	defer d.buffers.put(buffer)
	began := time.Now()
	r := request{deadline: began.Add(d.timeout), way: content.way}
	r.first = d.appendHead((*buffer)[:0], s, &content, now)
	if len(content.body) <= mostTogether {
		r.first = append(r.first, content.body...)
	} else {
		r.rest = content.body
	}
	*buffer = r.first
	host := content.way.target.name
	for fresh := false; ; fresh = true {
		if err := ctx.Err(); err != nil {
			return Reply{Err: &sendError{err: err}}, answer{}
		}
		c, reused, err := r.way.pool.take(ctx, began, r.deadline, fresh)
		if err != nil {
			if internal := forbiddenIn(err); internal != nil {
				return Reply{Err: internal, Unsendable: true}, answer{}
			}
			if cause := ctx.Err(); cause != nil {
				err = fmt.Errorf("%w: %w", cause, err)
			}
			return Reply{Err: &sendError{err: err}}, answer{host: host}
		}
		reply, found := d.send(ctx, c, &r)
		found.host = host
		if reply.Status != 0 || reply.Wrote || !reused || ctx.Err() != nil {
			return reply, found
		}
	}
}
