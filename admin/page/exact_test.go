package page

import (
	"context"
	"net/http"
	"net/url"
	"testing"

	"creel/event"
)

// recorded is what a stand shows that says by which names it was asked.
type recorded struct {
	shown
	keys    *[]event.Key
	holders *[]string
}

func (n recorded) Event(ctx context.Context, key event.Key) (Detail, error) {
	*n.keys = append(*n.keys, key)
	return n.shown.Event(ctx, key)
}

func (n recorded) Balances(_ context.Context, holder string, _ event.Balance, _ int) ([]event.Balance, error) {
	*n.holders = append(*n.holders, holder)
	return nil, nil
}

// A blank at the edge of a name belongs to it: without it, it is the name of
// another.
func TestNamesAreTakenAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, blank := range []string{" ", "\t", "\u00a0", "\u3000"} {
		s := newStand(t, "")
		var keys []event.Key
		var holders []string
		s.page.opt.Data = recorded{shown{stand: s}, &keys, &holders}
		b := s.browser(t)
		b.login(t)
		key := event.Key{Source: "gen", ID: "blank" + blank}
		res, _ := b.do(t, http.MethodPost, "/replay", url.Values{"token": {b.token(t)}, "one": {"1 " + key.String()}, "reason": {" bug 412 "}, "back": {"/"}})
		status(t, "replay", res, http.StatusSeeOther)
		if len(s.acted) != 1 || s.acted[0].Selector.Keys[0] != key || s.acted[0].Reason != "bug 412" {
			t.Errorf("%q: %+v", blank, s.acted)
		}
		b.get(t, "/event?"+url.Values{"key": {key.String()}}.Encode())
		if len(keys) != 1 || keys[0] != key {
			t.Errorf("%q: %+v is shown", blank, keys)
		}
		b.get(t, "/balances?"+url.Values{"holder": {"cust" + blank}}.Encode())
		if len(holders) != 1 || holders[0] != "cust"+blank {
			t.Errorf("%q: the balances of %q", blank, holders)
		}
		b.do(t, http.MethodPost, "/plan", url.Values{"token": {b.token(t)}, "do": {"replay all"}, "destination": {"app" + blank}, "q": {` id:"x` + blank + `" `}, "since": {" 24h "}})
		if len(s.planned) != 1 || s.planned[0].Selector.Destination != "app"+blank || s.planned[0].Selector.ID != "x"+blank || s.planned[0].Selector.Since.IsZero() {
			t.Errorf("%q: planned %+v", blank, s.planned)
		}
	}
}

func (n recorded) Ledger(context.Context, string, string, event.Page) ([]event.Entry, error) {
	return nil, nil
}

func (n recorded) Records(context.Context, string, string, event.Page) ([]event.KeptRecord, error) {
	return nil, nil
}
