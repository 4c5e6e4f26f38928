package api_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"creel/admin/page"
	"creel/event"
	"creel/internal/testkit"
)

// planner keeps the plans that it is asked for.
type planner struct {
	*stand
	mu    sync.Mutex
	plans map[string]page.Plan
}

func (p *planner) Plan(_ context.Context, a event.Action) (page.Plan, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	plan := page.Plan{ID: string(rune('a' + len(p.plans))), Action: a}
	p.plans[plan.ID] = plan
	return plan, nil
}

func (p *planner) FindPlan(id string) (page.Plan, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if plan, ok := p.plans[id]; ok {
		return plan, nil
	}
	return page.Plan{}, event.ErrNotFound
}

func (p *planner) Carry(ctx context.Context, _ string, a event.Action) (event.Action, error) {
	return p.Act(ctx, a)
}

func (p *planner) Failure(context.Context, int64) (event.Failure, error) {
	return event.Failure{ID: 3, Kind: event.FailedDelivery, Destination: "app"}, nil
}

// A plan is carried out as it was made: what it sends again, how fast, and of a
// group at the group's destination alone.
func TestPlansAreCarriedAsTheyWereMade(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	p := &planner{stand: s, plans: map[string]page.Plan{}}
	s.Operator, s.Data = p, p
	if res, text := s.do(t, "act", "POST", "/plans", `{"action":"replay","query":"state:done","resend":true,"rate":7}`); res.StatusCode != 200 || !strings.Contains(text, `"id":"a","action":"replay","actor":"token:robot#2"`) {
		t.Fatalf("the plan: %d %s", res.StatusCode, text)
	}
	if res, text := s.do(t, "act", "POST", "/plans/a/carry", `{"reason":"r"}`); res.StatusCode != 200 {
		t.Fatalf("carried: %d %s", res.StatusCode, text)
	}
	if got := s.acted[0]; !got.Resend || got.Rate != 7 || got.Reason != "r" || got.Actor != "token:robot#2" {
		t.Errorf("carried as %+v", got)
	}
	s.do(t, "act", "POST", "/plans", `{"action":"discard","query":"failure:3"}`)
	if got := p.plans["b"].Action; got.Target != "app" || got.Selector.Failure != 3 {
		t.Errorf("the discard of a group: %+v", got)
	}
	for _, ask := range [][3]string{{"GET", "/plans/z", ""}, {"POST", "/plans/z/carry", `{"reason":"r"}`}} {
		if res, text := s.do(t, "act", ask[0], ask[1], ask[2]); res.StatusCode != http.StatusNotFound || !strings.Contains(text, "half an hour") {
			t.Errorf("a plan that is over: %d %s", res.StatusCode, text)
		}
	}
}

// reader holds every body until it is let go.
type reader struct {
	*stand
	in, most atomic.Int64
	enter    chan struct{}
	leave    chan struct{}
}

func (r *reader) Body(context.Context, event.Key) ([]byte, string, error) {
	n := r.in.Add(1)
	for most := r.most.Load(); n > most && !r.most.CompareAndSwap(most, n); most = r.most.Load() {
	}
	r.enter <- struct{}{}
	<-r.leave
	r.in.Add(-1)
	return []byte("body"), "text/html", nil
}

// No more than four bodies are read at once, and all are answered; none as
// something that a browser would show.
func TestBodiesAreReadAFewAtOnce(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	r := &reader{stand: s, enter: make(chan struct{}, 12), leave: make(chan struct{})}
	s.Data = r
	s.do(t, "look", "GET", "/stats", "")
	var all sync.WaitGroup
	var fine atomic.Int64
	for range 12 {
		all.Go(func() {
			res, text := s.do(t, "look", "GET", "/event/body?key=shop//a", "")
			if res.StatusCode == 200 && text == "body" && res.Header.Get("Content-Disposition") == "attachment" {
				fine.Add(1)
			}
		})
	}
	for range 4 {
		<-r.enter
	}
	// The others have been let in and would be there too by the time that all of
	// these are answered.
	testkit.Poll(t, time.Minute, "all to be let in", func() bool { return s.asked.Load() >= 13 })
	for range 50 {
		s.do(t, "look", "GET", "/stats", "")
	}
	close(r.leave)
	all.Wait()
	if r.most.Load() > 4 || fine.Load() != 12 {
		t.Errorf("%d bodies at once, %d answers of 12", r.most.Load(), fine.Load())
	}
}
