package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"creel/admin"
	"creel/config"
	"creel/event"
	"creel/source"
)

// keeper is a sender that lists its events as Stripe does: the newest first, a
// hundred a page at most, thirty days back. It lists late and wants to be left
// alone now and then.
type keeper struct {
	mu       sync.Mutex
	now      func() time.Time
	events   []kept // the newest first
	asked    int
	limited  int // how often it has answered 429
	tooSoon  int // requests before the time that it had asked for was over
	notUntil time.Time
	breaks   bool   // from the second page on
	answer   string // in the place of a list
}

type kept struct {
	id, kind string
	at       time.Time
	listed   time.Time // since when the list has it
}

func (k kept) body(indent string) []byte {
	text, _ := json.MarshalIndent(map[string]any{
		"id": k.id, "object": "event", "type": k.kind, "created": k.at.Unix(), "livemode": true, "pending_webhooks": len(indent),
		"data": map[string]any{"object": map[string]any{"id": "in_" + k.id}},
	}, "", indent)
	return text
}

func (k *keeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	query, now := r.URL.Query(), k.now()
	if r.Header.Get("Authorization") != "Bearer rk_test_0123456789" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if now.Before(k.notUntil) {
		k.tooSoon++
	}
	if k.asked++; k.asked%3 == 2 {
		k.limited++
		k.notUntil = now.Add(7 * time.Second)
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	if k.breaks && query.Get("starting_after") != "" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if k.answer != "" {
		fmt.Fprint(w, k.answer)
		return
	}
	from, _ := strconv.ParseInt(query.Get("created[gte]"), 10, 64)
	until, _ := strconv.ParseInt(query.Get("created[lte]"), 10, 64)
	limit, _ := strconv.Atoi(query.Get("limit"))
	if limit < 1 || limit > 100 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	behind := query.Get("starting_after") == ""
	page := []json.RawMessage{}
	more := false
	for _, one := range k.events {
		listed := !one.listed.After(now) && one.at.After(now.Add(-30*24*time.Hour))
		fits := one.at.Unix() >= from && (until == 0 || one.at.Unix() <= until)
		if behind && listed && fits {
			if len(page) == limit {
				more = true
				break
			}
			page = append(page, one.body(""))
		}
		behind = behind || one.id == query.Get("starting_after")
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": page, "has_more": more})
}

// stage is an app that runs nothing by itself, on a clock that waiting moves.
type stage struct {
	*App
	mu     sync.Mutex
	at     time.Time
	slept  []time.Duration
	keeper *keeper
}

func (s *stage) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

func (s *stage) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = s.at.Add(d)
	s.slept = append(s.slept, d)
}

const reconciled = `
listen   = "127.0.0.1:0"
database = %q
[[source]]
name     = "stripe"
provider = "stripe"
secrets  = ["whsec_0123456789abcdef0123456789abcdef"]
forward  = "app"
  [source.reconcile]
  url   = "%s/v1/events"
  token = "env:READ_KEY"
  types = ["invoice.*"]
  %s
[destination.app]
url    = "http://127.0.0.1:9"
secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
`

func newStage(t *testing.T, more string) *stage {
	t.Helper()
	s := &stage{at: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	s.keeper = &keeper{now: s.now}
	server := httptest.NewServer(s.keeper)
	t.Cleanup(server.Close)
	s.begin(t, fmt.Sprintf(reconciled, filepath.Join(t.TempDir(), "creel.db"), server.URL, more))
	return s
}

// begin starts the app under a configuration, by the clock of the stage.
func (s *stage) begin(t *testing.T, text string) {
	t.Helper()
	env := func(name string) (string, bool) { return "rk_test_0123456789", name == "READ_KEY" }
	cfg, problems := config.Parse("creel.toml", []byte(text), env)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	a, err := New(context.Background(), Options{Config: cfg, Env: env, Log: zerolog.Nop(), Clock: s.now,
		Sleep: func(_ context.Context, d time.Duration) error { s.pass(d); return nil }})
	if err != nil {
		t.Fatal(err)
	}
	s.App = a
	t.Cleanup(func() {
		if err := a.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// lists puts events into the sender's list, the newest first.
func (s *stage) lists(events ...kept) {
	s.keeper.mu.Lock()
	defer s.keeper.mu.Unlock()
	s.keeper.events = append(events, s.keeper.events...)
}

// has brings events into the inbox as webhooks that arrived.
func (s *stage) has(t *testing.T, events ...kept) {
	t.Helper()
	ask := admin.AskImport{Source: "stripe", Actor: "test", File: "-"}
	for i, one := range events {
		ask.Lines = append(ask.Lines, admin.ImportLine{N: i + 1, Body: one.body("  ")})
	}
	done, err := s.Import(context.Background(), ask)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range done {
		if line.Error != "" || len(line.Events) != 1 || line.Events[0].Result != event.New {
			t.Fatalf("%+v", line)
		}
	}
}

func (s *stage) reconcile(t *testing.T, since time.Duration, bring bool) admin.Reconciled {
	t.Helper()
	done, err := s.Reconcile(context.Background(), admin.AskReconcile{Source: "stripe", Actor: "test", Since: s.now().Add(-since), Import: bring})
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// inbox is how often each id is there, and how it came.
func (s *stage) inbox(t *testing.T) map[string]event.Event { return s.inboxOf(t, "stripe") }

func (s *stage) inboxOf(t *testing.T, name string) map[string]event.Event {
	t.Helper()
	all := map[string]event.Event{}
	for before := int64(0); ; {
		list, err := s.store.Events(context.Background(), event.Selector{Source: name}, event.Page{Before: before, Limit: 200})
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 {
			return all
		}
		for _, e := range list {
			if _, twice := all[e.Key.ID]; twice {
				t.Errorf("%s is there twice", e.Key)
			}
			all[e.Key.ID] = e
			before = e.Seq
		}
	}
}

func (s *stage) gap(t *testing.T) event.Gap {
	t.Helper()
	gaps, err := s.store.Gaps(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(gaps) != 1 {
		t.Fatalf("%d gaps", len(gaps))
	}
	return gaps[0]
}

// burst is n events of one second.
func burst(n int, prefix string, at time.Time) (list []kept) {
	for i := range n {
		list = append(list, kept{id: fmt.Sprintf("evt_%s_%03d", prefix, i), kind: "invoice.paid", at: at})
	}
	return list
}

// TestGateO4 compares with a sender that pages, limits its rate, lists late,
// holds 150 events in one second and reaches back 30 days.
func TestGateO4(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	now := s.now()
	second := burst(150, "burst", now.Add(-48*time.Hour))
	var lost, arrived []kept
	for i, one := range second {
		if i%3 == 0 {
			lost = append(lost, one)
		} else {
			arrived = append(arrived, one)
		}
	}
	old := kept{id: "evt_old", kind: "invoice.paid", at: now.Add(-29 * 24 * time.Hour)}
	gone := kept{id: "evt_gone", kind: "invoice.paid", at: now.Add(-35 * 24 * time.Hour)}
	young := kept{id: "evt_young", kind: "invoice.paid", at: now.Add(-time.Minute)}
	late := kept{id: "evt_late", kind: "invoice.paid", at: now.Add(-20 * time.Minute), listed: now.Add(time.Hour)}
	other := kept{id: "evt_other", kind: "charge.updated", at: now.Add(-3 * time.Hour)}
	lost = append(lost, old)
	s.lists(append(append([]kept{young, late, other}, second...), old, gone)...)
	s.has(t, arrived...)

	// It tells of the gap, and of the span that nobody lists any more.
	first := s.reconcile(t, 40*24*time.Hour, false)
	if first.Missing != len(lost) || first.Recovered != 0 || first.Listed != 151 || len(first.List) != len(lost) {
		t.Errorf("%d listed, %d missing, %d recovered", first.Listed, first.Missing, first.Recovered)
	}
	want := source.Span{From: now.Add(-40 * 24 * time.Hour), Until: now.Add(-30 * 24 * time.Hour)}
	if len(first.Lost) != 1 || !first.Lost[0].From.Equal(want.From) || !first.Lost[0].Until.Equal(want.Until) {
		t.Errorf("can not be recovered: %v, want %v", first.Lost, want)
	}
	if gap := s.gap(t); gap.Missing != len(lost) {
		t.Errorf("the gap is %d", gap.Missing)
	}
	if len(s.inbox(t)) != len(arrived) {
		t.Error("a comparison brought something in")
	}
	if s.keeper.limited == 0 || s.keeper.tooSoon > 0 {
		t.Errorf("it was asked to wait %d times, and not left alone %d times", s.keeper.limited, s.keeper.tooSoon)
	}

	// It brings the missing ones in, each once.
	second2 := s.reconcile(t, 29*24*time.Hour+time.Hour, true)
	if second2.Missing != len(lost) || second2.Recovered != len(lost) || second2.Failed != 0 {
		t.Errorf("%+v", second2)
	}
	inbox := s.inbox(t)
	if len(inbox) != len(second)+1 {
		t.Errorf("%d events are in the inbox, want %d", len(inbox), len(second)+1)
	}
	for _, one := range lost {
		if e := inbox[one.id]; e.Origin != event.FromReconcile || e.Duplicates != 0 || e.Object != "in_"+one.id {
			t.Errorf("%s came as %q, %d duplicates, object %q", one.id, e.Origin, e.Duplicates, e.Object)
		}
	}
	if gap := s.gap(t); gap.Missing != 0 {
		t.Errorf("the gap stays at %d", gap.Missing)
	}
	if third := s.reconcile(t, 29*24*time.Hour, true); third.Missing != 0 {
		t.Errorf("a third time %d are missing", third.Missing)
	}

	// What was too young, and what was listed late, is found by the next one that
	// begins where the last ended.
	s.pass(7 * 24 * time.Hour)
	if compared := s.reconciles().Step(context.Background(), s.now()); compared != 1 {
		t.Errorf("%d sources were compared by themselves", compared)
	}
	if gap := s.gap(t); gap.Missing != 2 {
		t.Errorf("%d are missing a week later, want the young one and the late one", gap.Missing)
	}
	if compared := s.reconciles().Step(context.Background(), s.now()); compared != 0 {
		t.Error("it is compared again at once")
	}
	// What was not brought in is not forgotten by the next week.
	s.pass(7 * 24 * time.Hour)
	s.reconciles().Step(context.Background(), s.now())
	if gap := s.gap(t); gap.Missing != 2 {
		t.Errorf("%d are missing after two weeks", gap.Missing)
	}
}

// A source that is new is not compared with the time before it.
func TestReconcileBeginsWithTheSource(t *testing.T) {
	t.Parallel()
	s := newStage(t, "import = true")
	s.lists(kept{id: "evt_before", kind: "invoice.paid", at: s.now().Add(-2 * 24 * time.Hour)})
	step := func() int { return s.reconciles().Step(context.Background(), s.now()) }
	if n := step(); n != 0 {
		t.Errorf("%d compared at the first sight", n)
	}
	s.pass(time.Hour)
	after := kept{id: "evt_after", kind: "invoice.paid", at: s.now()}
	s.lists(after)
	s.pass(6 * 24 * time.Hour)
	if n := step(); n != 0 {
		t.Errorf("%d compared before the week is over", n)
	}
	s.pass(24 * time.Hour)
	if n := step(); n != 1 {
		t.Errorf("%d compared after a week", n)
	}
	inbox := s.inbox(t)
	if inbox["evt_after"].Origin != event.FromReconcile || len(inbox) != 1 {
		t.Errorf("the inbox has %v", inbox)
	}
}

// TestBugORD04: 150 events of one second on pages of 100, whatever the cursor
// stands on.
func TestBugORD04(t *testing.T) {
	t.Parallel()
	for _, n := range []int{99, 100, 101, 150, 200, 201, 350} {
		s := newStage(t, "")
		s.lists(burst(n, "one", s.now().Add(-time.Hour))...)
		done := s.reconcile(t, 24*time.Hour, true)
		if done.Listed != n || done.Recovered != n || len(s.inbox(t)) != n {
			t.Errorf("%d events: %d listed, %d recovered, %d in the inbox", n, done.Listed, done.Recovered, len(s.inbox(t)))
		}
	}
	// A list that only knows times can not get past a second that fills a page:
	// it says so, and goes on behind it.
	s := newStage(t, `next = "time"`)
	s.lists(append(append(burst(3, "new", s.now().Add(-time.Hour)), burst(150, "full", s.now().Add(-2*time.Hour))...), burst(3, "old", s.now().Add(-3*time.Hour))...)...)
	done := s.reconcile(t, 24*time.Hour, true)
	if done.Listed != 106 || len(done.Lost) != 1 || !done.Lost[0].From.Equal(s.keeper.events[3].at) {
		t.Errorf("%d listed, lost %v", done.Listed, done.Lost)
	}
	if inbox := s.inbox(t); len(inbox) != 106 || inbox["evt_old_002"].Seq == 0 {
		t.Errorf("%d in the inbox", len(inbox))
	}
	// Where a second fits into a page, times are enough, and nothing is doubled.
	s = newStage(t, `next = "time"`)
	for i := range 30 {
		s.lists(burst(30, fmt.Sprint(i), s.now().Add(-time.Hour+time.Duration(i)*time.Second))...)
	}
	if done := s.reconcile(t, 24*time.Hour, true); done.Listed != 900 || done.Recovered != 900 || len(done.Lost) != 0 {
		t.Errorf("%d listed, %d recovered, lost %v", done.Listed, done.Recovered, done.Lost)
	}
}

// TestBugORD06: an outage longer than what the sender lists is named, and does
// not stop what can be had.
func TestBugORD06(t *testing.T) {
	t.Parallel()
	s := newStage(t, "import = true")
	s.reconciles().Step(context.Background(), s.now())
	began := s.now()
	s.pass(45 * 24 * time.Hour)
	s.lists(kept{id: "evt_new", kind: "invoice.paid", at: s.now().Add(-24 * time.Hour)},
		kept{id: "evt_edge", kind: "invoice.paid", at: s.now().Add(-29 * 24 * time.Hour)},
		kept{id: "evt_gone", kind: "invoice.paid", at: s.now().Add(-40 * 24 * time.Hour)})
	done := s.reconcile(t, 45*24*time.Hour, true)
	if done.Recovered != 2 || done.Failed != 0 || len(done.Lost) != 1 {
		t.Errorf("%+v", done)
	}
	if edge := s.now().Add(-30 * 24 * time.Hour); len(done.Lost) == 1 && (!done.Lost[0].From.Equal(began) || edge.Sub(done.Lost[0].Until).Abs() > time.Minute) {
		t.Errorf("lost %v, want %v to %v", done.Lost, began, edge)
	}
}

// An event that its list writes with other blanks is the one that its webhook
// brings: a webhook that comes after all is a duplicate, and no conflict.
func TestReconciledThenDelivered(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	one := kept{id: "evt_1", kind: "invoice.paid", at: s.now().Add(-time.Hour)}
	s.lists(one)
	s.reconcile(t, 24*time.Hour, true)
	done, err := s.Import(context.Background(), admin.AskImport{Source: "stripe", Lines: []admin.ImportLine{{N: 1, Body: one.body("    ")}}})
	if err != nil {
		t.Fatal(err)
	}
	if done[0].Events[0].Result != event.Duplicate {
		t.Errorf("it is a %s", done[0].Events[0].Result)
	}
	// What says something else is a conflict still.
	other := strings.Replace(string(one.body("")), "in_evt_1", "in_other", 1)
	done, err = s.Import(context.Background(), admin.AskImport{Source: "stripe", Lines: []admin.ImportLine{{N: 1, Body: []byte(other)}}})
	if err != nil || done[0].Events[0].Result != event.Conflict {
		t.Errorf("%v %+v", err, done)
	}
}

// Two comparisons of one source at once are refused.
func TestOneComparisonAtOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	if !s.comparing.begin(admin.AskReconcile{Source: "stripe"}, s.now()) {
		t.Fatal("it is busy")
	}
	ask := admin.AskReconcile{Source: "stripe", Since: s.now().Add(-time.Hour)}
	if _, err := s.Reconcile(context.Background(), ask); err == nil || !strings.Contains(err.Error(), "compared already") {
		t.Errorf("%v", err)
	}
	s.comparing.end("stripe")
	if _, err := s.Reconcile(context.Background(), ask); err != nil {
		t.Error(err)
	}
}

// A comparison that breaks off has brought in what came before: the audit trail
// says so.
func TestBrokenOffIsInTheAuditTrail(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.lists(burst(150, "burst", s.now().Add(-48*time.Hour))...)
	s.keeper.breaks = true
	ask := admin.AskReconcile{Source: "stripe", Actor: "ana", Reason: "outage", Since: s.now().Add(-72 * time.Hour), Import: true}
	if _, err := s.Reconcile(t.Context(), ask); err == nil {
		t.Error("half a list is a whole one")
	}
	if n := len(s.inbox(t)); n != 100 {
		t.Errorf("%d events were brought in", n)
	}
	actions, err := s.store.Actions(t.Context(), event.Page{Limit: 10})
	if err != nil || len(actions) != 2 || actions[0].Actor != "ana" || !strings.Contains(actions[1].Target, "brings in what is missing") || !strings.Contains(actions[0].Target, "100 recovered") || !strings.Contains(actions[0].Target, "broken off") {
		t.Errorf("%v: %+v", err, actions)
	}
	if gaps, err := s.store.Gaps(t.Context()); err != nil || len(gaps) != 0 {
		t.Errorf("%v: half a list has the gap %+v", err, gaps)
	}
}

// What comes in by a comparison stands in the audit trail before it is there: a
// crash leaves no event of which nobody knows why.
func TestBroughtInAfterTheAuditTrail(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.lists(burst(3, "burst", s.now().Add(-48*time.Hour))...)
	s.reconcile(t, 72*time.Hour, true)
	actions, err := s.store.Actions(t.Context(), event.Page{Limit: 10})
	if err != nil || len(actions) != 2 {
		t.Fatalf("%v: %+v", err, actions)
	}
	for id, e := range s.inbox(t) {
		if e.ReceivedAt.Before(actions[1].At) {
			t.Errorf("%s came at %s, the action is of %s", id, e.ReceivedAt, actions[1].At)
		}
	}
	if s.reconcile(t, 72*time.Hour, false); len(s.keeper.events) != 3 {
		t.Error("the list has changed")
	}
	if again, err := s.store.Actions(t.Context(), event.Page{Limit: 10}); err != nil || len(again) != 2 {
		t.Errorf("%v: a comparison alone is an action: %+v", err, again)
	}
}

// A list of which nothing can be read is not one without a gap.
func TestAListThatIsNotUnderstoodHasNoGap(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	for _, answer := range []string{`{"data":{"events":[{"id":"evt_1"}]},"has_more":false}`, `{"data":["evt_1","evt_2"],"has_more":false}`} {
		s.keeper.answer = answer
		ask := admin.AskReconcile{Source: "stripe", Actor: "test", Since: s.now().Add(-72 * time.Hour)}
		if done, err := s.Reconcile(t.Context(), ask); err == nil || !strings.Contains(err.Error(), "reconcile.items") {
			t.Errorf("%s: %v, %+v", answer, err, done)
		}
	}
	if gaps, err := s.store.Gaps(t.Context()); err != nil || len(gaps) != 0 {
		t.Errorf("%v: %+v", err, gaps)
	}
}

// There is nothing to compare within the time that is left for the next time.
func TestASpanWithinTheLagIsRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	for _, since := range []time.Duration{10 * time.Minute, 0, -24 * time.Hour} {
		ask := admin.AskReconcile{Source: "stripe", Actor: "test", Since: s.now().Add(-since)}
		if _, err := s.Reconcile(t.Context(), ask); !errors.Is(err, admin.ErrRefused) || !strings.Contains(err.Error(), "reconcile.lag") {
			t.Errorf("%s ago: %v", since, err)
		}
	}
}

// A comparison that succeeds, by hand too, ends what was told of those that
// failed.
func TestComparedAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.keeper.answer = "<html>"
	loop := s.reconciles()
	loop.Step(t.Context(), s.now()) // it sees the source for the first time
	s.pass(8 * 24 * time.Hour)
	for range 9 {
		loop.Step(t.Context(), s.now())
		s.pass(time.Hour)
	}
	told := func() (n int) {
		t.Helper()
		list, err := s.store.Incidents(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			if list[i].Cause == event.CauseNotCompared {
				n++
			}
		}
		return n
	}
	if n := told(); n != 1 {
		t.Errorf("%d incidents", n)
	}
	s.keeper.answer = ""
	s.reconcile(t, 24*time.Hour, false)
	if n := told(); n != 0 {
		t.Error("it is compared again, and told that it is not")
	}
}
