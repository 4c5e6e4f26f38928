package app

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"creel/admin"
	"creel/admin/page"
	"creel/deliver"
	"creel/event"
	"creel/source"
	"creel/store"
)

// pageData is what the page shows, as the store and the rooms have it.
type pageData struct{ app *App }

func (d pageData) Failures(ctx context.Context, ask page.Ask) (page.Failures, error) {
	from, err := cursorOf(ask.Cursor)
	if err != nil {
		return page.Failures{}, err
	}
	found, err := d.app.store.Failures(ctx, d.app.opt.Clock(), store.FailureFilter{Kind: ask.Kind, Source: ask.Source,
		Destination: ask.Destination, Text: ask.Error}, store.FailuresBySize, from, ask.Limit)
	out := page.Failures{List: found.Failures}
	if found.Next != (store.FailureCursor{}) {
		out.Next = writeCursor(found.Next)
	}
	return out, err
}

func writeCursor(c store.FailureCursor) string { return fmt.Sprintf("%d.%d", c.Rank, c.ID) }

// cursorOf reads what Failures wrote as the beginning of the next page.
func cursorOf(text string) (c store.FailureCursor, err error) {
	if text == "" {
		return c, nil
	}
	if _, err = fmt.Sscanf(text, "%d.%d", &c.Rank, &c.ID); err != nil || c.Rank < 0 || writeCursor(c) != text {
		return c, noPage(text)
	}
	return c, nil
}

// noPage says that nobody wrote that as the beginning of a page.
func noPage(text string) error {
	return fmt.Errorf("%w: no page begins at %q", event.ErrNotFound, text)
}

func (d pageData) Failure(ctx context.Context, id int64) (event.Failure, error) {
	return d.app.store.Failure(ctx, d.app.opt.Clock(), id)
}

func (d pageData) Lone(ctx context.Context, groups []event.Failure) (map[int64]event.Event, error) {
	return d.app.store.Lone(ctx, groups)
}

// headBytes is how much of a body a list of dead letters shows.
const headBytes = 2048

func (d pageData) Letters(ctx context.Context, ask page.Ask) (page.Letters, error) {
	found, err := d.app.store.DeadLetters(ctx, ask.Selector, ask.Cursor, ask.Limit)
	if errors.Is(err, store.ErrBadCursor) {
		err = fmt.Errorf("%w: %w", event.ErrNotFound, err)
	}
	if err != nil {
		return page.Letters{}, err
	}
	out := page.Letters{Next: found.Next, Partial: found.Partial}
	var answers map[int64]string
	if !ask.NoHead {
		if answers, err = d.answers(ctx, found.Letters); err != nil {
			return page.Letters{}, err
		}
	}
	for i := range found.Letters {
		letter := page.Letter{Event: found.Letters[i].Event}
		if dead := found.Letters[i].Delivery; dead != nil {
			letter.Delivery = *dead
		}
		if ask.NoHead {
			out.List = append(out.List, letter)
			continue
		}
		letter.Head, letter.Answer = d.head(ctx, &letter.Event), answers[letter.Delivery.ID]
		if letter.Lane, letter.Behind, err = d.app.store.Behind(ctx, &found.Letters[i], page.MaxBehind+1); err != nil {
			return page.Letters{}, err
		}
		out.List = append(out.List, letter)
	}
	return out, nil
}

// answers are what the destinations of dead letters answered last.
func (d pageData) answers(ctx context.Context, letters []store.DeadLetter) (map[int64]string, error) {
	var dead []event.Delivery
	for i := range letters {
		if letters[i].Delivery != nil {
			dead = append(dead, *letters[i].Delivery)
		}
	}
	return d.app.store.Answers(ctx, dead)
}

// head is the beginning of a body, none of one that is not kept. Of a source
// that does not show everything, the whole has to be read for it.
func (d pageData) head(ctx context.Context, e *event.Event) []byte {
	hidden := d.app.snapshot.Load().redact
	if !hidden.Any(e.Key.Source) {
		head, _ := d.app.store.Head(ctx, e.Seq, headBytes)
		return head.Body
	}
	work, err := d.app.store.Work(ctx, e.Seq)
	if err != nil {
		return nil
	}
	body := hidden.Payload(e.Key.Source, work.Payload).Body
	return body[:min(len(body), headBytes)]
}

func (d pageData) Events(ctx context.Context, ask page.Ask) (page.Events, error) {
	var before int64
	if ask.Cursor != "" {
		var err error
		if before, err = strconv.ParseInt(ask.Cursor, 10, 64); err != nil || before <= 0 || strconv.FormatInt(before, 10) != ask.Cursor {
			return page.Events{}, noPage(ask.Cursor)
		}
	}
	found, err := d.app.store.EventPage(ctx, ask.Selector, event.Page{Before: before, Limit: ask.Limit + 1})
	out := page.Events{List: found.Events, Next: found.Next, Partial: found.Partial}
	if len(out.List) > ask.Limit { // one more tells that the next page is not empty
		out.List = out.List[:ask.Limit]
		out.Next = out.List[ask.Limit-1].Seq
	}
	return out, err
}

func (d pageData) Outgoing(ctx context.Context, events []event.Event) (map[int64]event.Outgoing, error) {
	seqs := make([]int64, len(events))
	for i := range events {
		seqs[i] = events[i].Seq
	}
	return d.app.store.Outgoing(ctx, seqs)
}

func (d pageData) Event(ctx context.Context, key event.Key) (page.Detail, error) {
	found, err := d.app.store.Event(ctx, key)
	if err != nil {
		return page.Detail{}, err
	}
	return DetailOf(&found, d.app.snapshot.Load().redact), nil
}

// DetailOf is what the store knows of an event as the page, the API and the
// command line take it, without what is not shown.
func DetailOf(found *store.EventDetail, hidden Redactions) admin.Detail {
	hidden.Detail(found)
	detail := admin.Detail{Work: found.Work, Verdicts: found.Verdicts, Records: found.Records, Entries: found.Entries,
		Transitions: found.Transitions, Operations: found.Operations, OtherBodies: found.OtherBodies, Actions: found.Actions}
	var err error
	if detail.Body, err = deliver.BodyOf(found.Payload); err != nil {
		detail.Body = found.Payload.Body // what can not be taken apart is shown whole
	}
	for _, one := range found.Deliveries {
		detail.Deliveries = append(detail.Deliveries, admin.Attempted{Delivery: one.Delivery, Attempts: one.Attempts})
	}
	for _, one := range found.Conflicts {
		detail.Conflicts = append(detail.Conflicts, admin.Conflict{Payload: one.Payload, Seen: one.Seen, FirstAt: one.FirstAt, Until: one.Until})
	}
	return detail
}

func (d pageData) Places(work *event.Work) []page.Place {
	return placesOf(d.app.snapshot.Load().indexes[work.Key.Source], work.Payload)
}

func (d pageData) Kept(ctx context.Context, seq int64) (bool, error) {
	head, err := d.app.store.Head(ctx, seq, 1)
	return head.Kept && head.Size > 0, err
}

func (d pageData) Body(ctx context.Context, key event.Key) ([]byte, string, error) {
	found, err := d.app.store.Find(ctx, key)
	if err != nil {
		return nil, "", err
	}
	work, err := d.app.store.Work(ctx, found.Seq)
	if err != nil {
		return nil, "", err
	}
	work.Payload = d.app.snapshot.Load().redact.Payload(key.Source, work.Payload)
	body, err := deliver.BodyOf(work.Payload)
	if err != nil {
		body = work.Payload.Body // what can not be taken apart is given whole
	}
	return body, deliver.TypeOf(&work.Payload), nil
}

func (d pageData) Deliveries(ctx context.Context, f page.DeliveryFilter, p event.Page) (page.Deliveries, error) {
	found, err := d.app.store.DeliveryPage(ctx, store.DeliveryFilter{Event: f.Event, Source: f.Source, Destination: f.Destination, Key: f.Key,
		State: f.State, Error: f.Error}, event.Page{Before: p.Before, Limit: p.Limit + 1})
	out := page.Deliveries{List: found.Deliveries, Next: found.Next, Partial: found.Partial}
	if len(out.List) > p.Limit {
		out.List = out.List[:p.Limit]
		out.Next = out.List[p.Limit-1].ID
	}
	return out, err
}

func (d pageData) Delivery(ctx context.Context, id int64) (page.Attempted, error) {
	found, err := d.app.store.Delivery(ctx, id)
	if err != nil {
		return page.Attempted{}, err
	}
	attempts, err := d.app.store.Attempts(ctx, id)
	return page.Attempted{Delivery: found, Attempts: attempts}, err
}

func (d pageData) Lane(ctx context.Context, lane string) ([]event.ParkedLane, error) {
	return d.app.store.Lane(ctx, lane)
}

func (d pageData) Lanes(ctx context.Context, after string, limit int) ([]event.ParkedLane, error) {
	return d.app.store.Lanes(ctx, after, limit)
}

func (d pageData) Incidents(ctx context.Context, openOnly bool, p event.Page) ([]event.OpenIncident, error) {
	return d.app.store.IncidentPage(ctx, openOnly, p)
}

func (d pageData) Conflicts(ctx context.Context, p event.Page) ([]page.Conflicted, error) {
	found, err := d.app.store.Conflicts(ctx, p)
	list := make([]page.Conflicted, len(found))
	for i, one := range found {
		list[i] = page.Conflicted{Event: one.Event, Conflicts: one.Conflicts}
	}
	return list, err
}

func (d pageData) Duplicates(ctx context.Context, after string, limit int) ([]event.Event, error) {
	var from event.Event
	if after != "" {
		key, err := event.ParseKey(after)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", event.ErrNotFound, err)
		}
		if from, err = d.app.store.Find(ctx, key); err != nil {
			return nil, err
		}
	}
	return d.app.store.Duplicates(ctx, from, limit)
}

func (d pageData) Records(ctx context.Context, kind, key string, p event.Page) ([]event.KeptRecord, error) {
	return d.app.store.Records(ctx, store.RecordFilter{Kind: kind, Key: key}, p)
}

func (d pageData) Balances(ctx context.Context, holder string, after event.Balance, limit int) ([]event.Balance, error) {
	return d.app.store.Balances(ctx, holder, after, limit)
}

func (d pageData) Ledger(ctx context.Context, holder, unit string, p event.Page) ([]event.Entry, error) {
	return d.app.store.Ledger(ctx, holder, unit, p)
}

func (d pageData) ObjectState(ctx context.Context, object string) (event.ObjectState, error) {
	return d.app.store.ObjectState(ctx, object)
}

func (d pageData) ObjectHistory(ctx context.Context, object string, p event.Page) ([]event.Transition, error) {
	return d.app.store.ObjectHistory(ctx, object, p)
}

func (d pageData) Actions(ctx context.Context, p event.Page) ([]event.Action, error) {
	return d.app.store.Actions(ctx, p)
}

func (d pageData) Action(ctx context.Context, id int64) (event.Action, error) {
	return d.app.store.Action(ctx, id)
}

func (d pageData) ActionItems(ctx context.Context, action int64, after int) ([]event.ActionItem, error) {
	return d.app.store.ActionItems(ctx, action, after)
}

func (d pageData) Tokens(ctx context.Context) ([]event.Token, error) { return d.app.store.Tokens(ctx) }

func (d pageData) Rejects(ctx context.Context, f admin.RejectFilter) ([]admin.Reject, error) {
	return d.app.Rejects(ctx, f)
}

func (d pageData) Reject(ctx context.Context, id int64) (admin.RejectDetail, error) {
	return d.app.Reject(ctx, id)
}

func (d pageData) VerifyReject(ctx context.Context, id int64, at time.Time) (source.Diagnosis, error) {
	return d.app.VerifyReject(ctx, id, at)
}

func (d pageData) Signals() ([]event.Signal, time.Time) { return d.app.signals.Measured() }

func (d pageData) Names() (sources, destinations []string) {
	cfg := d.app.snapshot.Load().Config
	return sourceNames(cfg), cfg.DestinationNames()
}
