package jobs

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"creel/event"
	"creel/handlers"
	"creel/meter"
)

// Inbox is what the worker needs of the store.
type Inbox interface {
	// Settle finishes events and claims the next due ones in one transaction.
	Settle(ctx context.Context, now time.Time, finishes []event.Finish, claim int) ([]event.Finished, []event.Work, error)
	// NextEvent is the time of the earliest pending event.
	NextEvent(ctx context.Context) (time.Time, bool, error)
	// NextTransition is the number of the next change of any object's state.
	NextTransition(ctx context.Context) (int64, error)
	// EventsReady wakes the worker after a commit that made work.
	EventsReady() <-chan struct{}
}

// Shipper takes deliveries that are born in the dispatcher's hands.
type Shipper interface {
	Reserve(destination string) bool
	Unreserve(destination string)
	Hand(shipments []event.Shipment)
}

// Rules decide what an event means: *handlers.Rules with what they fetch by.
type Rules interface {
	// Slow tells whether the rules of an event may wait for something outside.
	Slow(e *event.Event) bool
	// Lane is the order that an event has to keep, "" for none.
	Lane(e event.Event, p event.Payload) (lane string, skip bool)
	Decide(ctx context.Context, work event.Work) handlers.Decision
	DecideTied(ctx context.Context, work event.Work) handlers.Decision
	DecideFetched(ctx context.Context, work event.Work, answers map[string][]byte) handlers.Decision
	// Fetch gets what a decision asks for: the JSON text of an object, or a
	// *deliver.FetchError.
	Fetch(ctx context.Context, request handlers.FetchRequest) ([]byte, error)
}

// WorkerOptions are what a worker is made of.
type WorkerOptions struct {
	Inbox   Inbox
	Shipper Shipper
	Rules   func() Rules         // the rules in force now
	Policy  func() Policy        // the retry policy of events in force now
	Timeout func() time.Duration // how long the fetches of one event may take, in force now
	Clock   func() time.Time
	Jitter  func() float64 // 0 ≤ jitter < 1
	Log     zerolog.Logger
	Batch   int    // events claimed and finished at once
	Room    int    // events that may wait in memory, handed over by the store
	Slow    int    // events decided at once whose rules wait for something outside
	Tally   *Tally // counts dead events; nil counts nothing
	Watch   *Watch // notices that the clock was set; where it is nil the worker has its own
}

// Worker applies rules to events. It takes those that the store hands over
// when it accepts them and claims the others when they are due. All its
// writing goes through Settle, so that the end of one batch and the claim of
// the next are one transaction and cost one sync.
//
// Its loop decides about events one after another, but for those whose rules
// wait for something outside: it never waits for them.
type Worker struct {
	opt      WorkerOptions
	reserved atomic.Int64
	wake     chan struct{}
	mu       sync.Mutex
	handed   []event.Work
	ended    []decided // beside the loop

	// What follows belongs to the loop.
	slow     slow
	finishes []event.Finish // decided, not yet settled
	tasks    []task         // what each of them is about
	failures int            // of Settle, in a row
	stopping bool
	began    time.Time    // for a clock that can not be set
	beat     atomic.Int64 // nanoseconds from began to the last look at the store
	counts   eventCounts
	steps    Steps // of the clock, as far as they were followed
}

// NewWorker makes a worker; Run starts it.
func NewWorker(opt WorkerOptions) *Worker {
	places := max(opt.Slow, 1)
	if opt.Watch == nil {
		opt.Watch = NewWatch(WatchOptions{Clock: opt.Clock})
	}
	return &Worker{opt: opt, wake: make(chan struct{}, 1), began: time.Now(), counts: eventCounts{latency: meter.NewHistogram(meter.Long())},
		slow: slow{places: places, room: max(opt.Room/2, places), lanes: map[string]bool{}}}
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
	w.ring()
}

// ring wakes the loop.
func (w *Worker) ring() {
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
	if w.slow.alone != nil {
		return maxPause // nothing is claimed until it ends, which wakes the loop
	}
	next, ok, err := w.opt.Inbox.NextEvent(ctx)
	if err != nil || !ok {
		return maxPause
	}
	return min(max(next.Sub(w.opt.Clock()), time.Millisecond), maxPause)
}

// Step does all the work that is due at now, waits for what is decided beside
// the loop, and returns how many events it settled. It is for tests and for
// whoever works off a database without a server.
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
		if err != nil {
			return settled, err
		}
		if more || n > 0 { // the end of one may be the turn of another
			continue
		}
		if !w.slow.busy() {
			return settled, nil
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
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
// them, or starts to. A crash before the settling leaves the events claimed:
// Recover gives them back at the next start. more says that there is something
// left that waits for nobody.
func (w *Worker) turn(ctx context.Context, now time.Time, due bool) (settled int, more bool, err error) {
	w.collect()
	if err := w.noticeClock(ctx); err != nil {
		return 0, true, err
	}
	works := w.take()
	claim := w.claims(due, len(works))
	handed := len(works)
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
	kept := w.judge(ctx, works, handed, now)
	w.reserved.Add(int64(kept - handed))
	if ctx.Err() == nil {
		w.startSlow(ctx, now)
	}
	return settled, more || len(w.finishes) > 0 || w.slow.owed && w.slow.alone == nil, nil
}

// noticeClock moves the next attempts that are decided and not written yet, when
// the clock was set back. What the store has scheduled moved with it, and rings.
func (w *Worker) noticeClock(ctx context.Context) error {
	steps, err := w.opt.Watch.Look(context.WithoutCancel(ctx))
	if err != nil {
		w.failures++
		return err
	}
	if step := steps.since(&w.steps); step.Back != 0 {
		for i := range w.finishes {
			w.finishes[i].NextAt = moved(w.finishes[i].NextAt, -step.Back)
		}
	}
	return nil
}

// claims is how many events to claim: none beside one that has to be alone,
// since the next might have to be too.
func (w *Worker) claims(due bool, handed int) int {
	due = due || w.slow.owed
	w.slow.owed = due && w.slow.alone != nil
	if !due || w.slow.owed {
		return 0
	}
	return max(w.opt.Batch-handed, 1)
}

// judge decides about events, the first of which were handed over, and passes
// on those that wait for something outside. It returns how many of the handed
// ones keep their places.
func (w *Worker) judge(ctx context.Context, works []event.Work, handed int, now time.Time) (kept int) {
	if len(works) == 0 {
		return 0
	}
	rules := w.opt.Rules()
	for i := range works {
		t := task{work: works[i], held: i < handed}
		switch {
		case ctx.Err() != nil:
			w.add(t, w.giveBack(&t.work))
		case !t.work.Alone && !rules.Slow(&works[i].Event):
			w.add(t, w.decide(ctx, &t, now))
		case !w.slow.admit(inLane(t, rules)):
			later := w.giveBack(&t.work)
			later.NextAt = w.slow.later(now)
			w.add(t, later)
		case t.held:
			kept++
		}
	}
	return kept
}

// inLane finds the lane of a task.
func inLane(t task, rules Rules) task {
	if t.lane, _ = rules.Lane(t.work.Event, t.work.Payload); t.lane == "" {
		t.lane = t.work.Lane
	}
	return t
}

func (w *Worker) add(t task, finish event.Finish) {
	t.held = false // what is decided fills no place
	w.tasks = append(w.tasks, t)
	w.finishes = append(w.finishes, finish)
}

// take returns the events that were handed over, up to a batch. They keep
// their places until they are decided.
func (w *Worker) take() []event.Work {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(len(w.handed), w.opt.Batch)
	works := append([]event.Work(nil), w.handed[:n]...)
	w.handed = append(w.handed[:0], w.handed[n:]...)
	clear(w.handed[len(w.handed):cap(w.handed)])
	return works
}

func (w *Worker) putBack(works []event.Work) {
	if len(works) == 0 {
		return
	}
	w.mu.Lock()
	w.handed = append(works, w.handed...)
	w.mu.Unlock()
}
