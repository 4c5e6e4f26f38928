package store

import (
	"sync"

	"creel/event"
)

// priority says which queue a unit waits in.
type priority int

const (
	intake priority = iota // senders wait for it
	work                   // claims, completions, actions
)

// unit is one piece of writing.
type unit struct {
	// run does the work. It may run more than once: it has no effects outside
	// the transaction that a rerun does not overwrite.
	run func(*tx) error
	// done is called once, by the writer: with nil after COMMIT has returned,
	// or with the reason why nothing of the unit is stored. With an error
	// that wraps event.ErrUnavailable the outcome can be unknown. It must not
	// block.
	done func(error)
	// rows is the unit's weight in the bound of a batch.
	rows int
	// lone asks for a transaction that has nothing else in it: what this unit
	// runs may be interrupted, or may end the transaction.
	lone bool
}

// queue holds what waits for the writer. Each priority has its own bound, so
// that work never takes the places of intake.
type queue struct {
	mu     sync.Mutex
	waits  [2]fifo
	max    int
	closed bool
	wake   chan struct{} // one place: set while something may wait
}

func newQueue(max int) *queue {
	return &queue{max: max, wake: make(chan struct{}, 1)}
}

// put adds a unit, or says event.ErrBusy or ErrClosed. It never blocks.
func (q *queue) put(p priority, u *unit) error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return ErrClosed
	}
	// Who asks for a lone unit waits for it before the next.
	if q.waits[p].len() >= q.max && !u.lone {
		q.mu.Unlock()
		return event.ErrBusy
	}
	first := q.waits[intake].len()+q.waits[work].len() == 0
	q.waits[p].push(u)
	q.mu.Unlock()
	if first {
		q.ring()
	}
	return nil
}

func (q *queue) ring() { ring(q.wake) }

// take moves what fits into one batch: intake first, up to maxRows, then work
// up to as many again, so that neither starves the other. At least one unit
// of each comes, however heavy. It also tells how many of them are intake,
// which unit comes after the batch in a transaction of its own, if one does, and
// whether the queue is closed.
func (q *queue) take(batch []*unit, maxRows int) (_ []*unit, intakes int, lone *unit, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	batch = q.waits[intake].pop(batch, maxRows)
	intakes = len(batch)
	batch = q.waits[work].pop(batch, maxRows)
	return batch, intakes, q.waits[work].popLone(), q.closed
}

// putBack returns work that did not fit into the time of its batch to the head
// of its queue.
func (q *queue) putBack(units []*unit) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waits[work].unshift(units)
}

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.ring()
}

func (q *queue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

func (q *queue) lens() (intakes, works int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waits[intake].len(), q.waits[work].len()
}

// fifo is a queue in one slice, whose head moves.
type fifo struct {
	units []*unit
	head  int
}

func (f *fifo) len() int { return len(f.units) - f.head }

func (f *fifo) push(u *unit) {
	if f.head > 0 && len(f.units) == cap(f.units) {
		n := copy(f.units, f.units[f.head:])
		clear(f.units[n:])
		f.units, f.head = f.units[:n], 0
	}
	f.units = append(f.units, u)
}

// pop appends units to batch until they weigh maxRows, or one has to be alone.
func (f *fifo) pop(batch []*unit, maxRows int) []*unit {
	for rows := 0; f.head < len(f.units) && rows < maxRows; f.head++ {
		u := f.units[f.head]
		if u.lone {
			return batch
		}
		rows += max(1, u.rows)
		batch = append(batch, u)
		f.units[f.head] = nil
	}
	f.rewind()
	return batch
}

// popLone returns the first unit if it has to be alone, else nil.
func (f *fifo) popLone() *unit {
	if f.len() == 0 || !f.units[f.head].lone {
		return nil
	}
	u := f.units[f.head]
	f.units[f.head] = nil
	f.head++
	f.rewind()
	return u
}

// rewind uses the memory of an empty queue again.
func (f *fifo) rewind() {
	if f.head == len(f.units) {
		f.units, f.head = f.units[:0], 0
	}
}

func (f *fifo) unshift(units []*unit) {
	f.units = append(append(make([]*unit, 0, len(units)+f.len()), units...), f.units[f.head:]...)
	f.head = 0
}
