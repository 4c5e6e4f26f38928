package store

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"

	"creel/event"
)

func once(by, what byte) event.Once { return event.Once{By: [16]byte{by}, What: [16]byte{what}} }

// TestGateO2ARepeatedRequestIsOneAction asks for the same under one key, one
// after the other, at once, and after a crash: one action, and the events run
// once.
func TestGateO2ARepeatedRequestIsOneAction(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	ctx := context.Background()
	deadLetters(sc)
	a := event.Action{Actor: "token", Selector: event.Selector{State: event.Dead}, Once: once(1, 1)}
	var done [4]event.Action
	var all sync.WaitGroup
	for i := range done {
		all.Go(func() {
			var err error
			if done[i], err = sc.Replay(ctx, sc.now, a); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, one := range done {
		want(t, "one action", one.ID, done[0].ID)
		want(t, "its events", one.Done, 2)
		want(t, "its selector", one.Selector.State, event.Dead)
	}
	for _, w := range sc.claim(2) {
		must(t, sc.finish(dead(w)).Err) // it dies again, and is not replayed by a late repeat
	}
	sc.crash("b2")
	late, err := sc.Replay(ctx, sc.now, a)
	must(t, err)
	want(t, "after a restart", late.ID, done[0].ID)
	want(t, "still dead", sc.detail("dead").State, event.Dead)
	want(t, "run", sc.detail("dead").Run, 2)

	a.Once = once(1, 2)
	_, err = sc.Replay(ctx, sc.now, a)
	if !errors.Is(err, event.ErrOtherRequest) {
		t.Errorf("the key with something else: %v", err)
	}
	a.Once = once(2, 1)
	other, err := sc.Replay(ctx, sc.now, a)
	must(t, err)
	want(t, "another key is another action", other.ID != done[0].ID, true)
	actions, err := sc.Actions(ctx, event.Page{})
	must(t, err)
	want(t, "actions", len(actions), 2)
}

// A chunk that is repeated finds its own first one, and a request that is
// repeated while it runs finds it as far as it is.
func TestARepeatedRequestOfALongAction(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	ctx := context.Background()
	for i := range actionChunk + 10 {
		sc.receive("e" + strconv.Itoa(i))
	}
	for claimed := sc.claim(actionChunk); len(claimed) > 0; claimed = sc.claim(actionChunk) {
		for _, w := range claimed {
			must(t, sc.finish(dead(w)).Err)
		}
	}
	a := event.Action{Kind: event.ActionDiscard, Selector: event.Selector{State: event.Dead}, Once: once(3, 3)}
	picks, err := sc.pick(ctx, a)
	must(t, err)
	a.At, a.Selected = sc.now, len(picks)
	cut := sc.newBulk(a, picks, discarding(event.Action{}))
	must(t, cut.chunk())
	again, err := sc.Discard(ctx, sc.now, a)
	must(t, err)
	want(t, "the same action", again.ID, cut.action.ID)
	want(t, "as far as it is", again.Done, cut.action.Done)
	want(t, "it runs", again.Finished.IsZero(), true)
	for !cut.over() {
		must(t, cut.chunk())
	}
	again, err = sc.Discard(ctx, sc.now, a)
	must(t, err)
	want(t, "done", again.Done, actionChunk+10)
}

// Acts of every kind are done once.
func TestEveryActIsDoneOnce(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	ctx := context.Background()
	deadLetters(sc)
	for i, act := range []func(event.Action) (event.Action, error){
		func(a event.Action) (event.Action, error) { return sc.Pause(ctx, sc.now, a) },
		func(a event.Action) (event.Action, error) { return sc.Resume(ctx, sc.now, a) },
		func(a event.Action) (event.Action, error) {
			a.Target = event.AllIncidents
			return sc.Acknowledge(ctx, sc.now, a)
		},
		func(a event.Action) (event.Action, error) {
			a.Kind, a.Target = event.ActionWasSent, "1"
			return sc.Decide(ctx, sc.now, a)
		},
		func(a event.Action) (event.Action, error) {
			a.Selector.Keys = []event.Key{key("dead")}
			return sc.SkipLane(ctx, sc.now, a)
		},
	} {
		a := event.Action{Target: "app", Actor: "token", Once: once(byte(i+1), 1)}
		first, err := act(a)
		must(t, err)
		second, err := act(a)
		must(t, err)
		want(t, "the same action", second.ID, first.ID)
		want(t, "what it did", second.Done, first.Done)
		a.Once.What[0]++
		if _, err = act(a); !errors.Is(err, event.ErrOtherRequest) {
			t.Errorf("act %d with something else: %v", i, err)
		}
	}
}
