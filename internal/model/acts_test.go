package model

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"creel/event"
)

// unreadable is why an event is dead as it came.
const unreadable = "unreadable"

// acts are what may happen, each with a name that its weight is a part of.
func (w *world) acts() map[string]func(*rapid.T) {
	acts := map[string]func(*rapid.T){
		"": w.check,
	}
	for name, act := range map[string]struct {
		weight int
		do     func(*rapid.T)
	}{
		"receive":    {6, w.receive},
		"again":      {3, w.receiveAgain},
		"work":       {5, func(*rapid.T) { w.work() }},
		"ship":       {4, func(*rapid.T) { w.ship() }},
		"ship once":  {2, func(*rapid.T) { _, _ = w.shipOnce() }},
		"wait":       {5, w.wait},
		"jump":       {2, w.jump},
		"weather":    {3, w.change},
		"crash":      {2, func(*rapid.T) { w.crash() }},
		"stop":       {1, func(*rapid.T) { w.stop() }},
		"not done":   {1, func(t *rapid.T) { w.trouble(t, undone) }},
		"not heard":  {2, func(t *rapid.T) { w.trouble(t, unsaid) }},
		"replay":     {2, w.replay},
		"replay all": {1, func(t *rapid.T) { w.bulk(t, event.ActionReplay) }},
		"discard":    {1, w.discard},
		"skip":       {2, w.skip},
		"pause":      {1, w.pause},
		"resume":     {2, w.resume},
		"decide":     {2, w.decide},
	} {
		for n := range act.weight {
			acts[fmt.Sprintf("%s %d", name, n)] = act.do
		}
	}
	return acts
}

// check is what holds after every step.
func (w *world) check(t *rapid.T) {
	synctest.Wait()
	w.compare()
	w.m.problems = append(w.m.problems, w.sky.problems...)
	for _, p := range w.m.problems {
		t.Error(p)
	}
	if len(w.m.problems) > 0 {
		t.FailNow()
	}
}

// receive stores new events: one or several in a request, some of which were
// there, some ignored or unreadable as they came.
func (w *world) receive(t *rapid.T) {
	source := rapid.SampledFrom([]string{free, laned, laned, skipping}).Draw(t, "source")
	var plans []plan
	var items []event.Item
	for range rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(t, "items") {
		n := w.next
		w.next++
		if n > 0 && rapid.IntRange(0, 9).Draw(t, "known") == 0 {
			n = rapid.IntRange(0, n-1).Draw(t, "which")
		}
		plans = append(plans, drawPlan(t, n))
		item := event.Item{Key: event.Key{Source: source, ID: fmt.Sprintf("e%d", n)}, Type: known, Object: drawObject(t),
			Version: fmt.Sprint(rapid.IntRange(8, 13).Draw(t, "version")), State: event.Pending}
		switch rapid.IntRange(0, 19).Draw(t, "state") {
		case 0:
			item.State, item.Error = event.Ignored, "no rule"
		case 1:
			item.State, item.Error = event.Dead, unreadable
		case 2:
			item.Type = unknown
		}
		items = append(items, item)
	}
	w.accept(t, source, plans, items)
}

// receiveAgain stores a known event again: as it was, with another body, or
// with its body under another id.
func (w *world) receiveAgain(t *rapid.T) {
	if len(w.m.events) == 0 {
		t.Skip()
	}
	e := choose(t, w.m.events, "event")
	p := e.plan
	item := event.Item{Key: e.key, Type: e.kind, Object: drawObject(t), Version: "9", State: event.Pending}
	switch rapid.IntRange(0, 4).Draw(t, "how") {
	case 0:
		p = drawPlan(t, w.next) // three others are kept
		w.next++
	case 1:
		item.Key.ID += "x"
	}
	w.accept(t, e.key.Source, []plan{p}, []event.Item{item})
}

func (w *world) accept(t *rapid.T, source string, plans []plan, items []event.Item) {
	body, parts, err := write(plans)
	w.must(err)
	r := &event.Receipt{Source: source, Origin: event.FromWebhook, At: w.clock.Now(), Body: body, Header: "Content-Type: application/json\n",
		BodyKey: sha256.Sum256(body), Items: items}
	if len(items) == 1 && source == free {
		r.BodyWindow = time.Hour
	}
	inline := rapid.IntRange(0, 3).Draw(t, "inline") == 0
	for i := range items {
		item := &items[i]
		alone, _, err := write(plans[i : i+1])
		w.must(err)
		sum := sha256.Sum256(alone)
		copy(item.Content[:], sum[:])
		item.Part = parts[i]
		w.prepare(r, item, inline)
	}
	told := *r
	told.Items = append([]event.Item(nil), items...)
	got, err := w.store.Accept(context.Background(), r)
	w.must(err)
	synctest.Wait()
	want := w.m.accept(&told, plans, w.door.since())
	if fmt.Sprint(got.Items) != fmt.Sprint(want) {
		w.m.problem("accepted %+v, want %+v", got.Items, want)
	}
}

// prepare is what app does before an event is stored.
func (w *world) prepare(r *event.Receipt, item *event.Item, inline bool) {
	if item.State != event.Pending {
		return
	}
	work := event.Work{Event: event.Event{Key: item.Key, Type: item.Type, Object: item.Object, Version: item.Version, State: event.Claimed,
		Run: 1, Attempts: 1, Origin: r.Origin, ReceivedAt: r.At}, Payload: event.Payload{Body: r.Body, Header: r.Header, Part: item.Part}}
	item.Lane, item.LaneSkip = w.rules.Lane(work.Event, work.Payload)
	if !inline {
		return
	}
	decision := w.rules.Decide(context.Background(), work)
	if decision.State == event.Done || decision.State == event.Ignored {
		item.Inline = &event.Finish{State: decision.State, Error: decision.Error, Verdicts: decision.Verdicts, Effects: decision.Effects}
	}
}

// wait lets the time pass, and jump sets the clock.
func (w *world) wait(t *rapid.T) {
	w.clock.Advance(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, 6 * time.Second, time.Minute, 12 * time.Minute, 2 * time.Hour}).Draw(t, "time"))
}

func (w *world) jump(t *rapid.T) {
	by := rapid.SampledFrom([]time.Duration{time.Hour, -time.Hour, -time.Hour}).Draw(t, "by")
	if by < 0 {
		if w.owing {
			w.work()
		}
		_, _ = w.shipOnce() // as it does every 30 seconds
		w.back = true
	}
	w.clock.Advance(by)
}

func (w *world) change(t *rapid.T) {
	to := rapid.SampledFrom([]string{app, desk, event.Mail}).Draw(t, "destination")
	w.sky.weather[to] = rapid.SampledFrom([]weather{fine, fine, broken, busy, refusal, gone, nobody, silent, mixed, mixed, mixed}).Draw(t, "weather")
}

// trouble is a write of a room that is not done, or one whose answer is lost
// with the server.
func (w *world) trouble(t *rapid.T, what trouble) {
	w.troubles = make([]trouble, rapid.IntRange(0, 3).Draw(t, "after"), 4)
	w.troubles = append(w.troubles, what)
	if rapid.Bool().Draw(t, "worker") {
		w.work()
	} else {
		w.ship()
	}
	w.troubles = nil
	if w.dirty {
		if rapid.Bool().Draw(t, "again") { // what it says again is refused
			w.work()
			w.ship()
		}
		w.crash()
	}
}

// choose draws a place of a list: what stands there is too long to be logged.
func choose[T any](t *rapid.T, list []T, label string) T {
	return list[rapid.IntRange(0, len(list)-1).Draw(t, label)]
}

func (w *world) pick(t *rapid.T) *kept {
	if len(w.m.events) == 0 {
		t.Skip()
	}
	if dead := w.m.deadLetters(); len(dead) > 0 && rapid.IntRange(0, 3).Draw(t, "dead") > 0 {
		return choose(t, dead, "dead letter")
	}
	return choose(t, w.m.events, "event")
}

func (w *world) action(target string) event.Action {
	return event.Action{Actor: "ann", Reason: "because", Target: target, At: w.clock.Now()}
}

// acted holds what an action came to against the model.
func (w *world) acted(a event.Action, err error, done, refused int) {
	w.must(err)
	if a.Done != done || a.Refused != refused || a.Finished.IsZero() {
		w.m.problem("%s did %d and refused %d, want %d and %d", a.Kind, a.Done, a.Refused, done, refused)
	}
}

func (w *world) one(ok bool) (done, refused int) {
	if ok {
		return 1, 0
	}
	return 0, 1
}

func (w *world) keyed(e *kept) event.Action {
	a := w.action("")
	a.Selector.Keys = []event.Key{e.key}
	return a
}

func (w *world) replay(t *rapid.T) {
	e := w.pick(t)
	a, err := w.store.Replay(context.Background(), w.clock.Now(), w.keyed(e))
	done, refused := w.one(w.m.replay(e))
	w.acted(a, err, done, refused)
}

func (w *world) discard(t *rapid.T) {
	e := w.pick(t)
	a, err := w.store.Discard(context.Background(), w.clock.Now(), w.keyed(e))
	done, refused := w.one(w.m.discard(e))
	w.acted(a, err, done, refused)
}

func (w *world) skip(t *rapid.T) {
	e := w.pick(t)
	a, err := w.store.SkipLane(context.Background(), w.clock.Now(), w.keyed(e))
	done, refused := w.one(w.m.skip(e))
	w.acted(a, err, done, refused)
}

// bulk acts on all dead letters.
func (w *world) bulk(_ *rapid.T, kind event.ActionKind) {
	a := w.action("")
	a.Selector.State = event.Dead
	do, act := w.store.Replay, w.m.replay
	if kind == event.ActionDiscard {
		do, act = w.store.Discard, w.m.discard
	}
	letters := w.m.deadLetters()
	a, err := do(context.Background(), w.clock.Now(), a)
	done := 0
	for _, e := range letters {
		if act(e) {
			done++
		}
	}
	w.acted(a, err, done, len(letters)-done)
}

func (w *world) pause(t *rapid.T) {
	to := rapid.SampledFrom([]string{app, desk, event.Mail}).Draw(t, "destination")
	a, err := w.store.Pause(context.Background(), w.clock.Now(), w.action(to))
	done, refused := w.one(w.m.places[to] != event.DestinationPaused)
	w.m.places[to] = event.DestinationPaused
	w.acted(a, err, done, refused)
	if rapid.Bool().Draw(t, "late") { // the dispatcher asks before it is told
		_, _ = w.shipOnce()
	}
	w.dispatcher.Refresh()
}

func (w *world) resume(t *rapid.T) {
	w.open1(rapid.SampledFrom([]string{app, desk, event.Mail}).Draw(t, "destination"))
}

func (w *world) open1(to string) {
	a, err := w.store.Resume(context.Background(), w.clock.Now(), w.action(to))
	state, known := w.m.places[to]
	done, refused := w.one(known && state != event.DestinationEnabled)
	if known {
		w.m.places[to] = event.DestinationEnabled
	}
	w.acted(a, err, done, refused)
	w.dispatcher.Refresh()
}

// decide is a word on a delivery in doubt, or on one that is not.
func (w *world) decide(t *rapid.T) {
	var doubtful []*parcel
	for _, p := range w.m.parcels {
		if p.state == event.DeliveryInDoubt {
			doubtful = append(doubtful, p)
		}
	}
	if len(doubtful) == 0 {
		t.Skip()
	}
	p := choose(t, doubtful, "delivery")
	a := w.action(strconv.FormatInt(p.id, 10))
	a.Kind = rapid.SampledFrom([]event.ActionKind{event.ActionWasSent, event.ActionSendAgain, event.ActionGiveUp}).Draw(t, "word")
	a, err := w.store.Decide(context.Background(), w.clock.Now(), a)
	done, refused := w.one(w.m.decide(p, a.Kind))
	w.acted(a, err, done, refused)
}
