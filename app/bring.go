package app

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"sync"
	"time"

	"creel/admin"
	"creel/event"
	"creel/receiver"
	"creel/source"
	"creel/store"
)

// importers is how many events of a file are stored at once. Those about one
// object go through one of them, in their order.
const importers = 16

// busyPause is the wait before a full queue is tried again: what comes from a
// file makes room for what senders bring.
const busyPause = 50 * time.Millisecond

// Import implements admin.Bring.
func (a *App) Import(ctx context.Context, ask admin.AskImport) ([]admin.ImportedLine, error) {
	own, err := a.sourceOf(ask.Source)
	if err != nil {
		return nil, err
	}
	if ask.First && !ask.DryRun {
		if err := a.noteBrought(ctx, event.Action{Kind: event.ActionImport, Actor: ask.Actor, Reason: ask.Reason,
			Target: fmt.Sprintf("%s from %s", ask.Source, ask.File)}); err != nil {
			return nil, err
		}
	}
	done := make([]admin.ImportedLine, len(ask.Lines))
	receipts := make([]*event.Receipt, len(ask.Lines))
	for i, line := range ask.Lines {
		done[i] = admin.ImportedLine{N: line.N, Events: []admin.ImportedEvent{}}
		request := &source.Request{Method: http.MethodPost, Query: line.Query, Header: http.Header{}, Body: line.Body}
		for name, values := range line.Header {
			request.Header[http.CanonicalHeaderKey(name)] = values
		}
		brought, err := own.BringAs(request, line.ID)
		if err != nil {
			done[i].Error = err.Error()
			continue
		}
		done[i].Skipped = brought.Skipped
		if len(brought.Items) > 0 {
			receipts[i] = broughtReceipt(own, event.FromImport, request, &brought, a.opt.Clock())
		}
	}
	if ask.DryRun {
		return done, a.foreseeImport(ctx, ask.Source, receipts, done)
	}
	return done, a.acceptAll(ctx, receipts, done)
}

func (a *App) sourceOf(name string) (*source.Source, error) {
	own := a.snapshot.Load().Sources[name]
	if own == nil {
		return nil, fmt.Errorf("%w: the configuration in force has no source %q", event.ErrNotFound, name)
	}
	return own, nil
}

func (a *App) noteBrought(ctx context.Context, action event.Action) error {
	done, err := a.store.Note(ctx, a.opt.Clock(), action)
	if err != nil {
		return err
	}
	if a.hub != nil {
		a.tellActed(done)
	}
	a.opt.Log.Info().Str(event.FieldAction, string(action.Kind)).Str(event.FieldActor, action.Actor).Msg("operator action")
	return nil
}

// broughtReceipt is the receipt of what its owner brings. Of its header it has
// what would have been kept of a webhook's.
func broughtReceipt(own *source.Source, origin event.Origin, request *source.Request, brought *source.Result, now time.Time) *event.Receipt {
	header := receiver.KeptHeader(request.Header, own.SecretHeaders(), request.Body, brought.Body)
	return &event.Receipt{Source: own.Name(), Origin: origin, At: now, Body: brought.Body, Header: header, Query: request.Query, Items: brought.Items, Alike: own}
}

// foreseeImport says what an import would come to, and stores nothing.
func (a *App) foreseeImport(ctx context.Context, name string, receipts []*event.Receipt, done []admin.ImportedLine) error {
	var keys []event.Key
	for _, receipt := range receipts {
		if receipt != nil {
			for i := range receipt.Items {
				keys = append(keys, receipt.Items[i].Key)
			}
		}
	}
	known, err := a.store.Known(ctx, name, keys)
	if err != nil {
		return err
	}
	earlier := map[event.Key]event.Payload{} // in these lines
	for i, receipt := range receipts {
		if receipt == nil {
			continue
		}
		for n := range receipt.Items {
			item := &receipt.Items[n]
			result, err := a.foreseeItem(ctx, known, earlier, receipt, item)
			if err != nil {
				return err
			}
			done[i].Events = append(done[i].Events, admin.ImportedEvent{Key: item.Key, Result: result, Content: hex.EncodeToString(item.Content[:])})
		}
	}
	return nil
}

// foreseeItem compares an item with what is there, or came earlier in the same
// file, as the inbox would.
func (a *App) foreseeItem(ctx context.Context, known map[event.Key]store.Said, earlier map[event.Key]event.Payload, receipt *event.Receipt, item *event.Item) (event.Result, error) {
	own := event.Payload{Body: receipt.Body, Part: item.Part}
	said, ok := known[item.Key]
	if !ok {
		known[item.Key], earlier[item.Key] = store.Said{Content: item.Content}, own
		return event.New, nil
	}
	if said.Content == item.Content {
		return event.Duplicate, nil
	}
	first, ok := earlier[item.Key]
	if !ok {
		work, err := a.store.Work(ctx, said.Seq)
		if err != nil {
			return "", err
		}
		first = work.Payload
	}
	if first.Body != nil && receipt.Alike != nil && receipt.Alike.Alike(first, own) {
		return event.Duplicate, nil
	}
	return event.Conflict, nil
}

// acceptAll stores receipts, several at once.
func (a *App) acceptAll(ctx context.Context, receipts []*event.Receipt, done []admin.ImportedLine) error {
	var lists [importers][]int
	for i, receipt := range receipts {
		if receipt != nil {
			n := shardOf(&receipt.Items[0])
			lists[n] = append(lists[n], i)
		}
	}
	var group sync.WaitGroup
	errs := make([]error, importers)
	for n := range lists {
		group.Go(func() {
			for _, i := range lists[n] {
				accepted, err := a.acceptBrought(ctx, receipts[i])
				if err != nil {
					errs[n] = err
					return
				}
				for _, item := range accepted.Items {
					done[i].Events = append(done[i].Events, admin.ImportedEvent{Key: item.Key, Result: item.Result})
				}
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func shardOf(item *event.Item) int {
	sum := fnv.New32a()
	text := item.Object
	if text == "" {
		text = item.Key.ID
	}
	_, _ = sum.Write([]byte(text)) // never fails
	return int(sum.Sum32() % importers)
}

// acceptBrought stores a receipt, and waits where the queue is full.
func (a *App) acceptBrought(ctx context.Context, receipt *event.Receipt) (event.Accepted, error) {
	a.snapshot.Load().Prepare(ctx, receipt)
	for {
		accepted, err := a.store.Accept(ctx, receipt)
		if errors.Is(err, event.ErrBusy) {
			select {
			case <-ctx.Done():
				return accepted, ctx.Err()
			case <-time.After(busyPause):
			}
			continue
		}
		if err == nil && a.tally != nil {
			a.countReceipt(receipt, accepted)
			a.tellAccepted(accepted)
		}
		return accepted, err
	}
}

// bringAlone opens the database where no server runs, and lets one act of
// bringing work on it.
func bringAlone(ctx context.Context, snapshot *Snapshot, opt Options, do func(*App) error) error {
	opt.Config = snapshot.Config
	return aloneWith(ctx, opt, func(a *App) error {
		a.snapshot.Store(snapshot)
		if err := a.comparable(ctx, snapshot); err != nil {
			return err
		}
		return do(a)
	})
}

// BringAlone lets do bring events into a database that no server has open.
func BringAlone(ctx context.Context, snapshot *Snapshot, opt Options, do func(admin.Bring) error) error {
	return bringAlone(ctx, snapshot, opt, func(a *App) error { return do(a) })
}
