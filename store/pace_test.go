package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"creel/event"
)

// A pace never releases more than its rate within a time, but for what one step
// may hold, whatever the pauses between.
func TestPaceIsKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rate  float64
		most  int           // in one step
		nap   time.Duration // now and then somebody is late by that
		takes int
	}{
		"one a minute":      {1.0 / 60, 1, 0, 5},
		"five a second":     {5, 1, 0, 50},
		"a thousand":        {1000, 100, 0, 50},
		"a thousand, late":  {1000, 100, 7 * time.Second, 50},
		"more than a chunk": {50_000, 5000, 0, 50},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := start
			p := newPace(c.rate, func() time.Time { return now })
			released := 0
			for i := range c.takes {
				if i%10 == 9 {
					now = now.Add(c.nap)
				}
				before := now
				n, wait := p.take(actionChunk)
				for n == 0 {
					if wait <= 0 {
						t.Fatalf("it may release nothing and has to wait %v", wait)
					}
					now = now.Add(wait)
					n, wait = p.take(actionChunk)
				}
				released += n
				if n > min(c.most, actionChunk) {
					t.Fatalf("%d at once", n)
				}
				if allowed := float64(c.most) + c.rate*now.Sub(start).Seconds(); float64(released) > allowed {
					t.Fatalf("%d released after %v, allowed are %.1f", released, now.Sub(start), allowed)
				}
				if c.nap == 0 && i > 0 && now.Equal(before) && c.most < actionChunk {
					t.Fatal("it released twice in a moment")
				}
			}
			if c.nap == 0 {
				took := now.Sub(start).Seconds() + float64(c.takes)*0.001 // each wait is rounded up
				if float64(released) < c.rate*took*0.8-float64(c.most) {
					t.Errorf("%d released in %.1f s: much less than the rate", released, took)
				}
			}
		})
	}
	if n, wait := newPace(0, time.Now).take(7); n != 7 || wait != 0 {
		t.Errorf("without a pace: %d, wait %v", n, wait)
	}
}

// nobody is a worker that takes nothing from memory.
type nobody struct{}

func (nobody) Reserve(int) int   { return 0 }
func (nobody) Hand([]event.Work) {}
func (nobody) Release(int)       {}

func (sc *scene) action(id int64) event.Action {
	sc.t.Helper()
	a, err := sc.Action(context.Background(), id)
	must(sc.t, err)
	return a
}

// deaths fills the store with dead events.
func (sc *scene) deaths(n int) {
	sc.t.Helper()
	sc.fill(n)
	for works := sc.claim(256); len(works) > 0; works = sc.claim(256) {
		var deaths []event.Finish
		for _, w := range works {
			deaths = append(deaths, dead(w))
		}
		sc.settle(0, deaths...)
	}
}

// The rate is in the action's row: a restart goes on at it, and who asks for
// the same again joins it. Every event is audited once.
func TestPacedReplayGoesOnAtItsPace(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	const all = 40
	sc.deaths(all)
	sc.SetHandoff(nobody{})
	ask := event.Action{Actor: "ann", Reason: "slowly", Rate: 1.0 / 3600, Selector: event.Selector{State: event.Dead}}
	must(t, ask.Selector.SetSince("24h", sc.now))
	ask.Kind = event.ActionReplay
	picks, err := sc.pick(context.Background(), ask)
	must(t, err)
	gone, leave := context.WithCancel(context.Background())
	leave()
	a, err := sc.carry(gone, sc.now, ask, picks, replaying(ask))
	if !errors.Is(err, context.Canceled) || a.ID != 1 || a.Done != 1 {
		t.Fatalf("it began as %+v, %v", a, err)
	}
	later := ask
	later.Actor = "ben"
	must(t, later.Selector.SetSince("24h", sc.now.Add(5*time.Minute)))
	a, err = sc.Replay(gone, sc.now.Add(5*time.Minute), later)
	if !errors.Is(err, context.Canceled) || a.ID != 1 || a.Actor != "ann" {
		t.Fatalf("asked for again it is %+v, %v", a, err)
	}
	sc.crash("boot2")
	want(t, "actions", sc.number("SELECT count(*) FROM action"), 1)
	want(t, "rate kept", sc.action(1).Rate, ask.Rate)
	want(t, "released", sc.number("SELECT count(*) FROM event WHERE run = 2"), 1)

	// At a rate that is over in a moment it ends, after another restart.
	must(t, sc.write(context.Background(), work, 1, func(t *tx) error {
		_, err := t.exec("UPDATE action SET rate = 400")
		return err
	}))
	sc.crash("boot3")
	sc.SetHandoff(nobody{})
	got, err := sc.Recover(context.Background(), sc.now, nil)
	must(t, err)
	want(t, "goes on", got.Actions, 1)
	a, err = sc.AwaitAction(context.Background(), 1)
	must(t, err)
	want(t, "done", a.Done, all)
	want(t, "finished", a.Finished.IsZero(), false)
	want(t, "audited", sc.number("SELECT count(DISTINCT event) FROM action_item"), all)
	want(t, "items", sc.number("SELECT count(*) FROM action_item"), all)
	want(t, "run again", sc.number("SELECT count(*) FROM event WHERE run = 2"), all)
}

// What was asked for begins, also when nobody waits for it any more: selecting
// many takes longer than somebody waits.
func TestBulkReplayBeginsForWhoLeft(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	const all = 2*actionChunk + 1
	sc.deaths(all)
	gone, leave := context.WithCancel(context.Background())
	leave()
	a, err := sc.Replay(gone, sc.now, event.Action{Selector: event.Selector{State: event.Dead}})
	if !errors.Is(err, context.Canceled) || a.ID != 1 || a.Done == 0 {
		t.Fatalf("it began as %+v, %v", a, err)
	}
	a, err = sc.AwaitAction(context.Background(), 1)
	must(t, err)
	want(t, "done", a.Done, all)
}

// A request that comes again under its key waits for the action that the first
// one began, as that one did.
func TestRepeatedRequestWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.deaths(3)
	sc.SetHandoff(nobody{})
	gone, leave := context.WithCancel(context.Background())
	leave()
	ask := event.Action{Rate: 1.0 / 3600, Once: once(1, 1), Selector: event.Selector{State: event.Dead}}
	for range 2 {
		a, err := sc.Replay(gone, sc.now, ask)
		if !errors.Is(err, context.Canceled) || a.ID != 1 || a.Done != 1 {
			t.Fatalf("it stands as %+v, %v", a, err)
		}
	}
}

// Without a worker nobody works off what a pace would release: the action is
// begun and stands still, also for who asks again.
func TestPacedReplayWaitsForAWorker(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.deaths(3)
	ask := event.Action{Actor: "ann", Rate: 1e6, Selector: event.Selector{State: event.Dead}}
	for range 2 {
		a, err := sc.Replay(context.Background(), sc.now, ask)
		must(t, err)
		want(t, "action", a.ID, 1)
		want(t, "done", a.Done, 1)
		want(t, "goes on", a.Finished.IsZero(), true)
	}
	sc.crash("boot2")
	n, err := sc.ResumeActions(context.Background())
	must(t, err)
	want(t, "resumed", n, 1)
	a, err := sc.Replay(context.Background(), sc.now, ask)
	must(t, err)
	want(t, "the same after a crash", a.ID, 1)
	want(t, "released", sc.number("SELECT count(*) FROM event WHERE run = 2"), 1)
}

// The same question is the same whoever asks, also when it tells a time from
// now; another one is not.
func TestSameQuestion(t *testing.T) {
	t.Parallel()
	first := event.Action{Kind: event.ActionReplay, Actor: "ann", At: start, Rate: 5,
		Selector: event.Selector{State: event.Dead}}
	must(t, first.Selector.SetSince("1h", start))
	for name, c := range map[string]struct {
		change func(*event.Action)
		want   bool
	}{
		"at once":                 {func(*event.Action) {}, true},
		"somebody else":           {func(a *event.Action) { a.Actor, a.Reason = "ben", "too" }, true},
		"a date, later":           {func(a *event.Action) { a.At = start.Add(time.Minute) }, true},
		"an hour ago, later":      {func(a *event.Action) { a.At = start.Add(9 * time.Minute); must(t, a.Selector.SetSince("1h", a.At)) }, true},
		"an hour ago, much later": {func(a *event.Action) { a.At = start.Add(time.Hour); must(t, a.Selector.SetSince("60m", a.At)) }, false},
		"the next hour": {func(a *event.Action) {
			a.At = start.Add(9 * time.Minute)
			a.Selector.Since, a.Selector.SinceAgo = a.At.Add(-time.Hour), 0
		}, false},
		"seconds later": {func(a *event.Action) {
			a.At = start.Add(3 * time.Second)
			a.Selector.Since, a.Selector.SinceAgo = a.At.Add(-time.Hour), 0
		}, false},
		"two hours ago":           {func(a *event.Action) { must(t, a.Selector.SetSince("2h", start)) }, false},
		"no time":                 {func(a *event.Action) { must(t, a.Selector.SetSince("", start)) }, false},
		"until":                   {func(a *event.Action) { a.Selector.Until = start }, false},
		"another source":          {func(a *event.Action) { a.Selector.Source = "x" }, false},
		"another kind":            {func(a *event.Action) { a.Kind = event.ActionDiscard }, false},
		"another rate":            {func(a *event.Action) { a.Rate = 6 }, false},
		"sending again":           {func(a *event.Action) { a.Resend = true }, false},
		"another target":          {func(a *event.Action) { a.Target = "app" }, false},
		"another group of deaths": {func(a *event.Action) { a.Selector.Failure = 3 }, false},
	} {
		again := first
		c.change(&again)
		if got := sameQuestion(&first, &again); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
