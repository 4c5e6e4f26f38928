package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"creel/event"
)

const (
	// actionChunk is how many events one transaction of a bulk action takes at
	// most, and chunkBudget how long it may work on them: intake waits for no
	// more than that. actionFew are always done in one.
	actionChunk = 250
	actionFew   = 32
	chunkBudget = workBudget / 2
	// actionPause is how long a bulk action waits when the writer's queue is
	// full or the store can not write.
	actionPause = 50 * time.Millisecond
	// sameWords is for how long "24h ago" means what it meant when it was first
	// asked: long enough to go on with a command that was broken off. What is
	// asked again later is about other events too.
	sameWords = 10 * time.Minute

	sqlProgress = `UPDATE action SET done = ?1, refused = ?2, finished_at = ?3,
		selection = CASE WHEN ?3 IS NULL THEN selection END WHERE id = ?4`
	sqlProgressOf = `SELECT done, refused FROM action WHERE id = ?`
	sqlRunning    = `SELECT ` + actionColumns + `, selection FROM action WHERE finished_at IS NULL ORDER BY id`
)

// act does an action to one event and tells what came of it.
type act func(t *tx, now int64, p pick) (result string, done bool, err error)

// bulk is an action on a frozen selection. Its row, its progress and the
// results of a chunk commit with the chunk, so it goes on where a crash cut
// it, and every event is audited once.
type bulk struct {
	store  *Store
	act    act
	action event.Action // as the last chunk left it; of who does the chunks alone
	picks  []pick
	pace   *pace
	size   int // how many events the next chunk may take

	standing atomic.Pointer[event.Action] // action, for others to see
	through  chan struct{}                // closed when nobody does the chunks any more
	cause    error                        // then: the error of a chunk that was not stored

	// What the last run of a chunk came to; a rerun writes it anew.
	next  event.Action
	again bool // it was asked for before: next is the action of that time
}

// actions are the bulk actions that run in the background. Each ends when it
// is through or when the store is closed.
type actions struct {
	running sync.WaitGroup
	mu      sync.Mutex
	bulks   map[int64]*bulk
}

func (s *Store) newBulk(a event.Action, picks []pick, do act) *bulk {
	return &bulk{store: s, act: do, action: a, picks: picks, pace: newPace(a.Rate, time.Now), size: actionChunk,
		through: make(chan struct{})}
}

// perform freezes the selection, does the first chunk in the transaction that
// writes the action, and the others after it in the background. It waits for
// the end; when ctx ends first the action goes on and is returned as far as it
// is, with the context's error. ctx bounds that waiting alone: what was asked
// for begins. Who asks for what is under way already waits
// for that instead.
func (s *Store) perform(ctx context.Context, now time.Time, a event.Action, do act) (event.Action, error) {
	a.At = now
	if b := s.underWay(a); b != nil {
		return b.wait(ctx)
	}
	picks, err := s.pick(context.WithoutCancel(ctx), a) // many take longer than somebody waits
	if err != nil {
		return event.Action{}, fmt.Errorf("%s: %w", a.Kind, err)
	}
	if len(picks) == 0 && len(a.Selector.Keys) > 0 {
		return event.Action{}, fmt.Errorf("%s: no event has that key: %w", a.Kind, event.ErrNotFound)
	}
	return s.carry(ctx, now, a, picks, do)
}

// carry does an action on a selection that is frozen. One that has a pace
// releases a single event with its row.
func (s *Store) carry(ctx context.Context, now time.Time, a event.Action, picks []pick, do act) (event.Action, error) {
	a.At, a.Selected, a.Done, a.Refused, a.Finished = now, len(picks), 0, 0, time.Time{}
	b := s.newBulk(a, picks, do)
	if b.pace != nil {
		b.size = 1
		b.pace.spend(1)
	}
	if err := b.chunk(); err != nil {
		return event.Action{}, fmt.Errorf("%s: %w", a.Kind, err)
	}
	if b.over() {
		return b.action, nil
	}
	if b.again {
		if first := s.running(b.action.ID); first != nil {
			return first.wait(ctx)
		}
		return b.action, nil // as it stands
	}
	s.goOn(b)
	return b.wait(ctx)
}

// goOn does the chunks that are left in the background. Where no worker works
// off what it would release, one that has a pace stands still: the next start
// goes on with it.
func (s *Store) goOn(b *bulk) {
	under := &s.desk.actions
	id := b.action.ID
	under.mu.Lock()
	if under.bulks == nil {
		under.bulks = map[int64]*bulk{}
	}
	under.bulks[id] = b
	under.mu.Unlock()
	if b.pace != nil && s.desk.handoff.Load() == nil {
		close(b.through)
		return
	}
	s.background(func() {
		b.rest()
		under.mu.Lock()
		delete(under.bulks, id)
		under.mu.Unlock()
		close(b.through)
	})
}

// AwaitAction waits for the end of a bulk action, or of ctx, and returns the action
// as it stands then. One that a fault stopped is an error; event.ErrNotFound
// where there is no such action.
func (s *Store) AwaitAction(ctx context.Context, id int64) (event.Action, error) {
	if b := s.running(id); b != nil {
		return b.wait(ctx)
	}
	a, err := s.Action(ctx, id)
	if err == nil && a.Finished.IsZero() {
		err = fmt.Errorf("%s %d was stopped after %d of %d by an error that the log names: a restart goes on with it", a.Kind, id, a.Done+a.Refused, a.Selected)
	}
	return a, err
}

func (s *Store) background(run func()) { s.desk.actions.running.Go(run) }

// wait waits for the end of an action, or of ctx.
func (b *bulk) wait(ctx context.Context) (event.Action, error) {
	select {
	case <-b.through:
		return b.action, b.cause
	case <-ctx.Done():
		so := *b.standing.Load()
		return so, fmt.Errorf("%s %d goes on: %w", so.Kind, so.ID, context.Cause(ctx))
	}
}

// underWay finds the action that was asked for in the same words and is not
// through; nil where there is none. A request with a key of its own is one by
// itself.
func (s *Store) underWay(a event.Action) *bulk {
	if a.Once != (event.Once{}) {
		return nil
	}
	under := &s.desk.actions
	under.mu.Lock()
	defer under.mu.Unlock()
	for _, b := range under.bulks {
		if sameQuestion(b.standing.Load(), &a) {
			return b
		}
	}
	return nil
}

// sameQuestion tells whether two actions ask for the same, whoever asks and
// why. "24h ago" is the same for a while, though it is another moment.
func sameQuestion(first, again *event.Action) bool {
	if first.Kind != again.Kind || first.Target != again.Target || first.Resend != again.Resend || first.Rate != again.Rate {
		return false
	}
	one, two := first.Selector, again.Selector
	if again.At.Sub(first.At).Abs() < sameWords {
		if one.SinceAgo != 0 && one.SinceAgo == two.SinceAgo {
			two.Since = one.Since
		}
		if one.UntilAgo != 0 && one.UntilAgo == two.UntilAgo {
			two.Until = one.Until
		}
	}
	a, errA := json.Marshal(one)
	b, errB := json.Marshal(two)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

func (b *bulk) over() bool { return b.action.Done+b.action.Refused == b.action.Selected }

// rest does the chunks that are left, as fast as the pace allows. It ends early
// when the store is closed; Recover goes on from there.
func (b *bulk) rest() {
	for !b.over() {
		var pause time.Duration
		before := b.action.Done + b.action.Refused
		b.size, pause = b.pace.take(min(actionChunk, b.action.Selected-before))
		if b.size > 0 {
			err := b.chunk()
			switch {
			case err == nil:
				b.pace.spend(b.action.Done + b.action.Refused - before - b.size) // what it had no time for
				continue
			case errors.Is(err, ErrClosed) || !errors.Is(err, event.ErrBusy) && !errors.Is(err, event.ErrUnavailable):
				b.stop(err)
				return
			}
			pause = actionPause
		}
		if !b.pause(pause) {
			b.stop(ErrClosed)
			return
		}
	}
}

func (b *bulk) stop(err error) {
	b.cause = fmt.Errorf("%s %d stopped after %d of %d: %w", b.action.Kind, b.action.ID,
		b.action.Done+b.action.Refused, b.action.Selected, err)
	line := b.store.log.Error().Err(err)
	if errors.Is(err, ErrClosed) {
		line = b.store.log.Info()
	}
	line.Int64(event.FieldAction, b.action.ID).Msg("bulk action stopped, a restart goes on with it")
}

// pause waits; false says that the store was closed meanwhile.
func (b *bulk) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-b.store.stopped:
		return false
	}
}

// chunk does the next events in one transaction, with their results and the
// action's progress.
func (b *bulk) chunk() error {
	if err := b.store.write(context.Background(), work, b.size, b.run); err != nil {
		return err
	}
	b.action = b.next
	so := b.next
	b.standing.Store(&so)
	ring(b.store.desk.events)
	ring(b.store.desk.deliveries)
	return nil
}

// run is one chunk in the writer's transaction. What it moves is due from now
// on, not from when the action began: it goes behind what came in meanwhile.
//
// A crash before the commit leaves the action at the chunk before; after it,
// at this one. The first chunk brings the action's row along.
func (b *bulk) run(t *tx) error {
	began, now := time.Now(), b.action.At
	if b.action.ID != 0 {
		if clock := b.store.options.Clock(); clock.After(now) { // it may have been set back
			now = clock
		}
	} else {
		var err error
		if b.next, b.again, err = asked(t, &b.action); err != nil || b.again {
			return err
		}
	}
	a, err := b.stored(t)
	if err != nil {
		return err
	}
	from := a.Done + a.Refused
	chunk := b.picks[from:min(from+b.size, len(b.picks))]
	for i, p := range chunk {
		if i >= actionFew && time.Since(began) > chunkBudget {
			break
		}
		result, done, err := b.act(t, now.UnixMilli(), p)
		if err != nil {
			return err
		}
		if done {
			a.Done++
		} else {
			a.Refused++
		}
		if _, err := t.exec(sqlActionItem, a.ID, from+i+1, p.seq, result); err != nil {
			return fmt.Errorf("store result: %w", err)
		}
	}
	if a.Done+a.Refused == a.Selected {
		a.Finished = b.store.options.Clock()
	}
	if _, err := t.exec(sqlProgress, a.Done, a.Refused, ms(a.Finished), a.ID); err != nil {
		return fmt.Errorf("store progress: %w", err)
	}
	b.next = a
	return nil
}

// stored is the action as its row says: a chunk whose commit had no known end
// may have been stored. The first chunk inserts the row.
func (b *bulk) stored(t *tx) (event.Action, error) {
	a := b.action
	if a.ID == 0 {
		id, err := insertAction(t, &a, freeze(b.picks))
		a.ID = id
		return a, err
	}
	err := t.query(sqlProgressOf, []any{a.ID}, func(r row) error {
		a.Done, a.Refused = r.int(0), r.int(1)
		return nil
	})
	if err != nil {
		return a, fmt.Errorf("read progress: %w", err)
	}
	return a, nil
}

// ResumeActions goes on with what a crash cut short, each in the background at
// its own pace, and tells how many that are. What is under way already is left
// alone.
func (s *Store) ResumeActions(ctx context.Context) (int, error) {
	var cut []*bulk
	err := s.list(ctx, sqlRunning, nil, func(r row) error {
		a := actionOf(r)
		picks, err := thaw(r.blob(actionWidth))
		if err != nil {
			return fmt.Errorf("action %d: %w", a.ID, err)
		}
		do, err := actOf(a)
		if err == nil {
			b := s.newBulk(a, picks, do)
			b.standing.Store(&a)
			cut = append(cut, b)
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("resume actions: %w", err)
	}
	resumed := 0
	for _, b := range cut {
		if s.running(b.action.ID) != nil {
			continue
		}
		s.goOn(b)
		resumed++
	}
	return resumed, nil
}

// running is an action that is under way; nil where it is not.
func (s *Store) running(id int64) *bulk {
	under := &s.desk.actions
	under.mu.Lock()
	defer under.mu.Unlock()
	return under.bulks[id]
}

// actOf is what an action does to each event of its selection.
func actOf(a event.Action) (act, error) {
	switch a.Kind {
	case event.ActionReplay:
		return replaying(a), nil
	case event.ActionDiscard:
		return discarding(a), nil
	case event.ActionLaneSkip:
		return skipIn(a.Target), nil
	}
	return nil, fmt.Errorf("action %d: unknown kind %q", a.ID, a.Kind)
}
