package jobs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"creel/config"
	"creel/event"
	"creel/store"
)

// update stores an event that says itself what its order is now.
func (w *workshop) update(id, object, version, status string) {
	w.t.Helper()
	_, err := w.store.Accept(context.Background(), &event.Receipt{Source: "s", Origin: event.FromWebhook, At: w.clock.Now(),
		Body: fmt.Appendf(nil, `{"status":%q}`, status), Items: []event.Item{{Key: event.Key{Source: "s", ID: id}, Type: "update", Object: object,
			Version: version, State: event.Pending}}})
	if err != nil {
		w.t.Fatal(err)
	}
}

// updates are rules without a fetch that keep the same state: nothing tells
// beforehand that they are about the same objects.
func updates() map[string]config.Rule {
	by := func(s config.SetState) config.Rule {
		return config.Rule{Name: "updates", Match: config.Match{Types: []string{"update"}}, State: &s}
	}
	return map[string]config.Rule{
		"by version": by(config.SetState{To: "{body.status}"}),
		"from":       by(config.SetState{To: "{body.status}", From: []string{"", "old"}}),
	}
}

// The answer to a fetch is on its way when an event of another rule, in no lane,
// changes the object. What the answer says is from before that.
func TestGateA6AFetchThatIsOvertakenIsAskedAgain(t *testing.T) {
	t.Parallel()
	for name, rule := range updates() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
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
			w := newFetching(t, k.fetches(), rule)
			w.store.SetHandoff(w.worker)
			w.order("a", "o1", `{}`)
			w.run()
			<-first
			w.update("u", "o1", "2", "new")
			w.until(event.Done, "u")
			close(answer)
			w.until(event.Done, "a")
			if state := w.stateOf("o1"); state != "new" || k.requests() != 2 {
				t.Errorf("the order is %q after %d fetches", state, k.requests())
			}
			if v := w.verdict("a"); v.Decision != event.AlreadyApplied {
				t.Errorf("its verdict: %+v", v)
			}
		})
	}
}

// An answer that says of itself that it is newer than what came meanwhile needs
// no second look.
func TestGateA6ANewerAnswerIsNotOvertaken(t *testing.T) {
	t.Parallel()
	var w *workshop
	k := newKeeper(t, func(k *keeper, out http.ResponseWriter, _ string) {
		w.change("u", "2", "paid")
		fmt.Fprint(out, `{"status":"shipped","version":3}`)
	})
	w = newFetching(t, k.fetches())
	w.order("a", "o1", `{}`)
	w.step()
	w.expect("a", event.Done, 1)
	if state := w.stateOf("o1"); state != "shipped" || k.requests() != 1 {
		t.Errorf("the order is %q after %d fetches", state, k.requests())
	}
}

// change has another event change the order o1 at once.
func (w *workshop) change(id, version, to string) {
	ctx, now := context.Background(), w.clock.Now()
	receipt := &event.Receipt{Source: "s", Origin: event.FromWebhook, At: now, Body: []byte(`{}`), Items: []event.Item{{
		Key: event.Key{Source: "s", ID: id}, Type: "update", Object: "o1", State: event.Pending, Inline: &event.Finish{State: event.Done,
			Verdicts: []event.Verdict{{Rule: "updates", Decision: event.Applied}},
			Effects:  []event.Effect{event.SetState{Key: id, Rule: "updates", Object: "s//o1", To: to, Version: version}}}}}}
	if _, err := w.store.Accept(ctx, receipt); err != nil {
		w.t.Error(err)
	}
}

// An object that changes during every look is not settled by any of them: the
// event is tried again on its schedule, and says why.
func TestGateA6AFetchThatIsOvertakenAgainAndAgainIsTriedLater(t *testing.T) {
	t.Parallel()
	var w *workshop
	quiet := false
	k := newKeeper(t, func(k *keeper, out http.ResponseWriter, _ string) {
		if n := k.requests(); !quiet {
			w.change(fmt.Sprint("u", n), fmt.Sprint(n), fmt.Sprint("paid ", n))
		}
		says("old")(k, out, "")
	})
	w = newFetching(t, k.fetches())
	w.order("a", "o1", `{}`)
	w.step()
	w.expect("a", event.Pending, 1)
	if state := w.stateOf("o1"); state != "paid 2" || k.requests() != 2 {
		t.Errorf("the order is %q after %d fetches", state, k.requests())
	}
	if v := w.verdict("a"); v.Decision != event.Later || !strings.Contains(v.Reason, event.ErrOvertaken.Error()) {
		t.Errorf("its verdict: %+v", v)
	}
	quiet = true
	w.clock.Advance(5 * time.Second)
	w.step()
	w.expect("a", event.Done, 2)
	if state := w.stateOf("o1"); state != "old" || k.requests() != 3 {
		t.Errorf("the order is %q after %d fetches", state, k.requests())
	}
}

// blind is a store that can not be read for a while.
type blind struct {
	*store.Store
	times int
}

func (b *blind) NextTransition(ctx context.Context) (int64, error) {
	if b.times--; b.times >= 0 {
		return 0, errors.New("disk I/O error")
	}
	return b.Store.NextTransition(ctx)
}

// Trouble of the store is no fault of the event: it comes again, with the
// attempts that it had.
func TestAStoreThatCanNotBeReadSpendsNoAttempt(t *testing.T) {
	t.Parallel()
	k := newKeeper(t, says("shipped"))
	w := newFetching(t, k.fetches())
	w.worker.opt.Inbox = &blind{w.store, 8}
	w.order("a", "o1", `{}`)
	for range 8 {
		w.step()
		w.expect("a", event.Pending, 0)
		w.clock.Advance(time.Second)
	}
	w.step()
	w.expect("a", event.Done, 1)
	if state := w.stateOf("o1"); state != "shipped" || k.requests() != 1 {
		t.Errorf("the order is %q after %d fetches", state, k.requests())
	}
}
