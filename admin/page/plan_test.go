package page

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"creel/event"
)

// A plan means what was chosen and never more: ticked rows, a group, what a
// search finds; and nothing where nothing was said.
func TestPlansMeanWhatWasChosen(t *testing.T) {
	t.Parallel()
	key := event.Key{Source: "shop", ID: "a"}
	for name, c := range map[string]struct {
		form url.Values
		want *event.Action // nil: refused
	}{
		"rows": {url.Values{"do": {"replay"}, "key": {"shop//a"}, "q": {"type:x"}},
			&event.Action{Kind: event.ActionReplay, Selector: event.Selector{Keys: []event.Key{key}}}},
		"a group": {url.Values{"do": {"replay all"}, "failure": {"7"}},
			&event.Action{Kind: event.ActionReplay, Selector: event.Selector{State: event.Dead, Failure: 7}}},
		"a group, narrowed": {url.Values{"do": {"replay all"}, "failure": {"7"}, "source": {"shop"}, "q": {"type:x.* id:e"}},
			&event.Action{Kind: event.ActionReplay, Selector: event.Selector{State: event.Dead, Failure: 7, Source: "shop", Type: "x.*", ID: "e"}}},
		"a group, given up at its destination alone": {url.Values{"do": {"discard all"}, "failure": {"7"}},
			&event.Action{Kind: event.ActionDiscard, Target: "app", Selector: event.Selector{State: event.Dead, Failure: 7}}},
		"all that match": {url.Values{"do": {"discard all"}, "key": {"shop//a"}, "destination": {"app"}},
			&event.Action{Kind: event.ActionDiscard, Selector: event.Selector{State: event.Dead, Destination: "app"}}},
		"no row":                  {url.Values{"do": {"replay"}, "q": {"type:x"}}, nil},
		"a group without all":     {url.Values{"do": {"replay"}, "failure": {"7"}}, nil},
		"a search that is none":   {url.Values{"do": {"replay all"}, "q": {"tpye:x"}}, nil},
		"a row that is no event":  {url.Values{"do": {"replay"}, "key": {"nothing"}}, nil},
		"neither of the two":      {url.Values{"do": {"pause all"}}, nil},
		"not said what is wanted": {url.Values{"key": {"shop//a"}}, nil},
	} {
		s := newStand(t, "")
		b := s.browser(t)
		b.login(t)
		c.form.Set("token", b.token(t))
		res, _ := b.do(t, http.MethodPost, "/plan", c.form)
		if c.want == nil {
			if res.StatusCode != http.StatusBadRequest || len(s.planned) > 0 {
				t.Errorf("%s: %s, %+v", name, res.Status, s.planned)
			}
			continue
		}
		c.want.Actor, c.want.At = "page:ana", began
		if res.Header.Get("Location") != "/plan/p1" || len(s.planned) != 1 || !cmp.Equal(s.planned[0], *c.want) {
			t.Errorf("%s: %s, %+v", name, res.Status, s.planned)
		}
	}
}

// What is said beside a plan goes with it: a pace, and whether what was sent is
// sent again. What is no pace is refused, and nothing is done.
func TestPlansAreCarriedOutAsSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		form url.Values
		want *event.Action // nil: refused
	}{
		"as usual": {url.Values{}, &event.Action{}},
		"a pace":   {url.Values{"rate": {" 2.5 "}}, &event.Action{Rate: 2.5}},
		"again":    {url.Values{"rate": {""}}, &event.Action{Resend: true}},
		"no pace":  {url.Values{"rate": {"fast"}}, nil},
		"below 0":  {url.Values{"rate": {"-1"}}, nil},
		"nothing":  {url.Values{"rate": {"0"}}, nil},
		"NaN":      {url.Values{"rate": {"NaN"}}, nil},
	} {
		s := newStand(t, "")
		b := s.browser(t)
		b.login(t)
		c.form.Set("token", b.token(t))
		c.form.Set("reason", "bug 412")
		s.planned = []event.Action{{Kind: event.ActionReplay}}
		if name == "again" { // it is looked at first
			b.do(t, http.MethodPost, "/plan/p1", url.Values{"do": {"look again"}, "token": c.form["token"]})
			if len(s.planned) != 2 || !s.planned[1].Resend {
				t.Errorf("%s: planned %+v", name, s.planned)
			}
		}
		res, _ := b.do(t, http.MethodPost, "/plan/p1", c.form)
		if c.want == nil {
			if res.StatusCode != http.StatusBadRequest || len(s.carried) > 0 {
				t.Errorf("%s: %s, %+v", name, res.Status, s.carried)
			}
			continue
		}
		c.want.Actor, c.want.At, c.want.Reason = "page:ana", began, "bug 412"
		if res.Header.Get("Location") != "/audit/1" || len(s.carried) != 1 || !cmp.Equal(s.carried[0], *c.want) {
			t.Errorf("%s: %s, %+v", name, res.Status, s.carried)
		}
	}
}
