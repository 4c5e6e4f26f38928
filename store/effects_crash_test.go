package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"
	sqlite3 "modernc.org/sqlite/lib"

	"creel/event"
)

// everyEffect is one event's worth of every kind, in two rules.
func everyEffect(w event.Work) []event.Effect {
	k := w.Key.String() + "/r"
	second := recordOf(w.Key.String()+"/second", "a", "2")
	second.Rule = "second"
	return []event.Effect{
		recordOf(k, "a", "1"), grantOf(k, 100), stateOf("paid", "7"), mailOf(k, "ann@example.com"), forward(w, "app"),
		second, event.Grant{Key: "back", Rule: "second", Reverse: k, Amount: 40},
	}
}

// The disk refuses the n-th operation around the finish of an event, for every
// n; the process ends there or goes on. Each effect is applied once, or none
// is: never some of them, never twice.
func TestGateA4EveryEffectWhereverTheDiskFails(t *testing.T) {
	t.Parallel()
	oneAtATime(t)
	clean := ""
	for _, crash := range []bool{false, true} {
		hits := 0
		for n := 0; ; n++ {
			got, hit := finishOnFailingDisk(t, n, crash)
			if n == 0 {
				clean = got
				continue
			}
			if got != clean {
				t.Fatalf("operation %d refused, crash %t: left\n%s\nwant\n%s", n, crash, got, clean)
			}
			if !hit {
				break
			}
			hits++
		}
		if hits < 3 {
			t.Errorf("only %d operations were refused: the test tests nothing", hits)
		}
	}
}

// finishOnFailingDisk is one run in which the n-th operation fails; 0 is none.
func finishOnFailingDisk(t *testing.T, n int, crash bool) (tables string, hit bool) {
	t.Helper()
	d := newDisk(t)
	sc := &scene{t: t, path: filepath.Join(t.TempDir(), "creel.db"), now: start}
	reopen := func(boot string) {
		s, err := Open(context.Background(), Options{Path: sc.path, Log: zerolog.Nop(), Boot: boot, vfs: d.name,
			Clock: func() time.Time { return start }})
		must(t, err)
		sc.Store = s
	}
	reopen("boot0")
	w := sc.claimed("a")
	d.set(func(i int, _ operation) int32 {
		if i == n {
			hit = true
			return sqlite3.SQLITE_IOERR_WRITE
		}
		return sqlite3.SQLITE_OK
	})
	finished, _, err := sc.Settle(context.Background(), sc.now, []event.Finish{done(w, everyEffect(w)...)}, 0)
	boot := 0
	for err != nil || finished[0].Err != nil && !errors.Is(finished[0].Err, event.ErrClaimLost) {
		d.set(nil)
		if boot++; boot > 3 {
			t.Fatalf("operation %d: %v, %v", n, err, finished)
		}
		if crash {
			_ = sc.Close()
			reopen(fmt.Sprintf("boot%d", boot))
			_, err := sc.Recover(context.Background(), sc.now, nil)
			must(t, err)
			for _, again := range sc.claim(1) {
				w = again
			}
		} else {
			eventually(t, "healthy after the fault", func() bool { return sc.Healthy() == nil })
		}
		finished, _, err = sc.Settle(context.Background(), sc.now, []event.Finish{done(w, everyEffect(w)...)}, 0)
	}
	d.set(nil)
	want(t, "state", sc.detail("a").State, event.Done)
	tables = sc.effects()
	_ = sc.Close()
	return tables, hit
}

// The feedback-alert flow: one alert for a feedback however often and under
// however many ids it is told, an escalation is another operation, and the team
// hears of each once, by the outbox.
func TestGateA10OneAlertForAFeedback(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	alert := func(feedback, kind string) []event.Effect {
		k := "feedback/p1/" + feedback + "/" + kind
		return []event.Effect{
			event.Record{Key: k, Rule: "r", Of: "alert", Fields: []event.Field{{Name: "feedback", Value: feedback}, {Name: "kind", Value: kind}}},
			event.Forward{Key: k, Rule: "r", Destination: "team"},
		}
	}
	for range 5 { // the same delivery again and again
		sc.receive("created")
	}
	works := sc.claim(9)
	want(t, "events for five deliveries", len(works), 1)
	sc.decides(sc.finish(done(works[0], alert("f1", "initial-alert")...)), event.Applied)
	sc.decides(sc.run("updated", alert("f1", "initial-alert")...), event.AlreadyApplied, "gen//created did this operation")
	sc.receive("updated again")
	sc.crash("boot2") // before it is taken, and its finish is lost with the next
	sc.claim(1)
	sc.crash("boot3")
	_, err := sc.Recover(context.Background(), sc.now, nil)
	must(t, err)
	sc.decides(sc.finish(done(sc.claim(1)[0], alert("f1", "initial-alert")...)), event.AlreadyApplied)
	sc.decides(sc.run("escalated", alert("f1", "escalation")...), event.Applied)
	sc.decides(sc.run("escalated twice", alert("f1", "escalation")...), event.AlreadyApplied)
	sc.decides(sc.run("another", alert("f2", "initial-alert")...), event.Applied)
	sc.replay(event.Selector{State: event.Done})
	for _, w := range sc.claim(9) {
		feedback, kind := "f1", "initial-alert"
		switch w.Key.ID {
		case "escalated", "escalated twice":
			kind = "escalation"
		case "another":
			feedback = "f2"
		}
		sc.decides(sc.finish(done(w, alert(feedback, kind)...)), event.AlreadyApplied)
	}
	want(t, "alerts", sc.number(`SELECT count(*) FROM record WHERE kind = 'alert'`), 3)
	want(t, "notices", sc.number(`SELECT count(*) FROM delivery WHERE destination = 'team' AND state = 'ready'`), 3)
	want(t, "receipts", sc.number(`SELECT count(*) FROM event WHERE state = 'done'`), 6)
}
