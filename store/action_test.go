package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"creel/event"
)

// kill off one event and one delivery; a third event is done and sent.
func deadLetters(sc *scene) {
	sc.t.Helper()
	sc.receive("dead")
	must(sc.t, sc.finish(dead(sc.claim(1)[0])).Err)
	sc.deliver("half")
	sc.ship([]event.DeliveryFinish{outcome(sc.send(1)[0], event.DeliveryDead)})
	sc.deliver("fine")
	sc.ship([]event.DeliveryFinish{outcome(sc.send(1)[0], event.DeliverySent)})
}

// The audit row, the results and the moves commit together, and a second
// replay finds the work queued.
func TestReplayIsAuditedAndOne(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	deadLetters(sc)
	ctx := context.Background()
	a := sc.replay(event.Selector{State: event.Dead})
	want(t, "selected", a.Selected, 2)
	want(t, "done", a.Done, 2)
	want(t, "finished", a.Finished, start)
	again := sc.replay(event.Selector{State: event.Dead})
	want(t, "double click: selected", again.Selected, 0)
	again = sc.replay(event.Selector{Keys: []event.Key{key("dead"), key("half")}})
	want(t, "by key: refused", again.Refused, 2)
	items, err := sc.ActionItems(ctx, again.ID, 0)
	must(t, err)
	want(t, "why", items[0].Result, refusedQueued)
	items, err = sc.ActionItems(ctx, a.ID, 0)
	must(t, err)
	want(t, "items", len(items), 2)
	want(t, "first in order of receipt", items[0], event.ActionItem{Action: a.ID, Event: key("dead"), Result: resultReplayed})
	d := sc.detail("half")
	want(t, "state", d.State, event.Pending)
	want(t, "run", d.Run, 2)
	want(t, "delivery", d.Deliveries[0].State, event.DeliveryReady)
	want(t, "delivery's run", d.Deliveries[0].Run, 2)
	want(t, "attempts of the first run are kept", len(d.Deliveries[0].Attempts), 1)
	want(t, "actions on it", len(d.Actions), 2)
	want(t, "actor", d.Actions[1].Actor, "ann")
	want(t, "selector", d.Actions[1].Selector.State, event.Dead)
	_, err = sc.Replay(ctx, sc.now, event.Action{Selector: event.Selector{Keys: []event.Key{key("nobody")}}})
	if !errors.Is(err, event.ErrNotFound) {
		t.Errorf("unknown key: %v, want ErrNotFound", err)
	}
}

// A replay of what is done runs its rules again and sends nothing twice.
func TestReplayOfDoneSendsNothingTwice(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	deadLetters(sc)
	sc.replay(event.Selector{Keys: []event.Key{key("fine")}})
	w := sc.claim(1)[0]
	got := sc.finish(done(w, forward(w, "app")))
	must(t, got.Err)
	want(t, "verdict", got.Verdicts[0].Decision, event.AlreadyApplied)
	want(t, "sent again", len(sc.send(1)), 0)
	d := sc.detail("fine")
	want(t, "verdicts of both runs", len(d.Verdicts), 2)
	want(t, "delivery", d.Deliveries[0].State, event.DeliverySent)
}

// What another replay took since it was selected is refused.
func TestReplayRefusesWhatRanSince(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	deadLetters(sc)
	picks, err := sc.pick(context.Background(), event.Action{Selector: event.Selector{State: event.Dead}})
	must(t, err)
	sc.replay(event.Selector{State: event.Dead})
	for _, w := range sc.claim(2) {
		must(t, sc.finish(done(w)).Err)
	}
	late := sc.newBulk(event.Action{Kind: event.ActionReplay, At: sc.now, Selected: len(picks)}, picks, replay)
	must(t, late.chunk())
	want(t, "refused", late.action.Refused, 2)
	items, err := sc.ActionItems(context.Background(), late.action.ID, 0)
	must(t, err)
	want(t, "why", items[0].Result, refusedReplayed)
	want(t, "claimed", len(sc.claim(2)), 0)
}

// Discarded dead letters leave the list, and stay.
func TestDiscardIsAudited(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	deadLetters(sc)
	ctx := context.Background()
	a, err := sc.Discard(ctx, sc.now, event.Action{Actor: "ann", Selector: event.Selector{}})
	must(t, err)
	want(t, "done", a.Done, 2)
	want(t, "refused", a.Refused, 1)
	want(t, "dead event", sc.detail("dead").State, event.Discarded)
	half := sc.detail("half")
	want(t, "event of a dead delivery", half.State, event.Done)
	want(t, "its delivery", half.Deliveries[0].State, event.DeliveryDiscarded)
	list, err := sc.Events(ctx, event.Selector{State: event.Dead}, event.Page{})
	must(t, err)
	want(t, "dead letters", len(list), 0)
	body := `{"id":"dead"}`
	want(t, "a redelivery revives it", sc.accept(sc.receipt(body, item("dead", body)))[0].Revived, false)
	want(t, "a replay takes it", sc.replay(event.Selector{Keys: []event.Key{key("dead")}}).Done, 0)
	if i := sc.open1(event.CauseDeadDelivery, "app"); i != nil {
		t.Errorf("nothing is dead and %v is open", i)
	}
	want(t, "events", sc.number("SELECT count(*) FROM event"), 3)
}

// A bulk action goes on in chunks after a crash, and audits every key once.
func TestBulkReplayGoesOnAfterACrash(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	const all = 3*actionChunk + 7
	sc.fill(all)
	for works := sc.claim(256); len(works) > 0; works = sc.claim(256) {
		var deaths []event.Finish
		for _, w := range works {
			deaths = append(deaths, dead(w))
		}
		sc.settle(0, deaths...)
	}
	picks, err := sc.pick(context.Background(), event.Action{Selector: event.Selector{State: event.Dead}})
	must(t, err)
	cut := sc.newBulk(event.Action{Kind: event.ActionReplay, Actor: "ann", At: sc.now, Selected: len(picks)}, picks, replay)
	must(t, cut.chunk())
	must(t, cut.chunk())
	sc.crash("boot2")
	got, err := sc.Recover(context.Background(), sc.now, nil)
	must(t, err)
	want(t, "goes on", got.Actions, 1)
	sc.desk.actions.running.Wait()
	actions, err := sc.Actions(context.Background(), event.Page{})
	must(t, err)
	want(t, "actions", len(actions), 1)
	want(t, "done", actions[0].Done, all)
	want(t, "finished", actions[0].Finished.IsZero(), false)
	want(t, "audited", sc.number("SELECT count(DISTINCT event) FROM action_item"), all)
	want(t, "items", sc.number("SELECT count(*) FROM action_item"), all)
	want(t, "pending in run 2", sc.number("SELECT count(*) FROM event WHERE state = 'pending' AND run = 2"), all)
	want(t, "selection kept", sc.number("SELECT count(*) FROM action WHERE selection IS NOT NULL"), 0)
	got, err = sc.Recover(context.Background(), sc.now, nil)
	must(t, err)
	want(t, "goes on twice", got.Actions, 0)
}

// A caller who leaves does not stop the action.
func TestBulkReplayOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	sc.fill(2*actionChunk + 1)
	for works := sc.claim(256); len(works) > 0; works = sc.claim(256) {
		var ends []event.Finish
		for _, w := range works {
			ends = append(ends, done(w))
		}
		sc.settle(0, ends...)
	}
	ctx, leave := context.WithCancel(context.Background())
	left := make(chan struct{})
	acted := 0
	_, err := sc.perform(ctx, sc.now, event.Action{Kind: event.ActionReplay}, func(t *tx, now int64, p pick) (string, bool, error) {
		if acted++; acted == actionChunk+1 { // the first of the second chunk
			leave()
			<-left
		}
		return replay(t, now, p)
	})
	close(left)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a caller who left: %v, want its context's error", err)
	}
	sc.desk.actions.running.Wait()
	want(t, "pending", sc.number("SELECT count(*) FROM event WHERE state = 'pending'"), 2*actionChunk+1)
	actions, err := sc.Actions(context.Background(), event.Page{})
	must(t, err)
	want(t, "finished", actions[0].Finished, start)
}

func TestSelectionIsFrozenWhole(t *testing.T) {
	t.Parallel()
	picks := []pick{{1, 1}, {2, 300}, {70_000, 2}, {1 << 40, 1}}
	got, err := thaw(freeze(picks))
	must(t, err)
	want(t, "length", len(got), len(picks))
	for i := range got {
		want(t, "pick", got[i], picks[i])
	}
	frozen := freeze(picks)
	if _, err := thaw(frozen[:len(frozen)-1]); !errors.Is(err, errSelection) {
		t.Errorf("a cut selection: %v, want errSelection", err)
	}
}

// Selectors find what they say, in lists and in actions alike.
func TestSelectors(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	deadLetters(sc)
	it := item("other", "o")
	it.Key.Account, it.Type, it.Object, it.Version = "acct", "charge[x].failed", "ch_1", "7"
	sc.later(time.Hour)
	sc.accept(sc.receipt("o", it))
	tests := map[string]struct {
		selector event.Selector
		want     string
	}{
		"all":               {event.Selector{}, "other fine half dead"},
		"state":             {event.Selector{State: event.Done}, "fine half"},
		"dead":              {event.Selector{State: event.Dead}, "half dead"},
		"pending":           {event.Selector{State: event.Pending}, "other"},
		"source":            {event.Selector{Source: "gen"}, "other fine half dead"},
		"another source":    {event.Selector{Source: "gen2"}, ""},
		"account":           {event.Selector{Account: "acct"}, "other"},
		"type":              {event.Selector{Type: "invoice.*"}, "fine half dead"},
		"type with bracket": {event.Selector{Type: "charge[x].*"}, "other"},
		"type as written":   {event.Selector{Type: "INVOICE.*"}, ""},
		"object":            {event.Selector{Object: "ch_1"}, "other"},
		"destination":       {event.Selector{Destination: "app"}, "fine half"},
		"dead and where":    {event.Selector{State: event.Dead, Destination: "app"}, "half"},
		"error":             {event.Selector{Error: "such customer"}, "dead"},
		"delivery's error":  {event.Selector{Error: "status 500"}, "half"},
		"since":             {event.Selector{Since: start.Add(time.Minute)}, "other"},
		"until":             {event.Selector{Until: start.Add(time.Minute)}, "fine half dead"},
		"keys":              {event.Selector{Keys: []event.Key{key("fine"), key("dead"), key("fine"), key("nobody")}}, "fine dead"},
		"keys and state":    {event.Selector{Keys: []event.Key{key("fine"), key("half")}, State: event.Dead}, "half"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			list, err := sc.Events(context.Background(), test.selector, event.Page{})
			must(t, err)
			want(t, "list", idsOf(list), test.want)
			picks, err := sc.pick(context.Background(), event.Action{Selector: test.selector})
			must(t, err)
			want(t, "picked", len(picks), len(list))
			for i, p := range picks {
				want(t, "pick", p.seq, list[len(list)-1-i].Seq)
			}
		})
	}
}

func idsOf(list []event.Event) string {
	ids := ""
	for _, e := range list {
		if ids != "" {
			ids += " "
		}
		ids += e.Key.ID
	}
	return ids
}

// Pages follow each other without a gap or a repetition.
func TestPages(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	for i := range 7 {
		sc.receive(numbered("e", i))
	}
	for _, w := range sc.claim(5) {
		must(t, sc.finish(dead(w)).Err)
	}
	for _, state := range []event.State{"", event.Dead} {
		page := event.Page{Limit: 2}
		seen := map[string]bool{}
		for {
			list, err := sc.Events(context.Background(), event.Selector{State: state}, page)
			must(t, err)
			if len(list) == 0 {
				break
			}
			for _, e := range list {
				if seen[e.Key.ID] {
					t.Errorf("%s is on two pages", e.Key.ID)
				}
				seen[e.Key.ID] = true
			}
			page.Before = list[len(list)-1].Seq
		}
		total := 7
		if state == event.Dead {
			total = 5
		}
		want(t, "on all pages of "+string(state), len(seen), total)
	}
}

func TestDeliveryLists(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	deadLetters(sc)
	fine := key("fine")
	tests := map[string]struct {
		filter DeliveryFilter
		want   int
	}{
		"all":         {DeliveryFilter{}, 2},
		"dead":        {DeliveryFilter{State: event.DeliveryDead}, 1},
		"sent":        {DeliveryFilter{State: event.DeliverySent}, 1},
		"ready":       {DeliveryFilter{State: event.DeliveryReady}, 0},
		"destination": {DeliveryFilter{Destination: "app"}, 2},
		"event":       {DeliveryFilter{Event: &fine}, 1},
		"source":      {DeliveryFilter{Source: "gen2"}, 0},
		"key":         {DeliveryFilter{Key: key("half").String() + "/r"}, 1},
		"error":       {DeliveryFilter{Error: "500"}, 1},
	}
	for name, test := range tests {
		list, err := sc.Deliveries(context.Background(), test.filter, event.Page{})
		must(t, err)
		want(t, name, len(list), test.want)
		for _, d := range list {
			if d.Event.Source != "gen" {
				t.Errorf("%s: event %v", name, d.Event)
			}
		}
	}
	nobody := key("nobody")
	if _, err := sc.Deliveries(context.Background(), DeliveryFilter{Event: &nobody}, event.Page{}); !errors.Is(err, event.ErrNotFound) {
		t.Errorf("unknown event: %v, want ErrNotFound", err)
	}
}

func TestStats(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	deadLetters(sc)
	sc.receive("new")
	s, err := sc.Stats(context.Background())
	must(t, err)
	want(t, "done", s.Done, 2)
	want(t, "dead", s.Events[event.Dead], 1)
	want(t, "pending", s.Events[event.Pending], 1)
	want(t, "sent", s.Sent, 1)
	want(t, "dead deliveries", s.Deliveries[event.DeliveryDead], 1)
	if s.Bytes <= 0 {
		t.Error("no size")
	}
}

func TestIdentities(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	ctx := context.Background()
	now := map[string]string{"gen": "1", "gen2": "1"}
	changed := func() int {
		list, err := sc.ChangedIdentities(ctx, now)
		must(t, err)
		return len(list)
	}
	want(t, "never seen", changed(), 0)
	must(t, sc.SaveIdentities(ctx, sc.now, now))
	now = map[string]string{"gen": "2", "gen2": "2"}
	want(t, "without events", changed(), 0)
	sc.receive("a")
	want(t, "with events", changed(), 1)
	must(t, sc.SaveIdentities(ctx, sc.now, now))
	want(t, "accepted", changed(), 0)
}

// A delivery that dies after its event was discarded is a dead letter too, and
// can be taken off the list.
func TestWhatDiesAfterItsEventWasDiscardedCanBeDiscarded(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	w, _ := sc.deliver("a")
	sc.replay(event.Selector{Keys: []event.Key{w.Key}})
	must(t, sc.finish(dead(sc.claim(1)[0])).Err)
	discard := func() event.Action {
		a, err := sc.Discard(context.Background(), sc.now, event.Action{Actor: "ann", Reason: "old", Selector: event.Selector{State: event.Dead}})
		must(t, err)
		return a
	}
	want(t, "discarded with the event", discard().Done, 1)
	sc.ship([]event.DeliveryFinish{outcome(sc.send(1)[0], event.DeliveryDead)})
	want(t, "discarded with the delivery", discard().Done, 1)
	want(t, "dead letters", discard().Selected, 0)
	if open := sc.open1(event.CauseDeadDelivery, "app"); open != nil {
		t.Errorf("nothing is dead, and this is open: %+v", open)
	}
}
