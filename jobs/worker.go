package jobs

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"creel/event"
	"creel/handlers"
)

// Inbox is what the worker needs of the store.
type Inbox interface {
	// Settle finishes events and claims the next due ones in one transaction.
	Settle(ctx context.Context, now time.Time, finishes []event.Finish, claim int) ([]event.Finished, []event.Work, error)
	// NextEvent is the time of the earliest pending event.
	NextEvent(ctx context.Context) (time.Time, bool, error)
	// EventsReady wakes the worker after a commit that made work.
	EventsReady() <-chan struct{}
}

// Shipper takes deliveries that are born in the dispatcher's hands.
type Shipper interface {
	Reserve(destination string) bool
	Unreserve(destination string)
	Hand(shipments []event.Shipment)
}

// Rules decide what an event means; *handlers.Rules are the real ones.
type Rules interface {
	Decide(ctx context.Context, work event.Work) handlers.Decision
}

// WorkerOptions are what a worker is made of.
type WorkerOptions struct {
	Inbox   Inbox
	Shipper Shipper
	Rules   func() Rules  // the rules in force now
	Policy  func() Policy // the retry policy of events in force now
	Clock   func() time.Time
	Jitter  func() float64 // 0 ≤ jitter < 1
	Log     zerolog.Logger
	Batch   int // events claimed and finished at once
	Room    int // events that may wait in memory, handed over by the store
}

// Worker applies rules to events. It takes those that the store hands over
// when it accepts them and claims the others when they are due. All its
// writing goes through Settle, so that the end of one batch and the claim of
// the next are one transaction and cost one sync.
type Worker struct {
	opt      WorkerOptions
	reserved atomic.Int64
	wake     chan struct{}
	mu       sync.Mutex
	handed   []event.Work
	finishes []event.Finish // decided, not yet settled
	works    []event.Work   // what each of them is about
	failures int            // of Settle, in a row
	began    time.Time      // for a clock that can not be set
	beat     atomic.Int64   // nanoseconds from began to the last look at the store
}

// NewWorker makes a worker; Run starts it.
func NewWorker(opt WorkerOptions) *Worker {
	return &Worker{opt: opt, wake: make(chan struct{}, 1), began: time.Now()}
}

// Reserve grants up to n places in memory for events that are about to be
// accepted; the store gives back with Release what it did not use.
func (w *Worker) Reserve(n int) int {
	for {
		held := w.reserved.Load()
		free := int64(w.opt.Room) - held
		if free <= 0 {
			return 0
		}
		granted := min(free, int64(n))
		if w.reserved.CompareAndSwap(held, held+granted) {
			return int(granted)
		}
	}
}

// Release gives places back.
func (w *Worker) Release(n int) { w.reserved.Add(int64(-n)) }

// Hand takes events whose claims were committed with their rows.
func (w *Worker) Hand(works []event.Work) {
	w.mu.Lock()
	w.handed = append(w.handed, works...)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Idle is how long ago the worker last came round: one that hangs shows.
func (w *Worker) Idle() time.Duration { return time.Since(w.began) - time.Duration(w.beat.Load()) }

// Run works until ctx ends, then gives back what it holds.
func (w *Worker) Run(ctx context.Context) {
	defer w.release()
	timer := time.NewTimer(0)
	defer timer.Stop()
	due := true
	for {
		err := w.round(ctx, due)
		w.beat.Store(int64(time.Since(w.began)))
		if ctx.Err() != nil {
			return
		}
		timer.Reset(w.pause(ctx, err))
		due = false
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-w.opt.Inbox.EventsReady():
			due = true
		case <-timer.C:
			due = true
		}
	}
}

// maxPause bounds how long the worker sleeps without looking at the store: a
// clock that was set is noticed within it.
const maxPause = 30 * time.Second

func (w *Worker) pause(ctx context.Context, err error) time.Duration {
	if err != nil {
		return min(time.Second<<min(w.failures, 4), 10*time.Second)
	}
	next, ok, err := w.opt.Inbox.NextEvent(ctx)
	if err != nil || !ok {
		return maxPause
	}
	return min(max(next.Sub(w.opt.Clock()), time.Millisecond), maxPause)
}

// Step does all the work that is due at now and returns how many events it
// settled. It is what Run does between two waits, and what tests call.
func (w *Worker) Step(ctx context.Context, now time.Time) (int, error) {
	settled := 0
	for ctx.Err() == nil {
		next, ok, err := w.opt.Inbox.NextEvent(ctx)
		if err != nil {
			return settled, err
		}
		due := ok && !next.After(now)
		n, more, err := w.turn(ctx, now, due)
		settled += n
		if err != nil || !more {
			return settled, err
		}
	}
	return settled, ctx.Err()
}

// round is Step for the loop: it looks for due rows only when something said
// that there may be some.
func (w *Worker) round(ctx context.Context, due bool) error {
	for {
		_, more, err := w.turn(ctx, w.opt.Clock(), due)
		if err != nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-w.opt.Inbox.EventsReady():
			due, more = true, true
		default:
		}
		if !more {
			return nil
		}
	}
}

// turn settles what was decided, claims the next events, and decides about
// them. A crash before the settling leaves the events claimed: Recover gives
// them back at the next start. more says that there is something left.
func (w *Worker) turn(ctx context.Context, now time.Time, due bool) (settled int, more bool, err error) {
	works := w.take()
	claim := 0
	if due {
		claim = max(w.opt.Batch-len(works), 1)
	}
	if len(w.finishes) > 0 || claim > 0 {
		settled = len(w.finishes)
		claimed, err := w.settle(ctx, now, claim)
		if err != nil {
			w.putBack(works)
			return 0, true, err
		}
		works = append(works, claimed...)
		more = len(claimed) > 0
	}
	for _, work := range works {
		if ctx.Err() != nil {
			w.add(work, giveBack(work))
			continue
		}
		w.add(work, w.decide(ctx, work, now))
	}
	return settled, more || len(w.finishes) > 0, nil
}

func (w *Worker) add(work event.Work, finish event.Finish) {
	w.works = append(w.works, work)
	w.finishes = append(w.finishes, finish)
}

// take returns the events that were handed over, up to a batch.
func (w *Worker) take() []event.Work {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(len(w.handed), w.opt.Batch)
	works := append([]event.Work(nil), w.handed[:n]...)
	w.handed = append(w.handed[:0], w.handed[n:]...)
	clear(w.handed[len(w.handed):cap(w.handed)])
	w.reserved.Add(int64(-n))
	return works
}

func (w *Worker) putBack(works []event.Work) {
	if len(works) == 0 {
		return
	}
	w.mu.Lock()
	w.handed = append(works, w.handed...)
	w.mu.Unlock()
	w.reserved.Add(int64(len(works)))
}

// settle submits the finishes. When the store can not answer, they stay: the
// same finishes go in again, and the claim makes a second application
// impossible.
func (w *Worker) settle(ctx context.Context, now time.Time, claim int) ([]event.Work, error) {
	finished, claimed, err := w.opt.Inbox.Settle(context.WithoutCancel(ctx), now, w.finishes, claim)
	if err != nil {
		w.failures++
		if w.failures == 1 {
			w.opt.Log.Error().Err(err).Int(event.FieldCount, len(w.finishes)).
				Str(event.FieldHint, "the worker tries again; see the store's own log lines").
				Msg("work could not be settled")
		}
		return nil, err
	}
	w.failures = 0
	works, finishes := w.works, w.finishes
	w.works, w.finishes = nil, nil
	for i := range finished {
		w.after(&works[i], &finishes[i], &finished[i], now)
	}
	return claimed, nil
}

// after hands over the deliveries of a settled event, and gives back the
// dispatcher's places that were not needed.
func (w *Worker) after(work *event.Work, finish *event.Finish, finished *event.Finished, now time.Time) {
	unused := map[string]int{}
	for _, effect := range finish.Effects {
		if forward, ok := effect.(event.Forward); ok && forward.Claimed {
			unused[forward.Destination]++
		}
	}
	for i := range finished.Shipments {
		shipment := &finished.Shipments[i]
		shipment.Payload, shipment.Type, shipment.ReceivedAt = work.Payload, work.Type, work.ReceivedAt
		unused[shipment.Destination]--
	}
	for destination, n := range unused {
		for range n {
			w.opt.Shipper.Unreserve(destination)
		}
	}
	if len(finished.Shipments) > 0 {
		w.opt.Shipper.Hand(finished.Shipments)
	}
	w.settled(work, finish, finished.Err, now)
}

// settled logs how an event ended. A finish that the store refused for a
// reason of its own is tried again as a failure of the event, so that it ends
// in the dead letters instead of staying claimed.
func (w *Worker) settled(work *event.Work, finish *event.Finish, err error, now time.Time) {
	switch {
	case errors.Is(err, event.ErrClaimLost):
		w.line(w.opt.Log.Info(), work).Msg("somebody else settled this event")
	case err != nil && finish.Release:
		w.line(w.opt.Log.Warn(), work).Err(err).Msg("an event could not be given back")
	case err != nil:
		w.line(w.opt.Log.Error(), work).Err(err).Msg("the store refused the effects of an event")
		w.add(*work, w.failed(work, err.Error(), nil, now))
	case finish.State == event.Dead:
		w.line(w.opt.Log.Error(), work).Str(event.FieldReason, finish.Error).
			Str(event.FieldHint, "repair the cause, then: creel replay "+work.Key.String()).Msg("event is dead")
	case finish.State == event.Pending && !finish.Release:
		w.line(w.opt.Log.Info(), work).Str(event.FieldReason, finish.Error).
			Time("next_at", finish.NextAt).Msg("event will be tried again")
	default:
		w.line(w.opt.Log.Debug(), work).Str(event.FieldState, string(finish.State)).Msg("event settled")
	}
}

func (w *Worker) line(line *zerolog.Event, work *event.Work) *zerolog.Event {
	if !line.Enabled() {
		return line
	}
	return line.Str(event.FieldEvent, work.Key.String()).Str(event.FieldType, work.Type).
		Int(event.FieldRun, work.Run).Int(event.FieldAttempt, work.Attempts)
}

// release settles what was decided and gives the rest back with the attempt
// unspent.
func (w *Worker) release() {
	w.mu.Lock()
	rest := w.handed
	w.handed = nil
	w.mu.Unlock()
	for _, work := range rest {
		w.add(work, giveBack(work))
	}
	w.reserved.Add(int64(-len(rest)))
	for range 2 { // the first turn may leave refused finishes
		if len(w.finishes) > 0 {
			_, _ = w.settle(context.Background(), w.opt.Clock(), 0) // settle logs; the next start repairs
		}
	}
}
