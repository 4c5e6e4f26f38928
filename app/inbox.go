package app

import (
	"context"

	"creel/event"
)

// inbox stands before the store. An event whose source and type no rule names
// is stored as ignored at once, with its body, instead of being claimed only
// to find that out; a replay looks at it again under the rules of that day. An
// event that has to keep an order learns its lane, and one whose source wants
// its rules applied at once what they decide.
type inbox struct {
	app *App
}

// Accept implements receiver.Inbox.
func (i inbox) Accept(ctx context.Context, receipt *event.Receipt) (event.Accepted, error) {
	i.app.snapshot.Load().Prepare(ctx, receipt)
	accepted, err := i.app.store.Accept(ctx, receipt)
	if err == nil {
		i.app.countReceipt(receipt, accepted)
		i.app.tellAccepted(accepted)
	}
	return accepted, err
}

// Prepare takes out of a receipt what its source does not keep, and writes into
// it what its source's index finds in its events, and what the rules say about
// them, before they are stored.
func (s *Snapshot) Prepare(ctx context.Context, receipt *event.Receipt) {
	s.redact.keep(receipt)
	ordered, atOnce := s.Rules.Ordered(receipt.Source), s.inline[receipt.Source]
	places := s.indexes[receipt.Source]
	for n := range receipt.Items {
		item := &receipt.Items[n]
		if len(places) > 0 && !item.DropBody {
			item.Index = valuesOf(places, workOf(receipt, item).Payload)
		}
		if item.State != event.Pending {
			continue
		}
		if reason, unmatched := s.Rules.Unmatched(item.Key, item.Type); unmatched {
			item.State, item.Error = event.Ignored, reason
			continue
		}
		if !ordered && !atOnce {
			continue
		}
		work := workOf(receipt, item)
		if ordered {
			item.Lane, item.LaneSkip = s.Rules.Lane(work.Event, work.Payload)
			work.Lane, work.LaneSkip = item.Lane, item.LaneSkip
		}
		if atOnce {
			item.Inline = inline(ctx, s.Rules, work)
		}
	}
}

// workOf is an item as a rule sees it, before it has a place in the inbox.
func workOf(receipt *event.Receipt, item *event.Item) event.Work {
	return event.Work{
		Event: event.Event{
			Key: item.Key, LongID: item.LongID, Type: item.Type, Object: item.Object, Version: item.Version,
			State: event.Claimed, Run: 1, Attempts: 1, Origin: receipt.Origin, ReceivedAt: receipt.At,
		},
		Payload: event.Payload{Body: receipt.Body, Header: receipt.Header, Query: receipt.Query, Part: item.Part},
	}
}
