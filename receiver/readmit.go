package receiver

import (
	"context"
	"fmt"

	"creel/event"
)

// Readmission is what became of a rejected request that an operator had
// verified again.
type Readmission struct {
	Rejected
	Outcome ReadmissionOutcome
	Events  []event.AcceptedItem // where it was stored
}

// ReadmissionOutcome says what became of it. Its text is what creel rejects
// retry prints.
type ReadmissionOutcome string

// The outcomes of a readmission. The first three leave its events in the
// inbox.
const (
	ReadmittedNew       ReadmissionOutcome = "accepted"
	ReadmittedDuplicate ReadmissionOutcome = "duplicate"        // its events were there
	ReadmittedBefore    ReadmissionOutcome = "accepted before"  // by an earlier retry
	ReadmittedNothing   ReadmissionOutcome = "nothing to store" // it verifies: a handshake, or events of the other mode
	StillRejected       ReadmissionOutcome = "rejected"         // see Cause and Detail
	RejectedCut         ReadmissionOutcome = "cut"              // the drawer has not all of its body
	RejectedOfNone      ReadmissionOutcome = "no source"        // its source is gone from the configuration
)

// Stored tells whether the events of the request are in the inbox.
func (o ReadmissionOutcome) Stored() bool {
	return o == ReadmittedNew || o == ReadmittedDuplicate || o == ReadmittedBefore
}

// Readmit verifies a request of the drawer again, under the configuration in
// force and as of the time at which it came: how old it has become since says
// nothing about its sender. Where it verifies now its receipt goes to accept.
// The errors are event.ErrNotFound, where it has fallen out of the drawer, and
// those of accept.
func (v *Receiver) Readmit(ctx context.Context, id int64, accept func(context.Context, *event.Receipt) (event.Accepted, error)) (Readmission, error) {
	entry, ok := v.drawer.get(id)
	if !ok {
		return Readmission{}, fmt.Errorf("request %d is not in the drawer (any more): %w", id, event.ErrNotFound)
	}
	r := Readmission{Rejected: entry}
	src, ok := v.sources(entry.Source)
	switch {
	case len(entry.Accepted) > 0:
		r.Outcome = ReadmittedBefore
		return r, nil
	case !ok:
		r.Outcome = RejectedOfNone
		return r, nil
	case entry.Cut():
		r.Outcome, r.Detail = RejectedCut, entry.Missing()
		return r, nil
	}
	request := entry.Request()
	verdict := src.Receive(request, entry.At)
	if verdict.Refused() {
		r.Outcome, r.Cause, r.Detail = StillRejected, string(verdict.Cause), verdict.Detail
		return r, nil
	}
	if verdict.Answer != nil || len(verdict.Items) == 0 {
		r.Outcome = ReadmittedNothing
		return r, nil
	}
	endpoint := v.endpointOf(entry.Source)
	accepted, err := accept(ctx, &event.Receipt{
		Source: entry.Source, Origin: event.FromWebhook, At: v.clock(),
		Body: verdict.Body, Header: keptLines(v.filterOf(endpoint, src), request.Header, entry.Body, verdict.Body), Query: entry.Query,
		BodyKey: verdict.BodyKey, BodyWindow: verdict.BodyWindow, Items: verdict.Items,
	})
	if err != nil {
		return r, fmt.Errorf("readmit request %d: %w", id, err)
	}
	v.readmitted(&r, endpoint, accepted)
	return r, nil
}

// readmitted counts and notes what was stored.
func (v *Receiver) readmitted(r *Readmission, endpoint *endpoint, accepted event.Accepted) {
	r.Outcome, r.Events = ReadmittedDuplicate, accepted.Items
	r.Cause, r.Detail = "", ""
	keys := make([]event.Key, len(accepted.Items))
	for i, item := range accepted.Items {
		keys[i] = item.Key
		switch item.Result {
		case event.New:
			r.Outcome = ReadmittedNew
			endpoint.tally.events[countNew].Add(1)
		case event.Duplicate:
			endpoint.tally.events[countDuplicate].Add(1)
		case event.Conflict:
			endpoint.tally.events[countConflict].Add(1)
		}
	}
	v.drawer.accepted(r.ID, keys)
}
