package jobs

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"creel/config"
	"creel/event"
	"creel/handlers"
	"creel/internal/testkit"
)

// keeper is the owner of objects: it answers with what they are now.
type keeper struct {
	t      testing.TB
	server *httptest.Server
	answer func(k *keeper, w http.ResponseWriter, object string)

	mu      sync.Mutex
	asked   []string
	inside  map[string]int
	overlap bool // two fetches of one object ran at once
	most    int  // fetches at once
}

func newKeeper(t testing.TB, answer func(k *keeper, w http.ResponseWriter, object string)) *keeper {
	t.Helper()
	k := &keeper{t: t, answer: answer, inside: map[string]int{}}
	k.server = httptest.NewServer(http.HandlerFunc(k.serve))
	t.Cleanup(k.server.Close)
	return k
}

func (k *keeper) serve(w http.ResponseWriter, r *http.Request) {
	object := strings.TrimPrefix(r.URL.Path, "/orders/")
	k.mu.Lock()
	k.asked = append(k.asked, object)
	k.inside[object]++
	k.overlap = k.overlap || k.inside[object] > 1
	all := 0
	for _, n := range k.inside {
		all += n
	}
	k.most = max(k.most, all)
	k.mu.Unlock()
	k.answer(k, w, object)
	k.mu.Lock()
	k.inside[object]--
	k.mu.Unlock()
}

func (k *keeper) requests() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.asked)
}

// several waits until fetches of several objects run at once, or have.
func (k *keeper) several() {
	testkit.Await(soon, func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.most > 1
	})
}

// fetches is the rule that keeps the state of orders.
func (k *keeper) fetches() config.Rule {
	f := config.DefaultFetch()
	f.URL, f.Token = k.server.URL+"/orders/{object}", config.NewSecret("env:TOKEN")
	return config.Rule{Name: "orders", Match: config.Match{Types: []string{"order"}}, Fetch: &f,
		State: &config.SetState{To: "{body.status}", Version: "{body.version?}"}}
}

func newFetching(t testing.TB, rules ...config.Rule) *workshop {
	t.Helper()
	w := &workshop{fixture: newFixture(t), rules: rules, token: "tok_0123456789abcdef",
		handle: func(context.Context, handlers.Event) ([]event.Effect, error) { return nil, nil }}
	w.hire()
	return w
}

// order stores an event about an order, in the lane that its rules say.
func (w *workshop) order(id, object, body string) {
	w.t.Helper()
	item := event.Item{Key: event.Key{Source: "s", ID: id}, Type: "order", Object: object, State: event.Pending}
	if !w.laneless {
		item.Lane, item.LaneSkip = w.book.Lane(event.Event{Key: item.Key, Type: item.Type, Object: object}, event.Payload{Body: []byte(body)})
	}
	receipt := &event.Receipt{Source: "s", Origin: event.FromWebhook, At: w.clock.Now(), Body: []byte(body), Items: []event.Item{item}}
	if _, err := w.store.Accept(context.Background(), receipt); err != nil {
		w.t.Fatal(err)
	}
}

// stateOf is the stored state of an order, as an app reads it.
func (w *workshop) stateOf(object string) (state string) {
	w.t.Helper()
	db, err := sql.Open("sqlite", "file:"+w.path+"?mode=ro")
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	err = db.QueryRow(`SELECT coalesce(max(state), '') FROM v_state WHERE object = ?`, "s//"+object).Scan(&state)
	if err != nil {
		w.t.Fatal(err)
	}
	return state
}

func (w *workshop) verdict(id string) event.Verdict {
	w.t.Helper()
	detail, err := w.store.Event(context.Background(), event.Key{Source: "s", ID: id})
	if err != nil || len(detail.Verdicts) != 1 {
		w.t.Fatalf("the verdicts of %s: %+v, %v", id, detail.Verdicts, err)
	}
	return detail.Verdicts[0]
}

func says(status string) func(*keeper, http.ResponseWriter, string) {
	return func(_ *keeper, w http.ResponseWriter, _ string) { fmt.Fprintf(w, `{"status":%q}`, status) }
}

func TestGateA6TheCurrentObjectIsFetchedWhereThereIsNoVersion(t *testing.T) {
	t.Parallel()
	k := newKeeper(t, says("shipped"))
	w := newFetching(t, k.fetches())
	w.order("a", "o1", `{"status":"paid"}`)
	w.step()
	w.expect("a", event.Done, 1)
	if state := w.stateOf("o1"); state != "shipped" {
		t.Errorf("the order is %q, want what its owner says", state)
	}
	w.order("b", "o2", `{"status":"paid","version":3}`)
	w.step()
	w.expect("b", event.Done, 1)
	if state := w.stateOf("o2"); state != "paid" || k.requests() != 1 {
		t.Errorf("with a version the order is %q after %d requests", state, k.requests())
	}
}

func TestGateA6WithoutAFetchTheEventIsDeadAndSaysSo(t *testing.T) {
	t.Parallel()
	rule := newKeeper(t, says("shipped")).fetches()
	rule.Fetch = nil
	w := newFetching(t, rule)
	w.order("a", "o1", `{"status":"paid"}`)
	w.step()
	if dead := w.expect("a", event.Dead, 1); !strings.Contains(dead.Error, "version") || !strings.Contains(dead.Error, "fetch") {
		t.Errorf("the dead event says %q", dead.Error)
	}
	w.incidents(1)
}

// orderly runs a test with events that are in a lane, and with events that were
// stored before their rule had a fetch.
func orderly(t *testing.T, test func(t *testing.T, laneless bool)) {
	t.Helper()
	for name, laneless := range map[string]bool{"in a lane": false, "stored before": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, laneless)
		})
	}
}

// Two events of one order, both to be fetched. The answer to the first is on
// its way when the order changes and the second comes. Were the second fetched
// and applied meanwhile, the first would overwrite it with what is old.
func TestGateA6AnEarlierFetchCanNotOverwriteALaterOne(t *testing.T) {
	t.Parallel()
	orderly(t, func(t *testing.T, laneless bool) {
		first, answer := make(chan struct{}), make(chan struct{})
		k := newKeeper(t, func(k *keeper, w http.ResponseWriter, _ string) {
			if k.requests() > 1 {
				says("new")(k, w, "")
				return
			}
			close(first)
			<-answer
			says("old")(k, w, "")
		})
		w := newFetching(t, k.fetches())
		w.laneless = laneless
		w.store.SetHandoff(w.worker)
		w.order("a", "o1", `{}`)
		w.run()
		<-first
		w.order("b", "o1", `{}`)
		w.order("c", "o2", `{}`) // an order of its own waits for nobody
		w.until(event.Done, "c")
		if n := k.requests(); n != 2 {
			t.Errorf("%d fetches have begun, want one of each order", n)
		}
		close(answer)
		w.until(event.Done, "a", "b")
		if state := w.stateOf("o1"); state != "new" {
			t.Errorf("the order is %q, want new", state)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.overlap {
			t.Error("two fetches of one order ran at once")
		}
	})
}

// Many orders that change with every look, and several events of each: the
// stored state is that of the last look, fetches of one order never overlap,
// those of others do, up to the places.
func TestGateA6FetchesOfOneObjectNeverOverlap(t *testing.T) {
	t.Parallel()
	orderly(t, func(t *testing.T, laneless bool) {
		var mu sync.Mutex
		looks := map[string]int{}
		k := newKeeper(t, func(k *keeper, w http.ResponseWriter, object string) {
			k.several() // others go on meanwhile
			mu.Lock()
			looks[object]++
			look := looks[object]
			mu.Unlock()
			says(fmt.Sprint("look ", look))(k, w, object)
		})
		w := newFetching(t, k.fetches())
		w.laneless = laneless
		w.store.SetHandoff(w.worker)
		w.run()
		const objects, each = 12, 8
		var ids []string
		for _, i := range rand.Perm(objects * each) {
			id := fmt.Sprint("e", i)
			w.order(id, fmt.Sprint("o", i%objects), `{}`)
			ids = append(ids, id)
		}
		w.allDone(ids)
		mu.Lock()
		defer mu.Unlock()
		for i := range objects {
			object := fmt.Sprint("o", i)
			if state := w.stateOf(object); state != fmt.Sprint("look ", each) || looks[object] != each {
				t.Errorf("%s is %q after %d looks", object, state, looks[object])
			}
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.overlap {
			t.Error("two fetches of one order ran at once")
		}
		if k.most < 2 || k.most > 8 {
			t.Errorf("up to %d fetches ran at once, want 2 to 8", k.most)
		}
	})
}

// allDone lets the time pass until all are done, those that were put off too.
func (w *workshop) allDone(ids []string) {
	w.t.Helper()
	testkit.Poll(w.t, soon, "all to be done", func() bool {
		w.acceptAs("plain", fmt.Sprint("tick-", w.clock.Advance(time.Second).Unix())) // wakes the loop
		return !slices.ContainsFunc(ids, func(id string) bool { return w.find(id).State != event.Done })
	})
}

func TestGateA6AFetchThatFailsForNowIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fail  func(http.ResponseWriter)
		slot  time.Duration
		cause string
	}{
		"503":         {func(w http.ResponseWriter) { w.WriteHeader(503) }, 5 * time.Second, "HTTP 503"},
		"Retry-After": {func(w http.ResponseWriter) { w.Header().Set("Retry-After", "120"); w.WriteHeader(429) }, 2 * time.Minute, "HTTP 429"},
		"broken":      {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, 5 * time.Second, "closed the connection"},
		"no JSON":     {func(w http.ResponseWriter) { fmt.Fprint(w, "<html>") }, 5 * time.Second, "not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var down atomic.Bool
			down.Store(true)
			k := newKeeper(t, func(k *keeper, w http.ResponseWriter, _ string) {
				if down.Load() {
					c.fail(w)
				}
				says("shipped")(k, w, "")
			})
			w := newFetching(t, k.fetches())
			w.order("a", "o1", `{}`)
			w.step()
			if later := w.expect("a", event.Pending, 1); later.NextAt.Before(w.clock.Now().Add(c.slot)) || !strings.Contains(later.Error, c.cause) {
				t.Errorf("due %s: %s", later.NextAt, later.Error)
			}
			if v := w.verdict("a"); v.Decision != event.Later || v.Rule != "orders" {
				t.Errorf("%+v", v)
			}
			down.Store(false)
			w.clock.Advance(c.slot - time.Millisecond)
			if w.step() != 0 {
				t.Error("it came before its slot")
			}
			w.clock.Advance(time.Millisecond)
			w.step()
			w.expect("a", event.Done, 2)
			if v := w.verdict("a"); v.Decision != event.Applied {
				t.Errorf("%+v", v)
			}
			if state, lines := w.stateOf("o1"), w.errorLines(); state != "shipped" || lines != 0 {
				t.Errorf("the order is %q, %d lines at error level", state, lines)
			}
		})
	}
}

func TestGateA6AFetchThatFailsForEverIsDeadAfterSixAttempts(t *testing.T) {
	t.Parallel()
	k := newKeeper(t, func(k *keeper, w http.ResponseWriter, _ string) { w.WriteHeader(500) })
	w := newFetching(t, k.fetches())
	w.order("a", "o1", `{}`)
	for range 8 {
		w.step()
		w.clock.Advance(2 * time.Hour)
	}
	w.expect("a", event.Dead, 6)
	if n := k.requests(); n != 6 || w.errorLines() != 1 {
		t.Errorf("%d fetches, %d lines at error level", n, w.errorLines())
	}
	w.incidents(1)
}

func TestGateA6AFetchThatIsRefusedIsDeadAtOnce(t *testing.T) {
	t.Parallel()
	for status, says := range map[int]string{404: "no such object", 410: "no such object", 401: "look at the token", 302: "redirects to", 422: "HTTP 422"} {
		k := newKeeper(t, func(k *keeper, w http.ResponseWriter, _ string) {
			w.Header().Set("Location", "https://elsewhere.example/")
			w.WriteHeader(status)
		})
		w := newFetching(t, k.fetches())
		w.order("a", "o1", `{}`)
		w.step()
		if dead := w.expect("a", event.Dead, 1); !strings.Contains(dead.Error, says) || !strings.HasPrefix(dead.Error, "orders: fetch: GET ") {
			t.Errorf("%d: the dead event says %q", status, dead.Error)
		}
		if v := w.verdict("a"); v.Decision != event.Failed || v.Rule != "orders" {
			t.Errorf("%d: %+v", status, v)
		}
		w.incidents(1)
	}
}

func TestAStopDuringAFetchGivesTheEventBack(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 1)
	end := make(chan struct{})
	k := newKeeper(t, func(*keeper, http.ResponseWriter, string) {
		asked <- struct{}{}
		<-end
	})
	t.Cleanup(func() { close(end) })
	w := newFetching(t, k.fetches())
	w.order("a", "o1", `{}`)
	stop := w.run()
	<-asked
	stop()
	w.expect("a", event.Pending, 0)
}

// The fetches of one event end with the worker's timeout, whatever theirs is.
func TestFetchesOfAnEventEndAtTheWorkersTimeout(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	k := newKeeper(t, func(*keeper, http.ResponseWriter, string) { <-end })
	t.Cleanup(func() { close(end) })
	w := newFetching(t, k.fetches())
	w.worker.opt.Timeout = func() time.Duration { return 30 * time.Millisecond }
	w.order("a", "o1", `{}`)
	w.step()
	if later := w.expect("a", event.Pending, 1); !strings.Contains(later.Error, "within the worker's timeout") {
		t.Errorf("it says %q", later.Error)
	}
}

// Two events with one version: whichever came first, the order is what its
// owner says.
func TestGateA13ATieIsDecidedByTheCurrentObject(t *testing.T) {
	t.Parallel()
	for _, ids := range [][]string{{"a", "b"}, {"b", "a"}} {
		for name, together := range map[string]bool{"together": true, "apart": false} {
			t.Run(strings.Join(ids, "")+" "+name, func(t *testing.T) {
				t.Parallel()
				k := newKeeper(t, func(k *keeper, w http.ResponseWriter, _ string) { fmt.Fprint(w, `{"status":"shipped","version":7}`) })
				w := newFetching(t, k.fetches())
				for _, id := range ids {
					w.order(id, "o1", fmt.Sprintf(`{"status":"said by %s","version":7}`, id))
					if !together {
						w.step()
					}
				}
				w.step()
				w.expect("a", event.Done, 1)
				w.expect("b", event.Done, 1)
				if state := w.stateOf("o1"); state != "shipped" || k.requests() != 1 {
					t.Errorf("the order is %q after %d fetches", state, k.requests())
				}
				if w.errorLines() != 0 {
					t.Error(w.logs.String())
				}
			})
		}
	}
}

// A tie whose fetch fails is a failed attempt like any other: the next one
// finds the tie again.
func TestGateA13ATieWhoseFetchFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	down.Store(true)
	k := newKeeper(t, func(k *keeper, w http.ResponseWriter, _ string) {
		if down.Load() {
			w.WriteHeader(503)
		}
		says("shipped")(k, w, "")
	})
	w := newFetching(t, k.fetches())
	w.order("a", "o1", `{"status":"one","version":7}`)
	w.order("b", "o1", `{"status":"two","version":7}`)
	w.step()
	w.expect("b", event.Pending, 1)
	down.Store(false)
	w.clock.Advance(5 * time.Second)
	w.step()
	w.expect("b", event.Done, 2)
	if state := w.stateOf("o1"); state != "shipped" || k.requests() != 2 {
		t.Errorf("the order is %q after %d fetches", state, k.requests())
	}
}

// The owner of the object echoes the token and the object's name wherever it
// can: neither is seen again.
func TestGateO8NothingOfAFetchIsShown(t *testing.T) {
	t.Parallel()
	canary := testkit.NewCanary(t)
	for _, status := range []int{200, 302, 401, 404, 500, 600} {
		k := newKeeper(t, func(k *keeper, w http.ResponseWriter, object string) {
			w.Header().Set("Location", k.server.URL+"/orders/"+object+"?t="+canary.Secret)
			w.Header().Set("X-Echo", canary.Secret)
			w.WriteHeader(status)
			fmt.Fprintf(w, "%s %s", canary.Secret, object)
		})
		w := newFetching(t)
		w.rules, w.token = []config.Rule{k.fetches()}, canary.Secret
		w.rules[0].Fetch.URL += "?key=" + canary.Secret
		w.hire()
		w.order("a", canary.Payload, `{}`)
		w.step()
		canary.Watch(fmt.Sprint("the log of ", status), func() []byte { return []byte(w.logs.String()) })
		found, verdict := w.find("a"), w.verdict("a")
		shown := fmt.Sprint(found.Error, verdict.Reason)
		for _, incident := range w.fixture.incidents(event.CauseDeadEvent) {
			shown += incident.Detail
		}
		if found.Error == "" {
			t.Errorf("%d: no error is told", status)
		}
		canary.Watch(fmt.Sprint("the errors of ", status), func() []byte { return []byte(shown) })
	}
}
