package store

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"creel/event"
)

func (sc *scene) stateOf(object string) string {
	sc.t.Helper()
	state := ""
	must(sc.t, sc.list(sc.t.(*testing.T).Context(), `SELECT state FROM state WHERE object = ?`, []any{object}, func(r row) error {
		state = r.text(0)
		return nil
	}))
	return state
}

// An older event that arrives later overwrites nothing, and its rule does
// nothing at all.
func TestBugORD01OlderArrivesLater(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	updated := stateOf("active", "1623979266")
	created := stateOf("incomplete", "1623979265")
	sc.decides(sc.run("updated", updated, recordOf("rec/updated")), event.Applied)
	sc.decides(sc.run("created", recordOf("rec/created"), created, mailOf("m", "ann@example.com"), grantOf("g", 1)),
		event.Stale, "1623979266", "1623979265")
	want(t, "state", sc.stateOf("order/1"), "active")
	want(t, "event", sc.detail("created").State, event.Done)
	want(t, "records", sc.number(`SELECT count(*) FROM record`), 1)
	want(t, "mails and grants", sc.number(`SELECT (SELECT count(*) FROM delivery) + (SELECT count(*) FROM ledger)`), 0)
	want(t, "transitions", sc.number(`SELECT count(*) FROM transition`), 1)
}

// A stale rule takes back only what it did itself.
func TestStaleRuleHurtsNoOther(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	must(t, sc.run("new", stateOf("active", "9")).Err)
	first, second := stateOf("old", "1"), stateOf("old", "1")
	first.Object = "order/2" // applies, before its neighbour is found stale
	other := recordOf("rec")
	other.Rule = "other"
	w := sc.claimed("old")
	got := sc.finish(done(w, first, other, second, recordOf("rec/r")))
	must(t, got.Err)
	want(t, "verdicts", len(got.Verdicts), 2)
	want(t, "stale rule", got.Verdicts[0].Decision, event.Stale)
	want(t, "other rule", got.Verdicts[1].Decision, event.Applied)
	want(t, "state of the other object", sc.stateOf("order/2"), "")
	want(t, "transitions", sc.number(`SELECT count(*) FROM transition`), 1)
	want(t, "records", sc.number(`SELECT count(*) FROM record`), 1)
	want(t, "event", sc.detail("old").State, event.Done)
}

// Equal versions: the same end in every order of arrival, and the verdict says
// tie.
func TestGateA13EqualVersionsEndAlike(t *testing.T) {
	t.Parallel()
	ids := []string{"a", "b", "c"}
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		sc := newScene(t)
		for n, i := range order {
			got := sc.run(ids[i], stateOf("by "+ids[i], "7"))
			if n == 0 {
				sc.decides(got, event.Applied)
				continue
			}
			top := ids[max(order[0], order[n-1])]
			if n == 2 {
				top = ids[max(order[0], order[1])]
			}
			decision := event.Stale
			if ids[i] > top {
				decision = event.Applied
			}
			sc.decides(got, decision, "tie", "gen//"+top)
		}
		want(t, fmt.Sprint(order), sc.stateOf("order/1"), "by c")
		for _, id := range ids { // again, in another order of arrival
			e := stateOf("by "+id, "7")
			got := sc.again(id, e)
			if id == "c" {
				sc.decides(got, event.AlreadyApplied)
			} else {
				sc.decides(got, event.Stale, "tie")
			}
		}
	}
}

// With fetch, nobody decides between equal versions here: nothing is stored,
// the claim holds, and what the owner of the object says is applied.
func TestGateA13WithFetchTheFetchedState(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{{"a", "b"}, {"b", "a"}} {
		sc := newScene(t)
		asked := stateOf("by event", "7")
		asked.Fetchable = true
		sc.decides(sc.run(order[0], asked), event.Applied)
		w := sc.claimed(order[1])
		for _, effects := range [][]event.Effect{{asked}, {recordOf("rec"), asked}} {
			sc.undecided(w, sc.finish(done(w, effects...)), event.ErrTie)
		}
		want(t, "records", sc.number(`SELECT count(*) FROM record`), 0)
		fetched := stateOf("by its owner", "7")
		fetched.Fetched = true
		sc.decides(sc.finish(done(w, fetched)), event.Applied)
		sc.decides(sc.again(order[1], fetched), event.AlreadyApplied)
		want(t, "state", sc.stateOf("order/1"), "by its owner")
		sc.decides(sc.run("late", stateOf("older", "6")), event.Stale)
		fetched.Version, fetched.To = "5", "set back"
		sc.decides(sc.run("fetched older", fetched), event.Stale, "its owner answered with 5")
		sc.decides(sc.run("between", stateOf("older", "6")), event.Stale)
		want(t, "state", sc.stateOf("order/1"), "by its owner")
		fetched.Version, fetched.To = "", "set back"
		sc.decides(sc.run("fetched without a version", fetched), event.Applied)
		want(t, "state", sc.stateOf("order/1"), "set back")
		sc.decides(sc.run("fetched again", fetched), event.AlreadyApplied)
		sc.decides(sc.run("newer", stateOf("newer", "8")), event.Applied)
	}
}

// A compare-and-set leaves an expected state, once for its key.
func TestCompareAndSet(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	w := sc.claimed("early")
	shipped := moveOf("ship/1", "shipped", "paid")
	sc.undecided(w, sc.finish(done(w, shipped)), event.ErrNotYet)
	sc.decides(sc.run("new", moveOf("new/1", "new", "")), event.Applied)
	sc.decides(sc.run("paid", moveOf("pay/1", "paid", "", "new")), event.Applied)
	sc.decides(sc.finish(done(w, shipped)), event.Applied)
	want(t, "state", sc.stateOf("order/1"), "shipped")
	sc.decides(sc.run("paid under another id", moveOf("pay/1", "paid", "", "new")), event.AlreadyApplied, "gen//paid did this")
	want(t, "state", sc.stateOf("order/1"), "shipped")
	other := moveOf("pay/1", "refunded", "new")
	sc.dies("other", sc.run("other", other), event.ErrMismatch, `"paid"`, `"refunded"`)
	stale := moveOf("pay/2", "paid", "new")
	stale.OnRefuse = event.RefuseStale
	sc.decides(sc.run("stale", stale, recordOf("rec")), event.Stale, `"shipped"`, `"new"`)
	want(t, "records", sc.number(`SELECT count(*) FROM record`), 0)
	stale.OnRefuse = event.RefuseDead
	sc.dies("dead", sc.run("dead", stale), event.ErrRefused, `"shipped"`, `"new"`)
	want(t, "transitions", sc.number(`SELECT count(*) FROM transition`), 3)
}

// A compare-and-set keeps the version that is stored, so that an older event
// stays older.
func TestCompareAndSetKeepsTheVersion(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	must(t, sc.run("v7", stateOf("paid", "7")).Err)
	must(t, sc.run("set", moveOf("k", "shipped", "paid")).Err)
	sc.decides(sc.run("v6", stateOf("new", "6")), event.Stale)
	sc.decides(sc.again("v7", stateOf("paid", "7")), event.AlreadyApplied)
	want(t, "state", sc.stateOf("order/1"), "shipped")
}

func TestStateIsComparedAndChecked(t *testing.T) {
	t.Parallel()
	sc := newScene(t)
	must(t, sc.run("a", stateOf("paid", "7")).Err)
	sc.dies("a", sc.again("a", stateOf("void", "7")), event.ErrMismatch, `"paid"`, `"void"`)
	changed := stateOf("paid", "7")
	changed.Fields = []event.Field{{Name: "total", Value: "10"}}
	sc.dies("a", sc.again("a", changed), event.ErrMismatch, "total")
	sc.dies("b", sc.run("b", stateOf("paid", "v7")), event.ErrRefused, `"v7"`)
	sc.dies("c", sc.run("c", stateOf("", "7")), event.ErrRefused)
	sc.dies("d", sc.run("d", event.SetState{Key: "k", Rule: "r", Object: "order/1", To: "x"}), event.ErrRefused)
}

// A replay that overlaps normal work overwrites nothing newer and doubles
// nothing, in whatever order the finishes come.
func TestGateA9ReplayBesideNormalWork(t *testing.T) {
	t.Parallel()
	for round := range 20 {
		sc := newScene(t)
		random := rand.New(rand.NewPCG(9, uint64(round)))
		effects := func(w event.Work) []event.Effect {
			version := w.Key.ID[1:]
			return []event.Effect{
				recordOf(w.Key.String()+"/r", "version", version), grantOf(w.Key.String()+"/r", 1),
				stateOf("v"+version, version), mailOf("order/1/confirmed", "ann@example.com"),
			}
		}
		for i := range 6 {
			sc.receive(fmt.Sprintf("v%d", i))
		}
		held := sc.claim(6)
		finished := map[string]bool{}
		for len(held) > 0 {
			i := random.IntN(len(held))
			w := held[i]
			held = append(held[:i], held[i+1:]...)
			must(t, sc.finish(done(w, effects(w)...)).Err)
			finished[w.Key.ID] = true
			if random.IntN(2) == 0 && w.Run < 3 {
				sc.replay(event.Selector{Keys: []event.Key{w.Key}})
				held = append(held, sc.claim(1)...)
			}
		}
		want(t, "finished", len(finished), 6)
		want(t, "state", sc.stateOf("order/1"), "v5")
		want(t, "mails", sc.number(`SELECT count(*) FROM delivery`), 1)
		want(t, "doubled records", sc.number(`SELECT count(*) FROM (SELECT 1 FROM record GROUP BY key HAVING count(*) > 1)`), 0)
		want(t, "grants and records", sc.number(`SELECT count(*) FROM ledger`), sc.number(`SELECT count(*) FROM record`))
		want(t, "balance", sc.number(`SELECT amount FROM balance`), sc.number(`SELECT count(*) FROM ledger`))
		want(t, "falling versions", sc.number(`SELECT count(*) FROM transition AS a JOIN transition AS b ON a.previous = b.id
			WHERE CAST(a.version AS INTEGER) <= CAST(b.version AS INTEGER)`), 0)
	}
}
