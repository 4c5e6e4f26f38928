package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"creel/event"
	"creel/handlers"
	"creel/jobs"
	"creel/store"
)

// trouble is what becomes of the next write of a room.
type trouble int

const (
	none   trouble = iota
	undone         // it is not done, and said so
	unsaid         // it is done, and the answer is lost
)

var errTrouble = fmt.Errorf("trouble of the test: %w", event.ErrUnavailable)

// wire is the store as the worker and the dispatcher see it. Each call and its
// answer is held against the model.
type wire struct {
	*store.Store
	w *world
}

// NextEvent implements jobs.Inbox. The worker asks before each of its turns:
// what was decided beside its loop is decided by then, so that a history has
// one order.
func (i *wire) NextEvent(ctx context.Context) (time.Time, bool, error) {
	synctest.Wait()
	return i.Store.NextEvent(ctx)
}

// Settle implements jobs.Inbox.
func (i *wire) Settle(ctx context.Context, now time.Time, finishes []event.Finish, claim int) ([]event.Finished, []event.Work, error) {
	w := i.w
	fault := w.fault()
	if fault == undone {
		return nil, nil, errTrouble
	}
	finished, works, err := i.Store.Settle(ctx, now, finishes, claim)
	if err != nil {
		w.m.problem("settle: %v", err)
		return finished, works, err
	}
	for n := range finishes {
		w.expect(&finishes[n], &finished[n], now)
	}
	if claim > 0 && len(works) > claim {
		w.m.problem("%d events were claimed, %d were asked for", len(works), claim)
	}
	for n := range works {
		w.m.claim(&works[n], now)
		if works[n].Alone && len(works) > 1 {
			w.m.problem("event %d was not claimed alone", works[n].Seq)
		}
	}
	if fault == unsaid {
		w.dirty = true
		return nil, nil, errTrouble
	}
	return finished, works, nil
}

// expect holds the end of one event against the model.
func (w *world) expect(f *event.Finish, got *event.Finished, now time.Time) {
	w.judge(f)
	known := len(w.m.parcels)
	decisions, err := w.m.finish(f, now)
	if !errors.Is(got.Err, err) || err == nil && got.Err != nil {
		w.m.problem("the end of event %d: %v, want %v", f.Seq, got.Err, err)
	}
	var spoken []event.Decision
	for _, v := range got.Verdicts {
		spoken = append(spoken, v.Decision)
	}
	if !slices.Equal(spoken, decisions) {
		w.m.problem("event %d: verdicts %v, want %v", f.Seq, spoken, decisions)
	}
	born := got.Shipments
	for _, p := range w.m.parcels[known:] {
		if p.state != event.DeliverySending {
			continue
		}
		if len(born) == 0 || born[0].ID != p.id {
			w.m.problem("delivery %d was not handed over", p.id)
			continue
		}
		p.claim, born = born[0].Claim, born[1:]
	}
	if len(born) > 0 {
		w.m.problem("event %d: %d shipments too many", f.Seq, len(born))
	}
}

// judge holds what the worker made of an event against the event's plan.
func (w *world) judge(f *event.Finish) {
	e := w.m.event(f.Seq)
	if e.state != event.Claimed || e.claim != f.Claim || w.dirty && e.held && f.State == event.Done {
		return // it says so again, or too late
	}
	if f.Release && f.State == event.Pending {
		if !w.stopping && (e.seq%3 != 0 || !f.NextAt.After(w.clock.Now()) || f.NextAt.After(w.clock.Now().Add(time.Minute))) {
			w.m.problem("event %d was given back until %v", e.seq, f.NextAt) // and not because too many wait beside the loop
		}
		return
	}
	want, spent := event.Done, false
	fails, forGood := e.plan.fails(e.run, e.attempts)
	forGood = forGood || !fails && e.plan.doubled(e.key, 0) || e.plan.doubled(e.key, 1)
	switch {
	case e.attempts > eventPolicy().Attempts:
		want, spent = event.Dead, true
	case e.kind == unknown:
		want = event.Ignored
	case forGood:
		want = event.Dead
	case (fails || e.held) && e.attempts < eventPolicy().Attempts:
		want = event.Pending
	case fails || e.held:
		want = event.Dead
	}
	if f.State != want || f.Release != spent || f.Run != e.run {
		w.m.problem("event %d, attempt %d of run %d: the worker made it %s (%s), want %s", e.seq, e.attempts, e.run, f.State, f.Error, want)
	}
	if want == event.Pending && !w.owing && f.NextAt.Before(w.clock.Now().Add(eventPolicy().Delays[e.attempts-1])) {
		w.m.problem("event %d comes again at %v, that is too early", e.seq, f.NextAt)
	}
}

// Ship implements jobs.Outbox.
func (i *wire) Ship(ctx context.Context, now time.Time, finishes []event.DeliveryFinish, claims []event.ShipmentClaim) ([]error, []event.Shipment, error) {
	w := i.w
	fault := w.fault()
	if fault == undone {
		return nil, nil, errTrouble
	}
	w.stirred++
	errs, shipments, err := i.Store.Ship(ctx, now, finishes, claims)
	if err != nil {
		w.m.problem("ship: %v", err)
		return errs, shipments, err
	}
	for n := range finishes {
		w.judgeSend(&finishes[n])
		if want := w.m.ship(&finishes[n]); !errors.Is(errs[n], want) || want == nil && errs[n] != nil {
			w.m.problem("the end of delivery %d: %v, want %v", finishes[n].ID, errs[n], want)
		}
	}
	for n := range shipments {
		w.m.send(&shipments[n], now)
	}
	if fault == unsaid {
		w.dirty = true
		return nil, nil, errTrouble
	}
	return errs, shipments, nil
}

// judgeSend holds what the dispatcher made of an attempt against what came of
// it.
func (w *world) judgeSend(f *event.DeliveryFinish) {
	p := w.m.parcel(f.ID)
	if f.Release || p.state != event.DeliverySending || p.claim != f.Claim {
		return
	}
	result, route := w.sky.last[f.ID], w.route(p.to)
	if f.Attempt.Outcome != result.Attempt.Outcome {
		w.m.problem("delivery %d: %s is stored, the attempt was %s", p.id, f.Attempt.Outcome, result.Attempt.Outcome)
	}
	ok := false
	switch outcome := result.Attempt.Outcome; {
	case outcome == event.OK:
		ok = f.State == event.DeliverySent
	case outcome == event.Permanent:
		ok = f.State == event.DeliveryDead
	case outcome == event.Unknown && (route.Review || p.target != "" && p.lost+1 > route.Repeats):
		ok = f.State == event.DeliveryInDoubt
	case f.State == event.DeliveryDead:
		ok = p.attempts >= route.Policy.Attempts && !p.probe
	default:
		ok = f.State == event.DeliveryReady && (p.probe || p.attempts < route.Policy.Attempts || !result.Answered())
	}
	if !ok {
		w.m.problem("delivery %d: attempt %d was %s, and the dispatcher made it %s", p.id, p.attempts, result.Attempt.Outcome, f.State)
	}
	if !w.back && !p.probe && f.State == event.DeliveryReady && p.attempts < route.Policy.Attempts &&
		f.NextAt.Before(result.Attempt.Start.Add(max(result.RetryAfter, route.Policy.Delays[p.attempts-1]))) {
		w.m.problem("delivery %d comes again at %v, that is too early", p.id, f.NextAt)
	}
}

// SaveDestination implements jobs.Outbox.
func (i *wire) SaveDestination(ctx context.Context, now time.Time, health event.DestinationHealth, open, resolve *event.Incident) error {
	i.w.stirred++
	err := i.Store.SaveDestination(ctx, now, health, open, resolve)
	paused := i.w.m.places[health.Name] == event.DestinationPaused
	switch {
	case err == nil && paused && health.State != event.DestinationPaused:
		i.w.m.problem("%s was paused and became %s", health.Name, health.State)
	case err == nil:
		i.w.m.places[health.Name] = health.State
	case !paused || !errors.Is(err, event.ErrClaimLost):
		i.w.m.problem("saving %s: %v", health.Name, err)
	}
	return err
}

// porter stands between the worker and the dispatcher: it hands over when the
// worker has ended its step, so that a history has one order.
type porter struct {
	*jobs.Dispatcher
	waiting []event.Shipment
}

// Hand implements jobs.Shipper.
func (p *porter) Hand(shipments []event.Shipment) { p.waiting = append(p.waiting, shipments...) }

func (p *porter) pass() {
	if len(p.waiting) > 0 {
		p.Dispatcher.Hand(p.waiting)
		p.waiting = nil
	}
}

// door stands between the store and the worker's memory: it notes who was
// handed over.
type door struct {
	*jobs.Worker
	mu     sync.Mutex
	handed map[int64]event.Claim
}

// Hand implements store.Handoff.
func (d *door) Hand(works []event.Work) {
	d.mu.Lock()
	for _, w := range works {
		d.handed[w.Seq] = w.Claim
	}
	d.mu.Unlock()
	d.Worker.Hand(works)
}

func (d *door) since() map[int64]event.Claim {
	d.mu.Lock()
	defer d.mu.Unlock()
	handed := d.handed
	d.handed = map[int64]event.Claim{}
	return handed
}

// book is the rules without anything to fetch. One event of three is decided
// beside the worker's loop, as those are that wait for something outside.
type book struct{ *handlers.Rules }

// Slow implements jobs.Rules.
func (book) Slow(e *event.Event) bool { return e.Seq%3 == 0 }

var errNoFetch = errors.New("nothing is fetched here")

// Fetch implements jobs.Rules.
func (book) Fetch(context.Context, handlers.FetchRequest) ([]byte, error) { return nil, errNoFetch }
