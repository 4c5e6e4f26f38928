package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"creel/admin"
	"creel/event"
)

// TestGateO6TokensAreGuessedInVain makes many guesses: few are looked up, a
// program that was let in before is let in meanwhile, and a new one a minute
// later.
func TestGateO6TokensAreGuessedInVain(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	refused := 0
	for i := range 1000 {
		res, _ := s.do(t, fmt.Sprint("creel_", i), "GET", "/events", "")
		if res.StatusCode == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused != 1000-admin.GuessesEach {
		t.Errorf("of 1000 guesses %d were refused", refused)
	}
	// Nobody who guesses keeps a program out, one that is new either.
	for _, token := range []string{"look", "act"} {
		if res, _ := s.do(t, token, "GET", "/events", ""); res.StatusCode != http.StatusOK {
			t.Errorf("the token %s meanwhile: %s", token, res.Status)
		}
	}
	s.pass(time.Minute)
	if res, _ := s.do(t, "creel_0", "GET", "/events", ""); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("a guess a minute later: %s", res.Status)
	}
}

// Every way in which a request can be wrong says what is wrong.
func TestWrongRequestsAreToldWhat(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	long := strings.Repeat("k", 201)
	for _, c := range []struct {
		method, path, body string
		header             []string
		status             int
		says               string
	}{
		{"GET", "/events?sorce=shop", "", nil, 422, `there is no parameter \"sorce\"`},
		{"GET", "/stats?source=shop", "", nil, 422, "it takes none|this address takes none"},
		{"GET", "/events?limit=1&limit=2", "", nil, 422, "stands twice"},
		{"GET", "/events?a=%zz", "", nil, 422, "can not be read"},
		{"GET", "/events?limit=0", "", nil, 422, "from 1 to 200"},
		{"GET", "/events?limit=201", "", nil, 422, "from 1 to 200"},
		{"GET", "/events?limit=x", "", nil, 422, "from 1 to 200"},
		{"GET", "/events?cursor=x", "", nil, 422, "no cursor"},
		{"GET", "/deliveries?cursor=-1", "", nil, 422, "no cursor"},
		{"GET", "/events?cursor=%2B5", "", nil, 422, "no cursor"},
		{"GET", "/events?cursor=05", "", nil, 422, "no cursor"},
		{"GET", "/balances?cursor=x", "", nil, 422, "no cursor"},
		{"GET", "/events?state=broken", "", nil, 422, "none of pending"},
		{"GET", "/events?q=source:a&source=b", "", nil, 422, "stands twice"},
		{"GET", "/events?since=yesterday", "", nil, 422, "is not a time"},
		{"GET", "/dead-letters?state=done", "", nil, 422, "not done"},
		{"GET", "/deliveries?state=done", "", nil, 422, "one of waiting"},
		{"GET", "/deliveries?event=x", "", nil, 422, "an event key is"},
		{"GET", "/event", "", nil, 422, `\"key\" is missing`},
		{"GET", "/event?key=x", "", nil, 422, "an event key is"},
		{"GET", "/object", "", nil, 422, `\"object\" is missing`},
		{"GET", "/ledger?holder=ann", "", nil, 422, "both or neither"},
		{"GET", "/incidents?all=yes", "", nil, 422, "true or false"},
		{"GET", "/failures?kind=x", "", nil, 422, "no kind of a failure"},
		{"GET", "/deliveries/x", "", nil, 404, "is not a number"},
		{"GET", "/actions/-1", "", nil, 404, "is not a number"},
		{"GET", "/deliveries/99999999999999999999", "", nil, 404, "is not a number"},
		{"GET", "/event/", "", nil, 404, "openapi.json"},
		{"DELETE", "/event", "", nil, 405, "it answers GET"},

		{"POST", "/replay", `{"all":true}`, nil, 400, "Idempotency-Key is missing"},
		{"POST", "/discard", `{"all":true}`, nil, 400, "Idempotency-Key is missing"},
		{"POST", "/replay", `{"all":true}`, []string{"Idempotency-Key", long}, 400, "more than 200 bytes"},
		{"POST", "/replay", `all`, []string{"Content-Type", "text/plain"}, 415, "curl --json"},
		{"POST", "/replay", `{"al":true}`, nil, 422, `unknown field \"al\"`},
		{"POST", "/replay", `{"all":1}`, nil, 422, `the member \"all\" can not be a number`},
		{"POST", "/replay", `{"rate":"1"}`, nil, 422, `the member \"rate\" can not be a string`},
		{"POST", "/replay", `[]`, nil, 422, "not a JSON object"},
		{"POST", "/replay", `"all"`, nil, 422, "not a JSON object"},
		{"POST", "/replay", ``, nil, 422, "can not be taken"},
		{"POST", "/replay", `{"all":true}{}`, nil, 422, "stands behind"},
		{"POST", "/replay", `{"reason":"` + strings.Repeat("x", 1<<20) + `"}`, nil, 413, "1 MiB"},
		{"POST", "/replay", `{}`, nil, 422, "which events are meant"},
		{"POST", "/replay", `{"query":"","keys":[]}`, nil, 422, "which events are meant"},
		{"POST", "/replay", `{"query":"sorce:x"}`, nil, 422, "did you mean"},
		{"POST", "/replay", `{"keys":["x"]}`, nil, 422, "an event key is"},
		{"POST", "/replay", `{"keys":["a//b"],"query":"state:dead"}`, nil, 422, "not both"},
		{"POST", "/replay", `{"query":"state:dead","run":1}`, nil, 422, "of one event"},
		{"POST", "/replay", `{"keys":[null]}`, nil, 422, "an event key is"},
		{"POST", "/replay", `{"keys":["a//b"],"run":-1}`, nil, 422, "of one event"},
		{"POST", "/pause", `{"destination":"app","destination":"crm"}`, nil, 422, `\"destination\" stands there twice`},
		{"POST", "/pause", `{"Destination":"app"}`, nil, 422, `\"Destination\" is not known`},
		{"POST", "/pause", `{"destination":"app","rea\u017fon":"x"}`, nil, 422, "is not known"},
		{"POST", "/pause", `null`, nil, 422, "say which"},
		{"POST", "/discard", `{}`, nil, 422, "which events are meant"},
		{"POST", "/resolve", `{"delivery":1,"as":"gone"}`, nil, 422, "sent, again or dead"},
		{"POST", "/resolve", `{"as":"sent"}`, nil, 422, "sent, again or dead"},
		{"POST", "/ack", `{}`, nil, 422, "names no incident"},
		{"POST", "/ack", `{"incident":1,"all":true}`, nil, 422, "names no incident"},
		{"POST", "/lanes/skip", `{}`, nil, 422, "names no lane"},
		{"POST", "/lanes/skip", `{"lane":"x"}`, nil, 404, "no lane"},
		{"POST", "/rejects/retry", `{}`, nil, 422, "names no rejected request"},
		{"POST", "/plans", `{"action":"pause","all":true}`, nil, 422, "replay or discard"},
		{"POST", "/plans/x/carry", `{}`, nil, 422, "say why"},
	} {
		res, text := s.do(t, "act", c.method, c.path, c.body, c.header...)
		says := false
		for _, one := range strings.Split(c.says, "|") {
			says = says || strings.Contains(text, one)
		}
		if res.StatusCode != c.status || !says || !strings.HasPrefix(text, `{"error":"`) {
			t.Errorf("%s %s %.60s: %d %.300s, want %d %s", c.method, c.path, c.body, res.StatusCode, text, c.status, c.says)
		}
	}
	if len(s.acted) != 0 {
		t.Errorf("one of them acted: %+v", s.acted)
	}
}

// What the rooms below say becomes the status that means it; what is our own
// fault is not shown.
func TestErrorsHaveTheirStatus(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	for _, c := range []struct {
		err    error
		status int
		says   string
	}{
		{fmt.Errorf("replay: %w", event.ErrNotFound), 404, "replay: not found"},
		{fmt.Errorf("%w: no such destination", admin.ErrRefused), 422, "no such destination"},
		{fmt.Errorf("action 7: %w", event.ErrOtherRequest), 422, "take another one"},
		{event.ErrBusy, 503, "ask again"},
		{fmt.Errorf("write: %w: disk I/O error of creel.db", event.ErrUnavailable), 503, "ask again"},
		{context.DeadlineExceeded, 503, "ask for less"},
		{errors.New("disk I/O error of creel.db"), 500, "the log says why"},
	} {
		s.fails = c.err
		for _, ask := range [][3]string{{"GET", "/stats", ""}, {"GET", "/lanes", ""}, {"POST", "/pause", `{"destination":"app"}`}} {
			res, text := s.do(t, "act", ask[0], ask[1], ask[2])
			if res.StatusCode != c.status || !strings.Contains(text, c.says) || strings.Contains(text, "creel.db") {
				t.Errorf("%v at %s: %d %s", c.err, ask[1], res.StatusCode, text)
			}
			if (c.status == 503) != (res.Header.Get("Retry-After") != "") {
				t.Errorf("%v: Retry-After %q", c.err, res.Header.Get("Retry-After"))
			}
		}
	}
	s.fails = fmt.Errorf("%w: no page", event.ErrNotFound)
	for _, path := range []string{"/failures?cursor=x", "/dead-letters?cursor=x"} {
		if res, text := s.do(t, "act", "GET", path, ""); res.StatusCode != 422 || !strings.Contains(text, "no cursor") {
			t.Errorf("%s: %d %s", path, res.StatusCode, text)
		}
	}
}

// Filters that stand by themselves and the text of a query mean the same.
func TestFiltersAreTheQuery(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	want := event.Selector{Source: "shop", Type: "order.*", Error: `say "no" again`, Since: began.Add(-24 * time.Hour), SinceAgo: 86_400, Word: "o1"}
	for _, path := range []string{
		`/events?q=source:shop+type:order.*+since:24h+o1+error:"say+\"no\"+again"`,
		`/events?source=shop&type=order.*&since=24h&q=o1&error=say+"no"+again`,
	} {
		res, text := s.do(t, "look", "GET", strings.NewReplacer(`"`, "%22", `\`, "%5C").Replace(path), "")
		if res.StatusCode != 200 || text != `{"items":[{"key":"shop//a","source":"shop","account":"","id":"a","type":"","object":"","state":"","run":0,"attempts":0,"duplicates":0,"origin":"","received_at":"","error":""}],"next":"7","partial":true}`+"\n" {
			t.Fatalf("%s: %d %s", path, res.StatusCode, text)
		}
		if got := s.asks[len(s.asks)-1]; !reflect.DeepEqual(got.Selector, want) || got.Limit != 50 {
			t.Errorf("%s asks for %+v", path, got)
		}
	}
	s.do(t, "look", "GET", "/dead-letters?source=shop&limit=200&cursor=c", "")
	if got := s.asks[len(s.asks)-1]; got.State != event.Dead || got.Cursor != "c" || got.Limit != 200 || !got.NoHead {
		t.Errorf("dead letters ask for %+v", got)
	}
	s.do(t, "look", "GET", "/deliveries?event=shop//a&state=dead", "")
	if got := s.filter[len(s.filter)-1]; got.Event == nil || got.Event.ID != "a" || got.State != event.DeliveryDead {
		t.Errorf("deliveries are asked for by %+v", got)
	}
}

// A page says where the next one begins, the last one nothing; a lane with
// several rows stays together.
func TestPagesEnd(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	for path, next := range map[string]string{"/deliveries?limit=4": `"next":"7"`, "/deliveries?limit=4&cursor=7": `"next":"3"`, "/deliveries?limit=4&cursor=3": "", "/deliveries?limit=10": ""} {
		_, text := s.do(t, "look", "GET", path, "")
		if next == "" && strings.Contains(text, `"next"`) || !strings.Contains(text, next) {
			t.Errorf("%s: %s, want %s", path, text, next)
		}
	}
	for _, l := range []string{"a", "a", "b", "c"} {
		s.lanes = append(s.lanes, event.ParkedLane{Lane: l})
	}
	_, text := s.do(t, "look", "GET", "/lanes?limit=2", "")
	if strings.Count(text, `"lane":"a"`) != 2 || strings.Count(text, `"lane":`) != 3 || !strings.Contains(text, `"next":"b"`) {
		t.Errorf("two lanes: %s", text)
	}
	if _, text := s.do(t, "look", "GET", "/lanes?limit=1&cursor=a", ""); !strings.Contains(text, `"next":"b"`) {
		t.Errorf("one lane of one row: %s", text)
	}
	if _, text := s.do(t, "look", "GET", "/lanes?limit=2&cursor=b", ""); strings.Contains(text, `"next"`) {
		t.Errorf("the last lane: %s", text)
	}
}

// Acts say who did them and under which key; one that goes on is answered with
// 202, and about a lane in doubt a person decides first.
func TestActsAreSigned(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	one := event.ParkedLane{Lane: "l", Event: event.Key{Source: "shop", ID: "a"}, State: "dead"}
	s.lanes = []event.ParkedLane{one, {Lane: "l", Event: one.Event, State: "dead", Destination: "app"},
		{Lane: "d", Event: one.Event, State: string(event.DeliveryInDoubt), Delivery: 17}}
	for _, c := range []struct {
		path, body string
		want       event.Action
	}{
		{"/replay", `{"query":"state:dead","resend":true,"rate":5,"reason":"r"}`, event.Action{Kind: event.ActionReplay, Reason: "r", Resend: true, Rate: 5, Selector: event.Selector{State: event.Dead}}},
		{"/replay", `{"keys":["shop//a"],"run":3}`, event.Action{Kind: event.ActionReplay, Selector: event.Selector{Keys: []event.Key{one.Event}, Run: 3}}},
		{"/discard", `{"destination":"gone"}`, event.Action{Kind: event.ActionDiscard, Target: "gone"}},
		{"/discard", `{"all":true}`, event.Action{Kind: event.ActionDiscard, Selector: event.Selector{All: true}}},
		{"/resolve", `{"delivery":17,"as":"again"}`, event.Action{Kind: event.ActionSendAgain, Target: "17"}},
		{"/pause", `{"destination":"app"}`, event.Action{Kind: event.ActionPause, Target: "app"}},
		{"/ack", `{"incident":7}`, event.Action{Kind: event.ActionAck, Target: "7"}},
		{"/ack", `{"all":true}`, event.Action{Kind: event.ActionAck, Target: event.AllIncidents}},
		{"/lanes/skip", `{"lane":"l"}`, event.Action{Kind: event.ActionLaneSkip, Target: "l", Selector: event.Selector{Keys: []event.Key{one.Event}}}},
		{"/lanes/skip", `{"key":"shop//a"}`, event.Action{Kind: event.ActionLaneSkip, Selector: event.Selector{Keys: []event.Key{one.Event}}}},
		{"/lanes/retry", `{"lane":"l"}`, event.Action{Kind: event.ActionReplay, Selector: event.Selector{Keys: []event.Key{one.Event}}}},
	} {
		res, text := s.do(t, "act", "POST", c.path, c.body, "Idempotency-Key", "k")
		if res.StatusCode != 200 {
			t.Fatalf("%s %s: %d %s", c.path, c.body, res.StatusCode, text)
		}
		got := s.acted[len(s.acted)-1]
		c.want.Actor, c.want.At, c.want.Once = "token:robot#2", began, got.Once
		if !reflect.DeepEqual(got, c.want) || got.Once == (event.Once{}) {
			t.Errorf("%s %s does %+v\nwant %+v", c.path, c.body, got, c.want)
		}
	}
	if res, text := s.do(t, "act", "POST", "/resume", `{"destination":"slow"}`); res.StatusCode != http.StatusAccepted || !strings.Contains(text, `"id":12`) {
		t.Errorf("an act that goes on: %d %s", res.StatusCode, text)
	}
	if got := s.acted[len(s.acted)-1]; got.Once != (event.Once{}) {
		t.Errorf("without a key: %+v", got.Once)
	}
	if res, text := s.do(t, "act", "POST", "/lanes/retry", `{"lane":"d"}`); res.StatusCode != 422 || !strings.Contains(text, "delivery 17 is in doubt") {
		t.Errorf("a lane in doubt: %d %s", res.StatusCode, text)
	}
}

// The same request is the same in the eyes of the store, whatever the order of
// its members; another one, another key or another token is another one.
func TestRequestsAreToldApart(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	ask := func(path, body, key string) event.Once {
		if res, text := s.do(t, "act", "POST", path, body, "Idempotency-Key", key); res.StatusCode != 200 {
			t.Fatalf("%s: %d %s", body, res.StatusCode, text)
		}
		return s.acted[len(s.acted)-1].Once
	}
	first := ask("/replay", `{"query":"since:24h","reason":"r"}`, "k")
	s.pass(time.Hour)
	if again := ask("/replay", `{ "reason":"r", "query":"since:24h" }`, "k"); again != first {
		t.Error("an hour later, in another order: another request")
	}
	for what, other := range map[string]event.Once{
		"other body": ask("/replay", `{"query":"since:25h","reason":"r"}`, "k"),
		"other act":  ask("/discard", `{"query":"since:24h","reason":"r"}`, "k"),
	} {
		if other.By != first.By || other.What == first.What {
			t.Errorf("%s: %+v", what, other)
		}
	}
	if other := ask("/replay", `{"query":"since:24h","reason":"r"}`, "l"); other.By == first.By || other.What != first.What {
		t.Errorf("other key: %+v", other)
	}
}
