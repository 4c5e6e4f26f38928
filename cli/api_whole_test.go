package cli_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestGateO2API asks for everything that the API has, holds every answer against
// its description, and wants one audit action for each act, under the name of
// the token.
func TestGateO2API(t *testing.T) {
	t.Parallel()
	s := busy(t)
	p := newProgram(t, s.Process, "robot", "operate")
	p.lookAtAll(t)
	p.doAll(t)
	for _, operation := range p.api.Operations() {
		if p.fine[operation] == "" {
			t.Errorf("%s was never answered", operation)
		}
	}
	audit := lines[actionLine](t, s.Process, "audit", "--json")
	seen := map[string]bool{}
	for _, a := range audit {
		if strings.HasPrefix(a.Actor, "token:robot#") && a.Reason == "bug 412" {
			seen[a.Action] = true
		}
	}
	for _, kind := range []string{"replay", "discard", "pause", "resume", "lane skip", "ack", "resolve dead"} {
		if !seen[kind] {
			t.Errorf("the audit trail has no %q of the token: %+v", kind, audit)
		}
	}
}

// lookAtAll gets everything that can be looked at.
func (p *program) lookAtAll(t *testing.T) {
	t.Helper()
	get := func(operation string, values ...any) listed {
		return decode[listed](t, p.want(t, 200, "GET "+operation, values, nil))
	}
	for _, path := range []string{"/openapi.json", "/stats", "/signals", "/sources", "/destinations", "/actions"} {
		get(path)
	}
	for _, path := range []string{"/events", "/deliveries", "/failures", "/dead-letters", "/duplicates", "/conflicts", "/lanes",
		"/incidents", "/records?kind=order", "/balances", "/ledger?holder=ann&unit=credits", "/object/history?object=order/7", "/rejects?source=shop"} {
		if len(get(path).Items) == 0 {
			t.Errorf("%s is empty", path)
		}
	}
	p.inOnePiece(t, "/events", p.pages(t, "/events", 7))
	p.pages(t, "/deliveries", 8)
	p.pages(t, "/balances", 2)
	p.pages(t, "/ledger", 2)
	p.inOnePiece(t, "/dead-letters", p.pages(t, "/dead-letters", 3))
	get("/deliveries/{id}", get("/deliveries?destination=unsure").Items[0].ID)
	get("/failures/{id}", get("/failures").Items[0].ID)
	id := get("/rejects").Items[0].ID
	get("/rejects/{id}", id)
	get("/rejects/{id}/verify?at=24h", id)
	if text := p.want(t, 200, "GET /object?object=order/7", nil, nil); !strings.Contains(text, `"state":"paid"`) {
		t.Errorf("the state of order/7: %s", text)
	}
	if text := p.want(t, 200, "GET /event?key=shop//o1", nil, nil); !strings.Contains(text, `"conflicts":1`) || !strings.Contains(text, `"tries":[{`) {
		t.Errorf("the event: %s", text)
	}
	if text := p.want(t, 200, "GET /event/body?key=shop//o1", nil, nil); text != `{"id":"o1","type":"order.paid","order":"7","customer":"ann","total":"12.50","version":1}` {
		t.Errorf("the body: %s", text)
	}
	for query, want := range map[string]int{"q=type:order.*%20id:o2": 1, "type=order.*": 2, "state=dead&type=wrong": 2, "q=o1": 1, "error=missing": 2} {
		if got := get("/events?" + query); len(got.Items) != want {
			t.Errorf("events by %s: %d, want %d", query, len(got.Items), want)
		}
	}
}

// pages reads a list one by one and whole, and wants the same rows.
func (p *program) pages(t *testing.T, path string, atLeast int) []string {
	t.Helper()
	keys := func(limit string) (all []string) {
		for cursor := ""; ; {
			page := decode[struct {
				Items []json.RawMessage
				Next  string
			}](t, p.want(t, 200, "GET "+path+"?limit="+limit+cursor, nil, nil))
			for _, one := range page.Items {
				all = append(all, string(one))
			}
			if page.Next == "" {
				return all
			}
			cursor = "&cursor=" + page.Next
		}
	}
	whole, ones := keys("200"), keys("1")
	if !slices.Equal(whole, ones) || len(whole) < atLeast {
		t.Errorf("%s by pages: %d of %d rows, want at least %d\n%v\n%v", path, len(ones), len(whole), atLeast, ones, whole)
	}
	return whole
}

// inOnePiece wants the same rows as JSON lines; dead letters have the head of
// their body in a page alone.
func (p *program) inOnePiece(t *testing.T, path string, rows []string) {
	t.Helper()
	text := p.want(t, 200, "GET "+path+".jsonl", nil, nil)
	var keys, lines []string
	for _, row := range rows {
		keys = append(keys, decode[keyed](t, row).name())
	}
	for line := range strings.Lines(text) {
		lines = append(lines, decode[keyed](t, line).name())
	}
	if !slices.Equal(lines, keys) || len(slices.Compact(slices.Clone(keys))) != len(keys) {
		t.Errorf("%s.jsonl: %v, want %v", path, lines, keys)
	}
}

// keyed is a row of events or of dead letters.
type keyed struct {
	ID       any
	Key      string
	Event    struct{ Key string }
	Delivery struct{ ID int64 }
}

func (k keyed) name() string { return fmt.Sprint(k.ID, k.Key, k.Event.Key, k.Delivery.ID) }

// doAll does everything that can be done.
func (p *program) doAll(t *testing.T) {
	t.Helper()
	n := 0
	act := func(operation string, values []any, body object) actionLine {
		n++
		body["reason"] = "bug 412"
		a := p.ask(t, "POST "+operation, values, body, "Idempotency-Key", strconv.Itoa(n))
		if a.status != 200 && a.status != 202 {
			t.Fatalf("%s: %d %s", operation, a.status, a.text)
		}
		return decode[actionLine](t, a.text)
	}
	if a := act("/pause", nil, object{"destination": "app"}); a.Done != 1 || a.Target != "app" {
		t.Errorf("pause: %+v", a)
	}
	act("/resume", nil, object{"destination": "app"})
	doubt := decode[listed](t, p.want(t, 200, "GET /deliveries?state=in_doubt", nil, nil)).Items[0].ID
	if a := act("/resolve", nil, object{"delivery": doubt, "as": "dead"}); a.Done != 1 {
		t.Errorf("resolve: %+v", a)
	}
	lane := decode[listed](t, p.want(t, 200, "GET /lanes", nil, nil)).Items[0].Lane
	if a := act("/lanes/retry", nil, object{"lane": lane}); a.Selected != 1 || a.Action != "replay" {
		t.Errorf("retry of a lane: %+v", a)
	}
	p.eventually(t, "GET /deliveries?state=dead&destination=broken", func(l listed) bool { return len(l.Items) == 1 && l.Items[0].Run == 2 })
	if a := act("/lanes/skip", nil, object{"lane": lane}); a.Selected != 1 {
		t.Errorf("skip of a lane: %+v", a)
	}
	plan := decode[struct {
		ID      string
		Events  int
		Would   []object
		Refused []object
	}](t, p.want(t, 200, "POST /plans", nil, object{"action": "replay", "query": "state:dead type:wrong"}))
	if plan.Events != 2 || len(plan.Would) != 1 {
		t.Errorf("the plan: %+v", plan)
	}
	first := act("/plans/{id}/carry", []any{plan.ID}, object{})
	again := act("/plans/{id}/carry", []any{plan.ID}, object{})
	if first.ID == 0 || first.ID != again.ID || first.Done != 2 {
		t.Errorf("a plan that is carried out twice: %+v and %+v", first, again)
	}
	if text := p.want(t, 200, "GET /plans/{id}", []any{plan.ID}, nil); !strings.Contains(text, fmt.Sprintf(`"carried":{"id":%d,`, first.ID)) {
		t.Errorf("the plan: %s", text)
	}
	p.want(t, 200, "GET /actions/{id}", []any{first.ID}, nil)
	if items := decode[listed](t, p.want(t, 200, "GET /actions/{id}/items?limit=1", []any{first.ID}, nil)); len(items.Items) != 1 || items.Next == "" || items.Items[0].Result != "replayed" {
		t.Errorf("the items: %+v", items)
	}
	p.eventually(t, "GET /events?state=dead&type=wrong", func(l listed) bool { return len(l.Items) == 2 })
	act("/discard", nil, object{"keys": []string{"shop//w1"}})
	act("/replay", nil, object{"keys": []string{"shop//w2"}})
	act("/ack", nil, object{"all": true})
	p.want(t, 200, "POST /rejects/retry", nil, object{"source": "shop", "reason": "bug 412"})
}
