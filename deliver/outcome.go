package deliver

import (
	"net/http"
	"slices"

	"creel/event"
)

// Reply is all that the outcome of an attempt depends on.
type Reply struct {
	Status   int   // HTTP status, 0 where no answer came
	Err      error // why there is no status
	Wrote    bool  // something of the request left this machine
	Retry4xx bool  // 4xx answers that are otherwise permanent are transient
	// Success are the statuses that count as sent; nil is 2xx and 409.
	Success []int
	// SMTP says that the status is a mail server's: 4yz is for now, 5yz for good.
	SMTP bool
	// Unsendable says that no request could be made of the delivery; another
	// attempt can not be better.
	Unsendable bool
}

// Classify is the one function that says what an attempt came to.
//
// 2xx and 409 (already received) are OK, or what the destination says instead:
// then any other 2xx is transient, and 409 a 4xx like others. 408, 425, 429 and 5xx are transient,
// and so is every other failure that a change at the destination can undo
// without a change of the delivery: a redirect, which is never followed, and a
// status that HTTP does not define. Other 4xx are permanent. Without an answer
// it is transient while nothing was written, and unknown after that.
//
// For mail 2yz is OK, 5yz permanent at whatever stage, and all else transient.
// A mail counts as written with its last line: no server takes one before.
func Classify(r Reply) event.Outcome {
	switch {
	case r.Unsendable:
		return event.Permanent
	case r.Status == 0 && r.Wrote:
		return event.Unknown
	case r.Status == 0:
		return event.Transient
	case r.SMTP && r.Status >= 500 && r.Status <= 599:
		return event.Permanent
	case r.SMTP && (r.Status < 200 || r.Status > 299):
		return event.Transient
	case r.isSuccess():
		return event.OK
	case r.Status == http.StatusGone:
		return event.Permanent
	case r.Status == http.StatusRequestTimeout, r.Status == http.StatusTooEarly,
		r.Status == http.StatusTooManyRequests:
		return event.Transient
	case r.Status >= 400 && r.Status <= 499 && !r.Retry4xx:
		return event.Permanent
	default:
		return event.Transient
	}
}

func (r *Reply) isSuccess() bool {
	if r.Success != nil && !r.SMTP {
		return slices.Contains(r.Success, r.Status)
	}
	return r.Status >= 200 && r.Status <= 299 || r.Status == http.StatusConflict
}
