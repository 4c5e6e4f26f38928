package store

import (
	"context"
	"fmt"

	"creel/event"
)

const (
	insertColumns = `INSERT INTO event (source, account, id, state, attempts, received_at, next_at, finished_at,
		claim, type, object, version, part, content, error, origin, long_id,
		payload, body_at, body_size, header_size, query_size`
	sqlInsertEvent = insertColumns + `)
		VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (source, account, id) DO NOTHING`
	sqlInsertInLane = insertColumns + `, lane, rank, lane_skip, waits)
		VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (source, account, id) DO NOTHING`
	// payloadArg is the place of event.payload in sqlInsertEvent; body_at is
	// behind it.
	payloadArg, payloadArgs = 17, 5
)

// maxHanded is the largest body, in bytes, that waits for the worker in memory.
// A larger one waits in the file and is claimed within the bounds of a claim.
const maxHanded = 32 << 10

// acceptance is one receipt on its way through the writer. It owns everything
// that the writer touches: its caller may have left.
type acceptance struct {
	unit     unit
	store    *Store
	handoff  Handoff
	receipt  *event.Receipt
	at       int64
	inserts  []bound
	size     int // of all that the request carried
	claim    event.Claim
	reserved int

	// What the last run came to; a rerun writes it anew.
	carried  bool  // what the events of this request share has its place:
	payload  int64 // its payload
	place    int   // its first byte
	waiting  bool  // an event is due and was handed to nobody
	revived  bool  // dead deliveries may be due again
	shipping bool  // a delivery waits for a claim
	result   event.Accepted
	works    []event.Work

	err      error
	answered chan struct{}
}

// Accept stores a verified request: all of its events and what it carried, in
// one transaction. It returns when that is committed and synced to disk, with
// what the unique constraint said about each item.
//
// ctx bounds the waiting alone; when it ends first the commit may still
// happen, and the sender's retry is a duplicate. The receipt belongs to the
// store from here on. Errors wrap event.ErrBusy (the queue is full) or
// event.ErrUnavailable; nothing was acknowledged by then.
func (s *Store) Accept(ctx context.Context, receipt *event.Receipt) (event.Accepted, error) {
	a := s.newAcceptance(receipt)
	if err := s.submit(intake, &a.unit); err != nil {
		a.release(a.reserved)
		return event.Accepted{}, fmt.Errorf("accept: %w", err)
	}
	select {
	case <-a.answered:
		return a.result, a.err
	case <-ctx.Done():
		return event.Accepted{}, unavailable("accept", context.Cause(ctx))
	}
}

// newAcceptance does all that needs no transaction: places in the worker's
// memory are reserved, the claim is made, every argument is bound.
func (s *Store) newAcceptance(receipt *event.Receipt) *acceptance {
	a := &acceptance{
		store: s, receipt: receipt, at: receipt.At.UnixMilli(),
		inserts:  make([]bound, len(receipt.Items)),
		answered: make(chan struct{}),
	}
	a.unit = unit{run: a.run, done: a.done, rows: 2 * len(receipt.Items)}
	pending, inline := 0, false
	for i := range receipt.Items {
		if receipt.Items[i].Inline != nil {
			inline = true
		} else if receipt.Items[i].State == event.Pending {
			pending++
		}
	}
	if h := s.desk.handoff.Load(); h != nil && pending > 0 && len(receipt.Body) <= maxHanded {
		a.handoff = *h
		a.reserved = a.handoff.Reserve(pending)
	}
	if a.reserved > 0 || inline {
		a.claim = s.desk.token()
	}
	left, late := a.reserved, overtaken(receipt.Items)
	for i := range receipt.Items {
		claimed := receipt.Items[i].State == event.Pending && left > 0 && !late[i]
		if receipt.Items[i].Inline != nil && !late[i] {
			claimed = true // and given up in the same transaction
		} else if claimed {
			left--
		}
		a.inserts[i] = a.bindItem(&receipt.Items[i], claimed)
	}
	a.size = len(receipt.Body) + len(receipt.Header) + len(receipt.Query)
	return a
}

func (a *acceptance) bindItem(item *event.Item, claimed bool) bound {
	state, attempts := string(item.State), int64(0)
	var next, finished, claim any
	switch {
	case claimed:
		state, attempts, claim = string(event.Claimed), 1, string(a.claim)
	case item.State == event.Pending:
		next = a.at
	default:
		finished = a.at
	}
	origin := string(a.receipt.Origin)
	if a.receipt.Origin == event.FromWebhook {
		origin = ""
	}
	args := bind(item.Key.Source, item.Key.Account, item.Key.ID, state, attempts, a.at, next, finished,
		claim, item.Type, item.Object, item.Version, item.Part, item.Content[:], item.Error, origin, item.LongID,
		nil, 0, len(a.receipt.Body), len(a.receipt.Header), len(a.receipt.Query))
	if item.Lane != "" {
		args = a.bindLane(args, item)
	}
	if item.DropBody {
		for i := payloadArg + 2; i < payloadArg+payloadArgs; i++ {
			args[i].Value = int64(0)
		}
	}
	return args
}

// run inserts what is new. The unique constraint decides, never a look-up
// before; what it refuses is looked at afterwards (duplicate.go).
//
// A crash before the commit leaves nothing: the sender has no answer and
// comes again. After it, all is there: its retry is a duplicate.
func (a *acceptance) run(t *tx) error {
	a.carried, a.waiting, a.revived, a.shipping = false, false, false, false
	a.works = a.works[:0]
	a.result = event.Accepted{Items: make([]event.AcceptedItem, len(a.receipt.Items))}
	if a.receipt.BodyWindow > 0 {
		if first, known, err := a.claimBody(t); err != nil {
			return err
		} else if known {
			return a.sameBody(t, first)
		}
	}
	for i := range a.receipt.Items {
		if err := a.item(t, i); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	if a.receipt.BodyWindow > 0 {
		return a.nameBody(t)
	}
	return nil
}

func (a *acceptance) item(t *tx, i int) error {
	item := &a.receipt.Items[i]
	insert, args, err := a.choose(t, i)
	if err != nil {
		return err
	}
	if !item.DropBody && !a.carried {
		if a.payload, a.place, err = t.place(a.size); err != nil {
			return err
		}
	}
	if !item.DropBody {
		args[payloadArg].Value, args[payloadArg+1].Value = a.payload, int64(a.place)
	}
	seq, inserted, err := t.insertBound(insert, args)
	if err != nil {
		return fmt.Errorf("insert event: %w", err)
	}
	if inserted == 0 {
		return a.known(t, i)
	}
	a.result.Items[i] = event.AcceptedItem{Key: item.Key, Seq: seq, Result: event.New}
	if !item.DropBody && !a.carried {
		a.carried = true
		t.carry(a.payload, a.receipt.Body, a.receipt.Header, a.receipt.Query)
	}
	if err := enter(t, seq, item); err != nil {
		return err
	}
	switch event.State(args[3].Value.(string)) {
	case event.Pending:
		return a.queue(t, args, seq)
	case event.Claimed:
		if item.Inline != nil {
			return a.inline(t, item, seq)
		}
		a.works = append(a.works, a.workOf(item, seq))
	case event.Dead:
		return a.unreadable(t, seq, item)
	}
	return nil
}

// workOf is the event as its row says, from memory.
func (a *acceptance) workOf(item *event.Item, seq int64) event.Work {
	w := event.Work{
		Event: event.Event{
			Seq: seq, Key: item.Key, LongID: item.LongID, Type: item.Type, Object: item.Object,
			Version: item.Version, Lane: item.Lane, LaneSkip: item.LaneSkip, State: event.Claimed, Run: 1, Attempts: 1,
			Origin: a.receipt.Origin, ReceivedAt: a.receipt.At,
		},
		Payload: event.Payload{Part: item.Part},
		Claim:   a.claim,
	}
	if !item.DropBody {
		w.Body, w.Header, w.Query = a.receipt.Body, a.receipt.Header, a.receipt.Query
	}
	return w
}

// unreadable marks an event that is dead as it came, and opens its incident.
func (a *acceptance) unreadable(t *tx, seq int64, item *event.Item) error {
	if err := eventFailed(t, a.at, seq, nil, false); err != nil {
		return err
	}
	_, err := raise(t, a.at, event.Incident{
		Cause:   event.CauseUnreadable,
		Subject: item.Key.Source,
		Detail:  fmt.Sprintf("%s was stored dead as it came: %s. Look at it, correct the source's configuration, let its sender send it again, and discard this one: a replay would forward it as it came.", item.Key, item.Error),
	}, 0)
	return err
}

// done answers the sender and hands over what is claimed. The writer calls it
// after the commit.
func (a *acceptance) done(err error) {
	if err != nil {
		a.err = fmt.Errorf("accept: %w", err)
		a.store.lose(err, a.claim)
		close(a.answered)
		a.release(a.reserved)
		return
	}
	works, waiting, revived, shipping := a.works, a.waiting, a.revived, a.shipping
	close(a.answered)
	if len(works) > 0 {
		a.handoff.Hand(works)
	}
	a.release(a.reserved - len(works))
	if waiting {
		ring(a.store.desk.events)
	}
	if revived || shipping {
		ring(a.store.desk.deliveries)
	}
}

func (a *acceptance) release(places int) {
	if places > 0 {
		a.handoff.Release(places)
	}
}
