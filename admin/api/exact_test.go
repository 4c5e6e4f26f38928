package api_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"

	"creel/event"
)

// Balances keeps of whom the balances were asked.
func (s *stand) Balances(_ context.Context, holder string, _ event.Balance, _ int) ([]event.Balance, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holders = append(s.holders, holder)
	return nil, s.fails
}

// A blank at the edge of a name belongs to it: without it, it is the name of
// another. What names nothing may have blanks around it.
func TestNamesAreTakenAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, blank := range []string{" ", "\t", "\u00a0", "\u3000"} {
		s := newStand(t)
		res, text := s.do(t, "look", http.MethodGet, "/balances?"+url.Values{"holder": {"cust" + blank}, "limit": {" 7 "}}.Encode(), "")
		if res.StatusCode != http.StatusOK || len(s.holders) != 1 || s.holders[0] != "cust"+blank {
			t.Errorf("%q: the balances of %q: %s", blank, s.holders, text)
		}
		res, text = s.do(t, "look", http.MethodGet, "/deliveries?"+url.Values{"event": {"gen//blank" + blank}, "key": {"k" + blank}}.Encode(), "")
		if res.StatusCode != http.StatusOK || s.filter[0].Event.ID != "blank"+blank || s.filter[0].Key != "k"+blank {
			t.Errorf("%q: %+v: %s", blank, s.filter, text)
		}
		res, text = s.do(t, "look", http.MethodGet, "/events?"+url.Values{"object": {"o" + blank}, "since": {" 24h "}, "q": {` id:"x` + blank + `" `}}.Encode(), "")
		if res.StatusCode != http.StatusOK || s.asks[0].Object != "o"+blank || s.asks[0].ID != "x"+blank || s.asks[0].Since.IsZero() {
			t.Errorf("%q: %+v: %s", blank, s.asks, text)
		}
	}
}
