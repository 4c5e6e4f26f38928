package app

import (
	"context"
	"time"

	"creel/admin"
	"creel/event"
	"creel/receiver"
	"creel/store"
)

// maxTold is how many ticks are looked up at once.
const maxTold = 200

// Follow implements admin.Watch.
func (a *App) Follow(ctx context.Context, filter admin.TailFilter, emit func([]admin.Happening) error) error {
	l, leave, err := a.hub.listen()
	if err != nil {
		return err
	}
	defer leave()
	if err := emit(nil); err != nil {
		return err
	}
	for {
		ticks := l.next(ctx, maxTold)
		if len(ticks) == 0 {
			return nil
		}
		list, err := a.describe(ctx, ticks, filter)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			continue
		}
		if err := emit(list); err != nil {
			return err
		}
	}
}

// describe fills in what the database says about ticks, in two short reads,
// and leaves out what the filter does not want.
func (a *App) describe(ctx context.Context, ticks []tick, filter admin.TailFilter) ([]admin.Happening, error) {
	var seqs, ids []int64
	for _, t := range ticks {
		if t.seq > 0 {
			seqs = append(seqs, t.seq)
		}
		if t.Delivery > 0 {
			ids = append(ids, t.Delivery)
		}
	}
	events, err := a.store.EventsBySeq(ctx, seqs)
	if err != nil {
		return nil, err
	}
	deliveries, err := a.store.DeliveriesByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	bySeq, byID := map[int64]*event.Event{}, map[int64]*store.TypedDelivery{}
	for i := range events {
		bySeq[events[i].Seq] = &events[i]
	}
	for i := range deliveries {
		byID[deliveries[i].ID] = &deliveries[i]
	}
	var list []admin.Happening
	for _, t := range ticks {
		one := t.Happening
		ofEvent(&one, bySeq[t.seq])
		ofDelivery(&one, byID[t.Delivery])
		if wanted(&one, filter) {
			one.At = one.At.UTC().Truncate(time.Millisecond)
			one.NextAt = one.NextAt.UTC()
			list = append(list, one)
		}
	}
	return list, nil
}

func ofEvent(one *admin.Happening, e *event.Event) {
	if e == nil {
		return
	}
	one.Source, one.Event, one.Type, one.Attempts = e.Key.Source, &e.Key, e.Type, e.Attempts
	if one.State == "" {
		one.State, one.Error, one.NextAt = string(e.State), e.Error, e.NextAt
	}
}

func ofDelivery(one *admin.Happening, d *store.TypedDelivery) {
	if d == nil {
		return
	}
	one.Source, one.Event, one.Type, one.Destination, one.Target = d.Event.Source, &d.Event, d.Type, d.Destination, d.Target
}

func wanted(one *admin.Happening, filter admin.TailFilter) bool {
	if one.What == admin.LeftOut {
		return true
	}
	return (filter.Source == "" || one.Source == filter.Source) &&
		(filter.Type == "" || event.MatchGlob(filter.Type, one.Type)) &&
		(filter.State == "" || one.State == filter.State)
}

// tellAccepted tells listeners of a receipt that is stored.
func (a *App) tellAccepted(accepted event.Accepted) {
	if !a.hub.heard() {
		return
	}
	for _, item := range accepted.Items {
		what := admin.EventReceived
		switch item.Result {
		case event.Duplicate:
			what = admin.EventDuplicate
		case event.Conflict:
			what = admin.EventConflict
		}
		a.hub.tell(tick{admin.Happening{At: a.opt.Clock(), What: what}, item.Seq})
	}
}

// noteRejected counts and tells of a request that came into the drawer.
func (a *App) noteRejected(r receiver.Rejected) {
	a.countRejected(r)
	a.tellRejected(r)
}

// tellRejected tells listeners of it.
func (a *App) tellRejected(r receiver.Rejected) {
	if a.hub.heard() {
		a.hub.tell(tick{Happening: admin.Happening{At: r.At, What: admin.RequestRefused, Source: r.Source,
			Request: r.ID, Cause: r.Cause, Peer: r.Peer, Error: r.Detail}})
	}
}

// tellActed tells them of an operator's action.
func (a *App) tellActed(action event.Action) {
	if a.hub.heard() {
		a.hub.tell(tick{Happening: admin.Happening{At: a.opt.Clock(), What: admin.ActionDone, Action: string(action.Kind),
			Actor: action.Actor, Count: action.Done}})
	}
}
