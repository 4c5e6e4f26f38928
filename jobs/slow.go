package jobs

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"creel/event"
)

const (
	// slowBytes bounds the bodies that wait for a place.
	slowBytes = 16 << 20
	// mostPutOff is how far an event that finds no room is put off at most: the
	// places must not stand empty for long when what they wait for gets faster.
	mostPutOff = time.Minute
)

// task is an event in the worker's hands.
type task struct {
	work event.Work
	// held says that it fills one of the places of Reserve.
	held bool
	// lane is the order that its rules ask for now, whatever they asked for when
	// it was stored: the store knows nothing of a rule that came later.
	lane string
	// first says that it has the lane.
	first bool
	// tied says that the store found another event with the same version: the
	// object has to be asked for.
	tied bool
	// said is what logs and alerts say of its end, where its error quotes what
	// the sender wrote; "" where it does not.
	said string
}

func (t *task) size() int { return len(t.work.Body) + len(t.work.Header) }

// decided is a task with what the rules said about it.
type decided struct {
	task   task
	finish event.Finish
	took   time.Duration
}

// slow is where events are whose rules wait for something outside: each of
// those that have a place is decided in a goroutine of its own, the others
// wait for one in their order. It belongs to the worker's loop.
type slow struct {
	places  int
	room    int // how many may wait
	running int
	waiting []task
	bytes   int // of those that wait
	// lanes are those of which an event was started and is not settled.
	lanes map[string]bool
	// alone is an event beside which no other may run, because a server died
	// with it. It waits until those that run have ended, and until its end is
	// stored none starts and nothing is claimed.
	alone  *task
	begun  bool // alone runs, or has run
	owed   bool // a claim that was due did not happen because of it
	mean   time.Duration
	putOff time.Time // when the last event that found no room comes back
}

// admit takes a task; false says that there is no room.
func (s *slow) admit(t task) bool {
	if t.work.Alone && s.alone == nil {
		s.alone, s.begun = &t, false
		return true
	}
	if len(s.waiting) > 0 && (len(s.waiting) >= s.room || s.bytes+t.size() > slowBytes) {
		return false
	}
	s.waiting = append(s.waiting, t)
	s.bytes += t.size()
	return true
}

// again takes a task back that has been decided once, before all others.
func (s *slow) again(t task) {
	if t.work.Alone {
		s.alone, s.begun = &t, false
		return
	}
	s.waiting = append([]task{t}, s.waiting...)
	s.bytes += t.size()
}

// next takes the task that may start, if there is one.
func (s *slow) next() (task, bool) {
	if s.alone != nil {
		if s.begun || s.running > 0 {
			return task{}, false
		}
		s.begun = true
		return *s.alone, true
	}
	if s.running >= s.places {
		return task{}, false
	}
	i := slices.IndexFunc(s.waiting, func(t task) bool { return t.first || !s.lanes[t.lane] })
	if i < 0 {
		return task{}, false
	}
	t := s.waiting[i]
	if i == 0 {
		s.waiting[0] = task{} // the body is no longer ours to keep
		s.waiting = s.waiting[1:]
	} else {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	s.bytes -= t.size()
	if t.lane != "" {
		t.first, s.lanes[t.lane] = true, true
	}
	return t, true
}

// settled lets the next event of a lane go.
func (s *slow) settled(t *task) {
	if t.first {
		delete(s.lanes, t.lane)
	}
}

// later is when an event that finds no room may come again: when those before
// it are expected to be through, half of what waits being left then.
func (s *slow) later(now time.Time) time.Time {
	step := max(s.mean/time.Duration(s.places), time.Millisecond)
	if s.putOff.Before(now) {
		s.putOff = now.Add(step * time.Duration(len(s.waiting)/2))
	}
	s.putOff = s.putOff.Add(step)
	if latest := now.Add(mostPutOff); s.putOff.After(latest) {
		s.putOff = latest
	}
	return ceilMilli(s.putOff)
}

// took notes how long one event kept its place.
func (s *slow) took(d time.Duration) {
	if s.mean == 0 {
		s.mean = d
	}
	s.mean += (d - s.mean) / 8
}

// busy tells whether anything is to be decided or to be written by it.
func (s *slow) busy() bool { return s.running > 0 || len(s.waiting) > 0 || s.alone != nil }

// startSlow gives places to those that wait for one.
func (w *Worker) startSlow(ctx context.Context, now time.Time) {
	for {
		t, ok := w.slow.next()
		if !ok {
			return
		}
		if t.held {
			w.reserved.Add(-1)
			t.held = false
		}
		w.slow.running++
		go w.consider(ctx, t, now)
	}
}

// consider decides about one event beside the loop.
func (w *Worker) consider(ctx context.Context, t task, now time.Time) {
	began := w.opt.Clock()
	finish := w.guarded(ctx, &t, now)
	w.mu.Lock()
	w.ended = append(w.ended, decided{task: t, finish: finish, took: w.opt.Clock().Sub(began)})
	w.mu.Unlock()
	w.ring()
}

// guarded turns a panic of our own into a failed attempt of its event.
func (w *Worker) guarded(ctx context.Context, t *task, now time.Time) (finish event.Finish) {
	defer func() {
		if cause := recover(); cause != nil {
			w.line(w.opt.Log.Error(), &t.work).Interface(event.FieldReason, cause).
				Bytes("stack", debug.Stack()).Msg("deciding about an event panicked")
			finish = w.failed(&t.work, fmt.Sprintf("panic: %v", cause), nil, now)
		}
	}()
	return w.decide(ctx, t, now)
}

// collect takes over what was decided beside the loop.
func (w *Worker) collect() {
	if w.slow.running == 0 {
		return
	}
	w.mu.Lock()
	ended := w.ended
	w.ended = nil
	w.mu.Unlock()
	for i := range ended {
		w.slow.running--
		w.slow.took(max(ended[i].took, 0))
		w.add(ended[i].task, ended[i].finish)
	}
}

// stopSlow waits for what runs, which the end of ctx interrupts, and gives back
// what waits.
func (w *Worker) stopSlow() {
	for w.collect(); w.slow.running > 0; w.collect() {
		<-w.wake
	}
	if w.slow.alone != nil && !w.slow.begun {
		w.waived(*w.slow.alone)
	}
	for _, t := range w.slow.waiting {
		w.waived(t)
	}
	w.slow.waiting, w.slow.bytes, w.slow.alone = nil, 0, nil
}

// waived gives a task back that has not begun.
func (w *Worker) waived(t task) {
	if t.held {
		w.reserved.Add(-1)
	}
	w.add(t, w.giveBack(&t.work))
}
