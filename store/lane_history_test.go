package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"creel/event"
)

// history is a scene with what its workers and dispatchers have in hand.
type history struct {
	*scene
	works     []event.Work
	shipments []event.Shipment
	ids       int
	boot      int
}

// The invariant of lanes outlives every history: whatever is received, ends,
// dies, is revived, replayed, skipped, discarded, decided or cut off by a crash,
// and nobody is forgotten: in the end all that is not dead is through.
func TestLanesOutliveEveryHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		h := &history{scene: &scene{t: t, path: t.TempDir() + "/creel.db", now: start}, boot: 1}
		h.open("boot1")
		defer func() { must(t, h.Close()) }()
		steps := map[string]func(*rapid.T){
			"receive": h.receiveSome, "claim": h.claimSome, "finish": h.finishOne, "send": h.sendSome,
			"end": h.endOne, "act": h.actOnOne, "decide": h.decideOne, "crash": h.crashNow,
			"": func(rt *rapid.T) {
				h.checkLanes()
				if t.Failed() {
					rt.FailNow()
				}
			},
		}
		rt.Repeat(steps)
		h.end(rt)
	})
}

// end works off what can go.
func (h *history) end(rt *rapid.T) {
	for range 1000 {
		h.later(time.Hour)
		h.works = append(h.works, h.claim(100)...)
		h.shipments = append(h.shipments, h.send(100)...)
		if len(h.works)+len(h.shipments) == 0 {
			break
		}
		for len(h.works) > 0 {
			h.finishAs(0, done(h.works[0]))
		}
		for len(h.shipments) > 0 {
			h.endAs(0, outcome(h.shipments[0], event.DeliverySent))
		}
		h.checkLanes()
	}
	lanes, err := h.Lanes(context.Background(), "", 500)
	must(h.t, err)
	parked := map[string]bool{}
	for _, l := range lanes {
		parked[l.Lane+"|"+l.Destination] = true
	}
	left := 0
	must(h.t, h.list(context.Background(), `SELECT lane, '' FROM event WHERE state IN ('pending', 'claimed')
		UNION ALL SELECT lane, destination FROM delivery WHERE state IN ('waiting', 'ready', 'sending')`, nil, func(r row) error {
		if !parked[r.text(0)+"|"+r.text(1)] {
			left++
		}
		return nil
	}))
	if left > 0 || h.t.Failed() {
		rt.Fatalf("%d are left and no lane of theirs is parked", left)
	}
}

func (h *history) receiveSome(rt *rapid.T) {
	places := &memory{places: rapid.IntRange(0, 2).Draw(rt, "places")}
	h.SetHandoff(places)
	defer h.SetHandoff(nil)
	var items []event.Item
	for range rapid.IntRange(1, 3).Draw(rt, "items") {
		h.ids++
		id := fmt.Sprint("e", h.ids)
		if h.ids > 1 && rapid.IntRange(0, 4).Draw(rt, "again") == 0 {
			id = fmt.Sprint("e", rapid.IntRange(1, h.ids-1).Draw(rt, "id")) // a redelivery
		}
		it := item(id, id)
		it.Lane = rapid.SampledFrom([]string{"", "x", "x", "y"}).Draw(rt, "lane")
		it.Version = rapid.SampledFrom([]string{"", "1", "2", "3"}).Draw(rt, "version")
		it.LaneSkip = rapid.Bool().Draw(rt, "skip")
		items = append(items, it)
	}
	h.accept(h.receipt("request", items...))
	h.settle(0) // behind the hand-over
	h.works = append(h.works, places.works...)
}

func (h *history) claimSome(rt *rapid.T) {
	h.later(time.Duration(rapid.IntRange(0, 3).Draw(rt, "seconds")) * time.Second)
	h.works = append(h.works, h.claim(rapid.IntRange(1, 4).Draw(rt, "claim"))...)
}

func (h *history) finishOne(rt *rapid.T) {
	if len(h.works) == 0 {
		return
	}
	i := rapid.IntRange(0, len(h.works)-1).Draw(rt, "work")
	w := h.works[i]
	f := done(w)
	switch rapid.IntRange(0, 4).Draw(rt, "how") {
	case 0:
		f = dead(w)
	case 1:
		f = again(w, h.now.Add(2*time.Second))
	case 2:
		f = event.Finish{Seq: w.Seq, Claim: w.Claim, Run: w.Run, State: event.Pending, Release: true}
	default:
		for _, to := range []string{"app", "audit"} {
			e := forward(w, to)
			e.Lane, e.LaneSkip, e.Claimed = w.Lane, w.LaneSkip, rapid.Bool().Draw(rt, "born")
			f.Effects = append(f.Effects, e)
		}
	}
	h.finishAs(i, f)
}

func (h *history) finishAs(i int, f event.Finish) {
	got := h.finish(f)
	must(h.t, got.Err)
	h.shipments = append(h.shipments, got.Shipments...)
	h.works = append(h.works[:i], h.works[i+1:]...)
}

func (h *history) sendSome(rt *rapid.T) {
	to := rapid.SampledFrom([]string{"app", "audit"}).Draw(rt, "destination")
	_, shipments := h.ship(nil, event.ShipmentClaim{Destination: to, Max: rapid.IntRange(1, 4).Draw(rt, "claim")})
	h.shipments = append(h.shipments, shipments...)
}

func (h *history) endOne(rt *rapid.T) {
	if len(h.shipments) == 0 {
		return
	}
	i := rapid.IntRange(0, len(h.shipments)-1).Draw(rt, "shipment")
	state := rapid.SampledFrom([]event.DeliveryState{event.DeliverySent, event.DeliveryReady, event.DeliveryDead, event.DeliveryInDoubt}).Draw(rt, "end")
	f := outcome(h.shipments[i], state)
	f.NextAt = h.now.Add(time.Second)
	f.Release = state == event.DeliveryReady && rapid.Bool().Draw(rt, "release")
	h.endAs(i, f)
}

func (h *history) endAs(i int, f event.DeliveryFinish) {
	errs, _ := h.ship([]event.DeliveryFinish{f})
	must(h.t, errs[0])
	h.shipments = append(h.shipments[:i], h.shipments[i+1:]...)
}

// send claims what is due at both destinations.
func (h *history) send(n int) []event.Shipment {
	_, shipments := h.ship(nil, event.ShipmentClaim{Destination: "app", Max: n}, event.ShipmentClaim{Destination: "audit", Max: n})
	return shipments
}

func (h *history) actOnOne(rt *rapid.T) {
	kind := rapid.SampledFrom([]event.ActionKind{event.ActionReplay, event.ActionReplay, event.ActionDiscard, event.ActionLaneSkip}).Draw(rt, "action")
	if h.ids == 0 {
		return
	}
	if kind != event.ActionLaneSkip && rapid.Bool().Draw(rt, "all dead") {
		a := event.Action{Selector: event.Selector{State: event.Dead}}
		act := h.Replay
		if kind == event.ActionDiscard {
			act = h.Discard
		}
		_, err := act(context.Background(), h.now, a)
		must(h.t, err)
		return
	}
	if id := fmt.Sprint("e", rapid.IntRange(1, h.ids).Draw(rt, "id")); h.has(id) {
		h.actLane(kind, id)
	}
}

func (h *history) has(id string) bool {
	_, err := h.Find(context.Background(), key(id))
	return err == nil
}

func (h *history) decideOne(rt *rapid.T) {
	list, err := h.Deliveries(context.Background(), DeliveryFilter{State: event.DeliveryInDoubt}, event.Page{})
	must(h.t, err)
	if len(list) == 0 {
		return
	}
	d := list[rapid.IntRange(0, len(list)-1).Draw(rt, "delivery")]
	kind := rapid.SampledFrom([]event.ActionKind{event.ActionWasSent, event.ActionSendAgain, event.ActionGiveUp}).Draw(rt, "decision")
	_, err = h.Decide(context.Background(), h.now, event.Action{Kind: kind, Target: fmt.Sprint(d.ID)})
	must(h.t, err)
}

func (h *history) crashNow(rt *rapid.T) {
	if rapid.IntRange(0, 2).Draw(rt, "crash") > 0 {
		return
	}
	h.boot++
	h.crash(fmt.Sprint("boot", h.boot))
	review := rapid.Bool().Draw(rt, "review")
	_, err := h.Recover(context.Background(), h.now, func(string, int) bool { return review })
	must(h.t, err)
	h.works, h.shipments = nil, nil
}
