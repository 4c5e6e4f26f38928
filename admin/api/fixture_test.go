package api_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"creel/admin/api"
	"creel/admin/page"
	"creel/event"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// stand is an API on a real listener, over what a test puts there. What it does
// not know panics.
type stand struct {
	page.Data
	page.Operator
	web     *httptest.Server
	mu      sync.Mutex
	now     time.Time
	asked   atomic.Int64 // how often a token was looked up
	fails   error        // what every read and act ends with
	acted   []event.Action
	lanes   []event.ParkedLane
	asks    []page.Ask
	filter  []page.DeliveryFilter
	holders []string                                             // whose balances were asked for
	pages   func(context.Context, page.Ask) (page.Events, error) // of events; nil is one that has no end
}

func (s *stand) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *stand) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// newStand knows two tokens: one that may look, and one that may operate.
func newStand(t *testing.T) *stand {
	t.Helper()
	s := &stand{now: began}
	made, err := api.New(api.Options{Data: s, Operator: s, Clock: s.clock, Log: zerolog.Nop(),
		Statistics: func(context.Context) (any, error) { return map[string]int{"n": 1}, s.fails },
		Token: func(_ context.Context, shown string) (event.Token, bool, error) {
			s.asked.Add(1)
			token, ok := map[string]event.Token{"look": {ID: 1, Name: "grafana", Scope: event.ScopeRead}, "act": {ID: 2, Name: "robot", Scope: event.ScopeOperate}}[shown]
			return token, ok, nil
		},
		Visitor: func(*http.Request) (string, bool) { return "", false },
		Allows:  func(*http.Request) bool { return true },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.web = httptest.NewServer(made)
	t.Cleanup(s.web.Close)
	return s
}

// do asks with a token; header has names and values in turn.
func (s *stand) do(t *testing.T, token, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.web.URL+api.Prefix+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text)
}

func (s *stand) Events(ctx context.Context, ask page.Ask) (page.Events, error) {
	s.mu.Lock()
	s.asks = append(s.asks, ask)
	s.mu.Unlock()
	if s.pages != nil {
		return s.pages(ctx, ask)
	}
	return page.Events{List: []event.Event{{Seq: 7, Key: event.Key{Source: "shop", ID: "a"}}}, Next: 7, Partial: true}, s.fails
}

func (s *stand) Letters(_ context.Context, ask page.Ask) (page.Letters, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asks = append(s.asks, ask)
	return page.Letters{}, s.fails
}

func (s *stand) Failures(context.Context, page.Ask) (page.Failures, error) {
	return page.Failures{}, s.fails
}

func (s *stand) Deliveries(_ context.Context, f page.DeliveryFilter, p event.Page) (page.Deliveries, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.filter = append(s.filter, f)
	var found page.Deliveries
	for id := int64(10); id > 0 && len(found.List) < p.Limit; id-- {
		if p.Before == 0 || id < p.Before {
			found.List = append(found.List, event.Delivery{ID: id})
			if found.Next = id; id == 1 {
				found.Next = 0
			}
		}
	}
	return found, s.fails
}

func (s *stand) Lanes(_ context.Context, after string, limit int) (list []event.ParkedLane, _ error) {
	seen := ""
	for _, l := range s.lanes {
		if l.Lane <= after {
			continue
		}
		if l.Lane != seen {
			if limit--; limit < 0 {
				break
			}
			seen = l.Lane
		}
		list = append(list, l)
	}
	return list, s.fails
}

func (s *stand) Lane(_ context.Context, lane string) (list []event.ParkedLane, _ error) {
	for _, l := range s.lanes {
		if l.Lane == lane {
			list = append(list, l)
		}
	}
	return list, s.fails
}

func (s *stand) Act(_ context.Context, a event.Action) (event.Action, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails != nil {
		return event.Action{}, s.fails
	}
	s.acted = append(s.acted, a)
	a.ID = int64(len(s.acted))
	if a.Target == "slow" {
		return a, context.DeadlineExceeded
	}
	a.Finished = a.At
	return a, nil
}
