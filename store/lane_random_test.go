package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"

	"creel/event"
)

// Events of one object in their order, in reverse and in 200 random ones, with
// eight workers on the same file: the same state in the end, and never two
// events of one object at once.
func TestGateA3EveryOrderEndsAlike(t *testing.T) {
	t.Parallel()
	const objects, versions, workers = 202, 6, 8
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for _, lanes := range []bool{true, false} {
		sc := newScene(t)
		for object := range objects {
			order := random.Perm(versions)
			for i := range order {
				switch object {
				case 0:
					order[i] = i
				case 1:
					order[i] = versions - 1 - i
				}
			}
			var items []event.Item
			for _, v := range order {
				it := inLane(fmt.Sprintf("%03d-%d", object, v), fmt.Sprintf("order/%03d", object), strconv.Itoa(1700000000+v))
				if !lanes {
					it.Lane = ""
				}
				items = append(items, it)
			}
			for _, it := range items {
				sc.accept(sc.receipt(it.Key.ID, it))
			}
		}
		sc.race(workers, objects)
		want(t, "done", sc.number("SELECT count(*) FROM event WHERE state = 'done'"), objects*versions)
		for object := range objects {
			state, err := sc.ObjectState(context.Background(), fmt.Sprintf("order/%03d", object))
			must(t, err)
			want(t, "state", state.State, "v5")
			want(t, "version", state.Version, "1700000005")
		}
	}
}

// race works off all that is due with several workers, which see to it that no
// two of them have the same object where it has a lane.
func (sc *scene) race(workers, objects int) {
	sc.t.Helper()
	busy := make([]atomic.Int32, objects)
	each(workers, func(int) {
		var ends []event.Finish
		for idle := 0; idle < 2; {
			for _, f := range ends {
				object, _ := strconv.Atoi(f.Effects[0].(event.SetState).Object[len("order/"):])
				busy[object].Add(-1)
			}
			_, works, err := sc.Settle(context.Background(), sc.now, ends, 1+rand.IntN(3))
			if err != nil {
				sc.t.Error(err)
				return
			}
			ends = ends[:0]
			for _, w := range works {
				object, _ := strconv.Atoi(w.Object[len("order/"):])
				if n := busy[object].Add(1); n > 1 && w.Lane != "" {
					sc.t.Errorf("%d events of %s at once", n, w.Lane)
				}
				ends = append(ends, done(w, event.SetState{Key: w.Key.String() + "/r", Rule: "r", Object: w.Object,
					To: "v" + w.Key.ID[len("000-"):], Version: w.Version}))
			}
			if idle++; len(works) > 0 {
				idle = 0
			}
		}
	})
}
