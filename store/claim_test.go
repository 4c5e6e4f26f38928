package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"creel/event"
)

// tallyOf counts who got what.
type tallyOf struct {
	mu    sync.Mutex
	times map[string]int
}

func (c *tallyOf) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.times == nil {
		c.times = map[string]int{}
	}
	c.times[what]++
}

// drain runs a claimer until nothing is due. Each event becomes done.
func (sc *scene) drain(c *tallyOf, batch int, old *sync.Map) error {
	var finishes []event.Finish
	for {
		finished, works, err := sc.Settle(context.Background(), sc.now, finishes, batch)
		if err != nil {
			return err
		}
		for i := range finished {
			if finished[i].Err != nil {
				return fmt.Errorf("finish: %w", finished[i].Err)
			}
		}
		if len(works) == 0 {
			return nil
		}
		finishes = finishes[:0]
		for _, w := range works {
			c.add(fmt.Sprint(w.Key, " run ", w.Run))
			old.Store(w.Seq, w)
			finishes = append(finishes, done(w))
		}
	}
}

func (sc *scene) fill(jobs int) {
	sc.t.Helper()
	each(32, func(lane int) {
		for i := lane; i < jobs; i += 32 {
			id := numbered("job", i)
			if _, err := sc.Accept(context.Background(), sc.receipt(id, item(id, id))); err != nil {
				sc.t.Error(err)
				return
			}
		}
	})
}

// 8 claimers and 10,000 jobs (a tenth in a short run): each is claimed once,
// while replays go on; a finish with an old token is refused.
func TestGateA12EachJobIsClaimedOnce(t *testing.T) {
	t.Parallel()
	jobs := 10_000
	if testing.Short() {
		jobs = 1_000
	}
	sc := newScene(t)
	sc.fill(jobs)
	var claimed tallyOf
	var old sync.Map
	each(8, func(int) {
		if err := sc.drain(&claimed, 32, &old); err != nil {
			t.Error(err)
		}
	})
	want(t, "claimed", len(claimed.times), jobs)

	// All of them again, by two admins at once, beside the claimers.
	var mu sync.Mutex
	replayed := 0
	var taken sync.Map
	each(10, func(i int) {
		if i < 2 {
			a, err := sc.Replay(context.Background(), sc.now, event.Action{Selector: event.Selector{State: event.Done}})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			replayed += a.Done
			return
		}
		if err := sc.drain(&claimed, 32, &taken); err != nil {
			t.Error(err)
		}
	})
	if err := sc.drain(&claimed, 256, &taken); err != nil {
		t.Fatal(err)
	}
	want(t, "runs", len(claimed.times), jobs+replayed)
	for what, times := range claimed.times {
		if times != 1 {
			t.Fatalf("%s was claimed %d times", what, times)
		}
	}
	old.Range(func(_, w any) bool {
		if err := sc.finish(done(w.(event.Work))).Err; !errors.Is(err, event.ErrClaimLost) {
			t.Errorf("old token: %v, want ErrClaimLost", err)
		}
		return false
	})
	want(t, "results", sc.number("SELECT count(*) FROM action_item WHERE result = 'replayed'"), replayed)
	want(t, "unfinished", sc.number("SELECT count(*) FROM event WHERE state <> 'done'"), 0)
}

func TestBugSQL10ClaimersTakeNothingTwice(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.fill(500)
	var claimed tallyOf
	each(8, func(int) {
		for {
			_, works, err := sc.Settle(context.Background(), sc.now, nil, 1)
			if err != nil {
				t.Error(err)
			}
			if len(works) == 0 {
				return
			}
			claimed.add(works[0].Key.ID)
		}
	})
	want(t, "claimed", len(claimed.times), 500)
	for id, n := range claimed.times {
		if n != 1 {
			t.Errorf("%s was claimed %d times", id, n)
		}
	}
}

// Oldest due first; what is not due waits.
func TestClaimTakesTheOldestDueFirst(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	for i := range 3 {
		sc.receive(numbered("e", i))
		sc.later(time.Second)
	}
	w := sc.claim(1)[0]
	want(t, "first", w.Key.ID, "e-00000")
	must(t, sc.finish(event.Finish{Seq: w.Seq, Claim: w.Claim, Run: 1, State: event.Pending, NextAt: sc.now.Add(time.Minute)}).Err)
	want(t, "second", sc.claim(1)[0].Key.ID, "e-00001")
	want(t, "third", sc.claim(1)[0].Key.ID, "e-00002")
	want(t, "then nothing is due", len(sc.claim(1)), 0)
	sc.later(time.Minute)
	want(t, "then the first", sc.claim(1)[0].Key.ID, "e-00000")
}

// A claim brings a bounded number of bytes into memory, and always one event.
func TestClaimIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	big := make([]byte, claimBytes/2+1)
	for i := range 3 {
		id := numbered("big", i)
		sc.accept(sc.receipt(string(big), item(id, id)))
	}
	want(t, "claimed", len(sc.claim(10)), 1)
	var items []event.Item
	for i := range 50 {
		items = append(items, item(numbered("small", i), "x"))
	}
	sc.claim(10)
	sc.claim(10)
	sc.accept(sc.receipt(string(big), items...))
	works := sc.claim(100)
	want(t, "events that share one body", len(works), 50)
	if &works[0].Body[0] != &works[49].Body[0] {
		t.Error("one request's body is in memory twice")
	}
}

// kill claims what is due and dies with it.
func (sc *scene) kill(boot string, max int) []event.Work {
	sc.t.Helper()
	works := sc.claim(max)
	sc.crash(boot)
	_, err := sc.Recover(context.Background(), sc.now, nil)
	must(sc.t, err)
	return works
}

// A claimed job does not stay claimed after a crash, nor does what is behind
// it.
func TestBugJOB01ClaimsOfADeadBootAreTakenBack(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	for i := range 5 {
		sc.receive(numbered("e", i))
	}
	want(t, "claimed by the first boot", len(sc.kill("boot2", 3)), 3)
	got := map[string]int{}
	for range 3 { // they run one at a time
		works := sc.claim(10)
		for _, w := range works {
			got[w.Key.ID] = w.Attempts
			must(t, sc.finish(done(w)).Err)
		}
	}
	for _, w := range sc.claim(10) {
		got[w.Key.ID] = w.Attempts
	}
	want(t, "found again", len(got), 5)
	for id, attempts := range got {
		want(t, "attempts of "+id, attempts, 1)
	}
}

// A claim of this boot is not touched by a recovery.
func TestRecoverLeavesOwnClaims(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.receive("a")
	w := sc.claim(1)[0]
	got, err := sc.Recover(context.Background(), sc.now, nil)
	must(t, err)
	want(t, "taken back", got, Recovered{})
	must(t, sc.finish(done(w)).Err)
}

// A poison event spends its own attempts only: it kills every boot that claims
// it, and the healthy ones beside and behind it have one attempt each.
func TestBugJOB05PoisonSpendsItsOwnAttempts(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	m := &memory{places: 4}
	sc.SetHandoff(m) // all four are in one boot's hands when it dies
	ids := []string{"healthy-1", "poison", "healthy-2", "healthy-3"}
	for _, id := range ids {
		sc.receive(id)
	}
	healthy := map[string]int{}
	crashes := 0
	var poison event.Work
	sc.crash("boot-0")
	for poison.State == "" {
		_, err := sc.Recover(context.Background(), sc.now, nil)
		must(t, err)
		for alive := true; alive && poison.State == ""; {
			works := sc.claim(10)
			alive = len(works) > 0
			for _, w := range works {
				switch {
				case w.Key.ID != "poison":
					healthy[w.Key.ID] = w.Attempts
					must(t, sc.finish(done(w)).Err)
				case w.Attempts > 6:
					poison = w
				default:
					crashes++
					alive = false
				}
			}
			if len(works) > 1 {
				t.Fatalf("%d events were claimed together with a poison event about", len(works))
			}
		}
		if poison.State == "" {
			sc.crash(numbered("boot", crashes))
			sc.later(time.Second)
		}
		if crashes > 20 {
			t.Fatal("the poison event spends no attempts")
		}
	}
	want(t, "crashes in its own hands", crashes, 6)
	want(t, "healthy ones", len(healthy), 3)
	for id, attempts := range healthy {
		want(t, "attempts of "+id, attempts, 1)
	}
	must(t, sc.finish(dead(poison)).Err)
}

// One event alone in the boot's hands is known to be the one that killed it.
func TestOneClaimedEventCountsAsAlone(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.receive("a")
	sc.kill("boot2", 1)
	sc.later(time.Second)
	want(t, "attempts", sc.claim(1)[0].Attempts, 2)

	sc.receive("b")
	sc.claim(1) // beside a, which may be the one
	sc.crash("boot3")
	_, err := sc.Recover(context.Background(), sc.now, nil)
	must(t, err)
	sc.later(time.Second)
	got := map[string]int{}
	for range 2 {
		for _, w := range sc.claim(10) {
			got[w.Key.ID] = w.Attempts
		}
	}
	want(t, "attempts of b", got["b"], 1)
	want(t, "attempts of a", got["a"], 3)
}

// A clock set back leaves nothing due beyond its policy's longest delay.
func TestClampDue(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.deliver("d")
	sc.receive("e")
	w := sc.claim(1)[0]
	must(t, sc.finish(event.Finish{Seq: w.Seq, Claim: w.Claim, Run: 1, State: event.Pending, NextAt: sc.now.Add(time.Hour)}).Err)
	sc.now = sc.now.Add(-3 * time.Hour)
	longest := map[string]time.Duration{"app": 30 * time.Minute, "other": time.Minute}
	moved, err := sc.ClampDue(context.Background(), sc.now, time.Hour, longest)
	must(t, err)
	want(t, "moved", moved, 2)
	next, _, err := sc.NextEvent(context.Background())
	must(t, err)
	want(t, "event due", next, sc.now.Add(time.Hour))
	next, _, err = sc.NextDelivery(context.Background(), "app")
	must(t, err)
	want(t, "delivery due", next, sc.now.Add(30*time.Minute))
	moved, err = sc.ClampDue(context.Background(), sc.now, time.Hour, longest)
	must(t, err)
	want(t, "moved again", moved, 0)
}
